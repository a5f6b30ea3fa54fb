"""Bind what an answer shows: aggregates become measures, and everything around them post-processing.

An aggregate's argument is an expression over one row (`calls`); what stands outside is computed from released numbers
(`formulas`, `answer_windows`), and checked here for types so that nothing can fail once the answer is paid.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.counts import COUNTS
from lapwing.query.aggregates.formulas import FORMULAS, Formula
from lapwing.query.aggregates.order_statistics import ORDER_STATISTICS
from lapwing.query.aggregates.privacy_arguments import with_privacy_arguments
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope, has_aggregate, shape_of
from lapwing.query.aggregates.statistics import STATISTICS
from lapwing.query.aggregates.sums import SUMS
from lapwing.query.derivation.derived import KeyValue, measures_of
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.expressions.as_read import as_read, key_of
from lapwing.query.expressions.attempts import NO_KEY
from lapwing.query.expressions.calls import bind_both
from lapwing.query.expressions.naming import instead_of_aggregate, name_of
from lapwing.query.expressions.rows import RowScope, attempted, is_column, require_present
from lapwing.query.from_clause.conditions import bind_condition

AGGREGATES: Final[Mapping[type[exp.Expression], Aggregate]] = {**COUNTS, **SUMS, **STATISTICS, **ORDER_STATISTICS}
"""Which function binds which aggregate; a new one adds itself to one of these tables, or brings a table of its own."""
MAX_OUTPUTS: Final = 200
_OVER_THE_ANSWER: Final = (
    "Use keys and aggregates (COUNT, SUM, AVG, MEDIAN, STDDEV …), and arithmetic, comparisons, CASE over them."
)


def bind_outputs(select: exp.Select, scope: SelectScope, requests: Requests) -> tuple[Output, ...]:
    """Bind the SELECT list: each column of the answer with its name."""
    if len(select.expressions) > MAX_OUTPUTS:
        raise QueryRefused(
            f"The SELECT list has more than {MAX_OUTPUTS} columns",
            cause=RefusalCause.TOO_MANY_COLUMNS,
            remedy="Ask for fewer at a time.",
        )
    outputs: list[Output] = []
    taken: set[str] = set()
    for item in select.expressions:
        node, name = item, ""
        if type(item) is exp.Alias:
            scope.rows.only(item, "this", "alias")
            scope.rows.only(item.args["alias"], "this", "quoted")
            node, name = item.this, item.alias
            if name.casefold() in taken:
                raise scope.rows.refusal(
                    item, RefusalCause.DUPLICATE_NAME, f"Two columns of the result are called '{name}'", "Rename one."
                )
        value = bind_output(node, scope, requests)
        name = name or free_name(default_name(node, value), taken)
        taken.add(name.casefold())
        outputs.append(Output(name=name, value=value))
        scope = replace(scope, aliases={name.casefold(): value, **scope.aliases})  # later columns may name earlier ones
    for output in outputs:  # the names that exports give to the ends of a noisy column's interval stay free for them
        for end in (f"{output.name}_low", f"{output.name}_high"):
            if end.casefold() in taken and measures_of(output.value):
                reason = f"'{end}' is the name of an end of the interval of '{output.name}'"
                raise QueryRefused(reason, cause=RefusalCause.DUPLICATE_NAME, remedy="Rename one.")
    return tuple(outputs)


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with a number behind it if need be."""
    candidate, number = name, 2
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def default_name(node: exp.Expression, value: Derived | None = None) -> str:
    """Name a column after what it is written as."""
    inner = node.this if type(node) is exp.Filter else node
    if is_column(inner):
        return str(inner.name)
    if isinstance(value, KeyValue):
        return "key"
    if not isinstance(inner, exp.AggFunc):
        return "value"
    if isinstance(inner, exp.Count | exp.CountIf):
        return "count"
    name = inner.sql_name().lower()
    return f"{name}_{inner.this.name}" if is_column(inner.this) else name


def bind_output(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind an expression over aggregates and keys.

    Args:
        requests: Where aggregates write down what they ask for beside their measures.

    Raises:
        QueryRefused: With its position, for what is not understood.
    """
    require_present(node)
    key = _key(node, scope)
    if key is not None:
        return key
    handler = HANDLERS.get(type(node))
    if handler is None:
        reason, remedy = f"{name_of(node)} is not supported here", instead_of_aggregate(node) or _OVER_THE_ANSWER
        raise scope.rows.refusal(node, RefusalCause.FUNCTION_NOT_SUPPORTED, reason, remedy)
    with scope.rows.pointing(node):
        value = handler(node, scope, requests)
        named = scope.named(node)
        return value if named is None else with_privacy_arguments(value, node, named, scope.selection, requests)


def _key(node: exp.Expression, scope: SelectScope) -> KeyValue | None:
    """Return the key that a node is, written as in GROUP BY."""
    if isinstance(node, exp.Literal | exp.Boolean | exp.Null) or has_aggregate(node):
        return None
    if not scope.keys or (is_column(node) and not scope.rows.has(node)):
        return None
    value = scope.rows.column(node) if is_column(node) else attempted(NO_KEY, bind_both, node, scope.rows)
    if isinstance(value, QueryRefused):
        return None
    forms = (value,) if value.read is None else (key_of(value, ()), as_read(value), value)
    match = next((key for key in scope.keys if key.expression in forms), None)
    return None if match is None else KeyValue(key=match, shape=shape_of(match.expression.type))


def _filter(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind aggregate FILTER (WHERE condition): the aggregate is over the rows for which the condition is true."""
    rows = scope.rows
    rows.only(node, "this", "expression")
    if type(node.this) not in AGGREGATES:
        raise rows.refusal(node, RefusalCause.FILTER_NOT_SUPPORTED, "FILTER follows an aggregate")
    rows.only(node.expression, "this")
    condition = bind_condition(node.expression.this, rows, "FILTER")
    return bind_output(node.this, replace(scope, condition=condition), requests)


def _reference(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    """Bind the name of an earlier column of the answer."""
    rows = scope.rows
    rows.only(node, "this", "table")
    if is_column(node) and node.args.get("table") is None:
        rows.only(node.this, "this", "quoted")
        alias = scope.aliases.get(node.name.casefold())
        if alias is not None:
            return alias
    if rows.is_unit(node):
        reason = f"'{node.name}' says whose row each is (the privacy unit), so no result shows it"
        raise rows.refusal(node, RefusalCause.PRIVACY_UNIT_AS_VALUE, reason, f"Use COUNT(DISTINCT {node.this}).")
    if isinstance(node, exp.Column):
        rows.column(node)
    raise rows.refusal(
        node, RefusalCause.NOT_GROUPED, f"'{node.name}' is neither a key nor inside an aggregate", "Add it to GROUP BY."
    )


def _paren(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    scope.rows.only(node, "this")
    return bind_output(node.this, scope, requests)


def _over(node: exp.Expression, rows: RowScope, derived: Callable[[exp.Expression], Derived]) -> Derived:
    from lapwing.query.aggregates.answer_windows import bind_over  # here: few questions have windows

    return bind_over(node, rows, derived)


def _formula(rule: Formula) -> Aggregate:
    return lambda node, scope, requests: rule(node, scope.rows, lambda part: bind_output(part, scope, requests))


HANDLERS: Final[Mapping[type[exp.Expression], Aggregate]] = {
    **AGGREGATES,
    exp.Filter: _filter,
    exp.Column: _reference,
    exp.Paren: _paren,
    exp.Window: _formula(_over),
    **{kind: _formula(rule) for kind, rule in FORMULAS.items()},
}
