"""Exact answers of neighbouring tables, by the SQL that engines run: how far apart they are, and may be."""

import random
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from math import inf, nan
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from tests.support.query import composed
from tests.support.replay import SCHEMA, Row

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
    "seen": "TIMESTAMP",
}
SOURCE = Location(relation="held", types=TYPES)

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:ledger.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
neighbouring = "{neighbouring}"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
plan = {{ type = "string", values = ["a", "b", "it's"] }}
member = {{ type = "boolean" }}
age = {{ type = "integer", lower = 0, upper = 110 }}
cost = {{ type = "float", lower = -10, upper = 100 }}
score = {{ type = "integer" }}
note = {{ type = "string" }}
day = {{ type = "date", values = [2026-01-01, 2026-01-02] }}
pay = {{ type = "decimal", lower = 0, upper = 50, step = 0.01 }}
seen = {{ type = "timestamp", lower = 2026-01-01T00:00:00Z, upper = 2026-12-31T00:00:00Z }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
plan = {{ type = "string" }}
tier = {{ type = "string" }}
factor = {{ type = "integer" }}
rate = {{ type = "float", lower = 0, upper = 9 }}
"""
# What repeats when it is cleaned: 9.5 and 12 are clamped to one rate.
CODES: list[Row] = [
    {"plan": "a", "tier": "gold", "factor": 0, "rate": 0.0},
    {"plan": "a", "tier": "gold", "factor": 30, "rate": -0.0},
    {"plan": "b", "tier": "basic", "factor": 30, "rate": 9.5},
    {"plan": "it's", "tier": None, "factor": None, "rate": 12.0},
    {"plan": None, "tier": "basic", "factor": 110, "rate": nan},
]
CODE_SCHEMA = pa.schema([("plan", pa.string()), ("tier", pa.string()), ("factor", pa.int64()), ("rate", pa.float64())])


MOMENTS = [
    datetime(2026, 1, 1),
    datetime(2026, 1, 1, 0, 0, 0, 1),
    datetime(2026, 1, 2, 23, 59, 59, 999_999),
    datetime(2025, 6, 1),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59),
    None,
]


def catalog(folder: Path, *, rows: int = 2, neighbouring: str = "add_remove") -> Catalog:
    """Return the catalog of a private and a public table, the public one written into a folder."""
    if not (folder / "codes.parquet").exists():
        pq.write_table(pa.Table.from_pylist(CODES, schema=CODE_SCHEMA), folder / "codes.parquet")
    return loads(CATALOG.format(rows=rows, neighbouring=neighbouring), file="neighbours", folder=folder)


def awkward_row(chance: random.Random, person: int | None) -> Row:
    """Return a row with values chosen from the ordinary and the awkward."""
    return {
        "person": person,
        "plan": chance.choice(["a", "a", "b", "it's", "c", "", None]),
        "member": chance.choice([True, False, None]),
        "age": chance.choice([0, 1, 30, 30, 110, 111, -1, 2**31 - 1, None]),
        "cost": chance.choice([0.0, -0.0, 5e-324, 1.005, 99.99, 100.0, -10.0, 1e308, inf, -inf, nan, None]),
        "score": chance.choice([0, 7, -3, 2**63 - 1, -(2**63), None]),
        "note": chance.choice(["", "x", "ab%", "Ünï", "12", "nan", "1e999", None]),
        "day": chance.choice([date(2026, 1, 1), date(2026, 1, 2), date(9999, 12, 31), None]),
        "pay": chance.choice([Decimal("0.00"), Decimal("49.99"), Decimal("-5.00"), Decimal("9999999999.99"), None]),
        "seen": chance.choice(MOMENTS),
    }


def cells_of_rows(question: Question, rows: Sequence[Row], facts: PublicData) -> composed.Cells:
    """Return the exact cells of a question over some rows."""
    connection = _connection()
    connection.register("held", pa.Table.from_pylist(list(rows), schema=SCHEMA))
    return composed.cells(connection, question, SOURCE, facts)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return composed.connect()


def moved_too_far(question: Question, one: composed.Cells, other: composed.Cells, neighbouring: str) -> list[str]:
    """Return the measures that lie further apart than claimed."""
    zero = (0,) * len(question.measures)
    found = []
    for i, (measure, candidates) in enumerate(
        zip(question.measures, stability.of_question(question, neighbouring), strict=True)
    ):
        moved = [abs(one.get(cell, zero)[i] - other.get(cell, zero)[i]) for cell in one.keys() | other.keys()]
        l1, l2_squared = sum(moved), sum(d * d for d in moved)
        for candidate in candidates:
            allowed = candidate.sensitivity
            if l1 > allowed.l1 or l2_squared > allowed.l2_squared:
                found.append(f"{measure}: moved by {moved}, allowed {allowed}")
    return found


def violations(
    text: str, rows: Sequence[Row], neighbour: Sequence[Row], catalog: Catalog, facts: PublicData
) -> list[str]:
    """Return the measures that neighbours move further than claimed."""
    question = bind(text, catalog, facts).question
    one, other = (cells_of_rows(question, table, facts) for table in (rows, neighbour))
    return moved_too_far(question, one, other, catalog.budget.neighbouring)
