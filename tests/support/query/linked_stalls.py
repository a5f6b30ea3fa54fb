"""Stalls beside the shop, of owners who are units of another kind: a neighbour lacks a customer, or an owner.

What is in common with orders, items and calls are values: a day, a tag, a text. Owners have the same names as
customers, and are others.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from lapwing.catalog.model import Catalog
from tests.support.query import shop
from tests.support.query.linked_sides import Side
from tests.support.query.questions import BOOLEAN, DATE, NUMBER, TEXT
from tests.support.query.worlds import Data, Ground
from tests.support.replay import Row

STALLS: Final = """
[tables.stalls]
source = "stalls.parquet"
privacy_unit = "owner"
max_rows_per_unit = 3
[tables.stalls.columns]
owner = { type = "integer" }
place = { type = "integer", lower = 0, upper = 120 }
kind = { type = "string", values = ["x", "y"] }
day = { type = "date", values = [2026-01-01, 2026-01-02] }
fee = { type = "integer", lower = 0, upper = 9 }
open = { type = "boolean" }
"""
SCHEMA: Final = pa.schema(
    [
        ("owner", pa.int64()),
        ("place", pa.int64()),
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("fee", pa.int32()),
        ("open", pa.bool_()),
    ]
)
TYPES: Final = {
    "owner": "BIGINT",
    "place": "BIGINT",
    "kind": "VARCHAR",
    "day": "DATE",
    "fee": "INTEGER",
    "open": "BOOLEAN",
}
SIDE: Final = Side(
    "stalls", {"place": NUMBER, "kind": TEXT, "day": DATE, "fee": NUMBER, "open": BOOLEAN}, {"owner": ("owner",)}
)
USUAL: Final = {
    **{"age": 30, "tag": 30, "place": 30, "minutes": 1, "fee": 1, "member": True, "open": True},
    **{"plan": "a", "kind": "x", "unit": "a", "topic": "a", "day": shop.DAYS[0], "iday": shop.DAYS[0]},
}
OWNERS: Final = (shop.REMOVED, 2, 3, 4)


def catalog(folder: Path, *, linked: str, neighbouring: str = "add_remove", measure: str = "gdp") -> Catalog:
    """Return the catalog of the shop and the stalls."""
    return shop.catalog(folder, linked=linked, neighbouring=neighbouring, measure=measure, further=STALLS)


def stall(chance: random.Random, owner: int | None) -> Row:
    return {
        "owner": owner,
        "place": chance.choice([0, 1, 2, 30, 30, 110, None]),
        "kind": chance.choice(["x", "x", "y", "a", None]),
        "day": chance.choice([*shop.DAYS[:2], None]),
        "fee": chance.choice([0, 1, 1, 9, 2**31 - 1, -5, None]),
        "open": chance.choice([True, True, False, None]),
    }


def stalls(chance: random.Random) -> list[Row]:
    """Return stalls, of the first owner the most, and of nobody."""
    owners = [shop.REMOVED, *OWNERS, None]
    return [stall(chance, chance.choice(owners)) for _ in range(chance.randint(0, 12))]


def alike(chance: random.Random, row: Row) -> Row:
    """Give a row values that many others have, so that they meet."""
    usual = {name: value for name, value in USUAL.items() if name in row and chance.random() < 0.5}
    return row | usual


def neighbours(chance: random.Random, described: Catalog) -> tuple[Data, Data]:
    """Return two data sets that differ in the rows of a customer, or of an owner, in different orders."""
    drawn = shop.drawn(chance, described.tables[0].root.unit_column, busy=chance.choice([0, 8, 16]))
    one: Data = {name: [alike(chance, row) for row in rows] for name, rows in drawn.items()}
    rows: Sequence[Row] = [alike(chance, row) for row in stalls(chance)]
    if chance.random() < 0.5:
        one, other = shop.neighbours_of(one, chance, described)
        return {**one, "stalls": rows}, {**other, "stalls": chance.sample(rows, len(rows))}
    one = {**one, "stalls": rows}
    left = [row for row in rows if row["owner"] != shop.REMOVED]
    if described.budget.neighbouring == "replace_one":
        left += [stall(chance, shop.REMOVED) for _ in range(chance.randint(0, 4))]
    other = {**one, "stalls": left}
    return one, {name: chance.sample(rows, len(rows)) for name, rows in other.items()}


GROUND: Final = Ground(
    draw=neighbours,
    schemas={**shop.SCHEMAS, "stalls": SCHEMA},
    types={**shop.TYPES, "stalls": TYPES},
    keys=shop.GROUND.keys | {"owner"},
)
