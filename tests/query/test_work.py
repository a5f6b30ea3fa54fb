"""What one unit can make an engine do: every construct has a cost, and what multiplies a unit's work is too much."""

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.printers import PRINTERS
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query import relations
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import automata
from lapwing.query.expressions.automata import automaton_of
from lapwing.query.from_clause.unit_aggregates import AGGREGATES
from lapwing.query.from_clause.window_functions import WINDOW_FUNCTIONS
from lapwing.query.measures.measures import Measure
from lapwing.query.plan import work
from lapwing.query.plan.work import Work, work_of
from lapwing.query.relations.inputs import OneSource, TwoSources
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import ChosenRows, UnitFunction
from lapwing.query.relations.relation import FilteredRows
from lapwing.query.relations.shared_join import SharedJoin
from tests.support.effort import one_in

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:ledger.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 8
[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "c"] }
ill = { type = "boolean" }
age = { type = "integer", lower = 0, upper = 110 }
cost = { type = "float", lower = 0, upper = 100 }
day = { type = "date", lower = 2020-01-01, upper = 2029-12-31 }
note = { type = "string" }
name = { type = "string" }
"""
ILL = "WITH v AS (SELECT * FROM visits WHERE name = 'p17' AND ill) "


@pytest.fixture(scope="module")
def asked() -> Callable[[str], Work]:
    catalog = loads(CATALOG, file="lapwing.toml", folder=Path())
    return lambda text: work_of(bind(text, catalog))


# ---- nothing is without a cost ---------------------------------------------------------------------------------------


def nodes() -> set[type[object]]:
    """Return all kinds of relations."""
    modules = (import_module(f"{relations.__name__}.{one.name}") for one in pkgutil.iter_modules(relations.__path__))
    classes = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    abstract = {Relation, OneSource, TwoSources, ChosenRows}
    own = {kind for kind in classes if kind.__module__.startswith(relations.__name__)}
    return {kind for kind in own if hasattr(kind, "construct")} - abstract


def relations_in(selection: FilteredRows) -> set[type[object]]:
    below = (relations_in(source) for source in selection.relation.sources)
    return {type(selection.relation)}.union(*below)


def test_all_that_plans_are_made_of_has_a_cost() -> None:
    assert set(work.COSTS) == set(PRINTERS)
    assert set(work.MEASURES) == set(get_args(Measure))
    assert set(work.AGGREGATES) == set(get_args(UnitFunction))
    counted_distinct = {"count_distinct"}  # is no name of the table, but what COUNT(DISTINCT …) becomes
    assert set(work.WINDOWS) == {name for name, _ in WINDOW_FUNCTIONS.values()} | counted_distinct
    assert {name for name, _ in AGGREGATES.values()} | counted_distinct == set(work.AGGREGATES)


OF_EVERY_KIND = (
    "SELECT COUNT(*) FROM (SELECT DISTINCT person, age FROM visits)",
    "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age + 1 FROM visits)",
    "SELECT COUNT(*) FROM (SELECT person, SUM(age) AS s FROM visits GROUP BY person)",
    "SELECT COUNT(r) FROM (SELECT RANK() OVER (PARTITION BY person ORDER BY age) AS r FROM visits)",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.person = b.person",
    "SELECT COUNT(*) FROM visits JOIN codes ON age = code",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) COUNT(*) FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) plan, COUNT(*) FROM visits GROUP BY plan",
)


@pytest.mark.long
def test_every_kind_of_relation_has_a_cost(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("code\n1\n2\n2\n")
    public = (
        '[tables.codes]\nsource = "codes.csv"\npublic = true\n[tables.codes.columns]\ncode = { type = "integer" }\n'
    )
    catalog = loads(CATALOG + public, file="lapwing.toml", folder=tmp_path)
    facts, seen = PublicData(catalog), set[type[object]]()
    for text in OF_EVERY_KIND:
        plan = bind(text, catalog, facts)
        seen |= relations_in(plan.question.selection)
        assert work_of(plan).most > work_of(bind("SELECT COUNT(*) FROM visits", catalog, facts)).most
    assert seen | {SharedJoin} == nodes()  # which has no bound: the rows that meet are not one unit's
    facts.close()


# ---- groups and texts ------------------------------------------------------------------------------------------------


def keyed(values: list[str]) -> float:
    """Return what a group by a text of public values costs beyond reading and counting."""
    listed = ", ".join(f'"{value}"' for value in values)
    catalog = loads(CATALOG.replace('["a", "b", "c"]', f"[{listed}]"), file="lapwing.toml", folder=Path())
    both = [
        work_of(bind(f"SELECT {text}", catalog)).most
        for text in ("plan, COUNT(*) FROM visits GROUP BY plan", "COUNT(*) FROM visits WHERE plan IS NOT NULL")
    ]
    return (both[0] - both[1]) / 8


def test_a_row_finds_one_of_a_few_public_groups_soon() -> None:
    """Measured: 3 to 10 nanoseconds a row, and 180 where 500 short values are looked through."""
    assert 20 <= keyed(["a", "b", "c"]) <= 100
    assert keyed([f"v{number}" for number in range(200)]) >= 200


def test_values_that_begin_alike_are_compared_byte_by_byte() -> None:
    """Measured: 1.8 nanoseconds for each of 100 values of 40 bytes, and 5.8 of 250 bytes, where no row has one."""
    assert keyed([f"{'q' * 36}{number:04}" for number in range(100)]) >= 400
    assert keyed([f"{'q' * 246}{number:04}" for number in range(100)]) >= 1200


@pytest.mark.long
def test_more_groups_than_fit_into_caches_are_hashed() -> None:
    many = [f"v{number}" for number in range(5000)]
    assert keyed(many) - keyed(many[:4000]) >= 140


def test_a_text_that_is_compared_with_a_constant_is_read_no_further(asked: Callable[[str], Work]) -> None:
    known, constant, column = (
        asked(f"SELECT COUNT(*) FROM visits WHERE note {condition}").most
        for condition in ("IS NOT NULL", "= 'q'", "= name")
    )
    assert constant - known <= 8 * 30
    assert column - constant >= 8 * 255


def test_a_long_text_costs_more_to_read_and_to_carry(asked: Callable[[str], Work]) -> None:
    """Measured: 28 to 100 nanoseconds to read one of 250 bytes, and a microsecond or more to take it through a join."""
    assert asked("SELECT COUNT(note) FROM visits").most >= 8 * 100
    joined = "SELECT COUNT(*) FROM visits v WHERE person IN (SELECT person FROM visits) AND {}"
    assert asked(joined.format("note <> 'q'")).most - asked(joined.format("ill")).most >= 8 * (100 + 256)


# ---- what is too much, and its like that is not ----------------------------------------------------------------------


def copies(count: int, rows: str = "v") -> str:
    joins = (f"JOIN {rows} a{i} ON a0.person = a{i}.person" for i in range(1, count))
    return f"{ILL}SELECT COUNT(*) FROM {rows} a0 {' '.join(joins)}"


EXCESSIVE = (
    *((copies(count), copies(3)) for count in (5, 6)),
    (f"{copies(4)} WHERE a0.note || a1.note || a2.note LIKE '%x%y%'", f"{copies(3)} WHERE a0.age + a1.age > 7"),
    (
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES(LPAD(note, 1000, 'ab'), '.*a.{{16}}c')",
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES(LPAD(note, 1000, 'ab'), '.*a.{{6}}c')",
    ),
    (
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES(note, '(.{{1,40}}){{20}}x')",
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES(note, '.{{20,60}}x')",
    ),
    (
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_REPLACE(note, 'a.*b|a', '', 'g') = 'x'",
        f"{ILL}SELECT COUNT(*) FROM v WHERE REGEXP_REPLACE(note, '[^0-9]', '', 'g') = 'x'",
    ),
    (
        f"{ILL}SELECT COUNT(*) FROM v WHERE LPAD(note, 1000, 'a') LIKE '%{'_' * 700}b%'",
        f"{ILL}SELECT COUNT(*) FROM v WHERE LPAD(note, 1000, 'a') LIKE '%b%c%'",
    ),
    (
        f"{ILL}SELECT COUNT(w) FROM (SELECT COUNT(DISTINCT x.note) OVER (PARTITION BY person ORDER BY x.age) AS w "
        "FROM v x JOIN v y USING (person) JOIN v z USING (person))",
        f"{ILL}SELECT COUNT(w) FROM (SELECT COUNT(DISTINCT note) OVER (PARTITION BY person ORDER BY age) AS w FROM v)",
    ),
    (
        f"{ILL}SELECT MEDIAN(a0.age) FROM v a0 {copies(5).split('a0 ', 1)[1]}",
        f"{ILL}SELECT MEDIAN(age) FROM v",
    ),
    (
        f"{ILL}SELECT a0.note, COUNT(*) FROM v a0 {copies(4).split('a0 ', 1)[1]} GROUP BY a0.note",
        f"{ILL}SELECT note, COUNT(*) FROM v GROUP BY note",
    ),
    (
        f"{ILL}SELECT COUNT(*) FROM v a0 {copies(4).split('a0 ', 1)[1]} GROUP BY CUBE (a0.plan, a1.plan, a0.ill)",
        f"{ILL}SELECT COUNT(*) FROM v GROUP BY CUBE (plan, ill)",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("excessive", "bearable"), one_in(3, EXCESSIVE, many=True))
def test_what_multiplies_the_work_of_a_unit_is_too_much(
    excessive: str, bearable: str, asked: Callable[[str], Work]
) -> None:
    assert asked(excessive).excessive
    assert not asked(bearable).excessive


@pytest.mark.parametrize(
    "text",
    [
        "SELECT plan, COUNT(*) FROM visits GROUP BY plan",
        "SELECT plan, ill, COUNT(*), AVG(cost), STDDEV_POP(age) FROM visits GROUP BY plan, ill",
        "SELECT plan, MEDIAN(age), QUANTILE_CONT(cost, 0.9) FROM visits GROUP BY ROLLUP (plan, ill)",
        "SELECT note, COUNT(DISTINCT person) FROM visits GROUP BY note",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.person = b.person AND a.day < b.day",
        r"SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, '^[a-z0-9._%+]+@[a-z0-9.]+\.[a-z]{2,}$', 'i')",
        r"SELECT COUNT(*) FROM visits WHERE REGEXP_EXTRACT(note, '(\d{4})-(\d{2})', 1) = '2024'",
        "SELECT COUNT(*) FROM visits WHERE LOWER(TRIM(note)) LIKE '%flu%' OR note ILIKE '%cold%'",
        "SELECT COUNT(*) FROM (SELECT LAG(day) OVER (PARTITION BY person ORDER BY day) AS d, day FROM visits) "
        "WHERE DATE_DIFF('day', d, day) < 30",
    ],
)
def test_what_people_ask_is_not_too_much(text: str, asked: Callable[[str], Work]) -> None:
    assert not asked(text).excessive


def test_every_grouping_set_and_every_search_reads_the_rows_again(asked: Callable[[str], Work]) -> None:
    once = asked(f"{ILL}SELECT COUNT(*) FROM v WHERE LOWER(note) = 'x' GROUP BY plan, ill").most
    assert asked(f"{ILL}SELECT COUNT(*) FROM v WHERE LOWER(note) = 'x' GROUP BY CUBE (plan, ill)").most > 3.5 * once
    summed = asked(f"{ILL}SELECT SUM(age) FROM v WHERE LOWER(note) = 'x'").most
    searched = "SUM(age, contribution_bounds_per_row => AUTO)"
    assert asked(f"{ILL}SELECT {searched} FROM v WHERE LOWER(note) = 'x'").most > 1.5 * summed


def test_many_patterns_are_not_all_looked_at(asked: Callable[[str], Work], monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counted(*pattern: str) -> automata.Automaton:
        looked_at.append(pattern)
        return automata.Automaton(size=1, states=1, places=1, overrun=1, longest=1, steps=50_000)

    monkeypatch.setattr(work, "automaton_of", counted)
    many = ", ".join(f"COUNT(CASE WHEN REGEXP_MATCHES(note, 'x{place}') THEN 1 END) AS c{place}" for place in range(50))
    assert asked(f"SELECT {many} FROM visits").excessive
    assert len(looked_at) == 13


def test_whole_rows_are_read_where_ties_are_broken_by_them(asked: Callable[[str], Work]) -> None:
    limited = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) COUNT(*) FROM visits"
    assert asked(limited).most > 8 * (2 + 2) * 256  # the texts of note and name, hashed and sorted, of eight rows


# ---- automata --------------------------------------------------------------------------------------------------------


def test_states_are_counted_as_an_engine_builds_them() -> None:
    for length in (3, 6, 8):
        counted = automaton_of(f"a.{{{length}}}c", "", "occurs")
        assert counted.states == 2 ** (length + 1) + 1  # which of the last characters were an a; and the end
    assert automaton_of("a.{16}c", "", "occurs").states is None
    assert automaton_of("^a.{16}c", "", "occurs").states == 19  # it begins in one place
    assert automaton_of("(a|b)*(a|b)*c", "", "occurs").states == 2
    assert automaton_of("c.{16}a", "", "occurs").states is None or automaton_of("c.{16}a", "", "fully").states == 19


@pytest.mark.parametrize(
    ("pattern", "beyond"),
    [("[^0-9]", 1), ("a+", 1), ("a*b|a", None), ("a{80}b|a", 80), ("ab{3}c|a", 4), ("a|ab{3}c", 1), ("a+?", 1)],
)
def test_how_far_a_search_reads_beyond_its_match(pattern: str, beyond: int | None) -> None:
    """The preferred alternative ends a search, which a lesser one would have gone on with."""
    assert automaton_of(pattern, "", "all").overrun == beyond


def test_what_is_preferred_but_never_matches_is_read_on_for() -> None:
    """That a lesser alternative matches all along does not end the search for a preferred one."""
    found = automaton_of("a{90}x|a|a.*", "", "all")
    assert found.states is None or found.overrun == 90


def test_a_list_computes_its_argument_as_often_as_the_engine_does(asked: Callable[[str], Work]) -> None:
    """Measured in DuckDB: IN with five constants or more, once; with fewer, once for each; BETWEEN twice."""

    def cost(condition: str) -> float:
        return asked(f"SELECT COUNT(*) FROM visits WHERE {condition}").most

    base = cost("ill")
    one = cost("REVERSE(note) = 'a'") - base
    for count, times in ((2, 2), (4, 4), (5, 1), (40, 1)):
        listed = ", ".join(f"'a{number}'" for number in range(count))
        assert cost(f"REVERSE(note) IN ({listed})") - base == pytest.approx(times * one, rel=0.1)
    assert cost("REVERSE(note) BETWEEN 'a' AND 'b'") - base == pytest.approx(2 * one, rel=0.1)
