"""Tables in parts, and columns that promise not to be NULL: what their rows are, for every small unit.

A unit's part is a function of its own rows alone, so that who else is in the table changes nothing of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb.cleaned import WHOLE, Location, Pass
from lapwing.engines.duckdb.stored_rows import kept_rows
from lapwing.errors import CatalogError
from lapwing.query.sensitivity import stability
from lapwing.release.cells import cells_of
from tests.support.effort import one_in
from tests.support.engines.tables import digests
from tests.support.release.small import GDP, PURE, SCHEMA, Row, catalog, exact, opened, priced, row, shown

PLANS = ["a", "b", "c", None]
BOUNDED = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2}) as found:
        yield found


def kept(
    connection: duckdb.DuckDBPyConnection, table: Table, rows: Sequence[Row], part: Pass = WHOLE
) -> dict[Any, BOUNDED]:
    """Return the rows of every unit that exist for questions: the values of plan, age and size, with their numbers."""
    given = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    connection.register("given", given)
    types = {name: kind for name, kind, *_ in connection.execute("DESCRIBE given").fetchall()}
    layer = kept_rows(table, Location(relation="given", types=types), True, part)
    found: dict[Any, BOUNDED] = defaultdict(Counter)
    unit = "0" if table.privacy_unit == "row" else "unit"
    for person, *values in connection.execute(f"SELECT {unit}, plan, age, size FROM ({layer})").fetchall():
        found[person][tuple(values)] += 1
    return dict(found)


def expected(rows: Iterable[Row], part: str, order: Sequence[Any], most: int) -> dict[Any, int]:
    """How many rows of every unit exist, said once more in Python."""
    of: dict[Any, list[Any]] = defaultdict(list)
    for one in rows:
        if one["person"] is not None and one[part] in order:
            of[one["person"]].append(one[part])
    firsts = {person: min(values, key=order.index) for person, values in of.items()}
    return {person: min(most, values.count(firsts[person])) for person, values in of.items()}


def everybody() -> list[Row]:
    """Every unit of up to three rows, each in one of four plans; and rows of nobody."""
    tables = [t for size in (1, 2, 3) for t in combinations_with_replacement(product(PLANS, (0, 10)), size)]
    rows = [row(n, plan=plan, size=size) for n, table in enumerate(tables) for plan, size in table]
    return [*rows, *(row(None, plan=plan) for plan in PLANS)]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(("part", "order"), [("plan", ["a", "b"]), ("size", [0, 5, 10])])
def test_a_unit_has_the_rows_of_its_first_part(
    connection: duckdb.DuckDBPyConnection, part: str, order: list[Any], most: int
) -> None:
    table = catalog(Path(), part=part, most=most).tables[0]
    found = kept(connection, table, everybody())
    wanted = expected(everybody(), part, order, most)
    assert {person: sum(rows.values()) for person, rows in found.items()} == wanted
    place = {"plan": 0, "size": 2}[part]
    assert all(len({values[place] for values in rows}) == 1 for rows in found.values()), "no unit is in two parts"
    assert len(wanted) < len(everybody())


def test_the_order_is_the_catalog_s(connection: duckdb.DuckDBPyConnection) -> None:
    table = catalog(Path(), part="plan").tables[0]
    turned = tuple(replace(c, values=c.values[::-1]) if c.name == "plan" and c.values else c for c in table.columns)
    rows = [row(1, plan="a"), row(1, plan="b"), row(2, plan="a")]
    assert set(kept(connection, table, rows)[1]) == {("a", 1, 1)}
    assert set(kept(connection, replace(table, columns=turned), rows)[1]) == {("b", 1, 1)}


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_nobody_changes_the_rows_of_others(connection: duckdb.DuckDBPyConnection, every: int) -> None:
    """Adding a unit, whatever its rows, adds that unit's rows and no more."""
    assert list(changes(connection, every)) == []


def changes(connection: duckdb.DuckDBPyConnection, every: int = 1) -> Iterator[str]:
    table = catalog(Path(), part="plan", most=2).tables[0]
    others = [row(n, plan=plan, age=age) for n, (plan, age) in enumerate(product(PLANS, (0, 3)), 1)]
    others += [row(n, plan="b") for n in (1, 2, 3)]
    before = kept(connection, table, others)
    for plans in [p for size in (1, 2, 3) for p in combinations_with_replacement(PLANS, size)][::every]:
        own = [row(99, plan=plan) for plan in plans]
        after = kept(connection, table, [*own, *others])
        added = after.pop(99, Counter())
        if after != before:
            yield f"{plans} changed others"
        if sum(added.values()) > 2 or added != kept(connection, table, own).get(99, Counter()):
            yield f"{plans} depends on others"


def test_a_part_that_others_decide_is_found(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = cleaned.cleaned
    monkeypatch.setattr(cleaned, "cleaned", lambda *facts: original(*facts).replace("(PARTITION BY unit)", "()"))
    assert next(changes(connection), None)


def test_parts_after_the_bound_are_found(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit whose two kept rows are of two parts would have one row left; before the bound it has two."""
    monkeypatch.setattr(cleaned, "cleaned", vars(cleaned)["_cleaned"])
    table = catalog(Path(), part="plan", most=2).tables[0]
    wanted = expected(everybody(), "plan", ["a", "b"], 2)
    assert {p: sum(rows.values()) for p, rows in kept(connection, table, everybody()).items()} != wanted


def test_passes_are_of_whole_units(connection: duckdb.DuckDBPyConnection) -> None:
    table = catalog(Path(), part="plan", most=2).tables[0]
    together: dict[Any, BOUNDED] = {}
    for index in range(3):
        found = kept(connection, table, everybody(), Pass(index=index, of=3))
        assert not together.keys() & found.keys()
        together |= found
    assert together == kept(connection, table, everybody())


def test_a_row_is_in_its_own_part(connection: duckdb.DuckDBPyConnection) -> None:
    table = catalog(Path(), part="plan", unit="row").tables[0]
    rows = [row(1, plan=plan) for plan in ("a", "b", "c", None, "a")]
    assert kept(connection, table, rows) == {0: Counter({("a", 1, 1): 2, ("b", 1, 1): 1})}


@pytest.mark.parametrize(("budget", "every"), one_in(3, [(GDP, 3), (GDP, 1), (PURE, 1)], many=True))
def test_a_unit_moves_a_question_by_no_more_than_its_bound(tmp_path: Path, budget: str, every: int) -> None:
    facts: dict[str, Any] = {"part": "plan", "most": 2, "budget": budget}
    text = "SELECT plan, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY plan"
    question = priced(_with(text, tmp_path, facts), catalog(tmp_path, **facts), epsilon=1).question
    others = [row(n, plan="ab"[n % 2]) for n in range(6)]
    nobody = exact(question, catalog(tmp_path, **facts), others).cells
    claims = [min(c.sensitivity.l1 for c in found) for found in stability.of_question(question, "add_remove")]
    for plans in [*combinations_with_replacement(PLANS, 3)][::every]:
        rows = [*others, *(row(99, plan=plan, age=3) for plan in plans)]
        cells = exact(question, catalog(tmp_path, **facts), rows).cells
        for i, claim in enumerate(claims):
            moved = [abs(cells[key][i] - nobody[key][i]) for key in cells_of(question)]
            assert sum(moved) <= claim
            assert sum(1 for change in moved if change) <= 1, "a unit is in one part"


def _with(text: str, folder: Path, facts: dict[str, Any]) -> str:
    opened(folder, [row(1)], **facts).close()
    return text


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"part": "town"}, "no values"),
        ({"part": "nothing"}, "no column"),
        ({"part": "plan", "plan": ', other = "rest"'}, "other"),
    ],
)
def test_what_is_no_part_is_refused(facts: Any, reason: str) -> None:
    with pytest.raises(CatalogError, match=reason):
        catalog(Path(), **facts)


# ---- columns that promise not to be NULL -----------------------------------------------------------------------------

PROMISES = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 100000
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
town = {{ type = "string", values = ["Ulm", "Rom"], other = "else", nullable = {0} }}
plan = {{ type = "string", values = ["b", "a"], nullable = {0} }}
age = {{ type = "integer", lower = 2, upper = 9, nullable = {0} }}
size = {{ type = "integer", lower = 1, upper = 11, step = 5, nullable = {0} }}
code = {{ type = "integer", values = [7, 8], nullable = {0} }}
day = {{ type = "date", lower = 2026-01-01, upper = 2026-12-31, nullable = {0} }}
seen = {{ type = "timestamp", lower = 2026-01-01T00:00:00.5Z, upper = 2026-12-31T00:00:00Z, nullable = {0} }}
cost = {{ type = "float", lower = 0.7, upper = 8, step = 0.5, nullable = {0} }}
"""
NOTHING: Row = dict.fromkeys(("town", "plan", "age", "size", "code", "day", "seen", "cost"))
CONSTANTS = {
    "town": "else",
    "plan": "b",
    "age": 2,
    "size": 1,  # in steps of 5: the least multiple is 5
    "code": 7,
    "day": date(2026, 1, 1),
    "seen": datetime(2026, 1, 1, 0, 0, 0, 500_000),
    "cost": 2,  # in halves: the least multiple is 1
}


def promising(folder: Path, nullable: bool = False) -> Catalog:
    return loads(PROMISES.format(str(nullable).lower()), file="small", folder=folder)


def values_of(connection: duckdb.DuckDBPyConnection, table: Table, rows: Sequence[Row]) -> list[Row]:
    connection.register("given", pa.Table.from_pylist(list(rows), schema=SCHEMA))
    types = {name: kind for name, kind, *_ in connection.execute("DESCRIBE given").fetchall()}
    cursor = connection.execute(kept_rows(table, Location(relation="given", types=types), True, WHOLE))
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, found, strict=True)) for found in cursor.fetchall()]


def test_null_counts_as_the_constant(connection: duckdb.DuckDBPyConnection) -> None:
    (found,) = values_of(connection, promising(Path()).tables[0], [row(1, **NOTHING)])
    assert {name: found[name] for name in CONSTANTS} == CONSTANTS
    (nulls,) = values_of(connection, promising(Path(), nullable=True).tables[0], [row(1, **NOTHING)])
    assert {nulls[name] for name in CONSTANTS} == {None}


def test_nan_and_what_cannot_be_read_are_nulls_too(connection: duckdb.DuckDBPyConnection) -> None:
    (found,) = values_of(connection, promising(Path()).tables[0], [row(1, cost=float("nan"))])
    assert found["cost"] == 2


def test_a_unit_is_never_made_up(connection: duckdb.DuckDBPyConnection) -> None:
    assert values_of(connection, promising(Path()).tables[0], [row(None)]) == []


def totals(folder: Path, rows: Sequence[Row]) -> dict[str, int]:
    text = "SELECT COUNT(age) AS n, SUM(age) AS s, SUM(cost) AS c, COUNT(*) AS k FROM visits"
    with opened(folder, rows) as session:
        session.close()
    question = priced(text, promising(folder), epsilon=1).question
    ((values),) = exact(question, promising(folder), rows).cells.values()
    return dict(zip(map(str, question.measures), values, strict=True))


def test_a_broken_promise_stays_within_the_bounds(tmp_path: Path) -> None:
    """One unit more, all of it NULL, moves no sum further than one of ordinary values could."""
    others = [row(n) for n in range(5)]
    before = totals(tmp_path, others)
    after = totals(tmp_path, [*others, *(row(9, **NOTHING) for _ in range(4))])
    question = priced(
        "SELECT COUNT(age), SUM(age), SUM(cost), COUNT(*) FROM visits", promising(tmp_path), epsilon=1
    ).question
    for measure, candidates in zip(question.measures, stability.of_question(question, "add_remove"), strict=True):
        moved = abs(after[str(measure)] - before[str(measure)])
        assert 0 < moved <= min(c.sensitivity.l1 for c in candidates)


def test_a_constant_outside_the_bounds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the lower bound of cost is 0.7, which is no multiple of its step; and one of 100 is none at all."""
    whole = vars(cleaned)["whole"]
    monkeypatch.setattr(cleaned, "whole", lambda value: whole(100 * (value or 0)) if value == 2 else whole(value))
    with pytest.raises(AssertionError):
        test_a_broken_promise_stays_within_the_bounds(tmp_path)


@pytest.mark.long
def test_answers_of_a_broken_promise(tmp_path: Path) -> None:
    """NULL keys fall under what they count as, so that every row has a cell."""
    opened(tmp_path, [row(n, **NOTHING) for n in range(40)]).close()
    described = promising(tmp_path)
    engine = DuckDB(described, threads=1)
    try:
        for key, value in (("town", "else"), ("plan", "b"), ("code", 7)):
            question = priced(f"SELECT {key}, COUNT(*) FROM visits GROUP BY {key}", described, epsilon=1).question
            ((cell, (count,)),) = engine.run(question, digests(engine, question)).cells.items()
            assert (cell, count) == ((value,), 40)
    finally:
        engine.close()


def test_a_part_with_a_promise(tmp_path: Path) -> None:
    """A NULL counts as the first part; the unit's other rows then do not exist."""
    rows = [row(n, plan=None) for n in range(30)] + [row(n, plan="b") for n in range(30)]
    facts: dict[str, Any] = {"part": "plan", "plan": ", nullable = false", "budget": GDP.replace("100", "100000")}
    with opened(tmp_path, rows, **facts) as session:
        answer = shown(session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=3000))
    assert [round(found["n"] / 10) for found in answer] == [3, 0]
