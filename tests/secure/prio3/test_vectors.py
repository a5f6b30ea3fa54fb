"""The recorded vectors of draft-irtf-cfrg-vdaf-20 and RFC 9861: every one is reproduced, the bad ones are rejected."""

import json
from hashlib import sha256
from typing import Any

import pytest

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.fields import FIELD128
from lapwing.secure.prio3.prio3 import Prio3
from lapwing.secure.prio3.turboshake import TurboShake128
from lapwing.secure.prio3.xof import Xof
from tests.secure.prio3 import FOLDER, prio3_of, vector

VECTORS = sorted(path.stem for path in FOLDER.glob("Prio3*.json"))
PATTERN = bytes(range(0xFB))


@pytest.mark.parametrize(
    ("message", "domain", "skip", "output"),
    [
        (b"", 0x1F, 0, "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"),
        (b"", 0x1F, 32, "3e8ccae2a4dae56c84a04c2385c03c15e8193bdf58737363321691c05462c8df"),
        (b"", 0x1F, 10_000, "a3b9b0385900ce761f22aed548e754da10a5242d62e8c658e3f3a923a7555607"),
        (PATTERN[:1], 0x1F, 0, "55cedd6f60af7bb29a4042ae832ef3f58db7299f893ebb9247247d856958daa9"),
        (PATTERN[:17], 0x1F, 0, "9c97d036a3bac819db70ede0ca554ec6e4c2a1a4ffbfd9ec269ca6a111161233"),
        ((PATTERN * 2)[:289], 0x1F, 0, "96c77c279e0126f7fc07c9b07f5cdae1e0be60bdbe10620040e75d7223a624d2"),
        ((PATTERN * 20)[:4913], 0x1F, 0, "d4976eb56bcf118520582b709f73e1d6853e001fdaf80e1b13e0d0599d5fb372"),
        (b"\xff" * 3, 0x01, 0, "bf323f940494e88ee1c540fe660be8a0c93f43d15ec006998462fa994eed5dab"),
        (b"\xff", 0x06, 0, "8ec9c66465ed0d4a6c35d13506718d687a25cb05c74cca1e42501abd83874a67"),
        (b"\xff" * 3, 0x07, 0, "b658576001cad9b1e5f399a9f77723bba05458042d68206f7252682dba3663ed"),
    ],
)
def test_turboshake(message: bytes, domain: int, skip: int, output: str) -> None:
    """RFC 9861, section 5."""
    stream = TurboShake128(message, domain)
    assert len(stream.read(skip)) == skip
    assert stream.read(5) + stream.read(27) == bytes.fromhex(output)


def test_the_xof() -> None:
    found = vector("XofTurboShake128")
    given = [bytes.fromhex(found[name]) for name in ("seed", "dst", "binder")]
    assert Xof(*given).seed().hex() == found["derived_seed"]
    elements = Xof(*given).vector(FIELD128, found["length"])
    assert FIELD128.encode(elements).hex() == found["expanded_vec_field128"]


def test_all_vectors_are_there_as_they_were_published() -> None:
    """The digests are of the files in the repository of the draft, at its tag draft-irtf-cfrg-vdaf-20."""
    digests = json.loads((FOLDER / "digests.json").read_text())
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*_*.json")} | {
        "XofTurboShake128.json": sha256((FOLDER / "XofTurboShake128.json").read_bytes()).hexdigest()
    } == digests
    assert len(VECTORS) == 19
    assert sum("_bad_" in name for name in VECTORS) == 8


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    """Every operation that a file lists gives the recorded bytes, or is refused where it must fail."""
    found = vector(name)
    follow(prio3_of(name, found), found)
    assert ("_bad_" in name) == any(not operation["success"] for operation in found["operations"])


def follow(prio3: Prio3, found: dict[str, Any]) -> None:
    """Do the operations of a vector in their order, and compare."""
    reports, key = found["reports"], bytes.fromhex(found["verify_key"])
    kept, outputs, totals, failed = {}, {}, {}, 0
    for operation in found["operations"]:
        index, place = operation.get("report_index"), operation.get("aggregator_id")
        report = reports[index] if index is not None else {}
        try:
            match operation["operation"]:
                case "shard":
                    nonce, rand = (bytes.fromhex(report[part]) for part in ("nonce", "rand"))
                    made = prio3.shard(report["measurement"], nonce, rand)
                    assert made.public_share.hex() == report["public_share"]
                    assert [share.hex() for share in made.input_shares] == report["input_shares"]
                case "verify_init":
                    parts = (report["nonce"], report["public_share"], report["input_shares"][place])
                    kept[index, place], share = prio3.begin_verifying(key, place, *map(bytes.fromhex, parts))
                    assert share.hex() == report["verifier_shares"][0][place]
                case "verifier_shares_to_message":
                    shares = [bytes.fromhex(share) for share in report["verifier_shares"][0]]
                    assert prio3.verifier_message(shares).hex() == report["verifier_messages"][0]
                case "verify_next":
                    message = bytes.fromhex(report["verifier_messages"][0])
                    outputs[index, place] = prio3.verified(kept[index, place], message)
                    field = prio3.circuit.field
                    assert field.encode(outputs[index, place]).hex() == "".join(report["out_shares"][place])
                case "aggregate":
                    totals[place] = prio3.total([outputs[at, place] for at in range(len(reports))])
                    assert prio3.circuit.field.encode(totals[place]).hex() == found["agg_shares"][place]
                case "unshard":
                    result = prio3.unshard([totals[place] for place in range(prio3.servers)])
                    recorded = found["agg_result"]
                    assert result == (recorded if isinstance(recorded, list) else [recorded])
                case other:
                    raise AssertionError(other)
            assert operation["success"]
        except InvalidParameter:
            assert not operation["success"]
            failed += 1
    assert failed == sum(not operation["success"] for operation in found["operations"])
