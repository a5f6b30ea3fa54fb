"""The rows that a table has for every question, as SQL: cleaned value by value, then bounded unit by unit.

cleaned  every declared column, value by value: NaN counts as NULL, numbers are clamped to their bounds, rounded half
         up to whole steps and clamped again. What a row becomes depends on that row alone, and nothing raises.
kept     at most K rows of each unit, the first by a hash of the unit and the row's declared values, ties broken by the
         values themselves. Rows that tie in everything are equal in everything that can be asked. So which rows of a
         unit are kept, as a bag of values, is a function of that unit's own rows: no position, no other unit takes
         part. Rows without a unit are dropped.

In a table in parts a unit's part is the least declared value among its own cleaned rows, in the catalog's order; its
other rows are dropped before any are kept, and so is a unit without a declared value. That too is a function of the
unit's own rows.

In a linked table a row's unit is that of the row that its key leads to. So its cleaned rows are joined to the kept rows
of the parent, by equality of the cleaned key columns, which NULL never meets; a row that meets none is dropped. Then as
many of each unit are kept as in any table. What is kept of a unit is a function of its own rows in the parent, kept in
their turn, and of the rows of the linked table whose keys lead to those: by induction along the links, of what belongs
to the unit (`catalog.table`). That keys are unique in the parent is a premise, which the engine checks for the curator
when data are accepted. If it is broken all the same, a row is there once for every row of the parent that it meets,
each time with the unit of that row. Then too the rows of a unit follow from its own rows in the parent and from the
linked table, which is held fixed, and they are bounded like any: no unit touches what is kept of another.

Every question stands on `kept`, and `kept` may be stored: it is the same relation whenever, and in however many passes,
it is selected. For a row's cleaned values depend on nothing but the row, and its hash on these and its unit. The order
within a unit is total but for rows that are equal in everything that can be asked, so the first K are one bag of rows,
whatever the order in which rows arrive, the threads and the memory. A join is of bags, so that the rows that a linked
table's are taken from are one bag if the parent's kept rows are. A pass takes or leaves whole units, by the unit's
value alone: in the root, or where rows are stored; and linked rows are of the units of their parents. So a table's rows
of all passes together are those of one, if all layers of a pass take the same units. For this the unit's value must be
of one type in all tables that share units (`unit_value`): an engine may hash an integer of another width to another
number. What this takes for granted is that the data, this SQL and the engine are the same, and that the order of stored
rows means nothing: a question may only ask for what is a function of the bag.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast, final

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.table import Link
from lapwing.engines.duckdb.literals import clamp, identifier, text, whole
from lapwing.query.expressions.expression import column_type
from lapwing.query.expressions.types import Fixed, double, print_in_steps

INTEGER_TYPES = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an engine finds a table: a relation to select from, and the engine's own type of each column."""

    relation: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One of `of` disjoint parts of the units."""

    index: int = 0
    of: int = 1


WHOLE = Pass()


def layer(table: Table, source: Source, part: Pass = WHOLE) -> str:
    """Return the common table expression of the rows of a table that exist, of a part of the units.

    That of a linked table stands on its parent's, which comes before it and takes the same part, in whatever way.
    """
    rows = f"WITH cleaned AS ({cleaned(table, source, part)}) {kept(table, unit_name(table))}"
    return f"{kept_name(table)} AS ({rows})"


def stored(table: Table, relation: str, part: Pass = WHOLE, within: Pass = WHOLE) -> str:
    """Return the same layer where a relation holds the rows that `kept_rows` selects.

    Args: part: the units that `layer` takes. within: of these, a part that is divided otherwise, so that either can be
        divided by the other.
    """
    unit = unit_name(table)
    wanted = [condition for condition in (_of_part([unit], part), _of_part([unit, "'stored'"], within)) if condition]
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"{kept_name(table)} AS (SELECT * FROM {relation}{where})"


def kept_rows(
    table: Table, source: Source, part: Pass, parents: Sequence[str] = (), types: Mapping[str, str] | None = None
) -> str:
    """Return a query whose rows are those of `kept`, a unit's beside each other.

    Args: parents: the layers beneath that of a linked table, of the same part. types: in which columns are wanted.
    """
    order = "" if table.unit_is_row else f" ORDER BY {unit_name(table)}"
    wanted = {identifier(name): kind for name, kind in (types or {}).items()}
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in wanted.items())
    shown = f"* REPLACE ({casts})" if casts else "*"
    return f"WITH {', '.join([*parents, layer(table, source, part)])} SELECT {shown} FROM {kept_name(table)}{order}"


def _of_part(values: Sequence[str], part: Pass) -> str | None:
    """Return the condition that a unit is of a part."""
    return f"hash({', '.join(values)}) % {part.of} = {part.index}" if part.of > 1 else None


# ---- the layers of several tables -----------------------------------------------------------------------------------

# The rows of a linked table are taken from those of its parent, and so on up to a table with a unit of its own: so a
# question about one table may stand on several files. Where a table's rows are stored, nothing above it is needed.

Relations = Mapping[str, str]
"""Relations that hold the rows of tables that exist, by the table's name."""


def needed(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return these tables, and what their rows are taken from unless they are stored: parents first, each once."""
    found: dict[str, Table] = {}
    for table in tables:
        if table.name not in relations and table.link is not None:
            found |= {above.name: above for above in needed((table.link.parent,), relations)}
        found.setdefault(table.name, table)
    return list(found.values())


def from_files(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return those of the tables that are needed which have to be cleaned and bounded."""
    return [table for table in needed(tables, relations) if table.name not in relations]


def passes_for(rows: Mapping[Table, int], memory: int) -> int:
    """Return how many passes keep the bounding sorts of tables with so many rows inside a memory limit, all at once."""
    size = sum(count * (24 + 16 * len(table.columns)) for table, count in rows.items() if not table.unit_is_row)
    return max(1, -(-size * 10 // (memory * 6)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Common table expressions over files as they are described when they are asked for."""

    source: Callable[[Table], Source]

    def of(self, tables: Iterable[Table], relations: Relations, part: Pass) -> list[str]:
        """Return the layers of tables, parents first, of the units of a pass."""
        return [
            stored(table, relations[table.name], part)
            if table.name in relations
            else layer(table, self.source(table), part)
            for table in tables
        ]

    def above(self, table: Table, relations: Relations, part: Pass) -> list[str]:
        """Return the layers from which the rows of a linked table are taken; none for another."""
        parents = () if table.link is None else (table.link.parent,)
        return self.of(needed(parents, relations), relations, part)

    def rows(self, table: Table, relations: Relations, part: Pass, types: Mapping[str, str] | None = None) -> str:
        """Return the query for the rows of a table that exist, made from its file."""
        return kept_rows(table, self.source(table), part, self.above(table, relations, part), types)


def held(tables: Iterable[Table], relations: Relations, part: Pass = WHOLE, within: Pass = WHOLE) -> list[str]:
    """Return the layers of tables whose rows are all stored, of the units of a pass and of a part of these."""
    return [stored(table, relations[table.name], part, within) for table in tables]


# ---- public tables, names --------------------------------------------------------------------------------------------


def public_layer(table: PublicTable, source: Source) -> str:
    """Return the common table expression of a public table's cleaned rows; its numbers have bounds (`described`)."""
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    return f"{public_name(table)} AS (SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation})"


def public_name(table: PublicTable) -> str:
    """Return the name of the layer that holds a public table's cleaned rows."""
    return identifier(f"public {table.name}")


def kept_name(table: Table) -> str:
    """Return the name of the layer that holds a protected table's rows that exist."""
    return identifier(f"kept {table.name}")


def unit_name(*tables: Table) -> str:
    """Return a name for the unit that no column of these tables has; that of one table is what its layer calls it."""
    name = "unit"
    while any(column.name.casefold() == name for table in tables for column in table.columns):
        name += "_"
    return name


# ---- cleaned rows ----------------------------------------------------------------------------------------------------


def cleaned(table: Table, source: Source, part: Pass) -> str:
    """Select every declared column, cleaned, and the unit; of a table in parts, the rows of each unit's own part.

    Of a linked table, the rows that belong to units of a part are those that lead to rows of such units.
    """
    if table.link is not None:
        return _linked(table, table.link, source)
    rows = _cleaned(table, source, part)
    if table.part_column is None:
        return rows
    name = identifier(table.part_column.name)
    listed = [_listed(table.part_column, value) for value in table.part_column.values or ()]
    ranks = " ".join(f"WHEN {value} THEN {rank}" for rank, value in enumerate(listed))
    chosen = f"SELECT * FROM ({rows}) WHERE {name} IN ({', '.join(listed)})"
    if table.unit_is_row:
        return chosen
    rank = f"CASE {name} {ranks} END"
    return f"{chosen} QUALIFY {rank} = MIN({rank}) OVER (PARTITION BY {unit_name(table)})"


def _listed(column: Declared, value: object) -> str:
    """Write a public value as it is when it is cleaned: a bounded number is a number of steps."""
    if isinstance(value, int) and column.numeric and column.bounded and column.step is not None:
        return whole(int(value / column.step))
    return _constant(value)


def _constant(value: object) -> str:
    """Write a public value of a column."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{str(value)[:26]}'"
    return text(value) if isinstance(value, str) else f"DATE '{value}'"


def _columns(table: Table, source: Source) -> list[str]:
    return [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]


def _cleaned(table: Table, source: Source, part: Pass) -> str:
    columns = _columns(table, source)
    if table.unit_is_row:
        return f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation}"
    unit = unit_value(table, source.types[table.unit_column])
    conditions = [f"{unit} IS NOT NULL", *filter(None, [_of_part([unit], part)])]
    chosen = ", ".join([f"{unit} AS {unit_name(table)}", *columns])
    return f"SELECT {chosen} FROM {source.relation} WHERE {' AND '.join(conditions)}"


def _linked(table: Table, link: Link, source: Source) -> str:
    """Join the rows of a linked table to those of its parent that are kept, and take over their units."""
    names = [identifier(column.name) for column in table.columns]
    shown = [f"theirs.{unit_name(link.parent)} AS {unit_name(table)}", *(f"ours.{name}" for name in names)]
    on = " AND ".join(f"ours.{identifier(here)} = theirs.{identifier(there)}" for here, there in link.on)
    ours = f"(SELECT {', '.join(_columns(table, source))} FROM {source.relation}) AS ours"
    return f"SELECT {', '.join(shown)} FROM {ours} JOIN {kept_name(link.parent)} AS theirs ON {on}"


def unit_value(table: Table, physical: str) -> str:
    """Return the unit's identity: equality of its value as the declared type, or of its text if it is not declared.

    Where several tables may have the same units, as `unit` says, the engine's type follows from the declared one alone.
    """
    name, declared, own = identifier(table.unit_column), table.unit_type, table.unit is None
    if declared == "integer":
        return name if own and physical in INTEGER_TYPES else f"TRY_CAST({name} AS HUGEINT)"
    if declared in ("date", "timestamp"):
        return f"TRY_CAST({name} AS {declared.upper()})"
    as_it_is = physical == "VARCHAR" or (own and physical in INTEGER_TYPES)
    return name if as_it_is else f"CAST({name} AS VARCHAR)"


def clean(column: Declared, physical: str) -> str:
    """Return the cleaned value of a declared column; where it promises not to be NULL, a NULL counts as a constant."""
    value = _clean(column, physical)
    if column.null_counts_as is None:
        return value
    numeric = column.numeric and column.bounded
    return f"COALESCE({value}, {whole(column.low) if numeric else _constant(column.null_counts_as)})"


def _clean(column: Declared, physical: str) -> str:
    name = identifier(column.name)
    match column.type:
        case "string":
            return name if physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"
        case "boolean":
            return name if physical == "BOOLEAN" else f"TRY_CAST({name} AS BOOLEAN)"
        case "date" | "timestamp":
            return _clean_temporal(column, name)
    kind = column_type(column)
    if isinstance(kind, Fixed) and kind.bounded:
        whole_numbers = physical in INTEGER_TYPES and kind.step == 1
        return _clean_whole(name, kind) if whole_numbers else _clean_fixed(name, kind, physical)
    if column.type == "integer":
        return name if physical == "BIGINT" else f"TRY_CAST({_half_up(name, physical)} AS BIGINT)"
    # Adding 0 makes −0.0, which equals 0.0 but is not the same double, 0.0.
    return f"NULLIF({_double(name, physical)} + 0.0::DOUBLE, 'nan'::DOUBLE)"


def _half_up(name: str, physical: str) -> str:
    return f"floor({_double(name, physical)} + 0.5)" if physical in {"FLOAT", "DOUBLE"} else name


def _clean_whole(name: str, kind: Fixed) -> str:
    """Clamp an integer. A NULL meets no condition and stays NULL."""
    return (
        f"CASE WHEN {name} <= {kind.low} THEN {whole(kind.low)} WHEN {name} >= {kind.high} THEN {whole(kind.high)} "
        f"ELSE TRY_CAST({name} AS BIGINT) END"
    )


def _clean_fixed(name: str, kind: Fixed, physical: str) -> str:
    """Clamp, round half up to whole steps, clamp again: the double nearest to a bound may lie beyond it."""
    value = _double(name, physical)
    low, high = (cast(int, end) for end in (kind.low, kind.high))
    steps = f"TRY_CAST(floor({print_in_steps(value, kind.step)} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"WHEN {value} <= {double(low * kind.step)} THEN {whole(low)} "
        f"WHEN {value} >= {double(high * kind.step)} THEN {whole(high)} ELSE {clamp(steps, low, high)} END"
    )


def _clean_temporal(column: Declared, name: str) -> str:
    kind = column.type.upper()
    value = f"TRY_CAST({name} AS {kind})"
    if column.lower is None or column.upper is None:
        return value
    low, high = (f"{kind} '{str(end)[:26]}'" for end in (column.lower, column.upper))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


def _double(name: str, physical: str) -> str:
    return name if physical == "DOUBLE" else f"TRY_CAST({name} AS DOUBLE)"


def kept(table: Table, unit: str) -> str:
    """Keep the first rows of each unit in the order of a salted hash of the unit and their values.

    The unit is hashed too, lest the same values come first in every unit, and be all that is seen of them.
    """
    if table.unit_is_row:
        return "SELECT * FROM cleaned"
    values = [identifier(column.name) for column in table.columns]
    order = ", ".join([f"hash({', '.join([text(table.name), unit, *values])})", *values])
    return (
        f"SELECT * FROM cleaned QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY {order}) "
        f"<= {table.max_rows_per_unit}"
    )
