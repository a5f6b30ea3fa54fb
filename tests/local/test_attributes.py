"""Several attributes: the exact law of whole records, the wrong published variant, and estimates of each attribute."""

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.local import (
    BinaryResponse,
    DuchiMean,
    FrequencyEstimate,
    KaryResponse,
    MeanEstimate,
    OneAttribute,
    PiecewiseMean,
    client,
    collect_for,
    estimate_record,
    grid,
    new_record_task,
    new_task,
    record_mechanism_of,
    to_toml,
)
from tests.local.test_client import DAYS
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.laws import law_of

HALVES = grid(0, 1, 2)
PARTS: tuple[tuple[str, Any, Any], ...] = (
    ("Which?", ["a", "b", "c"], KaryResponse.for_epsilon(1, 3)),
    ("Yes?", ["no", "yes"], BinaryResponse.from_coins(Fraction(1, 2), Fraction(3, 4))),
    ("How much?", HALVES, DuchiMean.for_epsilon(Fraction(1, 2), HALVES)),
)
TASK = new_record_task("Three questions", PARTS, **DAYS)
RECORDS = [
    {"Which?": which, "Yes?": yes, "How much?": much}
    for which, yes, much in product("abc", ("no", "yes"), ("0", "0.5", "1"))
]
Laws = Sequence[Mapping[Any, Fraction]]


def law_of_task(
    task: client.Task, record: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Mapping[Any, Fraction]:
    report = lambda: tuple(json.loads(client.report(task, record, lambda size: bytes(size)))["r"])  # noqa: E731
    with monkeypatch.context() as patched:
        return law_of(report, patched)


def check_record(laws: Laws, ratio: float) -> None:
    """Of any two whole records, however different, each report is at most so many times as likely for one."""
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(one[report] / two[report] for one, two in product(laws, laws) for report in one)
    assert worst <= Fraction(ratio), log(worst)


def test_whole_records_have_the_stated_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the worst attribute, and attained; records may differ in every attribute."""
    laws = [law_of_task(TASK, record, monkeypatch) for record in RECORDS]
    assert max(one[report] / two[report] for one, two in product(laws, laws) for report in one) == TASK.ratio
    assert TASK.ratio == max(mechanism.ratio for _, _, mechanism in PARTS) == record_mechanism_of(TASK).ratio
    check_record(laws, float(TASK.ratio) * (1 + 1e-12))
    for law in laws:
        for place in range(3):
            assert sum(chance for (told, _), chance in law.items() if told == place) == Fraction(1, 3)


def kary(epsilon: float, values: int) -> Callable[[int, int], Fraction]:
    truth = Fraction(exp(epsilon) / (exp(epsilon) + values - 1))
    return lambda shown, true: truth if shown == true else (1 - truth) / (values - 1)


def with_fake_data(epsilon: float, attributes: int, values: int) -> Laws:
    """RS+FD as published: k-ary at ln(d(e^ε − 1) + 1) for one attribute that is not told, and uniform fakes."""
    one = kary(log(attributes * (exp(epsilon) - 1) + 1), values)
    every = list(product(range(values), repeat=attributes))

    def law(record: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
        fakes = Fraction(1, values) ** (attributes - 1)
        return sum((one(r, x) * fakes for r, x in zip(report, record, strict=True)), Fraction(0)) / attributes

    return [{report: law(record, report) for report in every} for record in every]


def split(epsilon: float, attributes: int, values: int) -> Laws:
    """All attributes, each with ε/d (SPL): right, but less accurate."""
    one = kary(epsilon / attributes, values)
    every = list(product(range(values), repeat=attributes))

    def law(record: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
        chance = Fraction(1)
        for r, x in zip(report, record, strict=True):
            chance *= one(r, x)
        return chance

    return [{report: law(record, report) for report in every} for record in every]


def test_fake_data_amplify_nothing() -> None:
    """For a claimed 1, two records that differ in both attributes are told apart by 1.4899."""
    with pytest.raises(AssertionError, match=r"1\.48988"):
        check_record(with_fake_data(1, 2, 3), exp(1))
    check_record(split(1, 2, 3), exp(1) * (1 + 1e-12))


def test_a_draw_that_looks_at_answers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telling the first attribute more often if its answer is a: which one is told gives it away."""
    laws = [dict(law_of_task(TASK, record, monkeypatch)) for record in RECORDS]
    for record, law in zip(RECORDS, laws, strict=True):
        for told, value in law:
            often = Fraction(2) if record["Which?"] == "a" else Fraction(1)
            law[told, value] *= 3 * (often if told == 0 else 1) / (often + 2)
    with pytest.raises(AssertionError):
        check_record(laws, float(TASK.ratio) * (1 + 1e-12))


def test_one_attribute_is_better_than_a_share_of_epsilon() -> None:
    """Of d attributes, n times the worst variance of a mean is d·v(ε), against v(ε/d) if each has a share of ε."""
    for d in (2, 5, 10):
        one = d * PiecewiseMean.for_epsilon(1, HALVES).variance.most()
        each = PiecewiseMean.for_epsilon(Fraction(1, d), HALVES).variance.most()
        assert one < each


def test_tasks_of_attributes() -> None:
    assert client.read_task(to_toml(TASK)) == TASK == client.read_task(json.dumps(TASK.document))
    assert record_mechanism_of(TASK) == OneAttribute(
        questions=tuple(question for question, _, _ in PARTS), each=tuple(mechanism for _, _, mechanism in PARTS)
    )
    with pytest.raises(client.TaskRefused, match="send nothing"):
        client.task_of({**TASK.document, "epsilon": "0.5"})
    each = TASK.document["attributes"]
    assert isinstance(each, list)
    text = {"question": "Word?", "text": {"most_bytes": 9}, "mechanism": each[0]["mechanism"]}
    changes: tuple[dict[str, Any], ...] = (
        {"attributes": each[:1]}, {"attributes": [each[0], each[0]]}, {"attributes": {"a": each[0]}},
        {"values": ["a", "b"]}, {"attributes": [each[0], 5]}, {"attributes": [each[0], text]},
        {"attributes": [each[0], {**each[1], "more": 1}]},
        {"mechanism": {"name": "k-ary"}}, {"mechanism": {"name": "one-attribute", "threshold": "5"}},
        {"attributes": [each[0], {**each[1], "values": ["a"]}]}, {"attributes": [each[0], {**each[1], "question": ""}]},
    )  # fmt: skip
    for change in changes:
        with pytest.raises(client.TaskRefused):
            client.task_of({**TASK.document, **change})


@pytest.mark.parametrize(
    "answer", ["a", {}, {"Which?": "a", "Yes?": "yes"}, {**RECORDS[0], "Yes?": "maybe"}, {**RECORDS[0], "more": "a"}]
)
def test_answers_to_some_questions_are_refused(answer: Any) -> None:
    """Whichever is drawn: a wrong answer to another question is refused, too."""
    for label in range(20):
        with pytest.raises(client.AnswerRefused):
            client.report(TASK, answer, StreamEntropy(f"{label}").read)


@pytest.mark.parametrize("said", [0, [0], [3, 0], [0, 3], [0, 0, 0], [2, 2], [True, 0], [-1, 0], ["0", 0], [1, None]])
def test_what_no_device_says_is_rejected(said: Any) -> None:
    line = client.report(TASK, RECORDS[0], StreamEntropy("said").read)
    taken = collect_for(record_mechanism_of(TASK), TASK, [json.dumps({**json.loads(line), "r": said}).encode(), line])
    assert [rejected.line for rejected in taken.rejected] == [1]
    assert sum(map(len, taken.reports)) == 1


@pytest.mark.long
def test_from_records_to_estimates() -> None:
    """Six standard errors of each attribute, from about a third of the reports each."""
    entropy, people = StreamEntropy("records"), 9000
    records = [RECORDS[i * i % 18] for i in range(people)]
    lines = [client.report(TASK, record, entropy.read) for record in records]
    taken = collect_for(record_mechanism_of(TASK), TASK, lines)
    found = estimate_record(TASK, taken.reports)
    assert list(found) == [question for question, _, _ in PARTS]
    for each in found.values():
        assert abs(each.reports - people / 3) < 6 * sqrt(people * 2 / 9)
    for question in ("Which?", "Yes?"):
        shares = found[question]
        assert isinstance(shares, FrequencyEstimate)
        truth = [sum(record[question] == value for record in records) / people for value in shares.values]
        assert (np.abs(shares.raw - truth) < 6 * shares.standard_error("population")).all()
    mean = found["How much?"]
    assert isinstance(mean, MeanEstimate)
    assert abs(mean.raw - sum(float(r["How much?"]) for r in records) / people) < 6 * mean.standard_error("population")


def test_what_nobody_told_is_left_out() -> None:
    mechanism = record_mechanism_of(TASK)
    assert list(estimate_record(TASK, mechanism.gather([(1, 0)]))) == ["Yes?"]
    other = new_task("Which?", ["a", "b", "c"], PARTS[0][2], **DAYS)
    wrongs: tuple[Callable[[], object], ...] = (
        lambda: estimate_record(other, ()),
        lambda: estimate_record(TASK, ()),
        lambda: record_mechanism_of(other),
    )
    for wrong in wrongs:
        with pytest.raises(InvalidParameter, match="several attributes"):
            wrong()
