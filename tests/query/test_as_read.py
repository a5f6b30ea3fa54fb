"""Where a question keeps the bounded column, it means the same as of what was read: by brute force, beyond bounds."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.expressions import expression
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import as_read, calls
from lapwing.query.expressions.as_read import settled_key
from lapwing.query.expressions.expression import ColumnReference, Expression, columns_of
from lapwing.query.expressions.normal_forms import TRUE

LOW, HIGH = 2, 9
CATALOG = f"""
[dataset]
name = "read"
ledger = "sqlite:read.db"
[budget]
epsilon = 1
[tables.t]
source = "t.parquet"
privacy_unit = "row"
[tables.t.columns]
x = {{ type = "integer", lower = {LOW}, upper = {HIGH} }}
p = {{ type = "boolean" }}
"""
FUNCTIONS = (
    "x", "x + 1", "10 - x", "-x", "x * 3", "x * -2", "x / 4", "FLOOR(x / 4)", "FLOOR(x / 4) * 4", "CEIL(x / 4)",
    "LEAST(x, 5)", "GREATEST(x, 5)", "GREATEST(LEAST(x, 5), 4)", "x * 0", "x / -2 + 1", "ROUND(x / 4)", "x * x",
    "x % 4",
)  # fmt: skip
OPERATORS = ("<", "<=", ">", ">=", "=", "<>", "IS DISTINCT FROM")
CONSTANTS = ("-4", "0", "1", "2", "2.25", "3", "5", "9", "11", "27")
NULLS = (
    "x", "x + 1", "100 / x", "x / 4", "100 / (x - 1)", "SQRT(x)", "NULLIF(x, 5)", "NULLIF(x, 2)", "COALESCE(x, 1)",
    "CASE WHEN x < 4 THEN x END", "CASE WHEN x < 2 THEN x END", "CASE WHEN p THEN x + 1 END", "x % NULLIF(x, 2)",
    "x > 3",
    "LEAST(x, 100 / x)", "CAST(x AS VARCHAR)",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="read", folder=Path())


def bound(conditions: Sequence[str], catalog: Catalog) -> list[Expression]:
    texts = [f"SELECT COUNT(*) FROM t WHERE {condition}" for condition in conditions]
    return [bind(text, catalog).question.where or TRUE for text in texts]


def truths(nodes: Sequence[Expression]) -> list[tuple[bool | None, ...]]:
    """Return what conditions are for each value that may be read."""
    with duckdb.connect(config={"threads": 1}) as connection:
        values = (
            "SELECT v, p FROM (SELECT unnest(list_append(range(-30, 60), NULL))) a(v), (VALUES (true), (NULL)) b(p)"
        )
        clamped = f"CASE WHEN v IS NOT NULL THEN LEAST(GREATEST(v, {LOW}), {HIGH}) END"
        connection.execute(f'CREATE TABLE t AS SELECT {clamped} AS x, v AS "x as read", p FROM ({values})')
        columns = zip(*connection.execute(f"SELECT {', '.join(map(expression, nodes))} FROM t").fetchall(), strict=True)
        return list(columns)


def disagreeing(conditions: Sequence[str], catalog: Catalog, name: str, never: Callable[..., object]) -> list[str]:
    """Return the conditions that mean something else than they do with every column as it is read."""
    kept = bound(conditions, catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls if name == "null_alike" else as_read, name, never)
        read = bound(conditions, catalog)
    assert any(one != other for one, other in zip(kept, read, strict=True)), "some keep the bounded column"
    found = zip(conditions, truths(kept), truths(read), strict=True)
    return [condition for condition, one, other in found if one != other]


@pytest.mark.parametrize("every", [100, pytest.param(1, marks=pytest.mark.long)])
def test_comparisons_that_keep_the_bounded_column_are_the_same(catalog: Catalog, every: int) -> None:
    conditions = [f"{f} {operator} {c}" for f, operator, c in product(FUNCTIONS, OPERATORS, CONSTANTS)][::every]
    conditions += [f"{f} IN (3, {c})" for f, c in product(FUNCTIONS, CONSTANTS)][:: 1 + every // 20]
    assert disagreeing(conditions, catalog, "settled", lambda *_: None) == []


@pytest.mark.long
def test_conditions_on_null_that_keep_the_bounded_column_are_the_same(catalog: Catalog) -> None:
    conditions = [f"({value}) IS {word}NULL" for value, word in product(NULLS, ("", "NOT "))]
    assert disagreeing(conditions, catalog, "null_alike", lambda *_: False) == []


def test_a_condition_that_is_said_to_be_true_or_false_is_of_the_column_as_it_is_read(catalog: Catalog) -> None:
    """`x > 9` is never true of values within their bounds, and NULL in the same rows. So IS NULL may look there."""
    tests = [(word, value) for word in ("", "NOT ") for value in ("TRUE", "FALSE")]
    spelled = [f"(x > 9) IS {word}{value}" for word, value in tests]
    meant = [f"{word}(COALESCE(x > 9, {value != 'TRUE'}) = {value})" for word, value in tests]
    meant = [
        text.replace("COALESCE(x > 9, True)", "COALESCE(x > 9, TRUE)").replace("False)", "FALSE)") for text in meant
    ]
    nodes = bound(spelled, catalog)
    assert all(columns_of(node) - {"p"} == {"x as read"} for node in nodes)
    assert truths(nodes) == truths(bound(meant, catalog))


def test_what_keeps_the_bounded_column(catalog: Catalog) -> None:
    """What was asked before in these words was the same question."""
    same = (
        "x > 4",
        "x >= 3",
        "x < 9",
        "x = 5",
        "x IN (3, 4)",
        "x * 2 > 5",
        "FLOOR(x / 4) = 1",
        "x + 1 IS NULL",
        "x <> 4",
    )
    other = ("x > 9", "x >= 2", "x = 9", "x <> -99", "x IN (3, 9)", "x * x > 9", "100 / (x - 1) IS NULL")
    for conditions, names in ((same, {"x"}), (other, {"x as read"})):
        for condition, node in zip(conditions, bound(conditions, catalog), strict=True):
            assert columns_of(node) - {"p"} == names, condition
    column = bound(["x = 9"], catalog)[0].children[0]
    assert isinstance(column, ColumnReference)
    listed = [tuple(map(Fraction, values)) for values in ([3, 4], [2, 3], [9], [])]
    assert [settled_key(column, values) == column for values in listed] == [False, True, True, False]


def test_twin_a_bound_taken_for_a_value_between_the_bounds_is_noticed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = as_read._at
    monkeypatch.setattr(as_read, "_at", lambda value, x: own(value, x + (-1 if x == LOW else 1)))
    conditions = [f"x {operator} {c}" for operator, c in product(OPERATORS, CONSTANTS)]
    assert disagreeing(conditions, catalog, "settled", lambda *_: None)


@pytest.mark.long
def test_twin_that_takes_every_value_to_be_missing_in_the_same_rows_is_noticed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "null_alike", lambda *_: True)
    assert disagreeing([f"({value}) IS NULL" for value in NULLS], catalog, "null_alike", lambda *_: False)
