"""Sensitivities, by brute force: no small unit moves a measure further than claimed, and some unit moves it that far.

First over vectors, as the proof of `stability` sees them; then over tables, through the SQL that runs: every unit of
up to one row too many, its vector as the engine sums it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.mechanisms import Sensitivity
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, Operation
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from lapwing.release.cells import cells_of
from tests.support.effort import one_in
from tests.support.query import composed

Vector = tuple[int, ...]
Move = tuple[int, int]  # the L1 norm and the squared L2 norm of a change

ROWS, CELLS = (1, 2, 3), (1, 2, 3)
SPANS = [(0, 1), (0, 3), (-1, 1), (-2, 1), (-1, 3), (1, 2), (-3, -1), (0, 0), (2, 2)]


# ---- vectors ---------------------------------------------------------------------------------------------------------


def summed(low: int, high: int, origin: int = 0) -> Sum:
    return Sum(argument=ColumnReference(name="x", type=Fixed(step=Fraction(1), low=low, high=high)), origin=origin)


def vectors(measure: Measure, rows: int, cells: int) -> set[Vector]:
    """Return f(D_u) of every unit of at most `rows` rows: each adds a value to one cell, or nothing."""
    if isinstance(measure, Sum):
        assert measure.type.low is not None
        assert measure.type.high is not None
        added = range(measure.type.low - measure.origin, measure.type.high - measure.origin + 1)
    else:
        added = range(1, 2)
    choices: list[tuple[int, int] | None] = [None, *product(range(cells), added)]
    found = set()
    for unit in combinations_with_replacement(choices, rows):
        vector = [0] * cells
        for row in unit:
            if row is not None:
                cell, value = row
                vector[cell] = 1 if isinstance(measure, CountUnits) else vector[cell] + value
        found.add(tuple(vector))
    return found


def farthest(found: set[Vector], neighbouring: str) -> Move:
    """Return the greatest norms of a change between neighbours."""
    others = found if neighbouring == "replace_one" else {(0,) * len(next(iter(found)))}
    moves = [tuple(abs(x - y) for x, y in zip(one, other, strict=True)) for one in found for other in others]
    return max(map(sum, moves)), max(sum(d * d for d in move) for move in moves)


def claimed(measure: Measure, rows: int, cells: int, neighbouring: str) -> list[Move]:
    candidates = stability.sensitivity_bounds(measure, rows_per_unit=rows, cells=cells, neighbouring=neighbouring)
    return [(c.sensitivity.l1, c.sensitivity.l2_squared) for c in candidates]


def least(claims: Sequence[Move]) -> Move:
    return min(l1 for l1, _ in claims), min(squared for _, squared in claims)


def at_least_one(move: Move) -> Move:
    """A measure that nothing moves is noised all the same."""
    return max(move[0], 1), max(move[1], 1)


MEASURES: list[Measure] = [
    Count(),
    CountUnits(),
    *(summed(low, high) for low, high in SPANS),
    *(summed(low, high, origin=(low + high) // 2) for low, high in SPANS),
]


def wrong(measure: Measure, rows: int, cells: int, neighbouring: str) -> list[str]:
    """Return which claims are too small, and whether the best of them is larger than it need be."""
    found = farthest(vectors(measure, rows, cells), neighbouring)
    claims = claimed(measure, rows, cells, neighbouring)
    small = [f"{claim} < {found}" for claim in claims if claim[0] < found[0] or claim[1] < found[1]]
    loose = [] if least(claims) == at_least_one(found) else [f"{least(claims)} != {found}"]
    return small + loose


@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("rows", ROWS)
def test_claims_are_valid_and_attained(rows: int, cells: int, neighbouring: str) -> None:
    for measure in MEASURES:
        assert wrong(measure, rows, cells, neighbouring) == [], measure


# ---- tables ----------------------------------------------------------------------------------------------------------

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
plan = {{ type = "string", values = ["a", "b"]{other} }}
age = {{ type = "integer", lower = -1, upper = 3 }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
plan = {{ type = "string" }}
tier = {{ type = "string" }}
"""
CODES = [("a", "gold"), ("a", "basic"), ("a", "gold"), ("b", "basic"), (None, "gold")]
PLANS = ["a", "b", "c", None]
AGES = [-1, 3, 9, None]
QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(age) FROM visits",
    "SELECT COUNT(DISTINCT person) FROM visits",
    "SELECT SUM(age) FROM visits",
    "SELECT AVG(age) FROM visits",
    "SELECT SUM(2 * age - 1) FROM visits WHERE age > 0 OR plan = 'c'",
    "SELECT plan, COUNT(*) FROM visits GROUP BY plan",
    "SELECT plan, COUNT(DISTINCT person) FROM visits GROUP BY plan",
    "SELECT plan, SUM(age) FROM visits GROUP BY plan",
    "SELECT plan, AVG(age) FROM visits GROUP BY plan",
]

RELATIONS = [
    "SELECT COUNT(*) FROM (SELECT age + 1 AS a FROM visits WHERE plan = 'a') WHERE a > 0",
    "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person)",
    "SELECT SUM(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person)",
    "SELECT SUM(s) FROM (SELECT person, SUM(age) AS s FROM visits GROUP BY person)",
    "SELECT n, COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) GROUP BY n",
    "SELECT COUNT(*) FROM (SELECT DISTINCT person, plan, age FROM visits)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT person FROM visits)",
    "SELECT plan, COUNT(*) FROM (SELECT DISTINCT person, plan, age FROM visits) GROUP BY plan",
    "SELECT COUNT(*) FROM (SELECT person, age FROM visits UNION ALL SELECT person, age FROM visits)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY age) = 1)",
    "SELECT SUM(c) FROM (SELECT COUNT(*) OVER (PARTITION BY person) AS c FROM visits)",
    "SELECT SUM(m) FROM (SELECT MAX(age) OVER (PARTITION BY person ORDER BY plan) AS m FROM visits)",
    "SELECT COUNT(*) FROM visits JOIN codes USING (plan)",
    "SELECT SUM(age) FROM visits LEFT JOIN codes ON visits.plan = codes.plan",
    "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT plan FROM codes)",
    "SELECT COUNT(*) FROM visits ANTI JOIN codes USING (plan)",
]
"""Over these a unit moves the sums by exactly what is claimed; `LOOSE` are those where it need not."""
LOOSE = [
    "SELECT plan, SUM(n) FROM (SELECT person, plan, MAX(age) AS n FROM visits GROUP BY person, plan) GROUP BY plan",
    "SELECT SUM(x) FROM (SELECT age AS x FROM visits UNION ALL SELECT 3 FROM visits UNION ALL SELECT age FROM visits)",
    "SELECT COUNT(*) FROM visits AS v JOIN codes AS c ON v.plan = c.plan AND c.tier = 'gold' WHERE c.plan = 'a'",
    "SELECT plan, COUNT(*) FROM visits JOIN codes USING (plan) GROUP BY plan",
    "SELECT SUM(k) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person ORDER BY age) AS k FROM visits)",
    "SELECT SUM(d) FROM (SELECT age - LAG(age) OVER (PARTITION BY person ORDER BY age) AS d FROM visits)",
    "SELECT AVG(a) FROM (SELECT person, AVG(age) AS a FROM visits GROUP BY person)",
    "SELECT COUNT(*) FROM visits WHERE plan NOT IN (SELECT plan FROM codes)",
    "SELECT COUNT(DISTINCT plan) FROM (SELECT DISTINCT person, plan FROM visits)",
    "SELECT tier, COUNT(*) FROM visits LEFT JOIN codes USING (plan) GROUP BY tier",
    "SELECT plan, COUNT(*) FROM (SELECT person, plan FROM visits UNION SELECT person, 'b' FROM visits) GROUP BY plan",
]


def catalog(rows: int, *, other: bool = False, folder: Path | None = None) -> Catalog:
    text = CATALOG.format(rows=rows, other=', other = "rest"' if other else "")
    return loads(text, file="small", folder=folder or Path())


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicData]:
    folder = tmp_path_factory.mktemp("public")
    rows = [{"plan": plan, "tier": tier} for plan, tier in CODES]
    pq.write_table(pa.Table.from_pylist(rows), folder / "codes.parquet")
    facts = PublicData(catalog(1, folder=folder))
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def units() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every unit of up to three rows; a unit is NULL for rows of nobody."""
    connection = duckdb.connect(config={"threads": 2})
    kinds = list(product(PLANS, AGES))
    rows: list[tuple[int | None, Any, Any]] = [(None, plan, age) for plan, age in kinds]
    tables = [table for size in (1, 2, 3) for table in combinations_with_replacement(kinds, size)]
    rows += [(person, plan, age) for person, table in enumerate(tables) for plan, age in table]
    people, plans, ages = zip(*rows, strict=True)
    connection.execute("CREATE TABLE visits (person BIGINT, plan VARCHAR, age INTEGER)")
    connection.execute(
        "INSERT INTO visits SELECT unnest($1::BIGINT[]), unnest($2::VARCHAR[]), unnest($3::INTEGER[])",
        [list(people), list(plans), list(ages)],
    )
    yield connection
    connection.close()


def unit_vectors(
    question: Question, connection: duckdb.DuckDBPyConnection, facts: PublicData | None = None
) -> list[set[Vector]]:
    """Return, for each measure, the vector over cells of every unit, summed by the engine."""
    source = Location(relation="visits", types={"person": "BIGINT", "plan": "VARCHAR", "age": "INTEGER"})
    answer = render.answer(question).replace("SELECT ", "SELECT unit, ", 1).replace(" GROUP BY 1", "")
    keys = len(question.keys)
    by_position = ", ".join(str(i + 1) for i in range(keys + 1))
    grouped = f"{composed.prefix(question, source, facts)} {answer} GROUP BY {by_position}"
    places = {cell: i for i, cell in enumerate(cells_of(question))}
    found: list[dict[int, list[int]]] = [{-1: [0] * len(places)} for _ in question.measures]
    for unit, *row in connection.execute(grouped).fetchall():
        assert unit is not None
        for vectors, value in zip(found, row[keys:], strict=True):
            vectors.setdefault(unit, [0] * len(places))[places[tuple(row[:keys])]] += value
    return [{tuple(vector) for vector in vectors.values()} for vectors in found]


def moves_and_claims(
    question: Question,
    connection: duckdb.DuckDBPyConnection,
    neighbouring: str,
    facts: PublicData | None = None,
) -> list[tuple[Move, Move]]:
    moved = [farthest(vectors, neighbouring) for vectors in unit_vectors(question, connection, facts)]
    claims = stability.of_question(question, neighbouring)
    return [
        (move, least([(c.sensitivity.l1, c.sensitivity.l2_squared) for c in candidates]))
        for move, candidates in zip(moved, claims, strict=True)
    ]


@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("text", one_in(3, QUESTIONS))
def test_units_move_the_engine_s_sums_by_what_is_claimed(
    text: str, neighbouring: str, units: duckdb.DuckDBPyConnection
) -> None:
    for rows, other in ((1, False), (2, False), (2, True)):
        question = bind(text, catalog(rows, other=other)).question
        for move, claim in moves_and_claims(question, units, neighbouring):
            assert move == claim, (rows, other)


@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("text", one_in(4, RELATIONS))
def test_units_move_sums_over_relations_by_what_is_claimed(
    text: str, neighbouring: str, units: duckdb.DuckDBPyConnection, facts: PublicData
) -> None:
    for rows in (1, 2):
        question = bind(text, catalog(rows), facts).question
        for move, claim in moves_and_claims(question, units, neighbouring, facts):
            assert at_least_one(move) == claim, rows


@pytest.mark.parametrize("neighbouring", one_in(3, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("text", one_in(4, LOOSE))
def test_units_move_sums_over_relations_by_no_more(
    text: str, neighbouring: str, units: duckdb.DuckDBPyConnection, facts: PublicData
) -> None:
    for rows in (1, 2, 3):
        question = bind(text, catalog(rows), facts).question
        for move, claim in moves_and_claims(question, units, neighbouring, facts):
            assert move[0] <= claim[0], rows
            assert move[1] <= claim[1], rows


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def found_by_vectors() -> bool:
    return any(wrong(*case) for case in product(MEASURES, ROWS, CELLS, ["add_remove", "replace_one"]))


@pytest.mark.long
def test_a_range_that_forgets_rows_which_add_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row between 1 and 2 may also be filtered out."""
    assert not found_by_vectors()

    def narrow(measure: Measure) -> tuple[int, int]:
        return (measure.type.low or 0, measure.type.high or 0) if isinstance(measure, Sum) else (0, 1)

    monkeypatch.setattr(Sum, "row_range", property(narrow))
    assert found_by_vectors()


def test_units_that_count_in_one_cell_only_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    units = stability._units
    monkeypatch.setattr(stability, "_units", lambda groups, cells, replaced: units(1, cells, replaced))
    assert found_by_vectors()


def test_a_bound_for_one_cell_used_for_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = stability.sensitivity_bounds

    def in_one_cell(measure: Measure, *, rows_per_unit: int, cells: int, neighbouring: str) -> Any:
        one = 1 if isinstance(measure, Sum) else cells
        return candidates(measure, rows_per_unit=rows_per_unit, cells=one, neighbouring=neighbouring)

    monkeypatch.setattr(stability, "sensitivity_bounds", in_one_cell)
    assert found_by_vectors()


def test_a_sensitivity_times_nine_tenths_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nine_tenths(l1: int, l2_squared: int, reason: str) -> Any:
        smaller = Sensitivity(l1=l1 * 9 // 10, l2_squared=l2_squared * 81 // 100)
        return stability.SensitivityBound(sensitivity=smaller, reason=reason)

    monkeypatch.setattr(stability, "_candidate", nine_tenths)
    assert found_by_vectors()


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("cleaned.kept", lambda *_: "SELECT * FROM cleaned"),
        ("bounded_values.clean_whole", lambda name, kind: f"TRY_CAST({name} AS BIGINT)"),
    ],
)
def test_a_missing_bound_in_the_sql_is_found(
    name: str, bug: Any, units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = bind("SELECT SUM(age) FROM visits", catalog(2)).question
    assert all(move == claim for move, claim in moves_and_claims(question, units, "add_remove"))
    monkeypatch.setattr(f"lapwing.engines.duckdb.{name}", bug)
    assert any(move > claim for move, claim in moves_and_claims(question, units, "add_remove"))


def test_a_value_beyond_its_proven_bounds_is_clamped(
    units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If interval arithmetic were wrong, the sum would be biased and not unbounded."""
    question = bind("SELECT SUM(age + 0) FROM visits", catalog(2)).question
    (total,) = question.measures
    assert isinstance(total, Sum)
    assert isinstance(total.argument, Operation)
    too_narrow = replace(total.argument, type=Fixed(step=Fraction(1), low=-1, high=2))
    claimed_less = replace(question, measures=(Sum(argument=too_narrow),))
    assert all(move == claim for move, claim in moves_and_claims(claimed_less, units, "add_remove"))
    monkeypatch.setattr(render, "clamp", lambda value, low, high: value)
    assert any(move > claim for move, claim in moves_and_claims(claimed_less, units, "add_remove"))
