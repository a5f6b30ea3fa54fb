"""DAP's messages, byte for byte. The draft records none: these were written by hand from its structures."""

from collections.abc import Callable
from secrets import token_bytes

import pytest

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3 import dap
from lapwing.secure.prio3.circuits import Circuit, CountCircuit, HistogramCircuit, SumCircuit, SumVecCircuit

TASK = dap.DapTask(
    task_id=bytes(range(32)),
    info=b"a",
    leader="https://l/",
    helper="https://h/",
    time_precision=3600,
    min_batch_size=100,
    batch_mode=dap.TIME_INTERVAL,
    circuit=HistogramCircuit(5, 2),
)
CONFIGURATION = (
    "01 61"  # task_info
    "000a 68747470733a2f2f6c2f"  # leader
    "000a 68747470733a2f2f682f"  # helper
    "0000000000000e10 0000000000000064"  # time_precision, min_batch_size
    "01 0000"  # batch_mode, batch_config
    "00000004 0008 00000005 00000002"  # vdaf_type, vdaf_configuration
    "0000"  # extensions
)
ID = bytes(range(100, 116))
METADATA = "6465666768696a6b6c6d6e6f7071727300000000000000070005 0009 0001 ff"
REPORT = METADATA + "00000002 abcd0a 0001 01 00000002 02030b 0002 0405 00000001 06"


def test_a_task_is_encoded() -> None:
    assert TASK.encode() == bytes.fromhex(CONFIGURATION)
    assert TASK.prio3.context == b"dap-18" + TASK.task_id


@pytest.mark.parametrize(
    ("circuit", "configuration"),
    [
        (CountCircuit(), "00000001 0000"),
        (SumCircuit(255), "00000002 0008 00000000000000ff"),
        (SumVecCircuit(3, 255, 5), "00000003 0010 00000003 00000000000000ff 00000005"),
    ],
    ids=str,
)
def test_circuits_are_encoded(circuit: Circuit, configuration: str) -> None:
    task = dap.DapTask(
        task_id=bytes(32), info=b"a", leader="l", helper="h", time_precision=1, min_batch_size=1, batch_mode=2,
        circuit=circuit,
    )  # fmt: skip
    assert task.encode().endswith(bytes.fromhex("02 0000" + configuration + "0000"))


def test_a_report_is_encoded_and_decoded() -> None:
    report = dap.DapReport(
        report_id=ID,
        time=7,
        extensions=((9, b"\xff"),),
        public_share=b"\xab\xcd",
        leader_share=dap.DapCiphertext(config_id=10, enc=b"\x01", payload=b"\x02\x03"),
        helper_share=dap.DapCiphertext(config_id=11, enc=b"\x04\x05", payload=b"\x06"),
    )
    assert report.encode() == bytes.fromhex(REPORT)
    assert dap.reports_in(report.encode() * 2) == [report, report]
    assert dap.reports_in(b"") == []


def test_what_is_sealed() -> None:
    head = dap.metadata(ID, 7, ((9, b"\xff"),))
    sealing = dap.sealing_of_input_share(TASK, dap.HELPER, head, b"\xab\xcd", b"\x55" * 3)
    assert sealing.info == b"dap-18 input share\x01\x03"
    assert sealing.aad == TASK.task_id + bytes.fromhex(CONFIGURATION + METADATA + "00000002 abcd")
    assert sealing.plaintext == bytes.fromhex("0000 00000003 555555")
    assert "plaintext" not in repr(sealing)


def test_a_collection() -> None:
    request = dap.collection_request(TASK, (16, 2))
    assert request == bytes.fromhex("01 0010 0000000000000010 0000000000000002 00000000 0000")
    info, aad = dap.opening_of_aggregate_share(TASK, dap.LEADER, request)
    assert info == b"dap-18 aggregate share\x02\x00"
    assert aad == TASK.task_id + bytes.fromhex(CONFIGURATION) + request
    answer = bytes.fromhex(
        "00000000000003e8 0000000000000010 0000000000000001 05 0001 01 00000001 02 05 0001 03 00000001 04"
    )
    found = dap.collection_in(answer)
    assert (found.report_count, found.start, found.duration) == (1000, 16, 1)
    assert found.helper_share == dap.DapCiphertext(config_id=5, enc=b"\x03", payload=b"\x04")
    assert found.encode() == answer
    with pytest.raises(InvalidParameter):
        dap.collection_request(TASK)
    with pytest.raises(InvalidParameter):
        dap.collection_in(answer + b"\x00")


def test_keys_and_errors_are_decoded() -> None:
    keys = bytes.fromhex("0016 c2 0010 0001 0001 0002 0102 11 0020 0001 0003 0002 0403")
    found = dap.hpke_configs_in(keys)
    assert [(each.config_id, each.kem, each.kdf, each.aead) for each in found] == [(194, 16, 1, 1), (17, 32, 1, 3)]
    assert [each.public_key for each in found] == [b"\x01\x02", b"\x04\x03"]
    assert dap.upload_errors_in(ID + b"\x02") == [(ID, 2)]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (dap.reports_in, REPORT),
        (dap.hpke_configs_in, "000b c2 0010 0001 0001 0002 0102"),
        (dap.upload_errors_in, "6465666768696a6b6c6d6e6f70717273 02"),
    ],
    ids=["reports", "keys", "errors"],
)
def test_what_ends_early_is_refused(read: Callable[[bytes], list[object]], message: str) -> None:
    data = bytes.fromhex(message)
    assert len(read(data)) == 1
    for end in range(1, len(data)):
        with pytest.raises(InvalidParameter):
            read(data[:end])


def test_numbers_without_room_are_refused() -> None:
    builds: tuple[Callable[[], bytes], ...] = (
        lambda: dap.metadata(ID, 1 << 64),
        lambda: dap.metadata(ID[1:], 1),
        lambda: dap.DapCiphertext(config_id=256, enc=b"a", payload=b"a").encode(),
        lambda: dap.DapCiphertext(config_id=1, enc=b"", payload=b"a").encode(),
    )
    for build in builds:
        with pytest.raises(InvalidParameter):
            build()


def test_shares_of_a_report_are_those_of_prio3() -> None:
    """The id of a report is its nonce, and the task's id is in the context."""
    prio3, key = TASK.prio3, token_bytes(32)
    report = prio3.shard(3, ID, token_bytes(prio3.randomness_bytes))
    plain = [
        dap.sealing_of_input_share(TASK, role, dap.metadata(ID, 7), report.public_share, share).plaintext
        for role, share in zip((dap.LEADER, dap.HELPER), report.input_shares, strict=True)
    ]
    begun = [
        prio3.begin_verifying(key, place, ID, report.public_share, opened[6:]) for place, opened in enumerate(plain)
    ]
    message = prio3.verifier_message([share for _, share in begun])
    assert prio3.unshard([prio3.verified(kept, message) for kept, _ in begun]) == [0, 0, 0, 1, 0]
