"""Bind the clauses that act on released numbers: HAVING, QUALIFY, DISTINCT, ORDER BY, LIMIT."""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.catalog.protection import unit_in_words
from lapwing.errors import RefusalCause
from lapwing.query.aggregates.group_by import Sets
from lapwing.query.aggregates.outputs import bind_output
from lapwing.query.aggregates.scope import Requests, SelectScope
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.derivation.window_values import over_in
from lapwing.query.expressions.calls import exact_number
from lapwing.query.expressions.rows import RowScope


def bind_having(clause: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind HAVING: which cells are in the answer."""
    scope.rows.only(clause, "this")
    condition = bind_output(clause.this, scope, requests)
    if over_in(condition):
        raise scope.rows.refusal(
            clause, RefusalCause.CLAUSE_NOT_SUPPORTED, "HAVING comes before window functions", "Use QUALIFY."
        )
    return _boolean(condition, "HAVING", clause, scope)


def bind_where(clause: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind WHERE over the rows of an answer (`layers`)."""
    scope.rows.only(clause, "this")
    return _boolean(bind_output(clause.this, scope, requests), "WHERE", clause, scope)


def bind_qualify(clause: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind QUALIFY: which rows of the answer are shown, after the functions over its rows."""
    scope.rows.only(clause, "this")
    if any(scope.rows.is_unit(part) for part in clause.find_all(exp.Column)):
        reason = f"QUALIFY here is over the rows of the result, and none of them is of one {scope.rows.unit}"
        remedy = f"Choose rows of {unit_in_words(scope.rows.unit)} in a subquery: FROM (SELECT * FROM … QUALIFY …)."
        raise scope.rows.refusal(clause.this, RefusalCause.CLAUSE_NOT_SUPPORTED, reason, remedy)
    return _boolean(bind_output(clause.this, scope, requests), "QUALIFY", clause, scope)


def _boolean(condition: Derived, name: str, clause: exp.Expression, scope: SelectScope) -> Derived:
    if condition.shape != "boolean":
        raise scope.rows.refusal(
            clause,
            RefusalCause.NOT_A_CONDITION,
            f"{name} needs a condition, not {condition.shape}",
            "Write a comparison.",
        )
    return condition


def check_distinct(select: exp.Select, outputs: Sequence[Output], sets: Sets, rows: RowScope) -> None:
    """Refuse SELECT DISTINCT, unless it changes nothing because every row shows all of its keys."""
    rows.only(select.args["distinct"])
    keys = {output.value.key for output in outputs if isinstance(output.value, KeyValue)}
    if len(sets) > 1 or not keys.issuperset(sets[0]):
        reason = "DISTINCT would leave out rows of the result with the same noisy numbers"
        raise rows.refusal(
            select, RefusalCause.DISTINCT_NOT_SUPPORTED, reason, "Leave it out, or show every key of GROUP BY."
        )


def bind_order(
    clause: exp.Expression, outputs: Sequence[Output], scope: SelectScope, requests: Requests
) -> tuple[OutputOrder, ...]:
    """Bind ORDER BY, with positions in the SELECT list."""
    scope.rows.only(clause, "expressions")
    terms = []
    for node in clause.expressions:
        scope.rows.only(node, "this", "desc", "nulls_first")
        value = _ordinal(node.this, outputs, scope) or bind_output(node.this, scope, requests)
        terms.append(
            OutputOrder(
                value=value, descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first"))
            )
        )
    return tuple(terms)


def _ordinal(node: exp.Expression, outputs: Sequence[Output], scope: SelectScope) -> Derived | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    position = exact_number(str(node.this), node, scope.rows)
    if position.denominator != 1 or not 1 <= position <= len(outputs):
        raise scope.rows.refusal(
            node, RefusalCause.UNKNOWN_COLUMN, f"There is no column {node.this} in the SELECT list to order by"
        )
    return outputs[int(position) - 1].value


def bind_limit(clause: exp.Expression, name: str, rows: RowScope) -> int:
    """Bind LIMIT or OFFSET."""
    if isinstance(clause, exp.Fetch):
        raise rows.refusal(clause, RefusalCause.CLAUSE_NOT_SUPPORTED, "FETCH is not supported here", "Write LIMIT 10.")
    rows.only(clause, "expression")
    node = clause.expression
    value = exact_number(str(node.this), node, rows) if isinstance(node, exp.Literal) and not node.is_string else None
    if value is None or value.denominator != 1 or not 0 <= value <= 10**9:
        raise rows.refusal(
            clause, RefusalCause.NOT_CONSTANT, f"{name.upper()} takes a whole number", f"Write {name.upper()} 10."
        )
    return int(value)
