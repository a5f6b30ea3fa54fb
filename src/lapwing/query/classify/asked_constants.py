"""Numbers and lists in conditions on rows that are to be asked for first (`bind.constants`)."""

from collections.abc import Iterator

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.classify.scalar_subqueries import scalars_in
from lapwing.query.from_clause.common_tables import bare, common_tables, tables_of


def members_in(select: exp.Select, kinds: Kinds) -> Iterator[exp.In]:
    """Yield conditions on rows that a value is in the answer to a question."""
    for node in list(select.find_all(exp.In)):
        query = node.args.get("query")
        query = bare(query) if isinstance(query, exp.Expression) else None
        if not isinstance(query, exp.Select) or _is_over_answer(node, select):
            continue
        if kinds.of(query, common_tables(select)) is RelationKind.RELEASED:
            yield node


def _is_over_answer(node: exp.Expression, select: exp.Select) -> bool:
    """Tell whether a condition is one on the rows of the answer: in HAVING, QUALIFY or ORDER BY, in no aggregate."""
    around: exp.Expr | None = node
    while around is not None and around.parent is not select:
        if isinstance(around, exp.AggFunc | exp.Filter | exp.Select):
            return False
        around = around.parent
    return around is None or around.arg_key in ("having", "qualify", "order", "expressions")


def has_constants(select: exp.Select, kinds: Kinds) -> bool:
    """Tell whether a SELECT has numbers or lists in its conditions that are to be asked for first."""
    return any(numbers_in(select)) or any(members_in(select, kinds))


def numbers_in(select: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the numbers that decide about rows: in WHERE, in ON, inside aggregates, and anywhere in subqueries."""
    sources = [node.this for node in tables_of(select) if isinstance(node, exp.Subquery)]
    for query in (*sources, *(table.this for table in common_tables(select))):
        yield from _anywhere(query)
    for clause in (select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or ())):
        if clause is not None:
            yield from scalars_in(exp.Paren(this=clause) if isinstance(clause, exp.Subquery) else clause)
    for part in (*select.expressions, *(select.args.get(name) for name in ("having", "qualify", "order"))):
        for node in [] if part is None else part.find_all(exp.AggFunc, exp.Filter):
            if node.find_ancestor(exp.Subquery, exp.AggFunc, exp.Filter) is None:
                yield from scalars_in(node)


def _anywhere(node: exp.Expression) -> Iterator[exp.Subquery]:
    yield from scalars_in(node)
    for query in node.find_all(exp.Subquery, exp.CTE):
        if isinstance(query.parent, exp.From | exp.Join | exp.With):
            yield from scalars_in(query.this)
