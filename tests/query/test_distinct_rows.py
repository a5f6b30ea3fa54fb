"""Distinct rows of UNION, INTERSECT and EXCEPT across units: as many as SQL has, and how far one unit moves them."""

from collections.abc import Callable, Iterator
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import loads
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, columns_of
from lapwing.query.expressions.types import BOOLEAN, TEXT
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.sensitivity import set_stability, stability
from tests.support.effort import one_in

ROWS = "SELECT {} FROM visits WHERE plan = {}"
SIDES = [ROWS.format(*shown) for shown in (("age, town", 0), ("age, town", 1), ("town, age", 2))]
SETS = (
    f"{SIDES[0]} UNION {SIDES[1]}",
    f"{SIDES[0]} INTERSECT {SIDES[1]}",
    f"{SIDES[0]} EXCEPT {SIDES[1]}",
    f"{SIDES[0]} INTERSECT {SIDES[1]} INTERSECT {SIDES[2]}",
    f"({SIDES[0]} EXCEPT {SIDES[1]}) EXCEPT {SIDES[2]}",
    f"{SIDES[0]} INTERSECT ({SIDES[1]} UNION {SIDES[2]})",
    "SELECT DISTINCT age FROM visits WHERE plan = 0 INTERSECT SELECT age FROM visits WHERE plan = 0",
    f"{SIDES[0]} EXCEPT {SIDES[0]}",
    f"{SIDES[0]} EXCEPT SELECT age, town FROM visits",
    f"SELECT 'A', age FROM visits INTERSECT {SIDES[2].replace('town', repr('a'))}",
    f"{SIDES[0]} EXCEPT ({SIDES[1]} EXCEPT {SIDES[2]})",
    "SELECT age FROM visits WHERE plan > 0 INTERSECT "
    "SELECT age FROM visits WHERE person IN (SELECT person FROM visits WHERE plan = 1)",
)
REFUSED = (
    f"{SIDES[0]} UNION SELECT age FROM visits",
    f"{SIDES[0]} EXCEPT ALL {SIDES[1]}",
    f"{SIDES[0]} UNION ({SIDES[1]} LIMIT 1)",
    " UNION ".join(SIDES * 2),
    f"{SIDES[0]} INTERSECT SELECT age, COUNT(*) FROM visits GROUP BY age",
)


@pytest.fixture
def session(tmp_path: Path) -> lw.Session:
    chance = Random(5)
    columns = {
        "person": [n // 3 for n in range(90)],
        "plan": [chance.randrange(3) for _ in range(90)],
        "age": [chance.choice([*range(5), None]) for _ in range(90)],
        "town": [chance.choice([*range(4), None]) for _ in range(90)],
    }
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    return lw.protect(
        tmp_path / "visits.parquet", privacy_unit="person", epsilon=10**9, max_rows_per_unit=3, bounds={"plan": (0, 2)}
    )


@pytest.mark.parametrize("rows", one_in(6, SETS))
def test_they_are_those_of_sql(session: lw.Session, rows: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM ({rows}) AS r"
    with session, duckdb.connect() as plain:
        plain.sql(f"CREATE VIEW visits AS FROM '{session.catalog.folder / 'visits.parquet'}'")
        assert session.sql(text, epsilon=10**6).rows() == [{"n": plain.execute(text).fetchall()[0][0]}]


@pytest.mark.parametrize("rows", one_in(2, REFUSED))
def test_what_is_no_set_of_rows_is_refused(session: lw.Session, rows: str) -> None:
    with session, pytest.raises(lw.QueryRefused):
        session.sql(f"SELECT COUNT(*) FROM ({rows})", epsilon=1)


@pytest.mark.long
def test_one_count_is_bought(session: lw.Session) -> None:
    with session:
        for rows in SETS:
            assert len(session.explain(f"SELECT COUNT(*) FROM ({rows})", epsilon=1).measures) == 1, rows


# ---- the measure -----------------------------------------------------------------------------------------------------

IN: list[ColumnReference] = [ColumnReference(name=f"in {side}", type=BOOLEAN) for side in range(3)]
VALUE = ColumnReference(name="value", type=TEXT)


def some_of(values: Any, most: int | None = None) -> list[frozenset[Any]]:
    sizes = range((len(values) if most is None else most) + 1)
    return [*map(frozenset, chain.from_iterable(combinations(values, size) for size in sizes))]


def test_counts_of_distinct_values_add_up_to_it() -> None:
    """A value is counted once if its set of sides is held, whatever sides are."""
    memberships = some_of(range(3))[1:]
    for held in some_of(memberships)[1:]:
        terms = CountOfSets(value=VALUE, sides=tuple(IN), held=held).terms
        for there in memberships:
            names = {IN[side].name for side in there}
            assert sum(factor for factor, term in terms if columns_of(term) & names) == (there in held)


@pytest.mark.parametrize("held", [frozenset(), frozenset({frozenset()}), frozenset({frozenset({3})})])
def test_values_of_no_side_are_not_counted(held: frozenset[frozenset[int]]) -> None:
    with pytest.raises(ValueError, match="in some of the sides"):
        CountOfSets(value=VALUE, sides=tuple(IN), held=held)


# ---- how far a unit moves it -----------------------------------------------------------------------------------------

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
delta = 1e-6
"""
TABLE = """
[tables.{name}]
source = "{name}.parquet"
privacy_unit = "person"
unit = "person"
max_rows_per_unit = {rows}
[tables.{name}.columns]
person = {{ type = "integer" }}
product = {{ type = "string" }}
kind = {{ type = "integer", lower = 0, upper = 9 }}
"""
ROWS_PER_UNIT = {"a": 2, "b": 1, "c": 1}
Side = frozenset[int]
Values = tuple[Side, ...]
"""The values of every side."""
OPERATIONS: dict[str, Callable[[Values], Side]] = {
    "{} UNION {}": lambda sides: sides[0] | sides[1],
    "{} INTERSECT {}": lambda sides: sides[0] & sides[1],
    "{} EXCEPT {}": lambda sides: sides[0] - sides[1],
    "{1} EXCEPT {0}": lambda sides: sides[1] - sides[0],
    "{} EXCEPT ({} EXCEPT {})": lambda sides: sides[0] - (sides[1] - sides[2]),
}
VALUES = {2: range(4), 3: range(2)}
"""By the number of sides: of two sides there are enough for every claim to be attained."""


def claimed(operation: str, sides: list[str], neighbouring: str) -> int:
    tables = "".join(TABLE.format(name=name, rows=rows) for name, rows in ROWS_PER_UNIT.items())
    catalog = loads(CATALOG + tables, file="shop", folder=Path())
    question = bind(f"SELECT COUNT(*) AS n FROM ({operation.format(*sides)})", catalog).question
    ((bound,),) = stability.of_question(question, neighbouring)
    assert bound.sensitivity.l2_squared == bound.sensitivity.l1**2
    return int(bound.sensitivity.l1)


def apart(sides: int) -> list[Values]:
    """Return what a unit may have in sides of different tables."""
    return [*product(*(some_of(VALUES[sides], rows) for rows in [*ROWS_PER_UNIT.values()][:sides]))]


def together() -> list[Values]:
    """Return what a unit may have in two sides of the same rows, of which it has two: each is in some of the sides."""
    rows = [(value, sides) for value in VALUES[2] for sides in some_of((0, 1))]
    units = product(rows, repeat=2)
    return [*{tuple(frozenset(v for v, sides in unit if side in sides) for side in (0, 1)) for unit in units}]


def farthest(operation: str, units: list[Values], neighbouring: str) -> int:
    """Return the most by which a unit moves the number, whatever others have."""
    sides = len(units[0])
    most = 0
    for others in product(some_of(VALUES[sides]), repeat=sides):
        moved = [len(OPERATIONS[operation](tuple(x | y for x, y in zip(others, u, strict=True)))) for u in units]
        without = len(OPERATIONS[operation](others))
        ends = (max(moved), min(moved)) if neighbouring == "replace_one" else (max(moved), without, min(moved))
        most = max(most, *(abs(x - y) for x, y in pairwise(ends)))
    return most


SAME = ["SELECT product FROM a WHERE kind = 1", "SELECT product FROM a WHERE kind < 3"]


def cases() -> Iterator[tuple[str, list[str], list[Values]]]:
    for operation in OPERATIONS:
        sides = 3 if operation.count("EXCEPT") > 1 else 2
        yield operation, [f"SELECT product FROM {name}" for name in [*ROWS_PER_UNIT][:sides]], apart(sides)
        if sides == 2:
            yield operation, SAME, together()


def wrong(neighbouring: str) -> list[str]:
    """Return the claims that some unit breaks, or that none attains."""
    found = []
    for operation, sides, units in cases():
        claim, most = claimed(operation, sides, neighbouring), farthest(operation, units, neighbouring)
        if most > claim or (len(sides) == 2 and most < claim):
            found.append(f"{operation.format(*sides)}: {claim}, {most}")
    return found


@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
def test_claims_are_valid_and_attained(neighbouring: str) -> None:
    assert wrong(neighbouring) == []


moved = set_stability.moved


@pytest.mark.long
@pytest.mark.parametrize(
    ("bug", "neighbouring"),
    one_in(
        2,
        [
            (lambda _measure, selection: (0, selection.rows_per_unit - 1), "add_remove"),
            (lambda measure, selection: (0, max(moved(measure, selection))), "replace_one"),
            (lambda measure, selection: (0, moved(measure, selection)[1]), "add_remove"),
        ],
        many=True,
    ),
    ids=["the rows of one side", "one direction of two", "what is raised alone"],
)
def test_a_claim_that_is_too_small_is_found(bug: Any, neighbouring: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_stability, "moved", bug)
    assert wrong(neighbouring)
