"""Bind UNION ALL, INTERSECT and EXCEPT of subqueries over one protected table, whose rows carry the unit."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.catalog.protection import NOT_THE_SAME_PEOPLE, noun_of, rows_of_several
from lapwing.catalog.table import Table
from lapwing.errors import RefusalCause
from lapwing.query.expressions import logic
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.conversion import alike
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.rows import TableReference
from lapwing.query.from_clause.scope import Input, PublicInput, Scope
from lapwing.query.relations.fresh_columns import fresh
from lapwing.query.relations.relation import FilteredRows, table_of
from lapwing.query.relations.set_operations import Part, Union


def parts_of(node: exp.SetOperation, scope: Scope) -> tuple[exp.Expression, exp.Expression]:
    """Return the subqueries that a set operation unites."""
    if not isinstance(node, exp.Union) and not node.args.get("distinct"):
        what = type(node).__name__.upper()
        raise scope.nowhere.refusal(
            node, RefusalCause.SET_OPERATION_NOT_SUPPORTED, f"{what} ALL is not supported", f"Write {what}."
        )
    scope.nowhere.only(node, "this", "expression", "distinct", "with_")
    return node.this, node.expression


def units_alike(parts: Sequence[Input | PublicInput]) -> Sequence[Input | PublicInput]:
    """Return parts that show the unit in one way: without its declared column, where GROUP BY left one without it."""
    named = [part.sources[0] for part in parts if isinstance(part, Input) and part.sources[0].unit is not None]
    if all(source.unit in source.columns for source in named):
        return parts
    return [
        replace(part, sources=(_without_key(part.sources[0]),)) if isinstance(part, Input) else part for part in parts
    ]


def _without_key(source: TableReference) -> TableReference:
    return replace(source, columns={name: value for name, value in source.columns.items() if name != source.unit})


def aligned(node: exp.Expression, parts: Sequence[Input | PublicInput], scope: Scope) -> tuple[Input, ...]:
    """Return the two sides of INTERSECT or EXCEPT, whose columns have one type; both show the unit, in one place."""
    inputs = tuple(part for part in parts if isinstance(part, Input))
    what = type(node).__name__.upper()
    if len(inputs) < len(parts):
        reason, remedy = (
            f"{what} does not compare protected rows with public ones",
            "Write WHERE x IN (SELECT x FROM …).",
        )
        raise scope.nowhere.refusal(node, RefusalCause.MIXES_UNITS, reason, remedy)
    if any(part.sources[0].unit is None for part in inputs):
        tables = tables_of_all(inputs)
        reason, noun = f"{what} here would compare {rows_of_several(tables)}", noun_of(tables)
        remedy = f"Add {noun} to the SELECT list of both sides." if noun != "row" else "Write conditions in WHERE."
        raise scope.nowhere.refusal(node, RefusalCause.MIXES_UNITS, reason, remedy)
    sources = [part.sources[0] for part in inputs]
    rows = _column_by_column(node, f"The sides of {what}", inputs, scope)
    return tuple(
        replace(part, sources=(replace(source, columns=dict(zip(sources[0].columns, column, strict=True))),))
        for part, source, column in zip(inputs, sources, zip(*rows, strict=True) if rows else [(), ()], strict=True)
    )


def tables_of_all(inputs: Sequence[Input]) -> tuple[Table, ...]:
    """Return the protected tables that subqueries begin with."""
    return tuple(table_of(part.selection.relation) for part in inputs)


def _column_by_column(
    node: exp.Expression, what: str, inputs: Sequence[Input], scope: Scope
) -> list[tuple[Expression, ...]]:
    """Return the columns of several subqueries beside each other, each brought to one type.

    Raises:
        QueryRefused: If they have different columns, or the privacy unit in different places.
    """
    shown = [list(part.sources[0].columns.values()) for part in inputs]
    units = {part.sources[0].unit is None for part in inputs}
    places = {part.unit_place for part in inputs if part.unit_place is not None}
    if len({len(columns) for columns in shown}) > 1 or len(units) > 1 or len(places) > 1:
        noun = noun_of(tables_of_all(inputs))
        reason = f"{what} have different columns" + (f", or {noun} in different places" if noun != "row" else "")
        raise scope.nowhere.refusal(
            node, RefusalCause.SET_OPERATION_MISMATCH, reason, "List the same columns in the same order."
        )
    with scope.nowhere.pointing(node):
        return [reading_alike(column) for column in zip(*shown, strict=True)]


def reading_alike(values: Sequence[Expression]) -> tuple[Expression, ...]:
    """Bring values to one type, and what they are as they are read to one too, where any of them differs there."""
    together = alike(values)
    if all(value.read is None for value in values):
        return together
    pairs = zip(together, alike(list(map(as_read, values))), strict=True)
    return tuple(value if isinstance(value, Literal) else replace(value, read=read) for value, read in pairs)


def hull_of(column: ColumnReference, values: Sequence[Expression]) -> tuple[ColumnReference, ColumnReference | None]:
    """Return a column whose values are any of several, and what it is as they are read, where that differs."""
    if all(value.read is None for value in values):
        return column, None
    kinds = [value.read for value in values if isinstance(value, ColumnReference) and value.type == column.type]
    passed = [kind for kind in kinds if isinstance(kind, ColumnReference)]
    alone = len(passed) == len(values)
    read = ColumnReference(
        name=f"{column.name} as read",
        type=logic.hull(list(map(as_read, values))),
        cleaned=column,
        decimal=alone and all(kind.decimal for kind in passed),
        whole=alone and all(kind.whole for kind in passed),
    )
    return replace(column, read=read), read


def united(node: exp.Expression, parts: Sequence[Input | PublicInput], name: str, scope: Scope) -> Input:
    """Unite rows: column by column in their order, the unit with the unit."""
    inputs = [part for part in parts if isinstance(part, Input)]
    if len(inputs) < len(parts):
        reason = "UNION ALL does not unite protected rows with public ones"
        raise scope.nowhere.refusal(node, RefusalCause.DIFFERENT_UNITS, reason, "Ask for each by itself.")
    kinds = {table.units: table for table in tables_of_all(inputs)}
    if len(kinds) > 1:
        names = " and ".join(table.name for table in kinds.values())
        reason = f"UNION ALL does not unite {names}, because {NOT_THE_SAME_PEOPLE}"
        raise scope.nowhere.refusal(node, RefusalCause.DIFFERENT_UNITS, reason, "Ask for each by itself.")
    first = inputs[0].sources[0]
    rows = _column_by_column(node, "The parts of UNION ALL", inputs, scope)
    with scope.nowhere.pointing(node):
        types = [logic.hull(column) for column in rows]
    every = [*rows, *(tuple(map(as_read, values)) for values in rows if any(value.read for value in values))]
    flat = _flat([Part(source=part.selection, expressions=tuple(c[i] for c in every)) for i, part in enumerate(inputs)])
    named = fresh("u", types, *(part.source.relation for part in flat))
    pairs = [hull_of(column, values) for column, values in zip(named, rows, strict=True)]
    columns, read = [column for column, _ in pairs], [column for _, column in pairs if column is not None]
    relation = Union(parts=tuple(sorted(flat, key=str)), columns=(*columns, *read))
    source = TableReference(name=name, columns=dict(zip(first.columns, columns, strict=True)), unit=first.unit)
    return Input(selection=FilteredRows(relation=relation), sources=(source,), unit_place=inputs[0].unit_place)


def _flat(parts: Sequence[Part]) -> list[Part]:
    """Take the parts of a union that is a part itself, if all of its rows and columns are taken as they are."""
    flat: list[Part] = []
    for part in parts:
        relation = part.source.relation
        if isinstance(relation, Union) and part.source.where is None and part.expressions == relation.columns:
            flat += relation.parts
        else:
            flat.append(part)
    return flat
