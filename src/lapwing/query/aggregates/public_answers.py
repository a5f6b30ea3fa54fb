"""Public rows beside answers: a SELECT over the answers to questions may join them to a table that everybody may see.

    WITH a AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)
    SELECT site, region, n FROM a JOIN sites USING (site) ORDER BY n DESC

What is joined to released rows is public, so that it stays post-processing: no row of a protected table is touched, and
nothing is charged for it. The rows are written into the plan as constants; should the table change, the question is
another one. They are the different combinations of the columns that the question names, so they must be all different
in these, and none NULL, for the join to be what SQL says.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.aggregates.scope import shape_of
from lapwing.query.composition import Composition
from lapwing.query.derivation.derived import KeyValue, Output
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.from_clause.scope import PublicInput, Scope
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.measures import Key
from lapwing.query.plan import Plan, Question
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


def public_answer(found: PublicInput, named: Collection[str] | None, node: exp.Expression, within: Scope) -> Plan:
    """Return the plan that shows public rows, and asks nothing.

    Args: named: the columns that the question names, in lower case; None if it may show all.
    Raises: QueryRefused where the columns that are named do not tell rows apart, or rows are too many.
    """
    columns = {name: value for name, value in found.source.columns.items() if named is None or name.casefold() in named}
    table, shown, rows = found.rows.table, tuple(columns.values()), found.rows
    everywhere = replace(rows, where=None, distinct=False)
    all_rows = within.facts.combinations(_of(everywhere, shown), MOST_PUBLIC) if columns else ()
    if all_rows is None:
        reason = f"{table.name} has more than {MOST_PUBLIC:,} rows, and is joined to answers"
        raise within.nowhere.refusal(node, reason, "Join it to the rows, before they are aggregated.")
    if not columns or len(all_rows) < within.facts.multiplicity(table, ()):
        reason = f"{table.name} has NULL in a column that the question names, or rows that are the same in all of these"
        raise within.nowhere.refusal(node, reason, "Name columns that tell its rows apart, or join it to rows inside.")
    kept = all_rows if rows == everywhere else within.facts.combinations(_of(rows, shown), MOST_PUBLIC) or ()
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


def _of(rows: PublicRows, shown: tuple[Expression, ...]) -> Combinations:
    joined = JoinedRows(rows=rows, variables=rows.columns)
    return Combinations(tables=(joined,), lists=(), conditions=(), shown=shown)
