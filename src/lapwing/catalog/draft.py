"""A first draft of a catalog from a data file: the names and types that it declares, and what the curator adds.

Bounds, values and the budget never come from the data, nor do the types of a CSV file: the caller gives them, or they
are left out and the questions that need them are refused. No row is read (`file_columns`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn, cast, final
from unicodedata import combining, normalize

from lapwing.catalog import spelling
from lapwing.catalog.column_checks import NUMERIC
from lapwing.catalog.condition import Condition, check_from_source, whole
from lapwing.catalog.file_columns import FileColumn, read_columns, type_of
from lapwing.catalog.large_delta import delta_warnings
from lapwing.catalog.model import ROW, SPARK, Budget, Catalog, Table
from lapwing.catalog.patterns import folder_of
from lapwing.catalog.place import refuse, within
from lapwing.catalog.public import PublicTable
from lapwing.catalog.reading import ColumnReading, reading_of
from lapwing.catalog.source_address import name_of
from lapwing.catalog.source_names import is_text, stem
from lapwing.catalog.table import Bound, Column, Value
from lapwing.catalog.text_files import TextFormat, like_values
from lapwing.catalog.toml import default_measure
from lapwing.errors import InvalidParameter
from lapwing.privacy.decimal_comma import without_thousands
from lapwing.privacy.measures import Number, exact

LARGEST_DELTA = Fraction(1, 10**5)

EVERY = "*"
"""Instead of a column: every one."""
Edge = Number | date | str
Wanted = Mapping[str, Sequence[object] | tuple[Edge | None, Edge | None]]
"""Of columns, what their values are to be: a list of values, or a pair of ends."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A drafted catalog, and notes on what the curator should look at."""

    catalog: Catalog
    notes: tuple[str, ...]


def draft(
    source: Path | str,
    *,
    privacy_unit: str,
    epsilon: Number,
    delta: Number = 0,
    max_rows_per_unit: int | None = None,
    rows_at_most: int | None = None,
    types: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[Edge, Edge]] | None = None,
    values: Mapping[str, Sequence[object]] | None = None,
    max_length: Mapping[str, int] | None = None,
    measure: str | None = None,
    neighbouring: str = "add_remove",
    delta_keys: Number = 0,
    people: int | None = None,
    folder: Path | None = None,
    unreadable: str | None = None,
    unreadable_columns: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
    public_tables: Sequence[PublicTable] = (),
    text: TextFormat | None = None,
    offered: Sequence[FileColumn] | None = None,
    where: Wanted | None = None,
    cluster: str | None = None,
    others: Mapping[str, str] | None = None,
    reading: Mapping[str, Mapping[str, object]] | None = None,
) -> Draft:
    """Draft a catalog of one table from the names in a source, and the types that Parquet declares.

    Args:
        source: The file, or a pattern; the table is named after it, the ledger is `<stem>.lapwing.db` beside the
            catalog. With `offered` an address, whose table both are named after.
        offered: The columns that a source behind an address has.
        where: Of its rows, those that the table has: column → a list of values, or a pair (least, greatest), of which
            one may be None.
        types: Column → type, for a CSV file, which has none: as in a catalog, or `decimal:0.01` with its step. A column
            that is not named is text.
        bounds: Column → (lower, upper); `values`: column → public keys. A text is read as the column's type.
        max_rows_per_unit: Required unless the privacy unit is "row".
        rows_at_most: How many rows there may be in all, if that is said.
        max_length: Column → the most bytes of a text, 256 unless given.
        people: A public figure of how many privacy units there are; it only judges delta and is not stored.
        folder: Where the catalog will be written; the folder of the file unless given.
        unreadable: "null" to accept values that are not of their type, as `Table.unreadable`.
        unreadable_columns: Column → "null" or "refuse", where a column differs from the table.
        left_out: Columns that the catalog is not to have; no note names them.
        public_tables: What everybody knows, as `public_draft` drafts it.
        text: How a CSV file is written; as its name says, unless given.
        cluster: The master of Spark that answers where the files are; DuckDB does here, unless given.
        others: Column → the key that stands for all texts that are not listed.
        reading: Column → how its stored values are read (`catalog.reading`), as options by name; `missing` of the
            column "*" is that of every column.

    Raises:
        CatalogError: For what contradicts itself or makes no sense.
        InvalidParameter: For what contradicts itself or makes no sense.
        DataFault: If the file is missing or unreadable.
    """
    budget = _budget(epsilon, delta, delta_keys, measure, neighbouring)
    address, source = (str(source), Path(name_of(str(source)))) if offered is not None else (None, Path(source))
    with within(f"{source.name}: "):
        columns = read_columns(source, types or {}, text) if offered is None else retyped(offered, types or {})
        _check_known("types", types or {}, columns)
        _check_known("bounds", bounds or {}, columns)
        _check_known("values", values or {}, columns)
        _check_known("max_length", max_length or {}, columns)
        _check_known("where", where or {}, columns)
        _check_known("other", others or {}, columns)
        _check_known("unreadable_columns", unreadable_columns or {}, columns)
        _check_known("reading", [name for name in reading or {} if name != EVERY], columns)
        said = {
            name: {"bounds": (bounds or {}).get(name), "values": (values or {}).get(name)}
            | {"length": (max_length or {}).get(name), "other": (others or {}).get(name)}
            | {"reading": _options(reading or {}, name), "unreadable": (unreadable_columns or {}).get(name)}
            for name in (column.name for column in columns)
        }
        table = _table(source, folder, privacy_unit, max_rows_per_unit, columns, said)
        conditions = [
            _condition(column.name, column.type or "", (where or {})[column.name])
            for column in columns
            if column.name in (where or {})
        ]
        table = replace(
            table,
            source=address or table.source,
            unreadable=unreadable,
            rows_at_most=rows_at_most,
            text=text,
            where=tuple(conditions),
            columns=tuple(column for column in table.columns if column.name not in left_out),
        )
        check_from_source(table)
    catalog = Catalog(
        name=table.name,
        engine="duckdb" if cluster is None else SPARK,
        cluster=cluster,
        ledger=f"sqlite:{stem(source)}.lapwing.db",
        budget=budget,
        tables=(table,),
        public_tables=tuple(public_tables),
        folder=(folder or folder_of(source)).absolute(),
    )
    kept = [column for column in columns if column.name not in left_out]
    notes = (*_table_notes(table, kept, budget.delta_keys), *_delta_notes(budget.delta, people))
    return Draft(catalog=catalog, notes=notes)


def retyped(offered: Sequence[FileColumn], types: Mapping[str, str]) -> tuple[FileColumn, ...]:
    """Return the columns that a source has, with the types that the curator gives some of them."""

    def typed(column: FileColumn) -> FileColumn:
        if column.name not in types or column.type is None:
            return column
        with within(f"types.{spelling.key(column.name)}: "):
            kind, step = type_of(types[column.name])
        return replace(column, type=kind, step=step)

    return tuple(typed(column) for column in offered)


def table_name(source: Path) -> str:
    """Return the name of a file's table: the file's own, with underscores for what a bare SQL name cannot hold."""
    plain = "".join(letter for letter in normalize("NFKD", stem(source).replace("ß", "ss")) if not combining(letter))
    name = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_") or "data"
    return f"t_{name}" if name[0].isdigit() else name


def _budget(epsilon: Number, delta: Number, delta_keys: Number, measure: str | None, neighbouring: str) -> Budget:
    exact_delta = exact(delta, "delta")
    return Budget(
        epsilon=exact(epsilon, "epsilon"),
        delta=exact_delta,
        delta_keys=exact(delta_keys, "delta_keys"),
        measure=default_measure(exact_delta) if measure is None else measure,
        neighbouring=neighbouring,
    )


def _table(
    source: Path,
    folder: Path | None,
    unit: str,
    rows: int | None,
    file_columns: Sequence[FileColumn],
    said: Mapping[str, Mapping[str, Any]],
) -> Table:
    name = table_name(source)
    place = f"tables.{spelling.key(name)}"
    _check_unit(f"{place}.privacy_unit", unit, file_columns)
    if rows is None and unit != ROW:
        reason = f"missing; write the most rows that one {unit} may have, from what the table is about, like 10"
        refuse(f"{place}.max_rows_per_unit", reason)
    with within(f"{place}."):
        columns = tuple(
            drafted_column(column, column.type, **said[column.name])
            for column in file_columns
            if column.type is not None
        )
    return Table(
        name=name,
        source=source_from(folder, source),
        privacy_unit=unit,
        max_rows_per_unit=1 if rows is None else rows,
        columns=columns,
    )


def source_from(folder: Path | None, source: Path) -> str:
    """Return the path of the source as the catalog holds it: relative if it is below the catalog's folder."""
    if folder is None:
        return source.relative_to(folder_of(source)).as_posix()
    base, file = folder.resolve(), source.absolute()
    if file.parent.resolve().is_relative_to(base):
        return (file.parent.resolve() / file.name).relative_to(base).as_posix()
    return str(file)


def _check_unit(place: str, unit: str, columns: Sequence[FileColumn]) -> None:
    if unit == ROW:
        return
    column = next((column for column in columns if column.name == unit), None)
    if column is None:
        refuse(place, f'{spelling.text(unit)} is not a column; write one of {_names(columns)}, or "row"')
    if column.type is None:
        refuse(
            place, f"{spelling.text(unit)} is stored as {column.stored_as}; store identifiers as integers or strings"
        )


def _check_known(parameter: str, names: Iterable[str], columns: Sequence[FileColumn]) -> None:
    types = {column.name: column.type for column in columns}
    for name in names:
        if name not in types:
            refuse(parameter, f"there is no column {spelling.text(name)}; the columns are {_names(columns)}")
        if types[name] is None:
            refuse(parameter, f"the column {spelling.text(name)} has a type that a catalog cannot hold; leave it out")


def _names(columns: Sequence[FileColumn]) -> str:
    names = [spelling.key(column.name) for column in columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def drafted_column(
    column: FileColumn,
    kind: str,
    bounds: tuple[Edge, Edge] | None = None,
    values: Sequence[object] | None = None,
    length: int | None = None,
    other: str | None = None,
    reading: Mapping[str, Any] | None = None,
    unreadable: str | None = None,
) -> Column:
    """Return a column of a catalog, of a type that it can have.

    Args:
        reading: Options of `catalog.reading`, by name.

    Raises:
        CatalogError: For bounds, values or a length that are none of this type.
        InvalidParameter: For bounds, values or a length that are none of this type.
    """
    name = column.name
    if column.untyped and bounds is not None:
        _refuse_untyped(name, "which has no bounds; give")
    if kind == "decimal" and column.step is None and bounds is not None:
        refuse(f"columns.{spelling.key(name)}.step", "missing; give it with the type, like decimal:0.01")
    lower, upper = (None, None) if bounds is None else _edges(name, kind, bounds)
    listed = None if values is None else _listed(name, kind, values)
    if column.untyped and not all(isinstance(value, str) for value in listed or ()):
        _refuse_untyped(name, "and its values must be texts; write them so, or give")
    return Column(
        name=name,
        type=kind,
        lower=lower,
        upper=upper,
        step=column.step,
        values=listed,
        max_length=length,
        other=other,
        reading=_reading(name, kind, reading or {}),
        unreadable=unreadable,
    )


def _options(reading: Mapping[str, Mapping[str, object]], name: str) -> dict[str, object]:
    """Return what is said of how a column is read; what is missing in every column is in this one, too."""
    own, every = dict(reading.get(name, {})), reading.get(EVERY, {})
    if set(every) - {"missing"}:
        refuse(
            "reading",
            f"{spelling.text(EVERY)} stands for every column, and takes only missing; name a column for the rest",
        )
    codes = [*_codes(own.get("missing", ())), *_codes(every.get("missing", ()))]
    return {**own, "missing": codes} if codes else own


def _codes(codes: object) -> Sequence[object]:
    if isinstance(codes, str) or not isinstance(codes, Sequence):
        raise InvalidParameter(f"missing is {codes!r}; give a list, like [-99, 'NA'].")
    return codes


def _reading(name: str, kind: str, options: Mapping[str, Any]) -> ColumnReading | None:
    place = f"columns.{spelling.key(name)}"
    recode = options.get("recode")
    if recode is not None:
        if not isinstance(recode, Mapping):
            raise InvalidParameter(f"recode of {spelling.text(name)} is {recode!r}; give pairs, like {{'1': 'male'}}.")
        options = {**options, "recode": {code: _stands_for(place, kind, to) for code, to in recode.items()}}
    return reading_of(kind, place, **options)


def _stands_for(place: str, kind: str, target: object) -> object:
    """Return what a stored value stands for, which may be written as a text, as the column's type has it."""
    if isinstance(target, str) and kind != "string":
        place = f"{place}.recode"
        return _edge(place, kind, target) if kind not in ("integer", "boolean") else _listed_value(place, kind, target)
    return _listed_value(f"{place}.recode", kind, target) if kind == "string" else target


def _refuse_untyped(name: str, what: str) -> NoReturn:
    why = f"the file holds no type and none was given, so it is text, {what} its type"
    example = f"like --types {spelling.key(name)}=integer, or types={{{name!r}: 'integer'}} in Python"
    refuse(f"columns.{spelling.key(name)}", f"{why}, {example}")


def _edges(name: str, kind: str, bounds: object) -> tuple[Bound, Bound]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter(f"The bounds of {spelling.text(name)} are {bounds!r}; give a pair (lower, upper).")
    lower, upper = (
        _edge(f"columns.{spelling.key(name)}.{key}", kind, edge) for key, edge in zip(_KEYS, bounds, strict=True)
    )
    return lower, upper


_KEYS = ("lower", "upper")


def _edge(place: str, kind: str, edge: Edge) -> Bound:
    if kind in NUMERIC:
        return exact(_decimal(place, edge) if isinstance(edge, str) else cast(Number, edge), place)
    if isinstance(edge, str) and kind in ("date", "timestamp"):
        edge = _date(place, kind, edge)
    if isinstance(edge, datetime):
        with within(f"{place}: "):
            return spelling.in_utc(edge)
    return cast(Bound, edge)  # Column refuses what is not of its type


def _decimal(place: str, text: str) -> Decimal:
    try:
        return Decimal(without_thousands(text))
    except InvalidOperation:
        refuse(place, f"{spelling.text(text)} is not a number; write one like 5000 or 0.5")
    except InvalidParameter as ambiguous:
        refuse(place, str(ambiguous))


def _date(place: str, kind: str, text: str) -> date:
    try:
        return date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)
    except ValueError:
        refuse(place, f"{spelling.text(text)} is not a {kind}; write one like 2024-12-31")


def _condition(name: str, kind: str, said: Sequence[object]) -> Condition:
    """Return a condition that a curator gives: a list, or a tuple of two ends."""
    if not isinstance(said, tuple):
        return Condition(column=name, values=_listed(name, kind, said))
    if len(said) != 2:
        raise InvalidParameter(f"The condition on {spelling.text(name)} is {said!r}; give a list, or a pair of ends.")
    ends = [None if end is None else _edge(f"where.{spelling.key(name)}", kind, cast(Edge, end)) for end in said]
    lower, upper = (whole(end) if isinstance(end, Fraction) else end for end in ends)
    return Condition(column=name, lower=lower, upper=upper)


def _listed(name: str, kind: str, values: Sequence[object]) -> tuple[Value, ...]:
    if isinstance(values, str):
        raise InvalidParameter(f"The values of {spelling.text(name)} are one text; give a list of values.")
    place = f"columns.{spelling.key(name)}.values"
    return tuple(cast(Value, _listed_value(place, kind, value)) for value in values)  # Column refuses wrong types


def _listed_value(place: str, kind: str, value: object) -> object:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if not isinstance(value, str) or kind == "string":
        return str(value) if isinstance(value, str) else value
    if kind == "date":
        return _date(place, kind, value)
    if kind == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind == "integer" and re.fullmatch(r"[+-]?[0-9]{1,40}", value):
        return int(value)
    return value


def _table_notes(table: Table, columns: Sequence[FileColumn], delta_keys: Fraction) -> Iterable[str]:
    if is_text(Path(table.source)) and (odd := like_values([column.name for column in columns])):
        yield (
            f"The first line has {odd}, like a row. A CSV file begins with the names of its columns, which are "
            f"public. If the line is a row, put a line of names before it and start again."
        )
    left_out = [f"{_in_list(column.name)} ({column.stored_as})" for column in columns if column.type is None]
    if left_out:
        yield f"Left out, because catalogs do not have their type: {', '.join(left_out)}."
    untyped = [_in_list(column.name) for column in columns if column.untyped]
    if untyped:
        yield f"Columns read as text, because the file holds no types and you gave none: {', '.join(untyped)}."
    asked = [column for column in table.columns if column.name != table.privacy_unit]
    unbounded = [_in_list(column.name) for column in asked if column.numeric and not column.bounded]
    if unbounded:
        yield f"Without bounds, so not available for SUM and AVG: {', '.join(unbounded)}."
    unlisted = [_in_list(column.name) for column in asked if column.type == "string" and column.values is None]
    if unlisted and not delta_keys:
        yield (
            "Without listed values, so GROUP BY cannot use them unless part of delta is set aside for that "
            f"(delta_keys): {', '.join(unlisted)}."
        )


def _in_list(name: str) -> str:
    """Return a column's name for a list in a sentence: in quotes only where it would not be seen to be one name."""
    return name if name.isprintable() and name.strip() and "," not in name else spelling.text(name)


def _delta_notes(delta: Fraction, people: int | None) -> Iterable[str]:
    if people is not None and (type(people) is not int or people < 1):
        raise InvalidParameter(f"people is {people!r}; give a public figure, an integer of 1 or more, or leave it out.")
    warnings = delta_warnings(delta, (people,))
    yield from warnings
    if not warnings and people is None and delta > LARGEST_DELTA:
        yield f"δ = {spelling.number(delta)} is large; choose it well below one in the number of people."
