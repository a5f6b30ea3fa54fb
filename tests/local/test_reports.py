"""Reports from anybody: what is malformed is rejected by itself, with a reason, and nothing fails."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.local import (
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
    client,
    collect,
    collect_for,
    estimate,
    mechanism_of,
)
from lapwing.local.collection import KEYS
from tests.local.test_client import task_of, tasks_of_vectors
from tests.support.effort import examples, one_in, only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.mechanism_cases import AT_EPSILON

TASKS = {name: task_of(make(1)) for name, make in AT_EPSILON}
SUBSET = TASKS["subset of 8"]
SIZE = dict(SUBSET.parameters)["size"]


def honest(task: client.Task, count: int = 1, label: str = "honest") -> list[bytes]:
    entropy = StreamEntropy(label)
    return [client.report(task, task.values[i % len(task.values)], entropy.read) for i in range(count)]


def changed(of: client.Task, **change: Any) -> bytes:
    return json.dumps({**json.loads(honest(of)[0]), **change}).encode()


@pytest.mark.parametrize("name", one_in(2, TASKS))
def test_honest_reports_are_all_taken(name: str) -> None:
    task = TASKS[name]
    taken = collect(task, [*honest(task, 300), b"\n", b"  \r\n"])
    assert (len(taken.reports), taken.rejected) == (300, ())
    assert estimate(taken.mechanism, taken.reports, task.values).reports == 300


MALFORMED: tuple[tuple[bytes, str], ...] = (
    (b"{", "not a JSON object"),
    (b"[]", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b"\xff\xfe", "not a JSON object"),
    (b"[" * 500, "not a JSON object"),
    (b"9" * 500, "not a JSON object"),
    (b'{"v":1,"v":1}', "not a JSON object"),
    (b" " * 600 + b"1", "more than 560 bytes"),
    (b'{"v":1}', "the keys must be"),
    (changed(SUBSET, more=1), "the keys must be"),
    (changed(SUBSET, v=2), "v must be 1"),
    (changed(SUBSET, v=True), "v must be 1"),
    (changed(SUBSET, v=1.0), "v must be 1"),
    (changed(SUBSET, task="0" * 32), "another task"),
    (changed(SUBSET, task=None), "another task"),
    (changed(SUBSET, m="k-ary"), "m must be subset"),
    (changed(SUBSET, id="0"), "id must be"),
    (changed(SUBSET, id="A" * 32), "id must be"),
    (changed(SUBSET, id=5), "id must be"),
    (changed(SUBSET, r=5), f"a list of {SIZE}"),
    (changed(SUBSET, r=list(range(8))), f"a list of {SIZE}"),
    (changed(SUBSET, r=[0] * SIZE), "must ascend"),
    (changed(SUBSET, r=[*range(SIZE - 1), 8]), "from 0 to 7"),
    (changed(SUBSET, r=[-1, *range(SIZE - 1)]), "from 0 to 7"),
    (changed(SUBSET, r=[True, *range(2, SIZE + 1)]), "from 0 to 7"),
    (changed(SUBSET, r=[0.0, *range(1, SIZE)]), "from 0 to 7"),
)


@pytest.mark.parametrize(("line", "reason"), MALFORMED, ids=[reason for _, reason in MALFORMED])
def test_malformed_reports_are_rejected_singly(line: bytes, reason: str) -> None:
    good = honest(SUBSET, 2)
    taken = collect(SUBSET, [good[0], line, good[1]])
    assert len(taken.reports) == 2
    assert [rejected.line for rejected in taken.rejected] == [2]
    assert reason in taken.rejected[0].reason


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("binary", 2), ("binary", True), ("binary", "1"), ("k-ary of 3", 3), ("k-ary of 3", -1), ("k-ary of 3", None),
        ("optimised unary of 5", "e0"), ("optimised unary of 5", "0"), ("optimised unary of 5", "0A"),
        ("optimised unary of 5", 3), ("hashing of 8", [1, 2]), ("hashing of 8", [client.PRIME, 0, 0]),
        ("hashing of 8", [0, client.PRIME, 0]), ("hashing of 8", [0, 0, 99]), ("hashing of 8", [0, 0, -1]),
        ("hashing of 8", "000"),
    ],
)  # fmt: skip
def test_each_mechanism_knows_what_no_device_says(name: str, said: Any) -> None:
    taken = collect(TASKS[name], [changed(TASKS[name], r=said)])
    assert (len(taken.reports), len(taken.rejected)) == (0, 1)
    assert taken.rejected[0].reason.startswith(("r ", "a number of r", "the last number of r"))


@pytest.mark.parametrize("name", TASKS)
def test_where_all_are_rejected_nothing_is_estimated(name: str) -> None:
    taken = collect(TASKS[name], [b"{}", b"?"])
    assert (len(taken.reports), len(taken.rejected)) == (0, 2)
    with pytest.raises(InvalidParameter, match="no reports"):
        estimate(taken.mechanism, taken.reports)


def test_the_same_report_counts_once() -> None:
    line = honest(SUBSET)[0]
    taken = collect(SUBSET, [line, line])
    assert len(taken.reports) == 1
    assert taken.rejected[0].reason == "the id was seen before"


def test_a_report_of_all_ones_is_rejected() -> None:
    """It would raise every share; honest devices set so many bits less than once in 1e9 times."""
    task = task_of(UnaryEncoding.optimised(1, 200))
    for said in ("ff" * 25, "00" * 25):
        taken = collect(task, [changed(task, r=said)])
        assert "bits set; honest ones have" in taken.rejected[0].reason
    assert collect(task, honest(task, 200)).rejected == ()


def test_the_longest_reports_fit_in_a_line() -> None:
    for task in (task_of(SubsetSelection.for_epsilon(1, 2000, 1999)), task_of(LocalHashing.for_epsilon(1, 2))):
        assert collect(task, honest(task, 3)).rejected == ()


def check_fuzzed(task: client.Task, line: bytes) -> None:
    """Nothing is raised; what is taken is a whole report, and says what it says."""
    taken = collect(task, [line])
    assert len(taken.reports) + len(taken.rejected) == (1 if line.strip() else 0)
    if len(taken.reports):
        given = json.loads(line)
        assert sorted(given) == sorted(KEYS)
        assert given["task"] == task.id
        assert int(taken.mechanism.support_counts(taken.reports).sum()) >= 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", one_in(3, ["binary", "k-ary of 8", "subset of 8", "optimised unary of 5", "hashing of 8"])
)
@examples(20)
@given(data=st.data())
def test_a_fuzzer_finds_nothing_that_fails(name: str, data: st.DataObject) -> None:
    task = TASKS[name]
    check_fuzzed(task, changed(task, **{data.draw(st.sampled_from(KEYS)): data.draw(JSON)}))
    line = bytearray(honest(task)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    check_fuzzed(task, bytes(line))
    check_fuzzed(task, data.draw(st.binary(max_size=50)))
    check_fuzzed(task, json.dumps(data.draw(JSON)).encode())


VECTORS = tasks_of_vectors()


@pytest.mark.parametrize("name", only([0], VECTORS))
@examples(20)
@given(data=st.data())
def test_a_fuzzer_finds_nothing_that_fails_of_any_kind(name: str, data: st.DataObject) -> None:
    """Of every mechanism, whatever is asked: what a line says is taken, or rejected with a reason."""
    task = client.task_of(VECTORS[name])
    mechanism = mechanism_of(task.asked)
    whole = {"v": 1, "task": task.id, "id": "0" * 32, "m": task.mechanism, "r": data.draw(JSON)}
    nested = {**whole, "r": [data.draw(st.integers(0, 3)), whole["r"]]}
    for line in (json.dumps(whole).encode(), json.dumps(nested).encode()):
        taken = collect_for(mechanism, task, [line])
        assert len(taken.rejected) <= 1
        assert all(rejected.reason for rejected in taken.rejected)


def test_a_reader_that_trusts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of the set, a report that names one value three times is counted thrice."""
    monkeypatch.setattr(SubsetSelection, "read", lambda self, said: tuple(said))
    with pytest.raises(AssertionError):
        test_malformed_reports_are_rejected_singly(changed(SUBSET, r=[0] * SIZE), "must ascend")


def test_lines_of_text_are_refused_with_the_remedy() -> None:
    texts: Any = [honest(SUBSET)[0].decode()]
    with pytest.raises(InvalidParameter, match=r"Line 1 is a str; reports are bytes.*encode"):
        collect(SUBSET, texts)
