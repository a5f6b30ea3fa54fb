"""Combinations of public values, as SQL over public tables and lists: printed as questions are."""

from collections.abc import Callable

from lapwing.catalog.public import PublicTable
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.expressions import expression
from lapwing.engines.duckdb.literals import engine_type, identifier, whole
from lapwing.engines.duckdb.relations import public_layer, public_name
from lapwing.query.expressions.expression import Constant, Expression, Literal
from lapwing.query.expressions.types import Fixed, Type
from lapwing.query.relations.public_rows import Combinations, JoinedRows, ListedValues


def combinations(wanted: Combinations, located: Callable[[PublicTable], tuple[PublicTable, Location]]) -> str:
    """Return the query for combinations of values, which `constants` reads.

    Args:
        located: Says where a table is, and which bounds its numbers have.
    """
    tables = {table.rows.table.name: located(table.rows.table) for table in wanted.tables}
    layers = [public_layer(*table) for table in tables.values()]
    begin = f"WITH {', '.join(layers)} " if layers else ""
    shown = [f"{expression(value)} AS k{place}" for place, value in enumerate(wanted.shown)]
    rows = " ".join([_begun(wanted), *(_joined(table) for table in wanted.tables)])
    where = " AND ".join(f"({expression(condition)})" for condition in wanted.conditions) or "TRUE"
    showable = " AND ".join(is_showable(value.type, f"k{place}") for place, value in enumerate(wanted.shown))
    return f"{begin}SELECT DISTINCT * FROM (SELECT {', '.join(shown)} FROM {rows} WHERE {where}) WHERE {showable}"


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
    rows = f"SELECT {columns or 'NULL AS nothing'} FROM {public_name(table.rows.table)}{where}"
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
    """Return a row as plans hold values: numbers are fractions."""
    kinds = (value.type for value in shown)
    return tuple(v * k.step if isinstance(k, Fixed) else v for v, k in zip(row, kinds, strict=True))  # type: ignore[operator,misc]
