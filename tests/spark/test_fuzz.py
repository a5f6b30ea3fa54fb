"""Questions on Spark, written and random: neighbours are no further apart in them than is charged for.

The random ones are those of `tests/query/test_fuzz` and of `test_linked_fuzz`, bound for Spark: see `fuzzing`
for what becomes of them. What Spark does not have is refused, and leaves no trace.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark import cleaned, queries, relations
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import Cluster
from tests.query import test_fuzz as one_table
from tests.query import test_linked_fuzz as linked
from tests.support.effort import is_long, only
from tests.support.engines import spark
from tests.support.engines.spark_worlds import SparkTables
from tests.support.query import shop
from tests.support.query.corpus import kept
from tests.support.query.fuzzing import (
    CASES,
    LINKED,
    Case,
    Place,
    answered,
    drawn,
    found,
    generous,
    outcomes_of,
    require_answers,
)
from tests.support.query.neighbours import awkward_row
from tests.support.query.neighbours import catalog as of_neighbours
from tests.support.query.worlds import PERSONS, VISITS, Data, Ground

CHUNKS, SHARE, ANSWERED = 4, 40, 0.25
"""Into how many parts random questions are cut, of which Spark is asked one in so many; how many it answers, at least.
"""
QUESTIONS = [
    "SELECT plan, COUNT(*), SUM(cost), SUM(pay), COUNT(DISTINCT person), COUNT(score), VAR_POP(age) FROM visits"
    " GROUP BY plan",
    "SELECT day, MEDIAN(age), COUNT(DISTINCT note) FROM visits WHERE member GROUP BY day",
    "SELECT age, COUNT(DISTINCT person), SUM(pay, contribution_bounds_per_group => (0, 20)) FROM visits GROUP BY age",
    "SELECT tier, COUNT(*), SUM(age) FROM visits JOIN codes ON visits.plan = codes.plan GROUP BY tier",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) plan, member, COUNT(*), SUM(age)"
    " FROM visits GROUP BY plan, member",
    "SELECT COUNT(*), AVG(total) FROM (SELECT person, SUM(age) AS total, MAX(pay) AS p FROM visits GROUP BY person)"
    " AS v WHERE total > 30",
    "SELECT COUNT(*) FROM (SELECT DISTINCT person, plan, member FROM visits UNION ALL SELECT person, plan, member"
    " FROM visits WHERE member) AS v WHERE plan LIKE 'a%'",
]  # fmt: skip


def at_most(described: Catalog) -> Catalog:
    """Return a catalog of Spark, which says how many rows there are: otherwise too many could come back."""
    here = spark.on_spark(generous(described))
    for name in [table.name for table in here.tables]:
        (table,) = (one for one in here.tables if one.name == name)
        here = here.with_table(replace(table, rows_at_most=1000))
    return here


def place_of(
    catalogs: Mapping[str, Catalog], ground: Ground, grow: Any, cluster: Cluster, folder: Path
) -> Iterator[Place]:
    first, number = next(iter(catalogs.values())), count()
    facts = PublicData(first)

    def tables(ground: Ground) -> SparkTables:
        return SparkTables(ground=ground, cluster=cluster, folder=folder / f"worlds{next(number)}", catalog=first)

    yield Place(catalogs=dict(catalogs), facts=facts, ground=ground, grow=grow, worlds={}, unit_by_unit=5,
                database=tables, capabilities=CAPABILITIES, printed=queries.answer)  # fmt: skip
    facts.close()


@pytest.fixture(scope="module")
def visits(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {kind: at_most(of_neighbours(folder, rows=rows, neighbouring=kind)) for kind, rows in one_table.KINDS}
    yield from place_of(catalogs, VISITS, one_table.grown, cluster, folder)


def crowd(chance: random.Random, _described: Catalog) -> tuple[Data, Data]:
    """Return two tables that differ in one unit, of units that mostly have more rows than they may, some equal."""
    rows = [awkward_row(chance, who) for who in (*PERSONS, None) for _ in range(chance.randint(2, 6))]
    rows += [dict(row) for row in chance.sample(rows, 4)]
    other = [row for row in rows if row["person"] != PERSONS[0]]
    return {"visits": rows}, {"visits": chance.sample(other, len(other))}


@pytest.fixture(scope="module")
def worlds(visits: Place) -> Place:
    return replace(visits, ground=replace(VISITS, draw=crowd)).elsewhere(0, "add_remove")


@pytest.fixture(scope="module")
def shops(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {
        kind: at_most(shop.catalog(folder, linked=by, neighbouring=neighbouring))
        for kind, (by, neighbouring) in linked.KINDS.items()
    }
    yield from place_of(catalogs, shop.GROUND, linked.grown, cluster, folder)


@contextmanager
def elsewhere(place: Place, chunk: int, kind: str) -> Iterator[Place]:
    """Give a place with other worlds, of one kind. A driver with 1 GB has no room for those of all kinds and tests."""
    there = replace(place, catalogs={kind: place.catalogs[kind]}).elsewhere(chunk)
    try:
        yield there
    finally:
        for worlds in there.worlds.values():
            assert isinstance(worlds.database, SparkTables)
            worlds.database.forget()


def ask_kind_by_kind(cases: Iterable[Case], place: Place, chunk: int, folder: Path) -> None:
    outcomes, asked = Counter[str](), list(cases)
    for kind in place.catalogs:
        with elsewhere(place, chunk, kind) as there:
            outcomes += outcomes_of([case for case in asked if case.kind == kind], there, folder)
    require_answers(outcomes, ANSWERED)


def case(seed: int, text: str) -> Case:
    return Case(seed=seed, text=text, values={}, kind="add_remove")


def test_neighbours_are_no_further_apart_than_is_charged_for(worlds: Place) -> None:
    asked = list(enumerate(QUESTIONS))[:: 1 if is_long() else 4]
    assert {found(case(*numbered), worlds)[1] for numbered in asked} == {"answered"}


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, visits: Place, tmp_path: Path) -> None:
    asked = drawn(range(chunk, (CASES - LINKED) // SHARE, CHUNKS), visits)
    ask_kind_by_kind(asked, visits, chunk, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions_about_linked_tables(chunk: int, shops: Place, tmp_path: Path) -> None:
    ask_kind_by_kind(drawn(range(chunk, LINKED // SHARE, CHUNKS), shops), shops, chunk, tmp_path)


@pytest.mark.long
def test_questions_of_the_corpora(visits: Place, shops: Place, tmp_path: Path) -> None:
    for name, place in (("one_table", visits), ("linked", shops)):
        (tmp_path / name).mkdir()
        ask_kind_by_kind([*kept(name), *kept(f"{name}_more")], place, 9, tmp_path / name)


WORDS = [
    *("DISTINCT", "UNION ALL", "GROUP BY person", "LEFT JOIN", "FILTER", "HAVING", "NOT (", "AVG(", "COUNT(DISTINCT"),
    *("VAR_POP", "MEDIAN", "QUANTILE", "ROLLUP", "GROUPING SETS", "_groups_contrib", "per_group => (", "per_row =>"),
    *("LIKE", "DATE_DIFF", "LAST_DAY", "EXTRACT", "BETWEEN", "||", "//", "private keys"),
]


@pytest.mark.long
def test_every_construct_is_answered(visits: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    asked = answered(WORDS, (Case.of(seed, visits) for seed in range(0, 1600, 2)), visits)
    assert min(asked[word] for word in WORDS) > 0, asked


# ---- planted bugs ----------------------------------------------------------------------------------------------------

bounded, holders = cleaned.kept, queries.holders
first, per_unit, joined_by_unit = relations._first, relations._per_unit, relations._joined_by_unit


def counted_twice(table: Any, rows: str, values: Any, read: Any) -> str:
    """Count what the first task finds twice, as if both results of one that was run again were taken."""
    once = bounded(table, rows, values, read)
    return f"{once} UNION ALL SELECT * FROM ({once}) WHERE spark_partition_id() = 0"


def one_too_many(node: Any, *rest: Any) -> str:
    return first(replace(node, most=node.most + 1), *rest)


def grouped_together(node: Any) -> str:
    whole = per_unit(node).replace("(SELECT `unit`", "(SELECT MIN(`unit`) AS `unit`", 1)
    return whole.removesuffix(" GROUP BY 1)") + ")"


def joined_with_anyone(node: Any) -> str:
    return joined_by_unit(node).replace("ON ours.`unit` = theirs.", "ON ours.`unit` > 0 OR 0 < theirs.")


BUGS: dict[str, tuple[Any, str, Any, str]] = {
    "rows beyond the bound": (cleaned, "kept", lambda _table, rows, *_: rows, "SELECT COUNT(*) FROM visits"),
    "keys of units that seem to hold one each": (
        queries,
        "holders",
        lambda question: holders(question).replace("COUNT(*) OVER (PARTITION BY holder)", "1L"),
        "SELECT note, COUNT(DISTINCT person) FROM visits GROUP BY note",
    ),
    "a task that counts twice": (cleaned, "kept", counted_twice, "SELECT COUNT(*) FROM visits"),
    "a group too many": (
        relations,
        "_first",
        one_too_many,
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) age, COUNT(DISTINCT person) FROM visits"
        " GROUP BY age",
    ),
    "groups of all units": (
        relations,
        "_per_unit",
        grouped_together,
        "SELECT COUNT(*), SUM(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) AS v",
    ),
    "joins with other units": (
        relations,
        "_joined_by_unit",
        joined_with_anyone,
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person = b.person",
    ),
    "units' sums that are not clamped": (queries, "_clamped", lambda place, _measure: f"measure{place}", QUESTIONS[2]),
    "numbers that are not clamped": (
        cleaned,
        "_clean_whole",
        lambda name, _column: f"TRY_CAST({name} AS BIGINT)",
        "SELECT SUM(age) FROM visits",
    ),
}


@pytest.mark.parametrize("bug", only([0, 1, 2], BUGS))
def test_planted_bugs_are_found(bug: str, worlds: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, planted, text = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)

    def shows(seed: int) -> bool:
        try:
            return found(case(seed, text), worlds)[1] != "answered"
        except AssertionError as error:
            return isinstance(error.__cause__, AssertionError)  # what an engine raises tells nothing of distances

    assert any(map(shows, range(0, 7 * 9, 7)))  # of every seventh question, rows are cleaned and kept afresh
