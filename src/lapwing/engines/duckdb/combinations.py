"""Combinations of public values, as SQL over public tables and lists: printed as questions are."""

from collections.abc import Callable
from fractions import Fraction
from math import isfinite

from lapwing.catalog.public import PublicTable
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.expressions import expression
from lapwing.engines.duckdb.literals import engine_type, identifier, whole
from lapwing.engines.duckdb.relations import public_layer, public_name
from lapwing.query.expressions.expression import Constant, Expression, Literal
from lapwing.query.expressions.types import Fixed, Real, Type
from lapwing.query.relations.public_rows import Combinations, JoinedRows, ListedValues, as_stored


def combinations(wanted: Combinations, located: Callable[[PublicTable], tuple[PublicTable, Location]]) -> str:
    """Return the query for combinations of values, which `constants` reads.

    Args:
        located: Says where a table is, and which bounds its numbers have.
    """
    showable = " AND ".join(is_showable(value.type, f"k{place}") for place, value in enumerate(wanted.shown))
    begin, rows = _rows(wanted, located)
    return f"{begin}SELECT DISTINCT * FROM ({rows}) WHERE {showable}"


def every_row(wanted: Combinations, located: Callable[[PublicTable], tuple[PublicTable, Location]]) -> str:
    """Return the query for the values of every row, NULL among them; last, whether one is there that no answer shows.

    Args:
        located: As `combinations`.
    """
    shown = [(f"k{place}", _can_be_shown(value.type, f"k{place}")) for place, value in enumerate(wanted.shown)]
    begin, rows = _rows(wanted, located, stored=True)
    values = ", ".join(f"CASE WHEN {showable} THEN {name} END" for name, showable in shown)
    hidden = " OR ".join(f"({name} IS NOT NULL AND NOT {showable})" for name, showable in shown)
    return f"{begin}SELECT {values}, {hidden} FROM ({rows})"


def _can_be_shown(kind: Type, value: str) -> str:
    return f"isfinite({value})" if isinstance(kind, Real) else is_showable(kind, value)


def _rows(
    wanted: Combinations, located: Callable[[PublicTable], tuple[PublicTable, Location]], *, stored: bool = False
) -> tuple[str, str]:
    """Return the tables as a WITH clause, and the query for the values as k0, k1 and so on.

    Args:
        stored: Whether numbers without steps are there as they are stored, too.
    """
    tables = {table.rows.table.name: table.rows.table for table in wanted.tables}
    names = {name: as_stored(table) if stored else {} for name, table in tables.items()}
    layers = [
        public_layer(*located(table), {own: one.name for own, one in names[name].items()})
        for name, table in tables.items()
    ]
    begin = f"WITH {', '.join(layers)} " if layers else ""
    shown = [f"{expression(value)} AS k{place}" for place, value in enumerate(wanted.shown)]
    rows = " ".join([_begun(wanted), *(_joined(table) for table in wanted.tables)])
    where = " AND ".join(f"({expression(condition)})" for condition in wanted.conditions) or "TRUE"
    return begin, f"SELECT {', '.join(shown)} FROM {rows} WHERE {where}"


def _begun(wanted: Combinations) -> str:
    """Return the lists: with one row, if there are none."""
    return " CROSS JOIN ".join(["(SELECT 0)", *map(_listed, wanted.lists)])


def _listed(values: ListedValues) -> str:
    """Return values, and NULL, as rows of a variable."""
    kind, name = values.variable.type, identifier(values.variable.name)
    return f"(SELECT UNNEST({_list(values, kind)}) AS {name} UNION ALL SELECT NULL)"


def _list(values: ListedValues, kind: Type) -> str:
    if values.between is not None:
        first, last = values.between
        steps = f"range({whole(first)}, {whole(last + 1)})"
        if isinstance(kind, Fixed):
            return f"CAST({steps} AS {engine_type(kind)}[])"
        return f"list_transform({steps}, lambda day: DATE '1970-01-01' + CAST(day AS INTEGER))"
    written = ", ".join(expression(Literal(value=value, type=kind)) for value in values.values)
    return f"CAST([{written}] AS {engine_type(kind)}[])"


def _joined(table: JoinedRows) -> str:
    pairs = zip(table.rows.columns, table.variables, strict=True)
    columns = ", ".join(f"{identifier(column.name)} AS {identifier(variable.name)}" for column, variable in pairs)
    where = f" WHERE ({expression(table.rows.where)})" if table.rows.where is not None else ""
    different = "DISTINCT " if table.rows.distinct else ""
    rows = f"SELECT {different}{columns or 'NULL AS nothing'} FROM {public_name(table.rows.table)}{where}"
    on = " AND ".join(f"({expression(part)})" for part in table.on) or "TRUE"
    match table.kind:
        case "inner":
            return f"CROSS JOIN ({rows})"
        case "left":
            return f"LEFT JOIN ({rows}) ON {on}"
    # Of what else ON compares nothing is known: any row may be left without one of these.
    found = identifier(f"found {table.variables[0].name}" if table.variables else "found")
    none = ", ".join(f"NULL AS {identifier(variable.name)}" for variable in table.variables)
    beside = f"SELECT *, TRUE AS {found} FROM ({rows}) UNION ALL SELECT {none or 'NULL AS nothing'}, FALSE"
    return f"JOIN ({beside}) ON NOT {found} OR ({on})"


def is_showable(kind: Type, value: str) -> str:
    """Return a condition: not NULL, and a value that Python, a ledger and an answer can hold."""
    match engine_type(kind):
        case "VARCHAR":
            return f"(NOT contains({value}, chr(0)))"
        case "DATE":
            return f"({value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31')"
        case "TIMESTAMP":
            return f"({value} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999')"
    return f"({value} IS NOT NULL)"


def constants(row: tuple[object, ...], shown: tuple[Expression, ...]) -> tuple[Constant, ...]:
    """Return a row as plans hold values: numbers are fractions, of a double the shortest decimal for it."""
    return tuple(_constant(value, expression.type) for value, expression in zip(row, shown, strict=True))


def _constant(value: object, kind: Type) -> Constant:
    if isinstance(kind, Fixed) and isinstance(value, int):
        return value * kind.step
    if isinstance(value, float):  # an infinity is beyond all doubles, and beyond all that a question may say
        return Fraction(repr(value)) if isfinite(value) else Fraction(2**1024 if value > 0 else -(2**1024))
    return value  # type: ignore[return-value]
