"""Distinct rows of UNION, INTERSECT and EXCEPT across units: as many as SQL has, by counts of distinct values alone."""

from itertools import product
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.query import distinct_rows
from lapwing.query.distinct_rows import Polynomial
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


@pytest.mark.parametrize("rows", one_in(3, SETS))
def test_they_are_those_of_sql(session: lw.Session, rows: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM ({rows}) AS r"
    with session, duckdb.connect() as plain:
        plain.sql(f"CREATE VIEW visits AS FROM '{session.catalog.folder / 'visits.parquet'}'")
        assert session.sql(text, epsilon=10**6).rows() == [{"n": plain.execute(text).fetchall()[0][0]}]


@pytest.mark.parametrize("rows", REFUSED)
def test_what_is_no_set_of_rows_is_refused(session: lw.Session, rows: str) -> None:
    with session, pytest.raises(lw.QueryRefused):
        session.sql(f"SELECT COUNT(*) FROM ({rows})", epsilon=1)


def test_a_plain_number_of_counts_is_bought(session: lw.Session) -> None:
    with session:
        for rows, counts in zip(SETS[:5], (1, 3, 2, 7, 2), strict=True):
            preview = session.explain(f"SELECT COUNT(*) FROM ({rows})", epsilon=1)
            assert len(preview.measures) == counts, rows


def test_polynomials_are_the_sets_on_every_row() -> None:
    """Sides are given, in turn, all memberships of one row."""
    one, two, three = ({frozenset(): 1, frozenset({side}): -1} for side in range(3))
    one, two, three = map(Polynomial, (one, two, three))
    product_, denied = distinct_rows._product, distinct_rows._denied
    for row in product([False, True], repeat=3):
        for held, wanted in (
            (product_(one, two), row[0] and row[1]),
            (product_(one, denied(two)), row[0] and not row[1]),
            (denied(product_(denied(one), product_(denied(two), denied(three)))), any(row)),
            (product_(product_(one, denied(two)), denied(denied(three))), row[0] and not row[1] and row[2]),
        ):
            value = sum(factor for sides, factor in held.items() if not any(row[side] for side in sides))
            assert value == int(wanted)
            assert sum(held.values()) == 0  # of a row in no side
