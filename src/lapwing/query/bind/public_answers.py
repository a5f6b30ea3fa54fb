"""Public rows beside answers: a SELECT over the answers to questions may join them to a table that everybody may see.

    WITH a AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)
    SELECT site, region, n FROM a JOIN sites USING (site) ORDER BY n DESC

What is joined to released rows is public, so that it stays post-processing: no row of a protected table is touched, and
nothing is charged for it. The rows are written into the plan as constants; should the table change, the question is
another one. They are found as combinations of values, none of them NULL, of the columns that the question names and, if
rows are alike in these, of others that tell them apart; where there are as many as rows, the join is what SQL says.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.scope import shape_of
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Output
from lapwing.query.expressions import logic
from lapwing.query.expressions.conversion import fixed
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.types import Fixed
from lapwing.query.from_clause.conditions import bound_condition, conjunction
from lapwing.query.from_clause.scope import PublicInput, Scope, rows_of
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.measures.measures import Key
from lapwing.query.plan.composition import Composition
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.public_rows import Combinations, JoinedRows, PublicRows
from lapwing.query.relations.relation import ProtectedRows, Selection

MOST_PUBLIC: Final = 10_000
"""Rows of a public table that are joined to answers at most."""


def public_rows(query: exp.Expression, within: Scope) -> PublicInput | None:
    """Return the public rows that a query over public tables gives; None if it is none."""
    try:
        found = unnamed(query, within)
    except QueryRefused:
        return None
    return found if isinstance(found, PublicInput) else None


def named_in(select: exp.Select) -> Collection[str] | None:
    """Return the names that a SELECT reads of what stands in its FROM, in lower case; None if it may read all."""
    if any(column.is_star for column in select.expressions):
        return None
    joins = select.args.get("joins") or ()
    clauses = [select.args.get(name) for name in ("where", "group", "having", "qualify", "order", "windows")]
    nodes = [*select.expressions, *clauses, *(join.args.get("on") for join in joins)]
    flat = [node for one in nodes for node in (one if isinstance(one, list) else [one]) if node is not None]
    columns = [column for node in flat for column in node.find_all(exp.Column)]
    return {
        name.name.casefold()
        for name in [*columns, *(using for join in joins for using in join.args.get("using") or ())]
    }


def public_answer(
    found: PublicInput,
    named: Collection[str] | None,
    node: exp.Expression,
    within: Scope,
    conditions: Sequence[exp.Expression] = (),
) -> Plan:
    """Return the plan that shows public rows, and asks nothing.

    Args:
        named: The columns that the question names, in lower case; None if it may show all.
        conditions: What the question says of these rows alone, without which a row is nowhere in it; they are asked
            where rows are many.

    Raises:
        QueryRefused: Where a column that is named has no value, rows cannot be told apart, or are too many.
    """
    columns = {name: value for name, value in found.source.columns.items() if named is None or name.casefold() in named}
    rows, shown = found.rows, tuple(columns.values())
    every = (*shown, *_apart(rows, shown, within))
    kept = within.facts.combinations(_of(rows, every), MOST_PUBLIC) if columns else ()
    if kept is None and conditions:
        rows = _chosen(found, conditions, within)
        kept = within.facts.combinations(_of(rows, every), MOST_PUBLIC)
    if kept is None:
        reason = f"{rows.table.name} has more than {MOST_PUBLIC:,} rows, and is joined to results"
        raise within.nowhere.refusal(
            node, RefusalCause.PUBLIC_ROWS_NOT_DISTINCT, reason, "Join it to the rows, before they are aggregated."
        )
    if not columns or not _are_all(len(kept), rows, every, within):
        reason = f"{rows.table.name} has NULL in a column that the question names, or rows that nothing tells apart"
        raise within.nowhere.refusal(
            node,
            RefusalCause.PUBLIC_ROWS_NOT_DISTINCT,
            reason,
            "Name columns that tell its rows apart, or join it to rows inside.",
        )
    keys = tuple(
        Key(expression=ColumnReference(name=name, type=value.type), values=tuple(row[place] for row in kept))
        for place, (name, value) in enumerate(columns.items())
    )
    outputs = tuple(
        Output(name=name, value=KeyValue(key=key, shape=shape_of(key.expression.type)))
        for name, key in zip(columns, keys, strict=True)
    )
    nothing = Question(
        selection=Selection(relation=ProtectedRows(table=within.catalog.tables[0])), keys=(), measures=()
    )
    composition = Composition(sources=(), joins=(), public=keys)
    return Plan(question=nothing, keys=(), outputs=outputs, composition=composition)


def _apart(rows: PublicRows, shown: tuple[Expression, ...], within: Scope) -> tuple[Expression, ...]:
    """Return the columns, beside those that are shown, by which rows differ that are alike in these."""
    names = tuple(value.name for value in shown if isinstance(value, ColumnReference))
    if rows.distinct or (names and within.facts.multiplicity(rows.table, names) <= 1):
        return ()
    number = _number_of_row(rows, within)
    return tuple(column for column in rows.columns if column not in shown) if number is None else (number,)


def _number_of_row(rows: PublicRows, within: Scope) -> ColumnReference | None:
    """Return a column of whole numbers, or multiples of a step, of which every row has one of its own."""
    everywhere = replace(rows, where=None)
    one = Literal(value=Fraction(1), type=fixed(Fraction(1), 1, 1))
    for column in () if rows.distinct else rows.columns:
        if isinstance(column.type, Fixed) and within.facts.multiplicity(rows.table, (column.name,)) == 1:
            without = replace(_of(everywhere, (one,)), conditions=(logic.is_null(column),))
            if within.facts.combinations(without, 1) == ():
                return column
    return None


def _are_all(number: int, rows: PublicRows, shown: tuple[Expression, ...], within: Scope) -> bool:
    """Tell whether combinations are one for each row: no two are alike, and none has NULL or what no answer shows."""
    facts, table = within.facts, rows.table
    total = facts.multiplicity(table, ())
    if total <= MOST_PUBLIC:
        everywhere = _of(replace(rows, where=None, distinct=False), shown)
        return len(facts.combinations(everywhere, MOST_PUBLIC) or ()) == total
    one = _number_of_row(rows, within)
    return one is not None and len(facts.combinations(_of(rows, (one,)), MOST_PUBLIC) or ()) == number


def _chosen(found: PublicInput, conditions: Sequence[exp.Expression], within: Scope) -> PublicRows:
    """Return those of public rows for which conditions hold, as far as they are about these rows alone."""
    rows, names = found.rows, rows_of(found, within)
    for node in conditions:
        try:
            rows = replace(rows, where=conjunction(rows.where, bound_condition(node, names, "WHERE")))
        except QueryRefused:  # it is about others
            continue
    return rows


def _of(rows: PublicRows, shown: tuple[Expression, ...]) -> Combinations:
    joined = JoinedRows(rows=rows, variables=rows.columns)
    return Combinations(tables=(joined,), lists=(), conditions=(), shown=shown)
