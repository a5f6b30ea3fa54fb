"""Statements that are parsed once: they say what the text of each query says."""

import re
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest

from lapwing.engines.duckdb import statements
from lapwing.engines.duckdb.literals import double, text, whole

VALUES = [0.0, 0.1, 1 / 3, 399.0, 1e-7, 1e300, 2**62 + 0.0]
NAIVE = re.compile(r"()([0-9]+\.[0-9]+(?=::D)|[0-9]+(?=::B))::(DOUBLE|BIGINT)")
"""A twin that looks into quotes; its groups are one too far."""


@pytest.fixture
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    statements.STATEMENTS.clear()
    with duckdb.connect() as connection:
        connection.execute(
            'CREATE TABLE t AS SELECT i AS k, i / 4.0::DOUBLE AS x, i::TEXT AS "3.5::DOUBLE" FROM range(9) r(i)'
        )
        yield connection


def queries() -> list[str]:
    doubles = [double(Fraction(sign * value)) for value in VALUES for sign in (1, -1)]
    integers = [whole(value) for value in (0, 1, -7, 2**40, 2**61, -(2**61), 2**70)]
    quoted = [f"{text(said)} || ' 3::BIGINT'" for said in ("it's 4.5::DOUBLE", "'", "''1::BIGINT", '"2::BIGINT')]
    return [
        *(f"SELECT {number}, - {number}, typeof({number}) FROM t WHERE x >= {number}" for number in doubles),
        *(f"SELECT k - {number}, typeof({number}), SUM(k) FROM t WHERE k < {number} GROUP BY 1" for number in integers),
        *(f'SELECT {said}, "3.5::DOUBLE", 2::BIGINT FROM t WHERE x > 1.5::DOUBLE' for said in quoted),
        "SELECT quantile_cont(x, 0.25::DOUBLE), quantile_disc(k, [0.5::DOUBLE]) FROM t",
        "SELECT k FROM t WHERE list_contains([1::BIGINT, 3::BIGINT], k) ORDER BY k LIMIT 1::BIGINT",
    ]


def differing(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the queries whose rows are others by their statement, asked twice."""
    wrong = []
    for query in 2 * queries():
        try:
            found = sorted(map(repr, statements.rows(cursor, query)))
        except duckdb.Error as error:
            found = [type(error).__name__]
        try:
            expected = sorted(map(repr, cursor.execute(query).fetchall()))
        except duckdb.Error as error:
            expected = [type(error).__name__]
        if found != expected:
            wrong.append(query)
    return wrong


def test_rows_are_those_of_the_text(cursor: duckdb.DuckDBPyConnection) -> None:
    assert differing(cursor) == []
    assert 5 < len(statements.STATEMENTS) < len(queries())


def test_twin_numbers_inside_quotes_are_found(
    cursor: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        statements,
        "with_parameters",
        lambda query: (NAIVE.sub(r"?::\3", query), [float(found[1]) for found in NAIVE.findall(query)]),
    )
    assert differing(cursor)


def test_a_statement_knows_no_table(cursor: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT COUNT(*), MIN(k) FROM t WHERE k >= 4::BIGINT"
    assert statements.rows(cursor, query) == [(5, 4)]
    cursor.execute("CREATE OR REPLACE TABLE t AS SELECT i::DOUBLE + 0.5 AS k FROM range(6) r(i)")
    assert statements.rows(cursor, query) == [(2, 4.5)]


def test_not_more_statements_are_kept_than_that(
    cursor: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "MOST_STATEMENTS", 3)
    for place in range(20):
        assert statements.rows(cursor, f"SELECT {place}::BIGINT AS c{place}") == [(place,)]
        assert len(statements.STATEMENTS) <= 3
