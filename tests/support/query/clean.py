"""The golden questions' data: rows that break no bound, so that plain SQL over them means what Lapwing's does."""

import csv
import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from shutil import copy
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load

FIXTURES = Path(__file__).parents[2] / "fixtures" / "query"
PEOPLE = 60

SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("plan", pa.string()),
        ("town", pa.string()),
        ("member", pa.bool_()),
        ("age", pa.int16()),
        ("floor", pa.int32()),
        ("cost", pa.decimal128(12, 2)),
        ("share", pa.float64()),
        ("weight", pa.float64()),
        ("points", pa.int64()),
        ("note", pa.string()),
        ("day", pa.date32()),
        ("born", pa.date32()),
        ("seen", pa.timestamp("us")),
    ]
)
SHEET = ("person", "plan", "member", "age", "cost", "weight", "points", "born", "seen")


def visits() -> list[dict[str, Any]]:
    """One to three rows of each person; every column has NULLs, every key has rows, floats are whole steps."""
    rows = []
    for n in range(2 * PEOPLE):
        row: dict[str, Any] = {
            "plan": ["a", "b", "it's", "unlisted"][n % 4],
            "town": ["Ulm", "Bonn", "Rom"][n % 3],
            "member": n % 5 < 2,
            "age": (n * 41) % 111,
            "floor": n % 4 - 1,
            "cost": Decimal((n * 7919) % 500_001).scaleb(-2),
            "share": ((n * 131) % 2001 - 1000) / 1000,
            "weight": n * 1.25 - 40,
            "points": (n - 60) * 10**16,
            "note": ["12", "1e3", "x", "abc", "a_c", "", "Ünï", "it's", "50%"][n % 9],
            "day": date(2026, 1, 1) + timedelta(days=n % 3),
            "born": date(1900, 1, 1) + timedelta(days=379 * n),
            "seen": datetime(2000, 1, 1) + timedelta(days=90 * n, seconds=n, microseconds=n),
        }
        nulled = list(row)[n % len(row)]
        rows.append({"person": 1 + n // 2 - (n % 7 == 0), **row, **({nulled: None} if n % 2 else {})})
    return rows


def ballots() -> list[dict[str, Any]]:
    return [{"choice": ["yes", "no", None][n % 3], "weight": 1 + n % 3} for n in range(30)]


def codes() -> list[dict[str, Any]]:
    """A public table: values that repeat, that nobody has, and NULLs."""
    return [
        {"plan": "a", "tier": "gold", "factor": 2, "floor": -1},
        {"plan": "a", "tier": "gold", "factor": 3, "floor": 0},
        {"plan": "b", "tier": "basic", "factor": 1, "floor": 0},
        {"plan": "it's", "tier": "basic", "factor": 5, "floor": None},
        {"plan": "c", "tier": None, "factor": 0, "floor": 1},
        {"plan": None, "tier": "x", "factor": 4, "floor": 2},
    ]


def catalog_in(folder: Path) -> Catalog:
    """Write catalog and data into a folder."""
    copy(FIXTURES / "catalog.toml", folder / "lapwing.toml")
    pq.write_table(pa.Table.from_pylist(visits(), schema=SCHEMA), folder / "visits.parquet")
    pq.write_table(pa.Table.from_pylist(ballots()), folder / "ballots.parquet")
    pq.write_table(pa.Table.from_pylist(codes()), folder / "codes.parquet")
    with (folder / "sheets.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(SHEET)
        writer.writerows([[_cell(row[name]) for name in SHEET] for row in visits()])
    return load(folder / "lapwing.toml")


def _cell(value: Any) -> str:
    return "" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)
