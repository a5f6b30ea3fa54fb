"""Expressions: the engine's values are those of an independent reading, and lie inside their proven bounds."""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import cleaned, literals
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb import printers as sql_functions
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import arithmetic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression, walk
from lapwing.query.expressions.normal_forms import TRUE
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Fixed, Real
from lapwing.query.from_clause.scope import Scope, kept, rows_of
from lapwing.query.measures.measures import Sum
from lapwing.query.relations.public_rows import NOTHING_PUBLIC
from tests.support import strategies
from tests.support.effort import SEED, examples
from tests.support.query.evaluator import Near, Row, Undecided, evaluate, in_steps

TYPES = {
    "person": "BIGINT",
    "plan": "VARCHAR",
    "member": "BOOLEAN",
    "age": "INTEGER",
    "cost": "DOUBLE",
    "score": "BIGINT",
    "note": "VARCHAR",
    "day": "DATE",
    "pay": "DECIMAL(12,2)",
}
VALUES: dict[str, list[Any]] = {
    "plan": ["a", "b", "it's", "c", "", None],
    "member": [True, False, None],
    "age": [0, 1, 30, 110, 111, -1, 2**31 - 1, -(2**31), None],
    "cost": [0.0, -0.0, 5e-324, 1.005, 99.99, 100.0, -10.0, 1e308, -1e308, inf, -inf, nan, 33.333, None],
    "score": [0, 7, -3, 2**63 - 1, -(2**63), None],
    "note": ["", "x", "ab%", "a_b", "Ünï", "12", "nan", "1e3", "-0.5", " 7 ", None],
    "day": [date(2026, 1, 1), date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31), None],
    "pay": [Decimal("0.00"), Decimal("49.99"), Decimal("-5.00"), Decimal("9999999999.99"), Decimal("0.01"), None],
}
QUESTION = "SELECT COUNT(*) AS n FROM visits WHERE {}"
lenient = examples(10, 1000)


def rows() -> list[dict[str, Any]]:
    """Awkward rows: every value of every column, and many together."""
    chance = random.Random(7)
    drawn = [{name: chance.choice(values) for name, values in VALUES.items()} for _ in range(40)]
    longest = max(map(len, VALUES.values()))
    each = [{name: values[i % len(values)] for name, values in VALUES.items()} for i in range(longest)]
    return [{"person": 1, **row} for row in drawn + each]


def cleaned_row(row: dict[str, Any]) -> Row:
    """Clean a row as the catalog of `strategies` declares."""
    return {
        "plan": row["plan"],
        "member": row["member"],
        "age": in_steps(row["age"], Fraction(0), Fraction(110), Fraction(1)),
        "cost": in_steps(row["cost"], Fraction(-10), Fraction(100), Fraction(110, 2**20)),
        "score": None if row["score"] is None else Near(Fraction(row["score"])),
        "note": row["note"],
        "day": row["day"],
        "pay": in_steps(row["pay"], Fraction(0), Fraction(50), Fraction(1, 100)),
    }


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return strategies.catalog_in(tmp_path_factory.mktemp("expressions"), rows_per_unit=3)


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that holds the awkward rows, raw and cleaned, in order."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"SET disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    columns = ", ".join(f"{name} {TYPES[name]}" for name in TYPES)
    connection.execute(f"CREATE TABLE raw ({columns})")
    marks = ", ".join("?" for _ in TYPES)
    connection.executemany(f"INSERT INTO raw VALUES ({marks})", [[row[n] for n in TYPES] for row in rows()])
    source = Location(relation="raw", types=TYPES)
    connection.execute(f"CREATE TABLE kept AS {cleaned.cleaned(catalog.tables[0], source, True)}")
    yield connection
    connection.close()


def values(engine: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return [value for (value,) in engine.execute(f"SELECT {sql} FROM kept").fetchall()]


def parsed(text: str) -> exp.Expression:
    tree: exp.Expression = sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]
    return tree


def argument(text: str, catalog: Catalog) -> Expression:
    """Return the checked expression of a text that is not summed and so not rounded."""
    return bind_expression(parsed(text), names(text, catalog))


def names(text: str, catalog: Catalog) -> RowScope:
    """Return the columns as values within bounds and steps, also where they are compared."""
    (table,) = catalog.tables
    scope = Scope(text=f"SELECT {text}", catalog=catalog, facts=NOTHING_PUBLIC)
    return rows_of(kept(table, table.name, scope), scope).seen("bounded")


def agrees(found: Any, wanted: Any, step: Fraction | None) -> bool:
    """Compare an engine's value, a number of steps or a double, with what it should be."""
    if found is None or wanted is None:
        return found is wanted
    if not isinstance(wanted, Near):
        return bool(found == wanted)
    if step is not None:
        return wanted.error == 0 and found * step == wanted.value
    return abs(Fraction(found) - wanted.value) <= wanted.rounded().error + abs(wanted.value) * Fraction(1, 10**12)


def inside(found: Any, kind: Fixed | Real) -> bool:
    """Tell whether a value lies inside the bounds of its type."""
    if found is None or found != found:
        return found is None
    if abs(found) == inf:
        return (kind.high if found > 0 else kind.low) is None
    return (kind.low is None or kind.low <= Fraction(found)) and (kind.high is None or Fraction(found) <= kind.high)


def row_as_read(row: dict[str, Any]) -> Row:
    """Return a row as conditions see it: its doubles may be a few last bits off after arithmetic."""
    cost, pay = row["cost"], row["pay"]
    known = None if cost is None or cost != cost else Fraction(max(-(2.0**150), min(2.0**150, cost)))
    return {
        **cleaned_row(row),
        "age": None if row["age"] is None else Near(Fraction(row["age"])),
        "cost": None if known is None else Near(known, abs(known) / 2**48),
        "pay": None if pay is None else Near(Fraction(pay), abs(Fraction(pay)) / 2**48),
    }


def differences(
    text: str,
    node: Expression,
    engine: duckdb.DuckDBPyConnection,
    meaning: Callable[[dict[str, Any]], Row] = cleaned_row,
) -> list[tuple[Any, Any, Any]]:
    """Return every row on which the engine's value is not the right one, or not inside its bounds."""
    kind, tree = node.type, parsed(text)
    step = kind.step if isinstance(kind, Fixed) else None
    wrong: list[tuple[Any, Any, Any]] = []
    for row, found in zip(rows(), values(engine, printers.expression(node)), strict=True):
        if isinstance(kind, Fixed | Real) and not inside(found, kind):
            wrong.append((row, found, kind))
        try:
            wanted = evaluate(tree, meaning(row))
        except Undecided:
            continue
        if not agrees(found, wanted, step):
            wrong.append((row, found, wanted))
    return wrong


# ---- the engine means what the text means ---------------------------------------------------------------------------


def test_cleaning_is_as_documented(engine: duckdb.DuckDBPyConnection) -> None:
    steps = {"age": Fraction(1), "cost": Fraction(110, 2**20), "pay": Fraction(1, 100), "score": Fraction(1)}
    for name in VALUES:
        for row, found in zip(rows(), values(engine, literals.identifier(name)), strict=True):
            assert agrees(found, cleaned_row(row)[name], steps.get(name)), (name, row[name], found)


@pytest.mark.long
@lenient
@given(text=strategies.numbers)
def test_numbers(catalog: Catalog, engine: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        node = argument(text, catalog)
    except QueryRefused:  # an expression may outgrow its integers; that it is refused is right
        return
    assert differences(text, node, engine) == []


@lenient
@given(text=strategies.conditions)
def test_conditions(catalog: Catalog, engine: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        node = argument(text, catalog)
    except QueryRefused:
        return
    assert differences(text, node, engine) == []


@pytest.mark.long
@lenient
@given(text=strategies.conditions)
def test_conditions_see_values_as_they_are_read(catalog: Catalog, engine: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        node = bind(QUESTION.format(text), catalog).question.where or TRUE
    except QueryRefused:
        return
    if not any(isinstance(part, ColumnReference) and part.read is not None for part in walk(node)):
        assert differences(text, node, engine, row_as_read) == []


def test_twin_a_condition_on_rounded_values_is_found(catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    for text in ("cost > 100", "age <> 111", "pay < 0"):
        assert differences(text, argument(text, catalog), engine, row_as_read)
        assert not differences(text, bind(QUESTION.format(text), catalog).question.where or TRUE, engine, row_as_read)


@examples(12, 500)
@given(text=strategies.numbers, origin=st.booleans())
def test_summed_values_stay_inside_their_bounds(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection, text: str, origin: bool
) -> None:
    """What is summed is a whole number between the bounds, of which the sensitivity is made, or NULL."""
    try:
        measures = bind(f"SELECT {'AVG' if origin else 'SUM'}({text}) AS s FROM visits", catalog).question.measures
    except QueryRefused:
        return
    (total,) = (measure for measure in measures if isinstance(measure, Sum))
    whole, taken_off = render.measured(total, "unit"), total.origin
    if whole.startswith("("):  # of a column the origin is taken off its sum
        whole, taken_off = whole[1 : whole.index(", 0)") + 4], 0
    summed = whole.removeprefix("COALESCE(SUM(").removesuffix("), 0)")
    low, high = total.type.low, total.type.high
    assert low is not None
    assert high is not None
    for found in values(engine, summed):
        assert found is None or (isinstance(found, int) and low <= found + taken_off <= high)


@pytest.mark.long
@examples(12, 500)
@given(text=st.one_of(strategies.conditions, strategies.numbers.map("{} > 1".format)))
def test_the_same_question_has_one_canonical_text(catalog: Catalog, text: str) -> None:
    question = QUESTION.format(text)
    try:
        first = bind(question, catalog).question
    except QueryRefused:
        return
    printed = sqlglot.parse_one(question, dialect="duckdb").sql(dialect="duckdb", pretty=True)
    assert str(bind(printed, catalog).question) == str(first)
    assert bind(question.replace("visits", "VISITS AS v"), catalog).question == first


# ---- no parentheses: which operator binds first ----------------------------------------------------------------------

FLAT = """
[dataset]
name = "flat"
ledger = "sqlite:flat.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.kept]
source = "flat.parquet"
privacy_unit = "row"
[tables.kept.columns]
a = { type = "integer", lower = -9, upper = 9 }
b = { type = "integer", lower = -9, upper = 9 }
p = { type = "boolean" }
q = { type = "boolean" }
s = { type = "string" }
"""
OPERANDS = ["a", "b", "1", "-1", "3.5", "a", "b", "p", "q", "p", "q", "TRUE", "s", "'a'"]
PREFIXES = ["NOT", "-", "NOT NOT"]
SUFFIXES = [
    *(
        "IS NULL",
        "IS NOT NULL",
        "IS TRUE",
        "IS NOT FALSE",
        "ISNULL",
        "::DOUBLE",
        "::INTEGER",
        "IN (1, 2)",
        "NOT IN (1)",
    ),
    *("BETWEEN 0 AND 2", "NOT BETWEEN a AND b", "LIKE 'a%'", "NOT LIKE '_'"),
]
OPERATORS = ["+", "-", "*", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "!=", "=="]


def flat_text(chance: random.Random) -> str:
    """Return operators and operands in a row, as they come."""
    parts: list[str] = []
    for i in range(chance.randint(1, 4)):
        if i:
            parts.append(chance.choice(OPERATORS))
        parts += [chance.choice(PREFIXES)] if chance.random() < 0.3 else []
        parts.append(chance.choice(OPERANDS))
        parts += [chance.choice(SUFFIXES)] if chance.random() < 0.25 else []
    return " ".join(parts)


@pytest.mark.parametrize(("texts", "seed"), [(120, 3), pytest.param(60_000, SEED, marks=pytest.mark.long)])
def test_operators_bind_as_in_the_engine(texts: int, seed: int) -> None:
    """The parser is not the engine's: where both understand a text, they must understand the same."""
    catalog = loads(FLAT, file="flat", folder=Path())
    chance = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (a BIGINT, b BIGINT, p BOOLEAN, q BOOLEAN, s VARCHAR)")
    connection.execute('CREATE VIEW kept AS SELECT *, a AS "a as read", b AS "b as read" FROM rows')
    choices: Sequence[list[Any]] = ([None, -9, -1, 0, 1, 2, 9], [None, -3, 0, 1, 4], [None, True, False])
    for _ in range(30):
        a, b, p = choices
        row = [chance.choice(values) for values in (a, b, p, p, [None, "", "a", "ab", "1"])]
        connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", row)
    compared = 0
    for _ in range(texts):
        text = flat_text(chance)
        try:
            node = bind(f"SELECT COUNT(*) FROM kept WHERE {text}", catalog).question.where
            theirs = values(connection, text)
        except (QueryRefused, duckdb.Error):
            continue
        shown = printers.expression(TRUE if node is None else node)
        assert values(connection, shown) == theirs, text
        compared += 1
    connection.close()
    assert compared > texts / 12


# ---- planted bugs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printer", "bug", "text"),
    [
        ("divide", lambda _node, a: f"({a[0]} / {a[1]})", "pay / age"),
        ("least", lambda _node, a: f"CASE WHEN {a[0]} <= {a[1]} THEN {a[0]} ELSE {a[1]} END", "LEAST(age, pay)"),
        ("round_to", sql_functions.PRINTERS["floor_to"], "ROUND(pay, 1)"),
        ("coalesce", lambda _node, a: a[0], "COALESCE(age, 1)"),
        ("like", lambda _node, a: f"({a[0]} ILIKE {a[1]})", "CASE WHEN note LIKE 'ü%' THEN 1 END"),
    ],
)
def test_a_wrong_printer_is_found(
    printer: str,
    bug: Any,
    text: str,
    catalog: Catalog,
    engine: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = argument(text, catalog)
    assert differences(text, node, engine) == []
    monkeypatch.setitem(sql_functions.PRINTERS, printer, bug)
    assert differences(text, node, engine)


def test_a_wrong_bound_is_found(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differences("age * age", argument("age * age", catalog), engine) == []
    monkeypatch.setattr(arithmetic, "fixed", lambda step, low, high: Fixed(step=step, low=low, high=high and high - 1))
    assert differences("age * age", argument("age * age", catalog), engine)
