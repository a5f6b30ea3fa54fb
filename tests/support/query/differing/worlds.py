"""Random catalogs with data that fit them, or not: what a query means is then what DuckDB says of the same files.

In a clean world every value is within its bounds and listed, nobody has more rows than the catalog allows, and every
combination of plan and site has rows. There Lapwing and DuckDB must agree. A dirty world has one kind of dirt. There
an answer is DuckDB's of the rows as they are, or of the rows as the catalog reads them, and a note says so.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.answer.notes import CLAMPED, ROWS_OF_UNIT, UNLISTED_KEYS

PLANS: Final = ("free", "it's", "Größe", "pro")
SITES: Final = ("n", "s", "w")
UNLISTED: Final = ("gold", "silver")
PERIODS: Final = (
    (datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59)),
    (datetime(2023, 10, 1), datetime(2024, 3, 31, 23, 59, 59)),
    (datetime(1969, 11, 1), datetime(1970, 3, 31, 23, 59, 59)),
    (datetime(2019, 12, 15), datetime(2020, 3, 15, 23, 59, 59)),
)
"""Leap days, changes of the clocks, the epoch, weeks of two years."""
DIRT: Final = {"bounds": CLAMPED, "unlisted": UNLISTED_KEYS, "missing": UNLISTED_KEYS, "unitless": ROWS_OF_UNIT}
"""Kinds of dirt, and the code of the note that names each."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A catalog, its tables as they are, as the catalog reads them, and without rows that are in no group."""

    plans: tuple[str, ...]
    sites: tuple[str, ...]
    ages: tuple[int, int]
    period: tuple[datetime, datetime]
    rows_of_unit: int
    neighbouring: str
    dirt: str | None
    tables: dict[str, pa.Table]
    cleaned: dict[str, pa.Table]
    grouped: dict[str, pa.Table]

    @property
    def catalog(self) -> str:
        """The catalog as TOML."""
        first, last = self.period
        listed = {"plan": list(self.plans), "site": list(self.sites)}
        texts = "\n".join(f'{name} = {{ type = "string", values = {values!r} }}' for name, values in listed.items())
        low, high = self.ages
        return f"""
[dataset]
name = "world"
ledger = "sqlite:world.db"
[budget]
epsilon = 1000000000000000000000000
measure = "pure"
neighbouring = "{self.neighbouring}"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
unit = "guest"
max_rows_per_unit = {self.rows_of_unit}
[tables.visits.columns]
person = {{ type = "integer" }}
{texts}
age = {{ type = "integer", lower = {low}, upper = {high} }}
pay = {{ type = "decimal", lower = -5, upper = 200, step = 0.01 }}
member = {{ type = "boolean" }}
day = {{ type = "date", lower = {first.date()}, upper = {last.date()} }}
seen = {{ type = "timestamp", lower = {first.isoformat()}, upper = {last.isoformat()} }}
note = {{ type = "string" }}
[tables.guests]
source = "guests.parquet"
privacy_unit = "person"
unit = "guest"
max_rows_per_unit = 1
[tables.guests.columns]
person = {{ type = "integer" }}
tier = {{ type = "string", values = ["a", "b"] }}
born = {{ type = "date", lower = 1940-01-01, upper = 2005-12-31 }}
credit = {{ type = "integer", lower = 0, upper = 1000 }}
[tables.places]
source = "places.parquet"
public = true
[tables.places.columns]
site = {{ type = "string" }}
region = {{ type = "string" }}
rate = {{ type = "decimal", lower = 0, upper = 10, step = 0.01 }}
opened = {{ type = "date", lower = 2000-01-01, upper = 2024-12-31 }}
"""


def world_of(seed: int) -> World:
    """Return the world of a seed: every fourth is dirty."""
    chance = random.Random(seed)
    dirt = chance.choice(tuple(DIRT)) if seed % 4 == 3 else None
    plans, sites = PLANS[: chance.randint(2, 4)], SITES[: chance.randint(2, 3)]
    ages, period = chance.choice(((0, 90), (-20, 20), (18, 65))), chance.choice(PERIODS)
    units, rows = chance.randint(60, 120), chance.randint(3, 6)
    visits = list(_visits(chance, units, rows, plans, sites, ages, period))
    dirty = [_dirty(chance, row, dirt) for row in visits]
    tables = {"visits": _visits_table(dirty), "guests": _guests(chance, units), "places": _places(chance, sites)}
    clean = [read for row in dirty if (read := _as_read(row, plans, sites, ages, period)) is not None]
    whole = [row for row in clean if None not in (row["plan"], row["site"])]
    return World(
        plans=plans, sites=sites, ages=ages, period=period, rows_of_unit=rows, dirt=dirt, tables=tables,
        neighbouring=chance.choice(("add_remove", "replace_one")),
        cleaned={**tables, "visits": _visits_table(clean)}, grouped={**tables, "visits": _visits_table(whole)},
    )  # fmt: skip


def _visits(
    chance: random.Random,
    units: int,
    rows: int,
    plans: tuple[str, ...],
    sites: tuple[str, ...],
    ages: tuple[int, int],
    period: tuple[datetime, datetime],
) -> Iterator[Row]:
    first, last = period
    seconds = int((last - first).total_seconds())
    pairs = [(plan, site) for plan in plans for site in sites]
    place = 0
    for person in range(units):
        for _ in range(chance.randint(1, rows)):
            plan, site = pairs[place % len(pairs)]
            seen = first + timedelta(seconds=chance.choice((0, seconds, *(chance.randint(0, seconds),) * 30)))
            day = first.date() + timedelta(days=chance.randint(0, (last - first).days))
            yield {
                "person": person,
                "plan": plan,
                "site": site,
                "age": _or_missing(chance, chance.randint(*ages)),
                "pay": _or_missing(chance, Decimal(chance.randint(-500, 20_000)) / 100),
                "member": chance.random() < 0.4,
                "day": _or_missing(chance, day),
                "seen": seen,
                "note": _or_missing(chance, chance.choice(("", "call", "Call back", "none", "ünfit"))),
            }
            place += 1


def _or_missing(chance: random.Random, value: Any) -> Any:
    return None if chance.random() < 0.08 else value


def _dirty(chance: random.Random, row: Row, dirt: str | None) -> Row:
    if dirt is None or chance.random() < 0.8:
        return row
    match dirt:
        case "bounds":
            late = row["seen"] + timedelta(days=chance.choice((-900, 900)))
            return row | {"age": chance.choice((-300, 400)), "pay": Decimal(chance.choice((-700, 900))), "seen": late}
        case "unlisted":
            return row | {"plan": chance.choice(UNLISTED)}
        case "missing":
            return row | {"plan": None, "site": chance.choice((None, row["site"]))}
    return row | {"person": None}


def _as_read(
    row: Row, plans: tuple[str, ...], sites: tuple[str, ...], ages: tuple[int, int], period: tuple[datetime, datetime]
) -> Row | None:
    """Return a row as the catalog says that it is read; None where it has no unit."""
    if row["person"] is None:
        return None
    between = {"age": ages, "pay": (Decimal(-5), Decimal(200)), "seen": period}
    clamped = {name: min(max(row[name], low), high) for name, (low, high) in between.items() if row[name] is not None}
    known = {"plan": plans, "site": sites}
    return row | clamped | {name: row[name] if row[name] in values else None for name, values in known.items()}


def _visits_table(rows: list[Row]) -> pa.Table:
    types: dict[str, pa.DataType] = {
        "person": pa.int64(), "plan": pa.string(), "site": pa.string(), "age": pa.int64(), "pay": pa.decimal128(9, 2),
        "member": pa.bool_(), "day": pa.date32(), "seen": pa.timestamp("us"), "note": pa.string(),
    }  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def _guests(chance: random.Random, units: int) -> pa.Table:
    """Return one row of most guests, and of some who never came."""
    people = [person for person in range(units + 9) if chance.random() < 0.9]
    return pa.table(
        {
            "person": pa.array(people, pa.int64()),
            "tier": [chance.choice("aab") for _ in people],
            "born": [date(1940, 1, 1) + timedelta(days=chance.randint(0, 24_000)) for _ in people],
            "credit": pa.array([_or_missing(chance, chance.randint(0, 1000)) for _ in people], pa.int64()),
        }
    )


def _places(chance: random.Random, sites: tuple[str, ...]) -> pa.Table:
    """Return a row of each site, and of one where nobody was."""
    every = (*sites, "x")
    rates = [Decimal(chance.randint(0, 1000)) / 100 for _ in every]
    opened = [date(2000, 1, 1) + timedelta(days=chance.randint(0, 9000)) for _ in every]
    regions = [chance.choice(("north", "south")) for _ in every]
    return pa.table(
        {"site": every, "region": regions, "rate": pa.array(rates, pa.decimal128(6, 2)), "opened": opened},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Lapwing over a world, and DuckDB over its files as they are, as they are read, and of the rows in groups."""

    world: World
    session: lw.Session
    raw: duckdb.DuckDBPyConnection
    cleaned: duckdb.DuckDBPyConnection
    grouped: duckdb.DuckDBPyConnection


@contextmanager
def opened(world: World, folder: Path) -> Iterator[Pair]:
    """Open a world in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in world.tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "world.toml").write_text(world.catalog, encoding="utf-8")
    with lw.connect(folder / "world.toml") as session:
        raw, cleaned, grouped = map(_plain, (world.tables, world.cleaned, world.grouped))
        with raw, cleaned, grouped:
            yield Pair(world=world, session=session, raw=raw, cleaned=cleaned, grouped=grouped)


def _plain(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        connection.register(f"{name}_arrow", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
    return connection


def moment(value: datetime) -> datetime:
    """Return a time as both sides have it."""
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
