"""The browser's module of Prio3: its shares are those of the vectors and of Python, and servers verify them."""

import json
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pytest

import lapwing.secure
from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.circuits import (
    Circuit,
    CountCircuit,
    HistogramCircuit,
    SumCircuit,
    SumVecCircuit,
)
from lapwing.secure.prio3.prio3 import Prio3
from lapwing.secure.prio3.range_checks import Measurement
from tests.local.test_module import needs_chromium, needs_node
from tests.secure.prio3 import FOLDER, circuit_of, vector
from tests.support.browser.chromium import shared
from tests.support.browser.places import in_node, served

MODULE = Path(lapwing.secure.__file__).parent / "browser" / "lapwing-prio3.mjs"
RUNS = Path(__file__).parent / "runs.mjs"
NAMES = sorted(path.stem for path in FOLDER.glob("Prio3*.json") if "_bad_" not in path.stem)


def asked(circuit: Circuit, measurement: object, **more: object) -> dict[str, object]:
    """Return what `runs.mjs` is asked for; the largest values are texts, as they are beyond JSON's numbers."""
    match circuit:
        case CountCircuit():
            kind, sizes = "count", list[object]()
        case SumCircuit():
            kind, sizes = "sum", [str(circuit.most)]
        case SumVecCircuit():
            kind, sizes = "sumVec", [circuit.length, str(circuit.most), circuit.chunk]
        case HistogramCircuit():
            kind, sizes = "histogram", [circuit.length, circuit.chunk]
    shown = [str(each) for each in measurement] if isinstance(measurement, list) else measurement
    shown = str(shown) if isinstance(shown, int) and not isinstance(shown, bool) else shown
    return {"kind": kind, "sizes": sizes, "context": b"tests".hex(), "servers": 2, "measurement": shown, **more}


def in_module(given: list[dict[str, object]], module: Path = MODULE) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = in_node(RUNS, given, module)
    return found


@needs_node
@pytest.mark.parametrize("planted", [False, True], ids=["shipped", "planted"])
def test_shares_are_those_of_the_vectors(planted: bool, tmp_path: Path) -> None:
    """All reports of all vectors, byte for byte; the planted bug: the version in the tags is that of another draft."""
    module, source = tmp_path / MODULE.name, MODULE.read_text(encoding="utf-8")
    assert "VERSION = 18" in source
    module.write_text(source.replace("VERSION = 18", "VERSION = 17") if planted else source, encoding="utf-8")
    given, expected = [], []
    for name in NAMES[:3] if planted else NAMES:
        found = vector(name)
        for report in found["reports"]:
            each = {
                "context": found["ctx"],
                "servers": found["shares"],
                "nonce": report["nonce"],
                "rand": report["rand"],
            }
            given.append(asked(circuit_of(name, found), report["measurement"], **each))
            expected.append(
                {"nonce": report["nonce"], "public": report["public_share"], "shares": report["input_shares"]}
            )
    assert (in_module(given, module) == expected) is not planted
    assert len(given) >= 3


CASES: list[tuple[Circuit, Measurement]] = [
    (CountCircuit(), 1),
    (SumCircuit((1 << 63) + 5), 1 << 63),
    (SumVecCircuit(3, 6, 4), [6, 0, 5]),
    (HistogramCircuit(7, 7), 6),
]


@needs_node
def test_servers_verify_what_it_draws() -> None:
    """With randomness of its own; no two reports have the same."""
    verify(in_module([asked(circuit, measurement) for circuit, measurement in CASES * 2]))


def verify(found: list[dict[str, Any]]) -> None:
    """Require that servers accept two reports of each case, and that each total is the measurement."""
    assert len({each["nonce"] for each in found}) == len(found)
    for (circuit, measurement), each in zip(CASES * 2, found, strict=True):
        prio3, key, nonce = Prio3(circuit=circuit, context=b"tests"), token_bytes(32), bytes.fromhex(each["nonce"])
        begun = [
            prio3.begin_verifying(key, place, nonce, bytes.fromhex(each["public"]), bytes.fromhex(share))
            for place, share in enumerate(each["shares"])
        ]
        message = prio3.verifier_message([share for _, share in begun])
        total = prio3.unshard([prio3.total([prio3.verified(kept, message)]) for kept, _ in begun])
        assert total == circuit.truncate(circuit.encode(measurement))


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("planted", [False, True], ids=["shipped", "planted"])
def test_chromium_draws_reports_that_servers_verify(planted: bool, tmp_path: Path) -> None:
    """In a page, with the browser's own randomness; the planted bug: all reports have the same randomness."""
    source = MODULE.read_text(encoding="utf-8")
    assert "crypto.getRandomValues(" in source
    module = source.replace("crypto.getRandomValues(", "((bytes) => bytes.fill(7))(") if planted else source
    (tmp_path / MODULE.name).write_text(module, encoding="utf-8")
    (tmp_path / RUNS.name).write_bytes(RUNS.read_bytes())
    (tmp_path / "page.html").write_text("<!doctype html><title>Prio3</title>")
    given = json.dumps([asked(circuit, measurement) for circuit, measurement in CASES * 2])
    with shared() as browser, served(tmp_path) as address:
        page = browser.page()
        page.go(f"{address}/page.html")
        found = page.run(
            f"const {{ run }} = await import('./{RUNS.name}'); return run(await import('./{MODULE.name}'), {given})"
        )
        assert page.events("Runtime.exceptionThrown") == []
    if planted:
        with pytest.raises(AssertionError):
            verify(found)
    else:
        verify(found)


@needs_node
def test_it_refuses_what_python_refuses() -> None:
    wrong: list[tuple[Circuit, Any]] = [
        (CountCircuit(), 2), (CountCircuit(), -1), (CountCircuit(), True), (SumCircuit(100), 101),
        (SumVecCircuit(3, 5, 2), [0, 6, 1]), (SumVecCircuit(3, 5, 2), [0, 1]), (HistogramCircuit(11, 3), 11),
    ]  # fmt: skip
    assert [each["kind"] for each in in_module([asked(*case) for case in wrong])] == ["measurement"] * len(wrong)
    for circuit, measurement in wrong:
        with pytest.raises(InvalidParameter):
            circuit.encode(measurement)
