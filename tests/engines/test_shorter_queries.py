"""What is printed in fewer words means the same: comparisons, the order of a unit's rows, sums around an origin."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, floor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned, expressions, printers, queries
from lapwing.engines.duckdb.cleaned import Location
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.centred import both_counts
from lapwing.query.measures.measures import Sum
from tests.support.effort import only
from tests.support.engines.tables import ask, catalog, parquet

STEPS = [Fraction(1), Fraction(1, 4), Fraction(5), Fraction(3, 7)]
CONSTANTS = [Fraction(n, 12) for n in (-50, -36, -7, 0, 1, 18, 30, 36, 61)]
SYMBOLS = ["<", "<=", ">", ">=", "=", "<>"]


def conditions() -> list[Expression]:
    columns = [ColumnReference(name="k", type=Fixed(step=step, low=-9, high=9)) for step in STEPS]
    pairs = [(column, conversion.number(constant)) for column in columns for constant in CONSTANTS]
    return [logic.compare(symbol, *sides) for symbol in SYMBOLS for pair in pairs for sides in (pair, pair[::-1])]


def truths(connection: duckdb.DuckDBPyConnection) -> list[list[Any]]:
    shown = ", ".join(expressions.expression(condition) for condition in conditions())
    rows = "(SELECT NULL::BIGINT AS k UNION ALL SELECT unnest(range(-9, 10)))"
    return [list(row) for row in connection.execute(f"SELECT {shown} FROM {rows} ORDER BY k").fetchall()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("nearest", "same"),
    only(
        [0],
        [({}, True), ({"less": floor}, False), ({"greater_equal": floor}, False), ({"greater": ceil}, False)],
        many=True,
    ),
)
def test_a_comparison_in_own_steps_is_the_same(
    nearest: dict[str, Callable[[Fraction], int]], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every comparison of small numbers with constants that their steps meet or miss, and of NULL."""
    with duckdb.connect() as connection:
        with monkeypatch.context() as patched:
            patched.setattr(expressions, "in_own_steps", lambda node: node)
            expected = truths(connection)
        monkeypatch.setattr(printers, "NEAREST", {**printers.NEAREST, **nearest})
        assert (truths(connection) == expected) is same


@pytest.mark.parametrize(("order", "same"), [("person, cost", True), ("cost", True), ("cost DESC", False)])
def test_a_column_that_is_the_unit_orders_nothing(order: str, same: bool, tmp_path: Path) -> None:
    """Rows of one hash, as all are here, come in the order of the other columns."""
    found = catalog(tmp_path, {"person": '{ type = "integer" }', "cost": '{ type = "integer" }'}, unit="person")
    rows = ", ".join(f"({person}, {cost})" for person, cost in product(range(5), [3, 1, 2, "NULL"]))
    text = cleaned.kept(
        found.tables[0], "unit", Location(relation="t", types={"person": "BIGINT", "cost": "BIGINT"}), False
    )
    assert text.count('hash(\'t\', unit, unit, "cost"), "cost"') == 1
    before = text.replace('hash(\'t\', unit, unit, "cost"), "cost"', f"1, {order}")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS t(person, cost)")
        table = "WITH cleaned AS (SELECT person::BIGINT AS unit, person::BIGINT AS person, cost::BIGINT AS cost FROM t)"
        kept = [
            sorted(connection.execute(f"{table} {rows}").fetchall(), key=str)
            for rows in (text.replace("hash('t', unit, unit, \"cost\")", "1"), before)
        ]
        ((same_hash,),) = connection.execute(
            "SELECT bool_and(hash('t', person, person, cost) = hash('t', unit, person, cost)) "
            "FROM (SELECT person AS unit, * FROM t)"
        ).fetchall()
    assert (kept[0] == kept[1]) is same
    assert same_hash


def test_sums_around_an_origin_are_exact(tmp_path: Path) -> None:
    values = [0, 1, 99, 100, None, 57, 250, -4]
    found = catalog(tmp_path, {"cost": '{ type = "integer", lower = 0, upper = 100 }'}, unit="row")
    parquet(tmp_path, {"cost": values})
    inside = [min(100, max(0, value)) for value in values if value is not None]
    engine = DuckDB(found)
    assert ask(engine, found, "SELECT AVG(cost) AS m FROM t") == {
        (): (len(inside), sum(value - 50 for value in inside))
    }
    # Conditions see 250, and sums the bound.
    assert ask(engine, found, "SELECT AVG(cost) AS m FROM t WHERE cost > 100") == {(): (1, 50)}
    engine.close()


def summed(connection: duckdb.DuckDBPyConnection, total: Sum) -> int:
    """Return a sum over 1, 2, and NULL three times."""
    rows = "(SELECT unnest([1, 2, NULL, NULL, NULL]::BIGINT[]) AS k)"
    ((found,),) = connection.execute(f"SELECT {queries.measured(total, 'unit')} FROM {rows}").fetchall()
    return int(found)


def test_a_choice_between_two_constants_needs_no_clamp() -> None:
    """It is printed without, as both are whole steps within its bounds; one that is not is kept within them."""
    both, missing = both_counts(ColumnReference(name="k", type=Fixed(step=Fraction(1), low=0, high=9)))
    argument = both.argument
    assert isinstance(argument, Operation)
    assert isinstance(argument.type, Fixed)
    with duckdb.connect() as connection:
        assert "LEAST" not in queries.measured(both, "unit")
        assert (summed(connection, both), summed(connection, missing)) == (4 * (2 * 2 + 3), 4 * 3)
        for low, high, found in ((4, 7, 2 * 7 + 3 * 4), (5, 8, 2 * 8 + 3 * 5)):  # twins: bounds that do not hold
            narrower = replace(argument, type=replace(argument.type, low=low, high=high))
            assert summed(connection, Sum(argument=narrower)) == found


# ---- numbers that share aggregates ----------------------------------------------------------------------------------

TOGETHER = (
    "SELECT AVG(cost) AS m FROM t",
    "SELECT plan, COUNT(*) AS n, AVG(cost) AS m FROM t WHERE cost >= -5 GROUP BY plan",
    "SELECT COUNT(*) AS n, COUNT(cost) AS c, SUM(cost) AS s, SUM(CASE WHEN cost IS NULL THEN 1 ELSE 2 END) AS o FROM t",
    "SELECT plan, SUM(cost * 2) AS s, COUNT(DISTINCT cost) AS d FROM t GROUP BY plan",
    "SELECT plan, COUNT(*) AS n, AVG(cost) AS m FROM t GROUP BY GROUPING SETS ((plan), ())",
    "SELECT SUM(cost) AS s FROM t WHERE cost > 1000",
)


def differing(folder: Path) -> list[str]:
    """Return the queries whose cells are others than those of the whole SQL, measured as asked and as one vector."""
    columns = {
        "cost": '{ type = "integer", lower = -7, upper = 40 }',
        "plan": '{ type = "string", values = ["a", "b"] }',
    }
    found = catalog(folder, columns, unit="row")
    parquet(folder, {"cost": [3, None, -9, 50, 7, None, 8], "plan": ["a", "a", "b", "a", None, "b", "c"]})
    engine, asked = DuckDB(found), list[str]()
    for text in TOGETHER:
        question = bind(text, found).question
        sums = [measure for measure in question.numbers if isinstance(measure, Sum)]
        counts = [measure for one in sums for measure in both_counts(one.argument)]
        for each in (question, replace(question, measures=(*question.measures, *counts))):
            layers = f"WITH {engine._direct(each, {}, cleaned.WHOLE)}"
            whole = engine.fetch(f"{layers} {queries.answer(each)}")
            if sorted(queries._cells(each, layers, engine.fetch), key=str) != sorted(whole, key=str):
                asked.append(text)
    engine.close()
    return asked


@pytest.mark.long
def test_numbers_put_together_are_those_of_the_whole_sql(tmp_path: Path) -> None:
    assert differing(tmp_path) == []


def test_twin_a_choice_that_is_turned_round_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(argument: Expression, choice: Any = queries.choice_of) -> Any:
        return (found := choice(argument)) and (found[0], found[2], found[1])

    monkeypatch.setattr(queries, "choice_of", turned)
    assert len(set(differing(tmp_path))) == 4
