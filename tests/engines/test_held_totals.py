"""What is held of searches changes no integer: each is that of the rows themselves, asked by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.base import Exact
from lapwing.engines.duckdb import group_limits, held_sums, held_totals
from lapwing.engines.duckdb.database import QueryRunner
from lapwing.engines.duckdb.held_totals import HeldTotals
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import EngineFault
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from tests.support.effort import one_in, only
from tests.support.engines.tables import digests
from tests.support.release.small import catalog, row, write

AUTO = "contribution_bounds_per_group => AUTO"
SUMS = f"COUNT(*, {AUTO}) AS n, SUM(age, {AUTO}) AS s, SUM(age * cost, {AUTO}) AS w, SUM(cost, {AUTO}) AS c"
LIMITED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2)"
QUESTIONS = [
    f"SELECT {SUMS} FROM visits",
    f"SELECT plan, {SUMS} FROM visits WHERE size > 0 GROUP BY plan",
    f"{LIMITED} plan, size, {SUMS} FROM visits GROUP BY plan, size",
    f"{LIMITED} size, plan, SUM(cost, {AUTO}) / COUNT(*, {AUTO}) AS a FROM visits WHERE age > 0 GROUP BY size, plan",
    f"SELECT tier, {SUMS} FROM visits JOIN codes USING (plan) GROUP BY tier",
    f"SELECT town, SUM(age, {AUTO}) AS s, COUNT(*, {AUTO}) AS n FROM visits GROUP BY town",
    f"SELECT plan, COUNT(*, {AUTO}) AS n FROM visits GROUP BY ROLLUP (plan)",
]
PAIRS = [
    f"SELECT COUNT(*, {AUTO}) AS n FROM visits a JOIN visits b ON a.size = b.size AND a.person <> b.person",
    f"SELECT a.plan, b.size, SUM(a.age * a.age, {AUTO}) AS s FROM visits a JOIN visits b "
    "ON a.age = b.age AND a.person <> b.person GROUP BY b.size, a.plan",
]
LIMITS = [
    f"{LIMITED} plan, size, {measures} FROM visits WHERE cost > 1 GROUP BY plan, size"
    for measures in (
        "COUNT(*) AS n, SUM(age) AS s, COUNT(DISTINCT person) AS p",
        "COUNT(DISTINCT person) FILTER (WHERE age > 1) AS p",
        "COUNT(DISTINCT age) AS d, COUNT(*) AS n",
    )
]


def people(seed: int = 0) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        row(
            random.randrange(60),
            plan=random.choice(["a", "b", "c", None]),
            town=random.choice(["Ulm", "Rom"]),
            age=random.choice([-1, 0, 1, 2, 3, None]),
            size=random.choice([0, 5, 10]),
            cost=random.choice([0.0, 0.5, 8.0, None]),
        )
        for _ in range(600)
    ]


@pytest.fixture(params=one_in(2, [', other = "rest"', ""]))
def described(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    write(tmp_path, people())
    return catalog(tmp_path, most=9, plan=request.param)


class Asked:
    """An engine of its own, and what it finds for a plan's searches and then for its question."""

    def __init__(self, described: Catalog) -> None:
        self.described, self.public = described, PublicData(described)
        self.engine = DuckDB(described, public=self.public)

    def run(self, question: Question) -> tuple[Mapping[Any, Any], list[Any]]:
        return shown(self.engine.run(question, digests(self.engine, question)))

    def questions(self, text: str) -> Iterator[Question]:
        """Yield the searches of a question, and it itself, with some bound for each."""
        plan = bind(text, self.described, self.public)
        yield from (search.question for search in plan.searches)
        bounds = {
            search.bounded: (Fraction(0), search.magnitudes.edges[place % 3 + 2])
            for place, search in enumerate(plan.searches)
        }
        yield bind(text, self.described, self.public, bounds=bounds).question

    def all(self, text: str) -> list[Any]:
        return [self.run(question) for question in self.questions(text)]


def shown(exact: Exact) -> tuple[Mapping[Any, Any], list[Any]]:
    leaves = [
        {cell: sorted(zip(*map(list, of), strict=True)) for cell, of in found.items()}
        for found in exact.leaves.values()
    ]
    return dict(exact.cells), leaves


def apart(described: Catalog, text: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is found of the rows themselves: nothing is held, and groups are limited row by row."""
    with monkeypatch.context() as patched:
        patched.setattr(HeldTotals, "ask", lambda *_: None)
        patched.setattr(group_limits, "first_groups", lambda _: None)
        patched.setattr("lapwing.engines.duckdb.clamped_sums.first_groups", lambda _: None)
        return Asked(described).all(text)


@pytest.mark.parametrize("passes", only([0], [1, 3]))
@pytest.mark.parametrize("text", only([0], [*QUESTIONS, *PAIRS, *LIMITS]))
def test_every_integer_is_that_of_the_rows(
    text: str, passes: int, described: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = apart(described, text, monkeypatch)
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: passes)
    assert Asked(described).all(text) == expected
    assert any(cells or leaves for cells, leaves in expected)


def read(text: str, described: Catalog, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many queries read rows of the file, and how many tables are there in the end."""
    texts: list[str] = []
    asked = Asked(described)
    questions = list(asked.questions(text))
    for question in questions:
        digests(asked.engine, question)

    def noted(reads: Any) -> Any:
        def read(query: QueryRunner, text: str, *take: Any) -> Any:
            texts.append(text)
            return reads(query, text, *take)

        return read

    with monkeypatch.context() as patched:
        for name in ("__call__", "columns"):
            patched.setattr(QueryRunner, name, noted(getattr(QueryRunner, name)))
        for question in questions:
            asked.run(question)
    ((tables,),) = asked.engine.fetch("SELECT COUNT(*) FROM duckdb_tables()")
    return sum("visits.parquet" in text for text in texts), tables


@pytest.mark.long
def test_rows_are_read_once(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*QUESTIONS[:2], *PAIRS]
    assert [read(text, described, monkeypatch) for text in texts] == [(1, 0)] * len(texts)


@pytest.mark.long
def test_the_rows_of_other_data_are_not_held(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def after_a_change() -> Any:
        write(described.folder, people())
        asked = Asked(described)
        *searches, question = asked.questions(QUESTIONS[1])
        for search in searches:
            asked.run(search)
        write(described.folder, people(1))
        return asked.run(question)

    found = after_a_change()
    (*_, expected) = apart(described, QUESTIONS[1], monkeypatch)
    assert found == expected
    monkeypatch.setattr(held_totals, "_meaning", lambda totals, _: (str(totals.source),))
    assert after_a_change() != expected


@pytest.mark.long
def test_totals_that_are_taken_for_others_are_found(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = apart(described, QUESTIONS[0], monkeypatch)
    rows = held_totals._HeldTotals.rows
    bug = lambda held, asked: rows(held, asked).replace('"g0" AS', '"g1" AS')  # noqa: E731
    monkeypatch.setattr(held_totals._HeldTotals, "rows", bug)
    assert Asked(described).all(QUESTIONS[0]) != expected


@pytest.mark.long
def test_sums_at_another_threshold_are_found(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = apart(described, PAIRS[0], monkeypatch)
    answer = held_sums._Searched.answer

    def at_the_next(searched: Any, question: Question, of: Any) -> Any:
        measures = searched.question.measures
        beside = replace(searched.question, measures=(*measures[1:], measures[0]))
        return answer(replace(searched, question=beside), question, of)

    monkeypatch.setattr(held_sums._Searched, "answer", at_the_next)
    assert Asked(described).all(PAIRS[0]) != expected


@pytest.mark.long
def test_a_limit_of_groups_in_another_order_is_found(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = apart(described, QUESTIONS[2], monkeypatch)
    monkeypatch.setattr(group_limits, "hashed", lambda _, values: f"hash('other', {', '.join(values)})")
    assert Asked(described).all(QUESTIONS[2]) != expected


def test_nothing_is_held_of_data_that_changed_meanwhile(described: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(described)
    question = next(asked.questions(QUESTIONS[1]))
    known, times = DuckDB._are_known, iter([True, False, False, False])
    monkeypatch.setattr(DuckDB, "_are_known", lambda *facts: known(*facts) and next(times))
    with pytest.raises(EngineFault):
        asked.run(question)
    assert asked.engine._totals._held is None
    assert asked.engine.fetch("SELECT COUNT(*) FROM duckdb_tables()") == [(0,)]
