"""Several questions told together: the exact law of a report, tables of pairs, and intervals that cover."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.collector.collector import Collector
from lapwing.errors import InvalidParameter
from lapwing.local import (
    AllAttributes,
    BinaryResponse,
    DuchiMean,
    JointEstimate,
    KaryResponse,
    LocalHashing,
    Randomizer,
    SubsetSelection,
    UnaryEncoding,
    client,
    collect_for,
    estimate_joint,
    estimate_record,
    new_record_task,
    record_mechanism_of,
    to_toml,
)
from lapwing.local import joint_estimates as joint_module
from lapwing.local.joint_estimates import FEW, JointReportCounts, supports_of
from tests.collector.tasks import OPEN
from tests.local.test_attributes import HALVES, Laws, check_record, law_of_task
from tests.local.test_client import DAYS
from tests.support.cli.command import Run, run
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

__all__ = ["run"]

PARTS: tuple[tuple[str, Any, Any], ...] = (
    ("Which?", ["a", "b", "c"], KaryResponse.for_epsilon(1, 3)),
    ("Yes?", ["no", "yes"], BinaryResponse.from_coins(Fraction(1, 2), Fraction(3, 4))),
    ("How much?", HALVES, DuchiMean.for_epsilon(Fraction(1, 2), HALVES)),
)
TASK = new_record_task("Three questions", PARTS, joint=True, **DAYS)
RECORDS = [
    {"Which?": which, "Yes?": yes, "How much?": much}
    for which, yes, much in product("abc", ("no", "yes"), ("0", "0.5", "1"))
]
PAIRS = list(product(range(3), range(2)))
TRUTH = np.array([[0.3, 0.1], [0.05, 0.15], [0.4, 0.0]])


def test_a_report_of_all_has_the_product_of_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over whole records, however different; it is attained, and so ε is neither smaller nor larger."""
    laws = [law_of_task(TASK, record, monkeypatch) for record in RECORDS]
    product_of_all = PARTS[0][2].ratio * PARTS[1][2].ratio * PARTS[2][2].ratio
    assert TASK.ratio == product_of_all == record_mechanism_of(TASK).ratio
    assert max(one[report] / two[report] for one, two in product(laws, laws) for report in one) == product_of_all
    check_record(laws, float(product_of_all) * (1 + 1e-12))


def test_parts_that_share_randomness_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: one coin for the noise of two equal questions, so that both are right, or both wrong."""
    p = PARTS[0][2].rates(0).p

    def law(record: tuple[int, ...]) -> Mapping[Any, Fraction]:
        found = dict.fromkeys(product(range(3), repeat=2), Fraction(0))
        found[record] += p
        for shift in (1, 2):
            found[tuple((x + shift) % 3 for x in record)] += (1 - p) / 2
        return found

    laws: Laws = [
        {report: chance + Fraction(1, 10**9) for report, chance in law(pair).items()}
        for pair in product(range(3), repeat=2)
    ]
    stated = float(PARTS[0][2].ratio ** 2) * (1 + 1e-9)
    with pytest.raises(AssertionError):
        check_record(laws, stated)


def test_tasks_state_the_sum_of_epsilons() -> None:
    assert client.read_task(to_toml(TASK)) == TASK == client.read_task(json.dumps(TASK.document))
    assert isinstance(record_mechanism_of(TASK), AllAttributes)
    coin = BinaryResponse.from_coins(Fraction(1, 2), Fraction(3, 4))
    assert abs(float(TASK.epsilon) - (1 + log(coin.ratio) + 0.5)) < 1e-11
    one = {**TASK.document, "mechanism": {"name": "one-attribute"}}
    with pytest.raises(client.TaskRefused, match="send nothing"):  # the ε of one of them is smaller, and would be a lie
        client.task_of(one)
    for name in ("no-attribute", 5, None):
        with pytest.raises(client.TaskRefused):
            client.task_of({**TASK.document, "mechanism": {"name": name}})


def of_pairs(first: Randomizer, second: Randomizer, pairs: np.ndarray[Any, Any], label: str) -> JointEstimate:
    """Draw reports of respondents with pairs of answers, and estimate."""
    entropy = StreamEntropy(label)
    texts = tuple(tuple(f"{i}" for i in range(mechanism.categories)) for mechanism in (first, second))
    counts = JointReportCounts((0, 1), ("A?", "B?"), (texts[0], texts[1]), (first, second))
    drawn = first.randomize(pairs[:, 0], entropy), second.randomize(pairs[:, 1], entropy)
    half = len(pairs) // 2
    for part in (slice(0, half), slice(half, None)):
        counts.add((drawn[0][part], drawn[1][part]))
    return counts.estimate()


KINDS: tuple[Callable[[], tuple[Randomizer, Randomizer]], ...] = (
    lambda: (KaryResponse.for_epsilon(1, 3), BinaryResponse.from_coins(Fraction(1, 2), Fraction(3, 4))),
    lambda: (SubsetSelection.for_epsilon(1, 3), UnaryEncoding.optimised(1, 2)),
    lambda: (LocalHashing.for_epsilon(2, 3), UnaryEncoding.symmetric(2, 2)),
)


@pytest.mark.parametrize("kind", range(3))
def test_supports_are_those_that_are_counted(kind: int) -> None:
    for mechanism in KINDS[kind]():
        values = np.arange(600) % mechanism.categories
        reports = mechanism.randomize(values, StreamEntropy("supports"))
        assert (supports_of(mechanism, reports).sum(axis=0) == mechanism.support_counts(reports)).all()


@pytest.mark.parametrize("kind", range(3))
def test_tables_are_right_on_average(kind: int) -> None:
    """Six standard errors of the mean over 30 tables, for every pair; so is the table of counts, seen by itself."""
    first, second = KINDS[kind]()
    people = 6000
    counts = (TRUTH.ravel() * people).round().astype(int)
    pairs = np.repeat(np.array(PAIRS), counts, axis=0)
    each = [of_pairs(first, second, pairs, f"{kind} {i}") for i in range(30)]
    mean = np.mean([one.raw for one in each], axis=0)
    assert (np.abs(mean - TRUTH) < 6 * each[0].standard_error / 30**0.5).all()
    assert np.allclose(mean.sum(), 1, atol=6 * np.sqrt((each[0].standard_error ** 2).sum() / 30))
    assert np.allclose(each[0].consistent.sum(), 1)
    # The planted bug: the two answers taken for independent.
    wrong = np.outer(TRUTH.sum(axis=1), TRUTH.sum(axis=0))
    assert not (np.abs(mean - wrong) < 6 * each[0].standard_error / 30**0.5).all()


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "people"), one_in(4, [(1, 300), (1, 3000), (6, 1000)], many=True))
def test_intervals_of_pairs_cover(epsilon: int, people: int) -> None:
    """A sample of a population each time; 95 %, within what 200 tables of six can tell, where one is given."""
    first, second = KaryResponse.for_epsilon(epsilon, 3), BinaryResponse.for_epsilon(epsilon)
    generator = np.random.default_rng(people)
    held = []
    for i in range(200):
        pairs = np.array(PAIRS)[generator.choice(6, size=people, p=TRUTH.ravel())]
        low, high = of_pairs(first, second, pairs, f"{epsilon} {people} {i}").interval()
        held += list(((low <= TRUTH) & (high >= TRUTH))[~np.isnan(low)])
    assert len(held) > 500
    assert 0.92 < np.mean(held) < 0.98


def test_too_few_reports_have_no_interval() -> None:
    """With ε = 6 and 100 people some cases hardly occur: nothing is said of them."""
    pairs = np.repeat(np.array(PAIRS), [30, 10, 5, 15, 40, 0], axis=0)
    estimate = of_pairs(KaryResponse.for_epsilon(6, 3), BinaryResponse.for_epsilon(6), pairs, "few")
    few = np.min(estimate._cases(), axis=0) < FEW
    assert few.any()
    for row, is_few in zip(estimate.rows(), few.ravel(), strict=True):
        assert (row["low"] is None) == (row["high"] is None) == is_few
        assert not (is_few and row["seen"])


def test_what_has_no_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [client.report(TASK, RECORDS[i % 18], StreamEntropy(f"{i}").read) for i in range(40)]
    taken = collect_for(record_mechanism_of(TASK), TASK, lines)
    assert estimate_joint(TASK, taken.reports, "Which?", "Yes?").reports == 40
    assert estimate_joint(TASK, taken.reports, "Yes?", "Which?").raw.shape == (2, 3)
    one = new_record_task("Three questions", PARTS, **DAYS)
    wrongs: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: estimate_joint(one, taken.reports, "Which?", "Yes?"), "joint=True"),
        (lambda: estimate_joint(TASK, taken.reports, "Which?", "How much?"), "not for the shares"),
        (lambda: estimate_joint(TASK, taken.reports, "Which?", "Which?"), "two of the questions"),
        (lambda: estimate_joint(TASK, taken.reports, "Which?", "Other?"), "two of the questions"),
    )
    for wrong, match in wrongs:
        with pytest.raises(InvalidParameter, match=match):
            wrong()
    monkeypatch.setattr(joint_module, "MOST_CELLS", 5)
    with pytest.raises(InvalidParameter, match="5 cells at most"):
        estimate_joint(TASK, taken.reports, "Which?", "Yes?")


@pytest.mark.parametrize("said", [0, [0, 0], [0, 0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 2], [0, None, 0], ["0", 0, 0]])
def test_what_no_device_says_is_rejected(said: Any) -> None:
    line = client.report(TASK, RECORDS[0], StreamEntropy("said").read)
    taken = collect_for(record_mechanism_of(TASK), TASK, [json.dumps({**json.loads(line), "r": said}).encode(), line])
    assert [rejected.line for rejected in taken.rejected] == [1]
    assert [len(part) for part in taken.reports] == [1, 1, 1]


def test_shares_of_each_question_are_from_all_reports() -> None:
    lines = [client.report(TASK, RECORDS[i % 18], StreamEntropy(f"{i}").read) for i in range(90)]
    taken = collect_for(record_mechanism_of(TASK), TASK, lines)
    assert {each.reports for each in estimate_record(TASK, taken.reports).values()} == {90}


@pytest.mark.long
def test_from_the_command_line_and_from_a_collector(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("local", "task", "--question", "Your way",
               "--attribute", "How?=walk,bus,car", "--attribute", "Late?=no,yes",
               "--attribute", "Minutes?=0:60", "--joint", "--epsilon", "3", "--opens", str(OPEN["opens"]),
               "--closes", str(OPEN["closes"]), "--output", "task.toml")  # fmt: skip
    assert made.status == 0, made.err
    task = client.read_task((tmp_path / "task.toml").read_text())
    assert 3 - 1e-9 < float(task.epsilon) <= 3
    answers = [{"How?": ("walk", "bus")[i % 2], "Late?": ("no", "yes")[i % 2], "Minutes?": "30"} for i in range(1500)]
    lines = [client.report(task, answer, StreamEntropy(f"{i}").read) for i, answer in enumerate(answers)]
    (tmp_path / "reports.ndjson").write_bytes(b"\n".join(lines))
    ask = ("local", "estimate", "task.toml", "reports.ndjson")
    outcome = run(*ask, "--forged", "3", "--plot", "chart.json")
    rows = {(row["question"], row["value"]): row for row in csv.DictReader(io.StringIO(outcome.out))}
    assert len(rows) == 3 + 2 + 1 + 6
    for value, truth in (("walk × no", 0.5), ("bus × yes", 0.5), ("walk × yes", 0), ("car × no", 0)):
        row = rows["How? × Late?", value]
        assert abs(float(row["estimate"]) - truth) < 6 * float(row["standard_error"])
        assert row["seen"] == ("true" if truth else "false")
    assert json.loads(run(*ask, "--format", "json").out)["reports"] == 1500
    collector = Collector(tmp_path / "kept", task)
    for start in (0, 700):
        collector.bring(b"\n".join(lines[start : start + 700])).result()
    collector.bring(b"\n".join(lines[1400:])).result()
    found = [row for row in collector.estimate() if row["question"] == "How? × Late?"]
    collector.close()
    assert {row["value"]: row["share"] for row in found} == pytest.approx(
        {value: float(row["estimate"]) for (question, value), row in rows.items() if question == "How? × Late?"}
    )
    refused = run("local", "task", "--question", "q", "--value", "a", "--value", "b", "--joint", "--epsilon", "1",
                  "--opens", "2027-01-01", "--closes", "2027-02-01", "--output", "other.toml")  # fmt: skip
    assert refused.status == 2


def test_one_question_of_pairs_is_sharper_for_one_table_alone() -> None:
    """As the documentation says: six pairs as one question, all of ε, against two questions with half of it each."""
    pairs = np.array([[0, 1]] * 4000)  # a pair that most have not
    joint = of_pairs(KaryResponse.for_epsilon(1, 3), BinaryResponse.for_epsilon(1), pairs, "sharper").standard_error
    one = KaryResponse.for_epsilon(2, 6)
    p, q = one.rates(0)
    assert joint[2, 0] > 1.5 * float(q * (1 - q) / (p - q) ** 2 / 4000) ** 0.5
