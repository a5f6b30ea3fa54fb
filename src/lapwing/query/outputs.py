"""Bind what an answer shows: aggregates become measures, and everything around them post-processing.

An aggregate's argument is an expression over one row (`calls`); what stands outside is computed from released numbers
(`derive`), checked here for types so that nothing can fail once the answer is paid.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query import conversion
from lapwing.query.calls import bind_expression, name_of, require_present
from lapwing.query.derive import compute
from lapwing.query.derived import Average, Compute, Derived, Fixture, KeyValue, Released, Shape
from lapwing.query.expression import Constant, is_number
from lapwing.query.keys import Key
from lapwing.query.measures import Count, CountUnits, Sum
from lapwing.query.rows import Rows, is_column, only, refusal, same_name
from lapwing.query.types import Fixed, Plain, Type, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the post-processing of an answer may refer to."""

    rows: Rows
    keys: tuple[Key, ...]
    aliases: Mapping[str, Derived]


# ---- aggregates -----------------------------------------------------------------------------------------------------


def _count(node: exp.Expression, scope: Scope) -> Derived:
    rows = scope.rows
    only(rows, node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        only(rows, inner)
        return Released(measure=Count())
    if isinstance(inner, exp.Distinct):
        only(rows, inner, "expressions")
        if len(inner.expressions) == 1 and rows.is_unit(inner.expressions[0]):
            return Released(measure=CountUnits())
        unit = rows.table.privacy_unit
        remedy = f"COUNT(DISTINCT {unit}) is." if unit != "row" else "COUNT(*) is: the unit is a row."
        raise refusal(rows, node, "COUNT(DISTINCT …) of anything but the privacy unit is not answered", remedy)
    if inner is None:
        raise refusal(rows, node, "COUNT needs an argument", "Write COUNT(*).")
    if rows.is_unit(inner):  # rows without a unit do not exist
        return Released(measure=Count())
    argument = bind_expression(inner, rows)
    return Released(measure=Count(argument=argument) if conversion.nullable(argument) else Count())


def _total(node: exp.Expression, scope: Scope) -> Sum:
    rows = scope.rows
    only(rows, node, "this")
    name = node.key.upper()
    if isinstance(node.this, exp.Distinct):
        raise refusal(rows, node, f"{name}(DISTINCT …) is not answered", f"Write {name}(x).")
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        raise refusal(rows, node, f"{name} needs a number, not {describe(argument.type)}")
    try:
        return Sum(argument=conversion.summable(argument))
    except QueryRefused as refused:
        raise refusal(rows, node, f"{name}: {refused.reason[0].lower()}{refused.reason[1:]}", refused.remedy) from None


def _sum(node: exp.Expression, scope: Scope) -> Derived:
    return Released(measure=_total(node, scope))


def _average(node: exp.Expression, scope: Scope) -> Derived:
    """Bind AVG as a sum around the middle of the bounds, which halves what one row can change, over a count."""
    total = _total(node, scope)
    low, high = total.type.low or 0, total.type.high or 0
    counted = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
    return Average(total=replace(total, origin=(low + high) // 2), count=counted)


# ---- post-processing ------------------------------------------------------------------------------------------------


def derived(node: exp.Expression, scope: Scope) -> Derived:
    """Bind an expression over aggregates and keys."""
    require_present(node)
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(
            scope.rows,
            node,
            f"{name_of(node)} is not answered here",
            "Use keys, COUNT, SUM, AVG, and arithmetic, comparisons, CASE, ROUND over them.",
        )
    try:
        return handler(node, scope)
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise refusal(scope.rows, node, refused.reason, refused.remedy) from None


def _reference(node: exp.Expression, scope: Scope) -> Derived:
    rows = scope.rows
    only(rows, node, "this", "table")
    if is_column(node) and node.args.get("table") is None:
        only(rows, node.this, "this", "quoted")
        for key in scope.keys:
            if same_name(node.this, key.column.name):
                return KeyValue(key=key, shape=_shape_of(key.column.type))
        alias = scope.aliases.get(node.name.casefold())
        if alias is not None:
            return alias
    if rows.is_unit(node):
        raise refusal(rows, node, "The privacy unit is never shown", f"Use COUNT(DISTINCT {node.name}).")
    column = rows.column(node) if isinstance(node, exp.Column) else None
    for key in scope.keys:
        if key.column == column:
            return KeyValue(key=key, shape=_shape_of(key.column.type))
    raise refusal(rows, node, f"'{node.name}' is neither a key nor inside an aggregate", "Add it to GROUP BY.")


def _shape_of(kind: Type) -> Shape:
    if isinstance(kind, Plain):
        return kind.name
    return "integer" if isinstance(kind, Fixed) and kind.step.denominator == 1 else "decimal"


def _fixture(node: exp.Expression, scope: Scope) -> Derived:
    literal = bind_expression(node, scope.rows)
    value: Constant = getattr(literal, "value", None)
    return Fixture(value=value, shape=_shape_of(literal.type))


def _apply(function: str, *parts: str, ignored: Sequence[str] = ()) -> Callable[[exp.Expression, Scope], Derived]:
    def handler(node: exp.Expression, scope: Scope) -> Derived:
        only(scope.rows, node, *parts, *ignored)
        nodes: list[exp.Expression] = []
        for part in parts:
            value = node.args.get(part)
            nodes.extend(value if isinstance(value, list) else [value] if value is not None else [])
        return compute(function, *(derived(child, scope) for child in nodes))

    return handler


def _between(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "low", "high")
    return compute("between", *(derived(node.args[part], scope) for part in ("this", "low", "high")))


def _is(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "expression")
    only(scope.rows, node.expression, "this")
    if not isinstance(node.expression, exp.Null):
        raise refusal(scope.rows, node, "IS over the answer takes NULL", "Write IS NULL.")
    return compute("is_null", derived(node.this, scope))


def _case(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "ifs", "default")
    chosen = derived(node.this, scope) if node.this is not None else None
    if isinstance(chosen, Compute):  # it is repeated in every branch, which would let nested ones grow without end
        raise refusal(scope.rows, node, "CASE x WHEN takes a key or an aggregate", "Write CASE WHEN condition THEN ….")
    parts: list[Derived] = []
    for branch in node.args["ifs"]:
        only(scope.rows, branch, "this", "true")
        condition = derived(branch.this, scope)
        parts.append(condition if chosen is None else compute("=", chosen, condition))
        parts.append(derived(branch.args["true"], scope))
    default = node.args.get("default")
    return compute("case", *parts, derived(default, scope) if default else Fixture(value=None, shape="null"))


def _round(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "decimals")
    digits = node.args.get("decimals")
    if digits is None:
        return compute("round", derived(node.this, scope))
    places = _fixture(digits, scope) if isinstance(digits, exp.Literal | exp.Neg) else None
    value = places.value if isinstance(places, Fixture) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > 12:
        raise refusal(scope.rows, node, "ROUND takes a whole number of digits up to 12", "Write ROUND(x, 2).")
    return compute("round", derived(node.this, scope), Fixture(value=value, shape="integer"))


def _paren(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this")
    return derived(node.this, scope)


HANDLERS: Mapping[type[exp.Expression], Callable[[exp.Expression, Scope], Derived]] = {
    exp.Count: _count,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Column: _reference,
    exp.Literal: _fixture,
    exp.Boolean: _fixture,
    exp.Null: _fixture,
    exp.Paren: _paren,
    exp.Add: _apply("add", "this", "expression"),
    exp.Sub: _apply("subtract", "this", "expression"),
    exp.Mul: _apply("multiply", "this", "expression"),
    exp.Div: _apply("divide", "this", "expression", ignored=("typed", "safe")),
    exp.Neg: _apply("negate", "this"),
    exp.Abs: _apply("absolute", "this"),
    exp.Floor: _apply("floor", "this"),
    exp.Ceil: _apply("ceiling", "this"),
    exp.Round: _round,
    exp.Least: _apply("least", "this", "expressions", ignored=("ignore_nulls",)),
    exp.Greatest: _apply("greatest", "this", "expressions", ignored=("ignore_nulls",)),
    exp.Coalesce: _apply("coalesce", "this", "expressions"),
    exp.Case: _case,
    exp.EQ: _apply("=", "this", "expression"),
    exp.NEQ: _apply("<>", "this", "expression"),
    exp.LT: _apply("<", "this", "expression"),
    exp.LTE: _apply("<=", "this", "expression"),
    exp.GT: _apply(">", "this", "expression"),
    exp.GTE: _apply(">=", "this", "expression"),
    exp.In: _apply("in", "this", "expressions"),
    exp.And: _apply("and", "this", "expression"),
    exp.Or: _apply("or", "this", "expression"),
    exp.Not: _apply("not", "this"),
    exp.Between: _between,
    exp.Is: _is,
}
