"""Linked tables full of awkward rows, and their neighbours: customers, their orders, the items of these, and calls.

Two ways to link them. By the unit: an order says whose it is, and an item whose order. By keys: a person has several
customer numbers, an order says which of them, and an item names an order by two columns. Calls say themselves who
called, and a public table has codes.

Among the rows are some of nobody: with a key that is NULL or leads nowhere, or whose parent is one row too many. Keys
that links lead to are there once, but for NULL and for rows of nobody, of which several may share one. A neighbour
lacks a unit, either in the root alone, so that its other rows are nobody's, or in all tables; or another takes its
place. Rows come in another order.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from tests.support.query.neighbours import CODE_SCHEMA, CODES
from tests.support.query.worlds import Data, Ground
from tests.support.replay import Row

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:ledger.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
measure = "{measure}"
neighbouring = "{neighbouring}"
[tables.customers]
source = "customers.parquet"
privacy_unit = "{unit}"
max_rows_per_unit = {customers}
unit = "person"
[tables.customers.columns]
{unit} = {{ type = "integer" }}
ck = {{ type = "integer" }}
plan = {{ type = "string", values = ["a", "b", "it's"] }}
age = {{ type = "integer", lower = 0, upper = 110 }}
member = {{ type = "boolean" }}
[tables.orders]
source = "orders.parquet"
link = {{ table = "customers", on = {{ ock = "ck" }} }}
max_rows_per_unit = {orders}
[tables.orders.columns]
ok = {{ type = "integer" }}
ock = {{ type = "integer" }}
day = {{ type = "date", values = [2026-01-01, 2026-01-02] }}
kind = {{ type = "string", values = ["x", "y"], other = "rest" }}
pay = {{ type = "decimal", lower = 0, upper = 50, step = 0.01 }}
[tables.items]
source = "items.parquet"
link = {{ table = "orders", on = {{ {items_on} }} }}
max_rows_per_unit = {items}
[tables.items.columns]
iok = {{ type = "integer" }}
iday = {{ type = "date" }}
tag = {{ type = "integer" }}
unit = {{ type = "string", values = ["kg", "a"] }}
cost = {{ type = "float", lower = -10, upper = 100 }}
[tables.calls]
source = "calls.parquet"
privacy_unit = "caller"
max_rows_per_unit = 2
unit = "person"
[tables.calls.columns]
caller = {{ type = "integer" }}
topic = {{ type = "string" }}
minutes = {{ type = "integer", lower = 0, upper = 60 }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
plan = {{ type = "string" }}
tier = {{ type = "string" }}
factor = {{ type = "integer" }}
rate = {{ type = "float", lower = 0, upper = 9 }}
"""

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "customers": pa.schema(
        [
            ("who", pa.int64()),
            ("ck", pa.int64()),
            ("plan", pa.string()),
            ("age", pa.int32()),
            ("member", pa.bool_()),
        ]
    ),
    "orders": pa.schema(
        [
            ("ok", pa.int64()),
            ("ock", pa.int32()),
            ("day", pa.date32()),
            ("kind", pa.string()),
            ("pay", pa.decimal128(12, 2)),
        ]
    ),
    "items": pa.schema(
        [
            ("iok", pa.int16()),
            ("iday", pa.date32()),
            ("tag", pa.int64()),
            ("unit", pa.string()),
            ("cost", pa.float64()),
        ]
    ),
    "calls": pa.schema([("caller", pa.int64()), ("topic", pa.string()), ("minutes", pa.int32())]),
}
TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "customers": {"who": "BIGINT", "ck": "BIGINT", "plan": "VARCHAR", "age": "INTEGER", "member": "BOOLEAN"},
    "orders": {"ok": "BIGINT", "ock": "INTEGER", "day": "DATE", "kind": "VARCHAR", "pay": "DECIMAL(12,2)"},
    "items": {"iok": "SMALLINT", "iday": "DATE", "tag": "BIGINT", "unit": "VARCHAR", "cost": "DOUBLE"},
    "calls": {"caller": "BIGINT", "topic": "VARCHAR", "minutes": "INTEGER"},
}
UNITS: Final = {"by unit": "ck", "by key": "who"}
"""What the unit's column is called, by the way in which tables are linked."""
ITEMS_ON: Final = {"by unit": 'iok = "ok"', "by key": 'iok = "ok", iday = "day"'}
REMOVED, NEWCOMER = 1, 50
"""The unit that a neighbour lacks, and where the keys begin of one that takes its place."""
NOBODY: Final = 9
"""A customer that there is not."""
ADOPTING: Final = 8
"""A customer that only a neighbour may have: there may be orders of it before."""
DAYS: Final = [date(2026, 1, 1), date(2026, 1, 2), date(9999, 12, 31)]


def catalog(
    folder: Path, *, linked: str, neighbouring: str = "add_remove", measure: str = "gdp", further: str = ""
) -> Catalog:
    """Return the catalog of the linked tables, a public one, which is written into a folder, and further tables."""
    if not (folder / "codes.parquet").exists():
        pq.write_table(pa.Table.from_pylist(CODES, schema=CODE_SCHEMA), folder / "codes.parquet")
    text = CATALOG.format(
        neighbouring=neighbouring,
        measure=measure,
        unit=UNITS[linked],
        items_on=ITEMS_ON[linked],
        customers=1 if linked == "by unit" else 2,
        orders=3,
        items=4,
    )
    text = text.replace('ck = { type = "integer" }\nck', "ck")
    text = text.replace("delta_keys = 1e-7\n", "").replace("1e-6", "0") if measure == "pure" else text
    return loads(text + further, file="shop", folder=folder)


# ---- rows ------------------------------------------------------------------------------------------------------------


def customer(chance: random.Random, ck: int | None, who: int | None) -> Row:
    return {
        "who": who,
        "ck": ck,
        "plan": chance.choice(["a", "a", "b", "it's", "c", None]),
        "age": chance.choice([0, 30, 30, 110, 111, -1, 2**31 - 1, None]),
        "member": chance.choice([True, False, None]),
    }


def order(chance: random.Random, ok: int | None, ock: int | None) -> Row:
    return {
        "ok": ok,
        "ock": ock,
        "day": chance.choice([*DAYS, *DAYS[:2], None]),
        "kind": chance.choice(["x", "x", "y", "z", None]),
        "pay": chance.choice([Decimal("0.00"), Decimal("49.99"), Decimal("-5.00"), Decimal("9999999999.99"), None]),
    }


def item(chance: random.Random, iok: int | None, iday: date | None) -> Row:
    return {
        "iok": iok,
        "iday": iday,
        "tag": chance.choice([0, 30, 30, 110, 2**63 - 1, None]),
        "unit": chance.choice(["kg", "a", "a", "b", None]),
        "cost": chance.choice([0.0, -0.0, 5e-324, 1.005, 99.99, 100.0, -10.0, 1e308, inf, -inf, nan, None]),
    }


def call(chance: random.Random, caller: int | None) -> Row:
    return {
        "caller": caller,
        "topic": chance.choice(["a", "b", "", "it's", None]),
        "minutes": chance.choice([0, 1, 59, 60, 2**31 - 1, -5, None]),
    }


def drawn(chance: random.Random, unit: str, busy: int = 0) -> Data:
    """Return all tables, with so many rows more than a few."""
    keys = chance.sample(range(1, 8), chance.randint(1, 7))
    customers = [customer(chance, ck, chance.choice([REMOVED, REMOVED, 2, 3, None])) for ck in keys]
    if unit == "ck" and chance.random() < 0.8:
        keys.append(REMOVED)
        customers += [] if REMOVED in keys[:-1] else [customer(chance, REMOVED, REMOVED)]
    customers += [customer(chance, None, chance.choice([REMOVED, 2, None])) for _ in range(chance.randint(0, 1))]
    favoured = [row["ck"] for row in customers if row[unit] == REMOVED and row["ck"] is not None]
    owners = [*keys, *favoured * 4, NOBODY, ADOPTING, None]
    orders, known = _orders(chance, owners, chance.randint(0, 9) + busy, 1)
    if chance.random() < 0.3:  # of nobody, with a key that is there already
        orders += [order(chance, ok, chance.choice([NOBODY, None])) for ok, _ in known[:2]]
    items = _items(chance, known, chance.randint(0, 16) + busy)
    calls = [call(chance, chance.choice([REMOVED, REMOVED, *keys, None])) for _ in range(chance.randint(0, 5) + busy)]
    return {"customers": customers, "orders": orders, "items": items, "calls": calls}


Known = list[tuple[int | None, date | None]]


def _orders(chance: random.Random, owners: Sequence[int | None], count: int, first: int) -> tuple[list[Row], Known]:
    """Return orders with keys of their own, and these; some have none."""
    orders = [order(chance, None if chance.random() < 0.05 else first + n, chance.choice(owners)) for n in range(count)]
    return orders, [(row["ok"], row["day"]) for row in orders]


def _items(chance: random.Random, orders: Known, count: int) -> list[Row]:
    """Return items of orders, the more of them of the first ones, and of none; some name another day."""
    named = [*orders * 2, *orders[:1] * 3, *orders[:2] * 2, (99, DAYS[0]), (None, None)]
    chosen = [chance.choice(named) for _ in range(count)]
    return [item(chance, ok, day if chance.random() < 0.9 else DAYS[1]) for ok, day in chosen]


# ---- neighbours ------------------------------------------------------------------------------------------------------


def removed(data: Data, unit: str, *, everywhere: bool) -> Data:
    """Take a unit's rows out of the tables that name units, and out of the others if everywhere."""
    own = [row for row in data["customers"] if row[unit] == REMOVED]
    left = {
        **data,
        "customers": [row for row in data["customers"] if row[unit] != REMOVED],
        "calls": [row for row in data["calls"] if row["caller"] != REMOVED],
    }
    if not everywhere:
        return left
    keys = {row["ck"] for row in own} - {None}
    theirs = [row for row in data["orders"] if row["ock"] in keys]
    days: dict[int, list[date | None]] = {}
    for row in theirs:
        days.setdefault(row["ok"], []).append(row["day"])
    left["orders"] = [row for row in data["orders"] if row["ock"] not in keys]
    left["items"] = [row for row in data["items"] if not _is_of(row, days, both=unit == "who")]
    return left


def _is_of(row: Row, days: Mapping[int, Sequence[date | None]], *, both: bool) -> bool:
    if row["iok"] is None or row["iok"] not in days:
        return False
    return not both or (row["iday"] is not None and row["iday"] in days[row["iok"]])


def added(chance: random.Random, data: Data, unit: str) -> Data:
    """Add rows of the unit that was removed, with keys that nobody has had, but for one that orders may name."""
    keys = [REMOVED] if unit == "ck" else [chance.choice([ADOPTING, NEWCOMER]), NEWCOMER + 1]
    orders, known = _orders(chance, keys, chance.randint(0, 4), NEWCOMER)
    more = {
        "customers": [customer(chance, ck, REMOVED) for ck in keys],
        "orders": orders,
        "items": _items(chance, known, chance.randint(0, 5)),
        "calls": [call(chance, REMOVED) for _ in range(chance.randint(0, 3))],
    }
    return {name: [*rows, *more[name]] for name, rows in data.items()}


def neighbours(chance: random.Random, described: Catalog) -> tuple[Data, Data]:
    """Return two data sets that differ in the rows of one unit, in different orders."""
    return neighbours_of(drawn(chance, described.tables[0].root.unit_column), chance, described)


def neighbours_of(one: Data, chance: random.Random, described: Catalog) -> tuple[Data, Data]:
    """Return a data set, and one that differs in the rows of one unit, in another order."""
    unit = described.tables[0].root.unit_column
    other = removed(one, unit, everywhere=chance.random() < 0.5)
    if described.budget.neighbouring == "replace_one":
        other = added(chance, removed(one, unit, everywhere=True), unit)
    return one, {name: chance.sample(rows, len(rows)) for name, rows in other.items()}


GROUND: Final = Ground(
    draw=neighbours, schemas=SCHEMAS, types=TYPES, keys=frozenset({"who", "ck", "ock", "caller", "ok", "iok"})
)
"""What worlds of linked tables are made of."""
