"""Public rows beside answers: a SELECT over the answers to questions may join them to a table that everybody may see.

    WITH a AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)
    SELECT site, region, n FROM a JOIN sites USING (site) ORDER BY n DESC

What is joined to released rows is public, so that it stays post-processing: no row of a protected table is touched, and
nothing is charged for it. The rows are written into the plan as constants, each as often as the table has it, and NULL
stays NULL. So the join is what SQL says. Should the table change, the question is another one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.scope import shape_of
from lapwing.query.bind.public_conditions import asked_of_rows
from lapwing.query.derivation.columns import Shape
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Output
from lapwing.query.expressions.attempts import NO_PUBLIC_ROWS
from lapwing.query.expressions.conversion import fixed
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal
from lapwing.query.expressions.rows import attempted
from lapwing.query.expressions.types import Real, Type
from lapwing.query.from_clause.scope import PublicInput, Scope
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.measures.measures import Key
from lapwing.query.plan.composition import Composition
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.public_rows import Combinations, JoinedRows, PublicRows, as_stored
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.text.trees import nodes_of

MOST_PUBLIC: Final = 20_000
"""Rows of a public table that stand in a plan at most: a calendar of fifty years has as many days."""
_ONE: Final = Literal(value=Fraction(1), type=fixed(Fraction(1), 1, 1))


def public_rows(query: exp.Expression, within: Scope) -> PublicInput | None:
    """Return the public rows that a query over public tables gives; None if it is none."""
    found = attempted(NO_PUBLIC_ROWS, unnamed, query, within)
    return found if isinstance(found, PublicInput) else None


def named_in(select: exp.Select) -> Collection[str] | None:
    """Return the names that a SELECT reads of what stands in its FROM, in lower case; None if it may read all."""
    if any(column.is_star for column in select.expressions):
        return None
    joins = select.args.get("joins") or ()
    clauses = [select.args.get(name) for name in ("where", "group", "having", "qualify", "order", "windows")]
    nodes = [*select.expressions, *clauses, *(join.args.get("on") for join in joins)]
    flat = [node for one in nodes for node in (one if isinstance(one, list) else [one]) if node is not None]
    columns = [column for node in flat for column in nodes_of(node, exp.Column)]
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
        QueryRefused: Where rows are too many, or hold what no answer shows.
    """
    columns = {name: value for name, value in found.source.columns.items() if named is None or name.casefold() in named}
    floats = as_stored(found.rows.table)
    columns = {name: _read(value, floats) for name, value in columns.items()}
    shown: tuple[Expression, ...] = tuple(columns.values())
    if not shown:  # it only counts them
        columns = {"rows": _ONE}
        shown = (_ONE,)
    rows = within.facts.rows(_of(found.rows, shown, floats), MOST_PUBLIC)
    if rows is None and conditions:
        ((chosen,), _) = asked_of_rows([found], conditions, within)
        rows = within.facts.rows(_of(chosen.rows, shown, floats), MOST_PUBLIC)
    if rows is None:
        reason = f"{found.rows.table.name} has more than {MOST_PUBLIC:,} rows here, or a value that no result can show"
        raise within.nowhere.refusal(
            node,
            RefusalCause.PUBLIC_ROWS_NOT_DISTINCT,
            reason,
            "Choose among them in a subquery: (SELECT … FROM … WHERE …).",
        )
    return constant_rows(columns, rows, within)


def constant_rows(columns: Mapping[str, Expression], rows: Sequence[Sequence[Constant]], within: Scope) -> Plan:
    """Return the plan that shows rows of constants, and asks nothing."""
    keys = tuple(
        Key(expression=ColumnReference(name=name, type=value.type), values=tuple(row[place] for row in rows))
        for place, (name, value) in enumerate(columns.items())
    )
    outputs = tuple(
        Output(name=name, value=KeyValue(key=key, shape=_shape_of(key.expression.type)))
        for name, key in zip(columns, keys, strict=True)
    )
    composition = Composition(sources=(), joins=(), public=keys)
    return Plan(question=nothing_of(within), keys=(), outputs=outputs, composition=composition)


def _shape_of(kind: Type) -> Shape:
    return "real" if isinstance(kind, Real) else shape_of(kind)


def one_row(within: Scope) -> Plan:
    """Return the plan that shows one row, of a 1."""
    return constant_rows({"row": _ONE}, [(_ONE.value,)], within)


def nothing_of(within: Scope) -> Question:
    """Return the question that touches no data: a plan has one, where all that it shows is public."""
    relation = ProtectedRows(table=within.catalog.tables[0])
    return Question(selection=FilteredRows(relation=relation), keys=(), measures=())


def _read(value: Expression, floats: Mapping[str, ColumnReference]) -> Expression:
    """Return a column as it is stored where it is a number without steps."""
    return floats.get(value.name, value) if isinstance(value, ColumnReference) else value


def _of(rows: PublicRows, shown: tuple[Expression, ...], floats: Mapping[str, ColumnReference]) -> Combinations:
    stored = (floats[column.name] for column in rows.columns if column.name in floats)
    rows = replace(rows, columns=(*rows.columns, *stored))
    joined = JoinedRows(rows=rows, variables=rows.columns)
    return Combinations(tables=(joined,), lists=(), conditions=(), shown=shown)
