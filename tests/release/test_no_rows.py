"""Answers without rows, shown in every way; and what cannot be shown, which fails before anything is charged."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from sqlglot import exp

import lapwing as lw
from lapwing.answer.population_shown import PopulationShown
from lapwing.cli.answer_formats import as_arrow, as_csv, as_json, as_markdown, as_parquet, as_table, as_xlsx
from lapwing.documents.answer_document import answer_document, consistent_document, description_document
from lapwing.errors import AnswerFault
from lapwing.query.aggregates.outputs import AGGREGATES
from lapwing.query.derivation import intervals
from lapwing.query.expressions.function_names import SPELLED
from lapwing.release import answering, trial
from tests.support.effort import is_long, one_in
from tests.support.release import small
from tests.support.release.tables import protected, visits

LEDGERS: Final[dict[str, dict[str, Any]]] = {"pure": {"delta": 0}, "gdp": {}, "zcdp": {"measure": "zcdp"}}
ROUNDED = "APPROX_QUANTILE(cost, 0.3)"
CALLS: Final = {
    "COUNT": "COUNT(*)", "COUNT_IF": "COUNT_IF(cost > 1)", "SUM": "SUM(cost)", "AVG": "AVG(cost)",
    "COVAR_POP": "COVAR_POP(cost, cost)", "COVAR_SAMP": "COVAR_SAMP(cost, cost)", "CORR": "CORR(cost, cost)",
    "QUANTILE": "QUANTILE(cost, 0.3)", "APPROX_QUANTILE": ROUNDED, "GROUPING": "GROUPING(plan)",
    "PERCENTILE_CONT": "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost)",
    "PERCENTILE_DISC": "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY cost)", "WITHIN GROUP": ROUNDED,
}  # fmt: skip
"""How aggregates are called that take more than one column."""
OVER: Final = (
    "COUNT(DISTINCT person_id)", "SUM(cost) / COUNT(*)", "SQRT(COUNT(*))", "LN(COUNT(*))", "EXP(COUNT(*) / 1000)",
    "ROUND(AVG(cost), 1)", "COALESCE(AVG(cost), 0)", "POWER(COUNT(*), 2)", "GREATEST(COUNT(*), 1)", "COUNT(*) % 7",
    "CASE WHEN COUNT(*) > 3 THEN AVG(cost) ELSE 0 END", "COUNT(*) > 3", "RANK() OVER (ORDER BY COUNT(*))",
    "SUM(COUNT(*)) OVER ()", "LAG(COUNT(*)) OVER (ORDER BY COUNT(*))", "NULLIF(COUNT(*), 3)", "SIGN(SUM(cost))",
    "STDDEV(cost) / AVG(cost)", "CAST(COUNT(*) AS VARCHAR)",
)  # fmt: skip
"""What is computed of them."""
WITHOUT_ROWS: Final = (
    "SELECT plan, {} FROM visits GROUP BY plan LIMIT 0",
    "SELECT {} FROM visits GROUP BY plan LIMIT 0",
    "SELECT {} FROM visits GROUP BY ROLLUP (plan) OFFSET 10",
    "SELECT plan, {} FROM visits GROUP BY plan HAVING COUNT(*) > 1e9",
    "SELECT {}, COUNT(*) AS size FROM visits GROUP BY plan QUALIFY RANK() OVER (ORDER BY size) > 100",
)


def called(aggregate: str) -> str:
    return CALLS.get(aggregate, f"{aggregate}(cost)")


AGGREGATED: Final = [called(SPELLED[node]) for node in AGGREGATES if node is not exp.Grouping]
COLUMNS: Final = tuple(dict.fromkeys([*AGGREGATED, *OVER]))


def ways(answer: lw.Answer) -> Iterator[Callable[[], object]]:
    """Yield every way to show an answer."""
    for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000)):
        yield partial(answer.interval, confidence)
        yield partial(answer.to_arrow, confidence)
        for written in (as_arrow, as_csv, as_json, as_markdown, as_parquet, as_table, as_xlsx, answer_document):
            yield partial(written, answer, confidence)
    for sampling in (None, 100, "poisson"):
        yield partial(answer.interval, of="population", sampling=sampling)
        yield partial(as_json, PopulationShown(answer, sampling), Fraction(95, 100))
    yield from (partial(repr, answer), partial(str, answer), answer._repr_html_, answer.to_pandas, answer.describe)
    if not answer.sources:
        yield lambda: (str(answer.consistent()), consistent_document(answer.consistent()))
    yield partial(description_document, answer, answer.describe())
    if any(low.dtype.kind != "M" for low, _ in answer.interval().values()):
        yield lambda: answer.plot().to_dict()


def shown(session: lw.Session, text: str, delta: float | None = None) -> None:
    answer = session.sql(text, epsilon=10, delta=delta)
    assert len(answer) == 0
    for way in ways(answer):
        way()


def question(template: str, columns: Sequence[str]) -> str:
    return template.format(", ".join(f"{column} AS c{place}" for place, column in enumerate(columns)))


@pytest.mark.long
@pytest.mark.parametrize("ledger", one_in(3, LEDGERS))
@pytest.mark.parametrize("template", one_in(len(WITHOUT_ROWS), WITHOUT_ROWS))
def test_no_rows_of_all_aggregates_are_shown_in_every_way(tmp_path: Path, template: str, ledger: str) -> None:
    with protected(visits(tmp_path), epsilon=10**6, **LEDGERS[ledger]) as session:
        shown(session, question(template, COLUMNS if is_long() else COLUMNS[::2]))


@pytest.mark.long
@pytest.mark.parametrize("ledger", LEDGERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_no_rows_of_each_aggregate(tmp_path: Path, column: str, ledger: str) -> None:
    with protected(visits(tmp_path), epsilon=10**6, **LEDGERS[ledger]) as session:
        for template in WITHOUT_ROWS:
            shown(session, question(template, [column]))


COMPOSED: Final = (
    "WITH a AS (SELECT plan, {} FROM visits GROUP BY plan HAVING COUNT(*) > 1e9), b AS (SELECT plan, COUNT(*) AS size "
    "FROM visits GROUP BY plan) SELECT a.*, size FROM a JOIN b USING (plan)"
)


@pytest.mark.long
@pytest.mark.parametrize("ledger", one_in(3, LEDGERS))
def test_no_rows_of_an_answer_made_of_others(tmp_path: Path, ledger: str) -> None:
    with protected(visits(tmp_path), epsilon=10**6, **LEDGERS[ledger]) as session:
        shown(session, question(COMPOSED, AGGREGATED[:8]))


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_no_private_key_is_chosen(tmp_path: Path, every: int) -> None:
    with small.opened(tmp_path, [small.row(1, town="A")], budget=small.GDP) as session:
        aggregates = [column for column in AGGREGATED if "COUNT(" not in column][::every]
        shown(session, question("SELECT town, {} FROM visits GROUP BY town", aggregates), delta=1e-9)


# ---- what cannot be shown is not charged -----------------------------------------------------------------------------

SPREAD: Final = "SELECT plan, STDDEV(cost) AS s FROM visits GROUP BY plan"


def broken(patched: pytest.MonkeyPatch) -> None:
    def fails(*_ends: object) -> intervals.Interval:
        raise IndexError("as the ends of no cells once did")

    patched.setattr(intervals, "sample_factor", fails)
    trial.TRIED.clear()


def test_what_cannot_be_shown_fails_before_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with protected(visits(tmp_path)) as session:
        broken(monkeypatch)
        composed = f"SELECT a.s FROM ({SPREAD}) AS a CROSS JOIN (SELECT COUNT(*) AS n FROM visits) AS b"
        for text in (SPREAD, composed):
            with pytest.raises(AnswerFault) as failed:
                session.sql(text, epsilon=1)
            assert failed.value.code == "answer_fault"
            assert type(failed.value.__cause__) is IndexError
            with pytest.raises(AnswerFault):
                session.explain(text, epsilon=1)
        with pytest.raises(AnswerFault):
            session.batch([SPREAD, "SELECT COUNT(*) AS n FROM visits"], epsilon=1)
        assert session.budget().spent.amount == 0


def test_twin_without_the_trial_it_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with protected(visits(tmp_path)) as session:
        broken(monkeypatch)
        monkeypatch.setattr(answering, "try_showing", lambda *_: None)
        answer = session.sql(SPREAD, epsilon=1)
        assert session.budget().spent.amount > 0
        with pytest.raises(IndexError):
            answer.interval()


@pytest.mark.long
def test_what_was_tried_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    real: Callable[..., lw.Answer] = vars(trial)["Answer"]
    trial.TRIED.clear()

    def noted(**given: Any) -> lw.Answer:
        shown.append(given["keys"])
        return real(**given)

    monkeypatch.setattr(trial, "Answer", noted)
    with protected(visits(tmp_path)) as session:
        for least in range(3):
            session.explain(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {least}", epsilon=1)
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {least}", epsilon=1)
        assert len(shown) == 2
        session.explain("SELECT COUNT(*) AS n FROM visits WHERE cost > 9", epsilon=0.5)  # another noise
        assert len(shown) == 4
