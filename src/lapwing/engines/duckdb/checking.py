"""What a table's data are like, counted value by value for the curator (`engines.data_check`).

A value is read as questions read it (`cleaned.read`), so that what is counted here as unreadable is what counts as NULL
there. Whose a row is follows from the same layer that bounds rows (`cleaned.cleaned`).
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Final

from lapwing.catalog.model import Catalog, Column, Table
from lapwing.engines.data_check import ColumnCheck, TableCheck, UnitCheck
from lapwing.engines.duckdb.cleaned import WHOLE, Location, cleaned, plain, read, unit_value
from lapwing.engines.duckdb.database import Database, QueryRunner
from lapwing.engines.duckdb.files import File
from lapwing.engines.duckdb.link_keys import existing_keys, keys_of
from lapwing.engines.duckdb.literals import INTEGER_TYPES, constant, double, identifier, unit_name
from lapwing.engines.duckdb.source_reading import rows_of, why
from lapwing.engines.duckdb.stamps import readable
from lapwing.engines.duckdb.stored_rows import Layers
from lapwing.engines.duckdb.stored_values import is_missing
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.engines.stored_values import before_rounding
from lapwing.machine import progress

EXAMPLES: Final = 3
LONGEST: Final = 60
"""Characters of an example that are kept."""
MOST_UNLISTED: Final = 10
"""Values that are not listed, of which each is shown."""
WORDS: Final = (
    "na",
    "n/a",
    "#n/a",
    "null",
    "none",
    "nan",
    ".",
    "-",
    "--",
    "?",
    "missing",
    "unknown",
    "no answer",
    "refused",
)
"""Texts that stand for no value, mostly, without their case."""
NUMBERS: Final = (
    *(-9, -99, -999, -9999, -99999),
    *(-7, -8, -77, -88, -777, -888),
    *(99, 999, 9999, 99999, 999999),
    -1,
    77,
    88,
    777,
    888,
)
"""Numbers that stand for no value, mostly, where they lie outside the bounds."""


def checked(table: Table, catalog: Catalog, file: File, layers: Layers, database: Database) -> TableCheck:
    """Return what a table's data are like.

    Raises:
        DataFault: If they cannot be read to their end.
    """
    source = file.source
    reason = partial(why, file.path, table)
    with readable(file.path, table, reason), progress.work(f"Checking {table.name}"), database.session() as query:
        ((rows,),) = query(f"SELECT COUNT(*) FROM {source.relation}")
        if rows != rows_of(file, table):
            raise unreadable(table, reason())
        return TableCheck(
            table=table,
            rows=rows,
            columns=[_column(column, source, query) for column in table.columns],
            units=None if table.unit_is_row else _units(table, rows, source, layers, query),
            repeated=list(_repeated(table, catalog, layers, query)),
        )


def unfit_columns(table: Table, file: File, database: Database) -> list[str]:
    """Return the columns of a table that hold values which are not what the declared type says, in order.

    Raises:
        DataFault: If the data cannot be read to their end.
    """
    source = file.source
    unfit = {column.name: _unfit(column, source.types[column.name]) for column in table.columns}
    if table.link is None and not table.unit_is_row:
        name, unit = table.unit_column, unit_value(table, source.types[table.unit_column])
        there, own = f"{identifier(name)} IS NOT NULL", table.column(name)
        there += (
            f" AND NOT {is_missing(own, source.types[name], plain)}"
            if own is not None and own.reading is not None
            else ""
        )
        unfit[name] = f"({unfit.get(name, 'false')} OR ({there} AND {unit} IS NULL))"
    if not unfit:
        return []
    any_ = ", ".join(f"COALESCE(bool_or({condition}), false)" for condition in unfit.values())
    with readable(file.path, table, partial(why, file.path, table)), progress.work(f"Checking {table.name}"):
        (found,) = database.query(f"SELECT {any_} FROM {source.relation}")
    return [name for name, is_unfit in zip(unfit, found, strict=True) if is_unfit]


# ---- columns ---------------------------------------------------------------------------------------------------------


def _column(column: Column, source: Location, query: QueryRunner) -> ColumnCheck:
    physical, name = source.types[column.name], identifier(column.name)
    value = read(column, physical)
    there = f"{value} IS NOT NULL{f' AND NOT isnan({_double(value)})' if column.numeric else ''}"
    (found,) = query(
        f"SELECT COUNT(*) FILTER (NOT ({there})), COUNT(*) FILTER ({_unreadable(column, physical)}),"
        f" COUNT(*) FILTER ({_fraction(column, physical)}), {', '.join(_outside(column, value, there))},"
        f" COUNT(*) FILTER ({there} AND NOT ({_listed(column, value)})),"
        f" {_lengths(column, value)}, COUNT(DISTINCT {value}) FILTER ({there}), {_ends(column, value, there)},"
        f" COUNT(*) FILTER ({there} AND {_pointed(column, physical)})"
        f" FROM {source.relation}"
    )
    nulls, unreadable, fractions, below, above, unlisted, too_long, longest, distinct, least, greatest, pointed = found
    example = f"left(CAST({name} AS VARCHAR), {LONGEST}) AS example"
    counted = f"SELECT {example}, COUNT(*) FROM {source.relation} WHERE"
    most = "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT"
    strange = f"{counted} {there} AND NOT ({_listed(column, value)}) {most} {MOST_UNLISTED}"
    unfit = f"SELECT left(CAST({name} AS VARCHAR), {LONGEST}) AS example, COUNT(*) FROM {source.relation}"
    unfit += f" WHERE {_unfit(column, physical)} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {EXAMPLES}"
    return ColumnCheck(
        name=column.name,
        type=column.type,
        nulls=nulls - unreadable,
        unreadable=unreadable,
        fractions=fractions,
        examples=query(unfit) if unreadable or fractions else (),
        below=below if column.lower is not None else None,
        above=above if column.upper is not None else None,
        unlisted=unlisted if column.values is not None else None,
        too_long=too_long,
        longest=longest,
        distinct=distinct,
        pointed=pointed,
        least=_shown(least),
        greatest=_shown(greatest),
        unlisted_values=query(strange) if column.values is not None and unlisted else (),
        codes=query(f"{counted} {_like_a_code(column, physical, value)} {most} {MOST_UNLISTED}"),
    )


def _like_a_code(column: Column, physical: str, value: str) -> str:
    """Return the condition that a value looks like a code for a missing one, and is not declared as such."""
    listed = [value.casefold() for value in column.values or () if isinstance(value, str)]
    words = ", ".join(constant(word) for word in WORDS if word not in listed)
    found = [f"lower(trim({identifier(column.name)})) IN ({words})"] if physical == "VARCHAR" else []
    if column.numeric:
        outside = "TRUE"
        numbers = NUMBERS if column.bounded else [number for number in NUMBERS if number < -1]
        if isinstance(column.lower, Fraction) and isinstance(column.upper, Fraction):
            outside = f"({_double(value)} < {double(column.lower)} OR {_double(value)} > {double(column.upper)})"
        found.append(f"({value} IN ({', '.join(map(str, numbers))}) AND {outside})")
    said = f"NOT {is_missing(column, physical, plain)}" if column.reading is not None else "TRUE"
    return f"({' OR '.join(found) or 'FALSE'}) AND {said}"


def _unfit(column: Column, physical: str) -> str:
    return f"({_unreadable(column, physical)} OR {_fraction(column, physical)})"


def _unreadable(column: Column, physical: str) -> str:
    """Return the condition that a value is there and cannot be read; a double that is NaN is not there."""
    name = identifier(column.name)
    there = f"{name} IS NOT NULL{f' AND NOT isnan({name})' if physical in ('DOUBLE', 'FLOAT') else ''}"
    said = "" if column.reading is None else f" AND NOT {is_missing(column, physical, plain)}"
    return f"({there}{said} AND {read(column, physical)} IS NULL)"


def _fraction(column: Column, physical: str) -> str:
    """Return the condition that a number of an integer column is not whole."""
    if column.type != "integer" or physical in INTEGER_TYPES:
        return "false"
    name = identifier(column.name)
    number = f"TRY_CAST({name} AS DOUBLE)" if column.reading is None else read(before_rounding(column), physical)
    return f"COALESCE(isfinite({number}) AND floor({number}) <> {number}, false)"


def _pointed(column: Column, physical: str) -> str:
    """Return the condition that the text of a number has a decimal point."""
    return f"contains({identifier(column.name)}, '.')" if column.numeric and physical == "VARCHAR" else "false"


def _double(value: str) -> str:
    return f"CAST({value} AS DOUBLE)"


def _outside(column: Column, value: str, there: str) -> Iterator[str]:
    """Yield how many values are below the lower bound, and above the upper one."""
    for bound, sign in ((column.lower, "<"), (column.upper, ">")):
        if bound is None:
            yield "0"
        elif isinstance(bound, Fraction):
            yield f"COUNT(*) FILTER ({there} AND {_double(value)} {sign} {double(bound)})"
        else:
            yield f"COUNT(*) FILTER ({there} AND {value} {sign} {constant(bound)})"


def _listed(column: Column, value: str) -> str:
    """Return the condition that a value is among those that are declared."""
    if column.values is None or column.type == "boolean":
        return "true"
    return f"{value} IN ({', '.join(map(constant, column.values))})"


def _lengths(column: Column, value: str) -> str:
    if column.type != "string":
        return "NULL, NULL"
    return f"COUNT(*) FILTER (strlen({value}) > {column.max_length}), COALESCE(MAX(strlen({value})), 0)"


def _ends(column: Column, value: str, there: str) -> str:
    if column.type in ("string", "boolean"):
        return "NULL, NULL"
    end = _double(value) if column.numeric else value
    return f"MIN({end}) FILTER ({there}), MAX({end}) FILTER ({there})"


def _shown(end: object) -> str | None:
    if isinstance(end, float):
        return f"{end:,.10g}" if abs(end) >= 10_000 else f"{end:.10g}"  # a year has no comma
    return None if end is None else str(end)


# ---- whose rows they are ---------------------------------------------------------------------------------------------


def _units(table: Table, all_: int, source: Location, layers: Layers, query: QueryRunner) -> UnitCheck:
    rows = [*layers.above(table, {}, WHOLE), f"cleaned AS ({cleaned(table, source, False)})"]
    by_unit = f"SELECT COUNT(*) AS size FROM cleaned GROUP BY {unit_name(table)}"
    found = query(f"WITH {', '.join(rows)} SELECT size, COUNT(*) FROM ({by_unit}) GROUP BY 1 ORDER BY 1")
    sizes: dict[int, int] = dict(found)
    return UnitCheck(
        column=None if table.link is not None else table.unit_column,
        without=all_ - sum(size * units for size, units in sizes.items()),
        most=table.max_rows_per_unit,
        sizes=sizes,
    )


def _repeated(
    table: Table, catalog: Catalog, layers: Layers, query: QueryRunner
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the keys that links lead to and rows with a unit share, with how many of their values are shared."""
    for key in keys_of(table, catalog):
        rows = existing_keys(table, layers.source(table), key, WHOLE, layers.above(table, {}, WHOLE))
        names = [f"key{place}" for place in range(len(key))]
        present = " AND ".join(f"{name} IS NOT NULL" for name in names)
        shared = f"SELECT 1 FROM ({rows}) WHERE {present} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1"
        ((count,),) = query(f"SELECT COUNT(*) FROM ({shared})")
        if count:
            yield key, count
