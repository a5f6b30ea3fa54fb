"""Random catalogs, data and questions, each question with the SQL that plain DuckDB answers on the raw file.

Both texts are made of the same parts. They differ where the catalog's declarations are meant to: what is *summed* is
clamped to bounds and rounded to steps (`Summed`), a text over `max_length` is NULL, dates are moved to their bounds.
Conditions, keys and DISTINCT are the same words.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.answer.notes import FAR_VALUES, SEEN_BOUNDED, SEEN_IN_STEPS
from lapwing.catalog.model import Column, Table
from lapwing.catalog.toml import load
from lapwing.errors import QueryRefused

UNITS = 60
MOST = 4


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A column: how the catalog declares it, the type of the file, and its values."""

    name: str
    toml: str
    physical: pa.DataType
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """A catalog in a folder, its table, and DuckDB with the raw rows as `t`."""

    folder: Path
    table: Table
    raw: duckdb.DuckDBPyConnection
    pools: dict[str, tuple[Any, ...]] = field(repr=False)

    def column(self, name: str) -> Column:
        found = self.table.column(name)
        assert found is not None
        return found

    def summed(self, name: str) -> str:
        """Return what is summed of a column, in plain DuckDB: clamped, rounded to steps, clamped."""
        column = self.column(name)
        if not column.bounded or column.step is None:
            return name
        low, high, step = column.low, column.high, column.step
        count = f"floor({name}::DOUBLE * {float(step.denominator)!r} / {float(step.numerator)!r} + 0.5)"
        least, most = float(low * step), float(high * step)
        kept = f"CASE WHEN {name} <= {least!r} THEN {low} WHEN {name} >= {most!r} THEN {high} ELSE {count}::BIGINT END"
        return f"(({kept})::HUGEINT * {step.numerator} / {step.denominator}::DOUBLE)"


# ---- catalogs and data -----------------------------------------------------------------------------------------------


def _columns(chance: random.Random) -> list[Declared]:
    low = chance.choice([0, 0, -10, 5, 0.5])
    high = low + chance.choice([10, 60, 100, 120])
    edges = [low, high, low - 1, high + 1, math.nextafter(low, -1e9), math.nextafter(high, 1e9), (low + high) / 2]
    whole = [float(k) for k in range(math.ceil(low), math.ceil(low) + 24)]
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, -99.0, 999.0, 1e40, 17.999999, 18.000001, low + 1 / 3]
    floats = (*edges, *whole, *odd)
    step = chance.choice(["", "", ", step = 0.5", ", step = 3", ", step = 0.1"])
    bounds = f", lower = {low}, upper = {high}"
    ints = (None, 0, 1, 2, 7, 9, 10, 18, 60, 61, -1, -99, 999, 2**31 - 1, *range(12, 40))
    top = chance.choice([9, 20, 60])
    cents = chance.choice([True, False])
    decimals = tuple(Decimal(k) / 100 for k in (0, 1, 29, 57, 100, 1005, 1850, 4999, 5000, 5001, -5, 100000))
    between = (None, *decimals, *(() if cents else (Decimal("18.505"), Decimal("0.005"))))
    texts = ("a", "b", "c", "", "long " * 5, "ünï", None)
    kind = chance.choice(['values = ["a", "b"]', 'values = ["a", "b"], other = "rest"', 'values = ["a", "b", "c", ""]'])
    start, moment = date(2026, 1, 1), datetime(2026, 1, 1, 12)
    days = (None, *(start + timedelta(days=k) for k in (-400, -1, 0, 1, 15, 31, 58, 59, 400)))
    return [
        Declared(
            name="f",
            toml=f'type = "float"{bounds}{step}',
            physical=chance.choice([pa.float64(), pa.float64(), pa.float32()]),
            values=floats,
        ),
        Declared(name="g", toml='type = "float", lower = 0, upper = 120', physical=pa.float64(), values=floats),
        Declared(name="u", toml='type = "float"', physical=pa.float64(), values=floats),
        Declared(
            name="i",
            toml=f'type = "integer", lower = 0, upper = {top}',
            physical=chance.choice([pa.int64(), pa.int32()]),
            values=ints,
        ),
        Declared(
            name="k",
            toml=f'type = "integer", lower = 0, upper = 60, step = {chance.choice([1, 5])}',
            physical=pa.int64(),
            values=ints,
        ),
        Declared(
            name="c",
            toml='type = "integer", lower = 0, upper = 60, missing = [-99]',
            physical=chance.choice([pa.int64(), pa.string()]),
            values=ints,
        ),
        Declared(name="w", toml='type = "integer"', physical=pa.int64(), values=ints),
        Declared(
            name="d",
            toml='type = "decimal", lower = 0, upper = 50, step = 0.01',
            physical=pa.decimal128(12, 2 if cents else 3),
            values=between,
        ),
        Declared(name="b", toml='type = "boolean"', physical=pa.bool_(), values=(True, False, None)),
        Declared(name="s", toml=f'type = "string", {kind}', physical=pa.string(), values=texts),
        Declared(
            name="n",
            toml=f'type = "string", max_length = {chance.choice([3, 256])}',
            physical=pa.string(),
            values=texts,
        ),
        Declared(
            name="day", toml='type = "date", lower = 2026-01-01, upper = 2026-02-28', physical=pa.date32(), values=days
        ),
        Declared(
            name="moment",
            toml='type = "timestamp", lower = 2026-01-01T00:00:00Z, upper = 2026-12-31T00:00:00Z',
            physical=pa.timestamp("us"),
            values=(None, *(moment + timedelta(hours=k) for k in (-9000, 0, 1, 500, 9000))),
        ),
    ]


def world(folder: Path, seed: int, engine: str = "duckdb") -> World:
    """Make a catalog and its data; no unit has more rows than the catalog lets it have."""
    chance, columns = random.Random(seed), _columns(random.Random(seed))
    people = [unit for unit in range(UNITS) for _ in range(chance.randint(1, MOST))]
    data = {"person": pa.array(people, pa.int64())}
    for column in columns:
        drawn = [chance.choice(column.values) for _ in people]
        if column.physical == pa.string():
            drawn = [None if value is None else str(value) for value in drawn]
        data[column.name] = pa.array(drawn, column.physical)
    at = 'cluster = "local[2]"\n' if engine == "spark" else ""
    folder.mkdir(parents=True)
    pq.write_table(pa.table(data), folder / "t.parquet")
    lines = "\n".join(f"{column.name} = {{ {column.toml} }}" for column in columns)
    (folder / "lapwing.toml").write_text(
        f'[dataset]\nname = "raw"\nledger = "sqlite:raw.db"\nengine = "{engine}"\n{at}[budget]\nepsilon = 1e15\n'
        f'measure = "pure"\nneighbouring = "add_remove"\n[tables.t]\nsource = "t.parquet"\nprivacy_unit = "person"\n'
        f"max_rows_per_unit = {MOST}\n[tables.t.columns]\n{lines}\n"
    )
    table = load(folder / "lapwing.toml").tables[0]
    raw = duckdb.connect(config={"threads": 1})
    # With statistics of a file, which leave NaN out, DuckDB drops comparisons with NaN, and so keeps it.
    raw.execute("SET disabled_optimizers = 'statistics_propagation'")
    seen = {
        "f": "NULLIF(f::DOUBLE, 'nan'::DOUBLE) + 0.0",
        "g": "NULLIF(g, 'nan'::DOUBLE) + 0.0",
        **{name: f"{name}::BIGINT" for name in ("i", "k", "w")},
        "c": "NULLIF(c::BIGINT, -99)",
        "u": "NULLIF(u, 'nan'::DOUBLE) + 0.0",
        "n": f"CASE WHEN strlen(n) <= {table.column('n').max_length} THEN n END",  # type: ignore[union-attr]
        "day": "CASE WHEN day IS NOT NULL THEN LEAST(GREATEST(day, DATE '2026-01-01'), DATE '2026-02-28') END",
        "moment": (
            "CASE WHEN moment IS NOT NULL "
            "THEN LEAST(GREATEST(moment, TIMESTAMP '2026-01-01'), TIMESTAMP '2026-12-31') END"
        ),
    }
    shown = ", ".join(f"{expression} AS {name}" for name, expression in seen.items())
    raw.execute(f"CREATE TABLE t AS SELECT * REPLACE ({shown}) FROM read_parquet('{folder / 't.parquet'}')")
    return World(folder=folder, table=table, raw=raw, pools={c.name: c.values for c in columns})


# ---- questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of numbers, m0 and so on: its text here, and for plain DuckDB, in which keys come first."""

    ours: str
    theirs: str
    keys: int
    numbers: int = 1


NUMBERS = ("f", "f", "g", "i", "i", "c", "k", "d", "w", "u")
BOUNDED = ("f", "f", "g", "i", "c", "k", "d")


class Grammar:
    """Grows questions over a world."""

    def __init__(self, world: World, seed: int) -> None:
        self._world, self._chance = world, random.Random(seed)

    def questions(self) -> Iterator[Asked]:
        while True:
            yield self.question()

    def question(self) -> Asked:
        chance = self._chance
        if chance.random() < 0.2:
            return self._of_subquery()
        key = self._key() if chance.random() < 0.45 else None
        where = f" WHERE {self.condition(2)}" if chance.random() < 0.7 else ""
        measures = [self._measure() for _ in range(chance.randint(3, 6))]
        ours, theirs = (", ".join(f"{m} AS m{i}" for i, m in enumerate(side)) for side in zip(*measures, strict=True))
        head = f"{key} AS grp, " if key else ""
        group = " GROUP BY grp" if key else ""
        return Asked(
            ours=f"SELECT {head}{ours} FROM t{where}{group}",
            theirs=f"SELECT {self._gathered(head)}{theirs} FROM t{where}{group}",
            keys=int(key is not None),
            numbers=len(measures),
        )

    def _gathered(self, head: str) -> str:
        """Return a key as plain DuckDB has it: with what is not listed under `other`, where there is one."""
        column = self._world.column("s")
        if head != "s AS grp, " or column.other is None:
            return head
        listed = ", ".join(f"'{value}'" for value in column.values or ())
        return f"CASE WHEN s IN ({listed}) THEN s ELSE '{column.other}' END AS grp, "

    def _of_subquery(self) -> Asked:
        chance, x, y = self._chance, self._chance.choice(NUMBERS), self._chance.choice(NUMBERS)
        c = self.constant(x)
        op = chance.choice(["<", "<=", ">", ">=", "=", "<>"])
        grouped = f"person, MIN({x}) AS z, COUNT(*) AS n FROM t WHERE {self.condition(1)} GROUP BY person"
        rows, where = chance.choice(
            [
                (f"(SELECT {x} AS z, {y} AS v FROM t)", f"z {op} {c}"),
                (f"(SELECT person, MAX({x}) AS z FROM t GROUP BY person)", f"z {op} {c}"),
                (f"(SELECT {grouped})", f"z {op} {c} AND n > 1"),
                (f"(SELECT DISTINCT person, {x} AS z FROM t)", f"z {op} {c}"),
                (f"(SELECT person, {x} AS z FROM t UNION ALL SELECT person, {y} FROM t)", f"z {op} {c}"),
                (f"(SELECT person, {x} AS z, COUNT(*) AS n FROM t GROUP BY person, {x})", "n > 1"),
                (f"t AS a JOIN t AS o ON a.person = o.person AND a.{x} = o.{x}", f"o.{y} {op} {self.constant(y)}"),
                ("t AS a", f"EXISTS (SELECT 1 FROM t AS o WHERE o.person = a.person AND o.{x} > a.{x})"),
                (f"(SELECT {x} * 2 AS z, b FROM t)", f"z {op} {c} OR b"),
            ]
        )
        text = f"SELECT COUNT(*) AS m0 FROM {rows} WHERE {where}"
        return Asked(ours=text, theirs=text, keys=0)

    # ---- parts -------------------------------------------------------------------------------------------------------

    def constant(self, name: str) -> str:
        pool = [
            v for v in self._world.pools[name] if v is not None and v == v and abs(v) < 1e6 and not 0 < abs(v) < 1e-9
        ]
        value = self._chance.choice([*pool, *pool, 18, -99, 0, 60])
        return repr(float(value)) if isinstance(value, float) else str(value)

    def condition(self, depth: int) -> str:
        chance = self._chance
        if depth and chance.random() < 0.35:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return chance.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
        x, y = chance.choice(NUMBERS), chance.choice(NUMBERS)
        c, e, op = self.constant(x), self.constant(x), chance.choice(["<", "<=", ">", ">=", "=", "<>"])
        n = chance.randint(1, 9)
        shapes: Sequence[Callable[[], str]] = (
            lambda: f"{x} {op} {c}",
            lambda: f"{x} {op} {c}",
            lambda: f"{c} {op} {x}",
            lambda: f"{x} BETWEEN {c} AND {e}",
            lambda: f"{x} NOT BETWEEN {c} AND {e}",
            lambda: f"{x} IN ({c}, {e}, {n})",
            lambda: f"{x} NOT IN ({c}, {n})",
            lambda: f"{x} IS NULL",
            lambda: f"{x} IS DISTINCT FROM {c}",
            lambda: f"{x} {op} {y}",
            lambda: f"NULLIF({x}, {c}) IS NULL",
            lambda: f"NULLIF({x}, {c}) {op} {e}",
            lambda: f"COALESCE({x}, {n}) {op} {c}",
            lambda: f"CASE WHEN {x} {op} {c} THEN 1 ELSE 0 END = 1",
            lambda: f"CASE {x} WHEN {c} THEN 1 WHEN {e} THEN 2 END = 1",
            lambda: f"{self._bounded()} + {n} {op} {c}",
            lambda: f"{self._bounded()} * 2 {op} {c}",
            lambda: f"{self._bounded()} / 10 {op} {n}",
            lambda: f"-{self._bounded()} {op} {n}",
            lambda: f"ABS({self._bounded()}) {op} {c}",
            lambda: f"FLOOR({self._bounded()}) {op} {n}",
            lambda: f"FLOOR({self._bounded()} / 10) * 10 {op} {chance.choice([0, 10, 20])}",
            lambda: f"CEIL({self._bounded()}) {op} {n}",
            lambda: f"{chance.choice(['i', 'k'])} % {n + 1} = {n // 2}",
            lambda: f"LEAST({self._bounded()}, {n}) {op} {c}",
            lambda: f"CAST({chance.choice(['i', 'c'])} AS VARCHAR) LIKE '{chance.choice(['-%', '1%', '%9'])}'",
            lambda: f"NULLIF(NULLIF({x}, {c}), {e}) IS NOT NULL",
            lambda: f"({x} > {c}) IS NULL",
            lambda: f"b = TRUE AND {x} {op} {c}",
            lambda: f"s = 'a' AND {x} {op} {c}",
            lambda: f"n <> 'a' OR {x} {op} {c}",
            lambda: f"day >= DATE '2026-01-16' AND {x} {op} {c}",
        )
        return chance.choice(shapes)()

    def _bounded(self) -> str:
        return self._chance.choice(BOUNDED)

    def _key(self) -> str:
        chance = self._chance
        c = self.constant("f")
        return chance.choice(
            [
                "s",
                "b",
                "i",
                f"FLOOR({chance.choice(['f', 'g', 'i'])} / 10)",
                f"FLOOR({chance.choice(['f', 'g'])})",
                f"FLOOR({chance.choice(['f', 'g', 'i', 'd'])} / 10) * 10",
                f"CEIL({chance.choice(['f', 'g'])} / 20)",
                f"CASE WHEN f < {c} THEN 'low' WHEN f >= {c} THEN 'high' END",
                f"CASE WHEN {self.condition(1)} THEN 'yes' ELSE 'no' END",
                f"f >= {c}",
                f"i IN (0, {chance.randint(1, 60)})",
                f"i % {chance.randint(2, 5)}",
            ]
        )

    def _measure(self) -> tuple[str, str]:
        chance, x = self._chance, self._chance.choice(BOUNDED)
        summed, condition, c = self._world.summed(x), self.condition(1), self.constant(x)
        shapes = [
            ("COUNT(*)", "COUNT(*)"),
            ("COUNT(*)", "COUNT(*)"),
            (f"COUNT({x})", f"COUNT({x})"),
            (f"COUNT(DISTINCT {x})", f"COUNT(DISTINCT {x})"),
            (f"COUNT(CASE WHEN {condition} THEN 1 END)", f"COUNT(CASE WHEN {condition} THEN 1 END)"),
            (f"COUNT(*) FILTER (WHERE {condition})", f"COUNT(*) FILTER (WHERE {condition})"),
            (f"SUM({x})", f"SUM({summed})"),
            (f"AVG({x})", f"AVG({summed})"),
            (f"SUM(CASE WHEN {condition} THEN {x} END)", f"SUM(CASE WHEN {condition} THEN {summed} END)"),
            (f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)", f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"),
            (f"AVG(NULLIF({x}, {c}))", f"AVG(CASE WHEN {x} = {c} THEN NULL ELSE {summed} END)"),
            (f"COUNT(NULLIF({x}, {c}))", f"COUNT(NULLIF({x}, {c}))"),
            ("COUNT(DISTINCT person)", "COUNT(DISTINCT person)"),
        ]
        low, high = (float(end) for end in (self._world.column("g").lower, self._world.column("g").upper))  # type: ignore[arg-type]
        clamped = f"CASE WHEN g IS NOT NULL THEN LEAST(GREATEST(g, {low!r}), {high!r}) END"
        shapes.append((f"COUNT(100 / {x})", f"COUNT(100.0 / NULLIF({x}, 0))"))
        shapes.append((f"SUM(FLOOR(NULLIF(g, {c})))", f"SUM(CASE WHEN g = {c} THEN NULL ELSE FLOOR({clamped}) END)"))
        shapes.append(("SUM(FLOOR(g / 10))", f"SUM(FLOOR(({clamped}) / 10))"))
        shapes.append(("SUM(FLOOR(g))", f"SUM(FLOOR({clamped}))"))
        return chance.choice(shapes)


# ---- comparing -------------------------------------------------------------------------------------------------------

EPSILON = 10**10
REASONS = {FAR_VALUES, SEEN_BOUNDED, SEEN_IN_STEPS}
"""Codes of notes on what may differ from the raw file."""
REFUSED = (
    "No row can have a value of",
    "The catalog declares no bounds of",
    "Spark does not have",
    "SUM needs a number, not NULL",
    "AVG needs a number, not NULL",
)
"""Refusals that a question about these columns may meet."""


class Compared:
    """What became of numbers: how many were answered, how many had a note instead, and which differ without one."""

    def __init__(self) -> None:
        self.answered = self.noted = self.refused = 0
        self.different: list[tuple[str, int, Any, Any, Any]] = []


def compare(place: World, asked: Iterable[Asked], count: int) -> Compared:
    """Ask until so many numbers are answered, and compare each answer, cell by cell."""
    found = Compared()
    with lw.connect(place.folder / "lapwing.toml") as session:
        for question in asked:
            if found.answered >= count:
                break
            try:
                answer = session.sql(question.ours, epsilon=EPSILON)
            except QueryRefused as refused:
                if not refused.reason.startswith(REFUSED):
                    raise
                found.refused += question.numbers
                continue
            rows = place.raw.execute(question.theirs).fetchall()
            for number in range(question.numbers):
                found.answered += 1
                theirs = {row[0] if question.keys else (): row[question.keys + number] for row in rows}
                ours = {row["grp"] if question.keys else (): row[f"m{number}"] for row in answer.rows()}
                wrong = [key for key, value in ours.items() if not agree(value, theirs.get(key))]
                if wrong and REASONS & {getattr(note, "code", "") for note in answer.notes}:
                    found.noted += 1
                elif wrong:
                    key = wrong[0]
                    found.different.append((question.ours, number, key, ours[key], theirs.get(key)))
    return found


def agree(ours: Any, theirs: Any) -> bool:
    """Tell whether two numbers are equal to the last digit that a sum of doubles has; nothing is 0."""
    one, other = Fraction(ours or 0), Fraction(theirs or 0)
    return abs(one - other) <= max(abs(one), Fraction(1)) / 10**9
