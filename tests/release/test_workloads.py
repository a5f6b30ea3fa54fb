"""Batches of marginals of the same rows: one set of measurements for all, at the price of each by itself."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.engines import FAILED, DuckDB
from lapwing.engines.duckdb import cleaned
from lapwing.errors import EngineFault
from lapwing.mechanisms import residual_marginals
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.release import workloads
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.release.small import GDP, PURE, ZCDP, opened, row, shown

KEYS = ("plan", "size", "age")
ROWS = [
    row(n, plan=["a", "b", None, "z"][n % 4], age=[None, -1, 0, 1, 2, 3, 3][n % 7], size=[0, 5, 10][n % 3])
    for n in range(200)
]
AGGREGATES = "COUNT(*) AS n, SUM(size) AS s"


def question(keys: tuple[str, ...], aggregates: str = AGGREGATES, where: str = "") -> str:
    return f"SELECT {', '.join((*keys, aggregates))} FROM visits{where}{' GROUP BY ' if keys else ''}{', '.join(keys)}"


def cube(most: int = 3) -> list[str]:
    return [question(keys) for many in range(most + 1) for keys in combinations(KEYS, many)]


def is_together(answer: Any) -> list[bool]:
    laws = [one for law in answer.mechanisms.values() for one in getattr(law, "used", (law,))]
    return [isinstance(law, ReconstructedGaussian) for law in laws]


def silent(_variance: Fraction, size: int, _entropy: object) -> Any:
    return np.zeros(size, dtype=np.int64)


@pytest.mark.long
@pytest.mark.parametrize("budget", one_in(3, [GDP, ZCDP, GDP + '\nneighbouring = "replace_one"']))
def test_all_are_more_accurate_at_the_same_price(tmp_path: Path, budget: str) -> None:
    with opened(tmp_path, ROWS, budget=budget) as session:
        answers = session.batch(cube(), epsilon=1)
        assert session.budget().spent.amount == sum(answer.cost.amount for answer in answers)
        assert session.budget().spent <= session.price(1)
        assert all(all(is_together(answer)) for answer in answers)
        assert all("as one workload" in answer.notes[-1] for answer in answers)
        again = session.batch(cube(), epsilon=1)
        assert all(answer.stored and "as one workload" in answer.notes[-1] for answer in again)
        assert [shown(answer) for answer in again] == [shown(answer) for answer in answers]
        assert session.sql(cube()[3], epsilon=0.1).stored


@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
def test_the_measurements_lose_no_more_than_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbouring: str
) -> None:
    found: list[tuple[Any, Any]] = []
    right = workloads.workloads_of

    def watched(buying: Any, *rest: Any) -> Any:
        found.append((buying, right(buying, *rest)))
        return found[-1][1]

    monkeypatch.setattr(workloads, "workloads_of", watched)
    with opened(tmp_path, ROWS, budget=f'{GDP}\nneighbouring = "{neighbouring}"') as session:
        session.batch(cube(), epsilon=1)
    ((buying, together),) = found
    assert len(together) == 2  # the counts and the sums, by numbers as they were read or not
    for workload in together:
        terms = [buying[place].bought.terms[at] for place, at in workload.members]
        unit = workloads._unit(buying[0].bought.question, terms[0].measure, neighbouring)
        paid = sum(term.loss("gdp").amount for term in terms)
        assert Fraction(999, 1000) * paid < workload.mechanism.loss(unit, "gdp").amount <= paid
        for number, term in zip(workload.members, terms, strict=True):
            assert workload.noise(number).sigma < Fraction(95, 100) * term.mechanism.sigma


def gives_true_numbers(session: Session, questions: list[str]) -> None:
    for text, answer in zip(questions, session.batch(questions, epsilon=1), strict=True):
        assert all(is_together(answer))
        keys = [key for key in KEYS if key in text.partition(" GROUP BY ")[2]]
        for told in answer.rows():
            inside = [each for each in ROWS if all(each[key] == told[key] for key in keys)]
            assert told["n"] == len(inside), (text, told)
            assert told["s"] == sum(each["size"] for each in inside), (text, told)


SOME = [question(("age",)), question(("plan", "age")), question(("size", "plan"))]


@pytest.mark.long
@pytest.mark.parametrize("questions", only((1,), [cube(), SOME, [question(("age", "plan")), question(("age",))]]))
def test_without_noise_it_is_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, questions: list[str]) -> None:
    """Rows without a listed value of a key are in no cell of it, and in those of the tables without it."""
    monkeypatch.setattr(residual_marginals, "rounded_gaussian", silent)
    with opened(tmp_path, ROWS, budget=GDP) as session:
        gives_true_numbers(session, questions)


def test_keys_taken_as_exhaustive_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual_marginals, "rounded_gaussian", silent)
    monkeypatch.setattr(workloads, "is_exhaustive", lambda *_: True)
    with opened(tmp_path, ROWS, budget=GDP) as session, pytest.raises(AssertionError):
        gives_true_numbers(session, cube())


@pytest.mark.parametrize(
    ("budget", "questions"),
    only(
        [0],
        [
            (PURE, cube()),
            (GDP, [question(keys, "COUNT(DISTINCT person) AS u") for keys in ((), ("plan",), ("size",))]),
            (GDP, [question((), where=" WHERE age > 0"), question(("plan",))]),
            (GDP, [question(("plan",)), question(("plan",), "COUNT(*) AS n")]),
            (GDP, [question((), "VARIANCE(age) AS v"), question(("plan",), "VARIANCE(age) AS v")]),
        ],
        many=True,
    ),
)
def test_what_does_not_add_up_has_noise_of_its_own(tmp_path: Path, budget: str, questions: list[str]) -> None:
    with opened(tmp_path, ROWS, budget=budget) as session:
        for answer in session.batch(questions, epsilon=1):
            sums = [law for measure, law in answer.mechanisms.items() if "SUM" in str(measure)]
            laws = sums if "VARIANCE" in str(questions) else answer.mechanisms.values()  # counts of variances do add up
            assert not any(isinstance(law, ReconstructedGaussian) for law in laws)


@pytest.mark.long
def test_a_sharper_answer_pays_the_difference(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS, budget=GDP) as session:
        answers = session.batch(cube(), epsilon=Fraction(1, 10))  # with noise beside which rounding is little
        sharper = session.sql(cube()[3], epsilon=Fraction(1, 10))
        assert not sharper.stored
        assert answers[3].cost.amount < sharper.cost.amount < session.price(Fraction(1, 10)).amount
        assert "as one workload" not in str(sharper.notes)


@pytest.mark.long
def test_averages_are_narrower_than_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mean = [question(keys, "AVG(size) AS m") for many in range(3) for keys in combinations(KEYS, many)]
    many = [{**each, "person": number} for number, each in enumerate(ROWS * 20)]

    def width(path: Path) -> float:
        path.mkdir()
        with opened(path, many, budget=GDP) as session:
            low, high = session.batch(mean, epsilon=1)[0].interval()["m"]
            return float(high[0]) - float(low[0])

    together = width(tmp_path / "together")
    monkeypatch.setattr(workloads, "workloads_of", lambda *_: [])
    assert together < 0.9 * width(tmp_path / "alone")


@pytest.mark.parametrize("fails_at", only((1,), [0, 3, 8]))
def test_an_error_of_the_engine_holds_no_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    with opened(tmp_path, ROWS, budget=GDP) as session:
        run: Callable[..., Any] = DuckDB.run
        calls: list[int] = []

        def failing(*given: Any) -> Any:  # the engine first
            calls.append(1)
            if len(calls) > fails_at:
                raise EngineFault(FAILED)
            return run(*given)

        monkeypatch.setattr(DuckDB, "run", failing)
        questions = [question(keys) for keys in (("plan", "age"), ("size", "plan"), ("size",))]
        with pytest.raises(EngineFault) as raised:
            session.batch(questions, epsilon=1)
        assert session.budget().spent.amount > 0
        trace = raised.value.__traceback__
        while trace is not None:
            for name, value in trace.tb_frame.f_locals.items():
                holds = value if isinstance(value, list) else [value]
                assert not any(isinstance(one, dict) and any(isinstance(v, np.ndarray) for v in one.values())
                               for one in holds), name  # fmt: skip
                assert not isinstance(value, np.ndarray), name
            trace = trace.tb_next


def runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the engine runs for three questions, which lack some of the tables that a workload needs."""
    folder.mkdir()
    with opened(folder, ROWS, budget=GDP) as session, monkeypatch.context() as watched:
        run, ran = DuckDB.run, list[object]()

        def counted(*given: Any) -> Any:
            ran.append(given[1])
            return run(*given)

        watched.setattr(DuckDB, "run", counted)
        session.batch(SOME, epsilon=1)
        return len(ran)


@pytest.mark.long
def test_much_more_than_is_asked_for_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(SOME) < runs(tmp_path / "more", monkeypatch) <= 2 * workloads.MOST_READ * len(SOME)
    monkeypatch.setattr(workloads, "MOST_READ", 1)
    assert runs(tmp_path / "none", monkeypatch) == len(SOME)


CLASHING = [row(n, age=age, size=size) for n in range(40) for age, size in ((3, 10), (7, 0))]
"""Two rows of each person, of which one counts: within bounds 7 is 3, so that the size decides, or what was read."""


def agrees_where_hashes_clash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables of a workload must be of the same rows, whichever of two with equal hashes is kept."""
    monkeypatch.setattr(residual_marginals, "rounded_gaussian", silent)
    order = cleaned.row_order
    monkeypatch.setattr(cleaned, "row_order", lambda *facts: ("1", order(*facts)[1]))
    with opened(tmp_path, CLASHING, budget=GDP, most=1) as session:
        answers = session.batch([question(keys) for keys in ((), ("plan",), ("age",), ("plan", "age"))], epsilon=1)
        assert all(all(is_together(answer)) for answer in answers)
        assert shown(answers[0]) == [{"n": 40, "s": 400}]
        assert [one["s"] for one in shown(answers[2])] == [0, 0, 0, 0, 400]


@pytest.mark.long
def test_tables_of_one_workload_are_of_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees_where_hashes_clash(tmp_path, monkeypatch)


def test_tables_of_other_rows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: each question is run over the rows that it would have by itself."""
    own = workloads._run
    monkeypatch.setattr(workloads, "_run", lambda *asked: with_own_rows(own, *asked))
    with pytest.raises(AssertionError):
        agrees_where_hashes_clash(tmp_path, monkeypatch)


def with_own_rows(run: Any, asked: Any, *further: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "_with_what_was_read", lambda selection: selection)
        return run(asked, *further)
