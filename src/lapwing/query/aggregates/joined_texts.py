"""Bind STRING_AGG(x, ', ' ORDER BY n DESC) over the rows of a result, and its like: GROUP_CONCAT and LISTAGG.

The texts are keys, or what is computed of released numbers. Rows that come from a protected table are never joined.
"""

from collections.abc import Callable

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.derivation.node import Derived, OutputOrder
from lapwing.query.derivation.number_texts import as_text
from lapwing.query.derivation.window_values import WindowValue, over_in
from lapwing.query.expressions.rows import RowScope

_COMMA = ","
"""DuckDB's separator, for queries without one."""


def joined_texts(
    node: exp.Expression,
    inner: exp.Expression,
    partition: tuple[Derived, ...],
    rows: RowScope,
    derived: Callable[[exp.Expression], Derived],
) -> Derived:
    """Bind a join of texts over the rows of a partition.

    Args:
        node: The window, which has no order of its own.
        inner: The aggregate.
    """
    if node.args.get("order") is not None or node.args.get("spec") is not None:
        reason = "STRING_AGG over the result is of all rows of a group"
        raise rows.refusal(
            node, RefusalCause.WINDOW_NOT_SUPPORTED, reason, "Order inside: STRING_AGG(x, ',' ORDER BY n)."
        )
    rows.only(inner, "this", "separator")
    argument, terms = inner.this, list[exp.Expression]()
    if isinstance(argument, exp.Order):
        rows.only(argument, "this", "expressions")
        argument, terms = argument.this, argument.expressions
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        rows.only(argument, "expressions")
        if len(argument.expressions) != 1:
            raise rows.refusal(inner, RefusalCause.WRONG_ARGUMENT_COUNT, "STRING_AGG joins one text", "Write a || b.")
        argument = argument.expressions[0]
    value = as_text(derived(argument))
    order = tuple(_term(term, rows, derived) for term in terms)
    if any(over_in(part) for part in (value, *partition, *(term.value for term in order))):
        reason = "A window function stands inside another"
        raise rows.refusal(node, RefusalCause.TWICE_OVER_ANSWER, reason, "Ask for each by itself.")
    return WindowValue(
        function="joined",
        argument=value,
        partition=partition,
        order=order,
        shape="text",
        separator=_separator(inner, rows),
        distinct=distinct,
    )


def _term(node: exp.Expression, rows: RowScope, derived: Callable[[exp.Expression], Derived]) -> OutputOrder:
    rows.only(node, "this", "desc", "nulls_first")
    descending, nulls_first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    return OutputOrder(value=derived(node.this), descending=descending, nulls_first=nulls_first)


def _separator(inner: exp.Expression, rows: RowScope) -> str:
    node = inner.args.get("separator")
    if node is None:
        return _COMMA
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise rows.refusal(
            inner, RefusalCause.NOT_CONSTANT, "STRING_AGG takes a constant separator", "Write STRING_AGG(x, ', ')."
        )
    return str(node.this)
