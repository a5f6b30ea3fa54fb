"""Random expressions of made queries: numbers and conditions of a row, aggregates, and public keys."""

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import final

from lapwing.catalog.model import Column
from lapwing.tables import quoted


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeReading:
    """The rows that a query reads: a FROM clause, its columns, and the unit's column if it has one."""

    source: str
    columns: tuple[Column, ...]
    unit: str | None
    before: str = ""

    def of(self, *types: str, bounded: bool | None = None) -> list[Column]:
        """Return the columns of some types, with bounds or without."""
        own = [column for column in self.columns if column.type in types and column.name != self.unit]
        return own if bounded is None else [column for column in own if column.bounded == bounded]


def number(reading: MadeReading, chance: Random) -> str:
    """Return a bounded number of a row, or a constant where no column gives one."""
    columns = [quoted(column.name) for column in reading.of("integer", "decimal", "float", bounded=True)]
    loose = [quoted(column.name) for column in reading.of("integer", "decimal", "float", bounded=False)]
    if not columns:
        columns = [f"LEAST(GREATEST({name}, -5), 60)" for name in loose] or ["1"]
    columns += [f"LEAST(GREATEST(TRY_CAST({quoted(c.name)} AS DOUBLE), 0), 20)" for c in reading.of("string")[:1]]
    one, two = chance.choice(columns), chance.choice(columns)
    pattern = chance.choice([
        "{0}", "{0}", "{0}", "{0} + {1}", "{0} - 2 * {1}", "ABS({0})", "-{0}", "ROUND({0}, 1)", "FLOOR({0})",
        "COALESCE({0}, {1})", "NULLIF({0}, {1})", "CASE WHEN {2} THEN {0} ELSE 0 END", "LEAST({0}, {1})", "{0} % 7",
        "SQRT(ABS({0}))", "SIGN({0})", "CAST({2} AS INTEGER)", "IF({2}, {0}, {1})", "{0} * {1}",
    ])  # fmt: skip
    return pattern.format(one, two, condition(reading, chance, deep=False))


def condition(reading: MadeReading, chance: Random, *, deep: bool = True) -> str:
    """Return a condition on a row."""
    if not reading.columns:
        return "1 = 1"
    if deep and chance.random() < 0.3:
        both = condition(reading, chance, deep=False), condition(reading, chance, deep=False)
        return chance.choice(["({} AND {})", "({} OR {})", "NOT ({} AND {})", "(({}) IS NOT TRUE OR {})"]).format(*both)
    column = chance.choice(reading.columns)
    name = quoted(column.name)
    if column.type == "boolean":
        return chance.choice([name, f"NOT {name}", f"{name} IS NOT TRUE"])
    if column.type in ("integer", "decimal", "float"):
        low = _text_of(column.lower) if isinstance(column.lower, Fraction) else "0"
        high = _text_of(column.upper) if isinstance(column.upper, Fraction) else "7"
        return chance.choice([
            f"{name} >= {high}", f"{name} < {high}", f"{name} = {low}", f"{name} <> {low}", f"{name} IS NULL",
            f"{name} BETWEEN {low} AND {high}", f"{name} IN ({low}, {high})", f"{name} NOT IN ({low}, 3)",
            f"{name} IS DISTINCT FROM {high}",
        ])  # fmt: skip
    if column.type == "string":
        value = _sql(next(iter(column.values or ("x",))))
        return chance.choice([
            f"{name} = {value}", f"{name} <> {value}", f"{name} LIKE '%x%'", f"{name} IN ({value}, 'x')",
            f"{name} NOT IN ({value}, 'y')", f"{name} IS NOT NULL", f"UPPER({name}) < 'N'", f"LENGTH({name}) > 2",
            f"TRY_CAST({name} AS INTEGER) > 7",
        ])  # fmt: skip
    return chance.choice([f"{name} >= '2026-01-02'", f"{name} IS NULL", f"EXTRACT(MONTH FROM {name}) = 1"])


def _text_of(bound: Fraction) -> str:
    return str(int(bound)) if bound.denominator == 1 else f"{float(bound)!r}"


def _sql(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def aggregate(reading: MadeReading, chance: Random) -> str:
    """Return a number of all rows."""
    bounded, name = number(reading, chance), quoted(chance.choice(reading.columns).name) if reading.columns else "1"
    made = [
        "COUNT(*)", f"SUM({bounded})", f"AVG({bounded})", f"COUNT({name})", f"COUNT(DISTINCT {name})",
        f"SUM(DISTINCT {bounded})", f"COUNT_IF({condition(reading, chance)})", f"VAR_POP({bounded})",
        f"COUNT(*) FILTER (WHERE {condition(reading, chance)})", f"SUM({bounded}) / COUNT(*)",
        f"COALESCE(SUM({bounded}), 0)", f"CASE WHEN COUNT(*) > 1 THEN SUM({bounded}) END",
        f"STDDEV({bounded})", f"CORR({bounded}, {number(reading, chance)})",
    ]  # fmt: skip
    units = [] if reading.unit is None else [f"COUNT(DISTINCT {quoted(reading.unit)})"] * 2
    return chance.choice([*made, "COUNT(*)", f"SUM({bounded})", *units])


def public_keys(reading: MadeReading, chance: Random) -> list[str]:
    """Return expressions whose values are public."""
    listed = [quoted(column.name) for column in reading.columns if column.values is not None]
    whole = [column for column in reading.of("integer", bounded=True) if column.steps <= 10_000]
    ranged = [f"FLOOR({quoted(column.name)} / {max(2, column.steps // 4)})" for column in whole]
    months = [f"EXTRACT(MONTH FROM {quoted(column.name)})" for column in reading.of("date", "timestamp")]
    found = [*listed, *listed, *ranged, *months] or ["CASE WHEN 1 = 1 THEN 'a' ELSE 'b' END"]
    return chance.sample(found, min(len(set(found)), chance.choice([1, 1, 2])))
