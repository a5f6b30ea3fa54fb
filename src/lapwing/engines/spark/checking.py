"""What is looked for in data before they are accepted: values that are not of their type, keys that repeat."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lapwing.catalog.model import Column, Table
from lapwing.engines.spark.cleaned import INTEGERS, missing, read, unit_value
from lapwing.engines.spark.literals import identifier, kept_name
from lapwing.engines.stored_values import before_rounding

Rows = list[tuple[Any, ...]]


def unfit_columns(
    table: Table, source: str, types: Mapping[str, str], rows: Callable[[str], Rows]
) -> tuple[int, list[str]]:
    """Read all of a table; return its number of rows, and the columns with values that are not of their type."""
    unfit = {column.name: _unfit(column, types[column.name]) for column in table.columns}
    if table.link is None and not table.unit_is_row:
        name, unit = table.unit_column, unit_value(table, types[table.unit_column])
        there, own = f"{identifier(name)} IS NOT NULL", table.column(name)
        there += f" AND NOT {missing(own, types[name])}" if own is not None and own.reading is not None else ""
        unfit[name] = f"({unfit.get(name, 'FALSE')} OR ({there} AND {unit} IS NULL))"
    # That every value is hashed makes Spark read columns too in which nothing can be wrong.
    everything = ", ".join(map(identifier, unfit)) or "0"
    any_ = [f"COALESCE(bool_or({condition}), FALSE)" for condition in unfit.values()]
    ((count, _, *found),) = rows(
        f"SELECT {', '.join(['COUNT(*)', f'bit_xor(xxhash64({everything}))', *any_])} FROM {source}"
    )
    return int(count), [name for name, is_unfit in zip(unfit, found, strict=True) if is_unfit]


def _unfit(column: Column, physical: str) -> str:
    """Return the condition that a value is there and is not what the declared type says."""
    name = identifier(column.name)
    if column.reading is not None:
        value = read(column, physical)
        there = f"{name} IS NOT NULL AND NOT {missing(column, physical)}"
        there += f" AND NOT isnan({name})" if physical in ("FLOAT", "DOUBLE") else ""
        text = column.type == "string" and physical == "STRING"
        unread = f"NOT is_valid_utf8({value})" if text else f"{value} IS NULL"
        if column.type != "integer" or physical in INTEGERS:
            return f"({there} AND {unread})"
        number = read(before_rounding(column), physical)
        return f"({there} AND ({unread} OR COALESCE({number} <> rint({number}), FALSE)))"
    if column.type == "string" and physical == "STRING":
        return f"({name} IS NOT NULL AND NOT is_valid_utf8({name}))"
    if column.type == "integer" and physical not in INTEGERS:
        value = f"CAST({name} AS DOUBLE)"
        return f"({name} IS NOT NULL AND NOT isnan({value}) AND {value} <> rint({value}))"
    if column.type == "integer" and not column.bounded:
        return f"({name} IS NOT NULL AND TRY_CAST({name} AS BIGINT) IS NULL)"
    return "FALSE"


def repeated_keys(table: Table, key: Sequence[str], layers: str, rows: Callable[[str], Rows]) -> bool:
    """Tell whether two rows that exist, and have the whole key, share it."""
    names = ", ".join(map(identifier, key))
    present = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in key)
    counted = f"SELECT COUNT(*) AS n FROM {kept_name(table)} WHERE {present} GROUP BY {names}"
    return bool(rows(f"WITH {layers} SELECT 1 FROM ({counted}) WHERE n > 1 LIMIT 1"))
