"""Bind COUNT(DISTINCT …): of units, of different values, or of those in some of several sides (`distinct_rows`)."""

from collections.abc import Set

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.scope import SelectScope
from lapwing.query.expressions import logic
from lapwing.query.expressions.calls import looked_at
from lapwing.query.expressions.expression import Expression
from lapwing.query.from_clause.conditions import bind_condition
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.measures import Measure
from lapwing.query.measures.set_counts import CountOfSets, subsets


def distinct_count(inner: exp.Expression, node: exp.Expression, scope: SelectScope) -> Measure:
    """Return the measure of a DISTINCT inside of a COUNT."""
    rows = scope.rows
    of_sets = _is_formula(inner.args.get("on"))
    rows.only(inner, "expressions", *(["on"] if of_sets else []))
    if len(inner.expressions) != 1:
        raise rows.refusal(
            node, RefusalCause.WRONG_ARGUMENT_COUNT, "COUNT(DISTINCT …) takes one expression", "Count each by itself."
        )
    if of_sets:
        return _of_sets(inner, scope)
    if rows.is_unit(inner.expressions[0]):
        return CountUnits(where=scope.condition)
    condition = _units_where(inner.expressions[0], scope)
    if condition is not None:
        return CountUnits(where=condition)
    return CountDistinct(argument=logic.only_where(looked_at(inner.expressions[0], rows), scope.condition))


def _of_sets(inner: exp.Expression, scope: SelectScope) -> CountOfSets:
    """Bind values that are counted where a formula holds, whose columns say in which sides a row is."""
    (value,), formula = inner.expressions, inner.args["on"]
    names = sorted({column.name for column in formula.find_all(exp.Column)})
    conditions = [bind_condition(exp.column(exp.to_identifier(n, quoted=True)), scope.rows, "A side") for n in names]
    sides = tuple(side if scope.condition is None else logic.both(side, scope.condition) for side in conditions)
    everywhere = frozenset(range(len(names)))
    held = frozenset(s for s in subsets(everywhere) if _holds(formula, {names[side] for side in s}))
    return CountOfSets(value=looked_at(value, scope.rows), sides=sides, held=held)


def _holds(formula: exp.Expression, there: Set[str]) -> bool:
    match formula:
        case exp.And():
            return _holds(formula.this, there) and _holds(formula.expression, there)
        case exp.Or():
            return _holds(formula.this, there) or _holds(formula.expression, there)
        case exp.Not():
            return not _holds(formula.this, there)
    return formula.name in there


def _is_formula(on: object) -> bool:
    """Tell whether something is of names alone, joined by AND, OR and NOT."""
    known = exp.And | exp.Or | exp.Not | exp.Column | exp.Identifier
    return isinstance(on, exp.Expression) and all(isinstance(node, known) for node in on.walk())


def _units_where(node: exp.Expression, scope: SelectScope) -> Expression | None:
    """Return the condition of CASE WHEN condition THEN unit END, which is a FILTER in other words."""
    branches = node.args.get("ifs") or [] if type(node) is exp.Case and node.this is None else []
    if len(branches) != 1 or not scope.rows.is_unit(branches[0].args["true"]):
        return None
    if not isinstance(node.args.get("default"), exp.Null | None):
        return None
    scope.rows.only(node, "ifs", "default")
    scope.rows.only(branches[0], "this", "true")
    condition = bind_condition(branches[0].this, scope.rows, "CASE")
    return condition if scope.condition is None else logic.both(scope.condition, condition)
