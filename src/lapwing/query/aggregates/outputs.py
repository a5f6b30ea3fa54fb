"""Bind what an answer shows: aggregates become measures, and everything around them post-processing.

An aggregate's argument is an expression over one row (`calls`); what stands outside is computed from released numbers
(`derive`), checked here for types so that nothing can fail once the answer is paid.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.aggregates.order_statistics import ORDER_STATISTICS, order_statistic
from lapwing.query.aggregates.over import bind_over
from lapwing.query.aggregates.races import RACE_WEIGHT, race
from lapwing.query.aggregates.scalars import SCALARS, Scalar, cast
from lapwing.query.aggregates.searches import Searching
from lapwing.query.aggregates.shared import truncated
from lapwing.query.aggregates.statistics import bind_covariance, bind_variance
from lapwing.query.aggregates.totals import settled
from lapwing.query.derivation import calendar
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import (
    Average,
    Compute,
    Derived,
    Fixture,
    KeyValue,
    Released,
    Shape,
    Side,
    measures_of,
)
from lapwing.query.expressions import conversion, functions
from lapwing.query.expressions.calls import bind_expression, require_present
from lapwing.query.expressions.expression import Constant, Expression, is_number
from lapwing.query.expressions.naming import as_number, instead_of_aggregate, name_of
from lapwing.query.expressions.rows import Rows, is_column
from lapwing.query.expressions.types import BOOLEAN, Fixed, Plain, Type, describe
from lapwing.query.keys import Key
from lapwing.query.measures import Count, CountDistinct, CountUnits, Measure, Sum
from lapwing.query.relations.contribution import Share, per_group, require_units
from lapwing.query.relations.per_unit import one_where, only_where
from lapwing.query.relations.relation import Selection, units_of_row
from lapwing.query.text.options import NamedArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an answer may refer to.

    Args: selection: what is aggregated; sets: the keys of each grouping set; condition: of the FILTER around the
        aggregate at hand; arguments: what aggregates say about their own privacy; shares: filled with the epsilon that
        each measure may take, where its aggregate says so; weights: filled with the part of the rest that a measure
        gets, where that is not 1; searching: the bounds that are to be found; unsettled: filled with the measures that
        they bound.
    """

    rows: Rows
    selection: Selection
    keys: tuple[Key, ...]
    aliases: Mapping[str, Derived]
    sets: tuple[tuple[Key, ...], ...] = ()
    condition: Expression | None = None
    arguments: Mapping[int, NamedArguments] = field(default_factory=dict)
    shares: dict[Measure, Share] = field(default_factory=dict)
    weights: dict[Measure, Fraction] = field(default_factory=dict)
    searching: Searching = field(default_factory=Searching)
    unsettled: set[Measure] = field(default_factory=set)

    def named(self, node: exp.Expression) -> NamedArguments | None:
        """Return what an aggregate says about its own privacy."""
        return self.arguments.get(node.meta.get("start", -1))


# ---- aggregates -----------------------------------------------------------------------------------------------------


def has_aggregate(node: exp.Expression) -> bool:
    """Tell whether there is an aggregate in a node, other than in a subquery of its own."""
    if isinstance(node, exp.Subquery | exp.Select):
        return False
    if isinstance(node, exp.Grouping):
        return False
    return isinstance(node, exp.AggFunc) or any(has_aggregate(child) for child in node.iter_expressions())


def _filter(node: exp.Expression, scope: Scope) -> Derived:
    """Bind aggregate FILTER (WHERE condition): the aggregate is over the rows for which the condition is true."""
    rows = scope.rows
    rows.only(node, "this", "expression")
    if type(node.this) not in _AGGREGATES:
        raise rows.refusal(node, "FILTER follows an aggregate")
    rows.only(node.expression, "this")
    return derived(node.this, replace(scope, condition=_condition(node.expression.this, rows, "FILTER")))


def _condition(node: exp.Expression, rows: Rows, name: str) -> Expression:
    condition = bind_expression(node, rows)
    if condition.type != BOOLEAN:
        raise rows.refusal(node, f"{name} needs a condition, not {describe(condition.type)}", "Write a comparison.")
    return condition


def _count(node: exp.Expression, scope: Scope) -> Derived:
    rows, condition = scope.rows, scope.condition
    rows.only(node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        rows.only(inner)
        return Released(measure=_counted(condition))
    if isinstance(inner, exp.Distinct):
        return Released(measure=_distinct(inner, node, scope))
    if inner is None:
        raise rows.refusal(node, "COUNT needs an argument", "Write COUNT(*).")
    if rows.is_unit(inner):  # rows without a unit do not exist
        return Released(measure=_counted(condition))
    argument = bind_expression(inner, rows)
    if not conversion.nullable(argument):
        return Released(measure=_counted(condition))
    return Released(measure=Count(argument=only_where(argument, condition)))


def _counted(condition: Expression | None) -> Count:
    """Return the number of rows for which a condition is true."""
    return Count() if condition is None else Count(argument=one_where(condition))


def _distinct(inner: exp.Expression, node: exp.Expression, scope: Scope) -> Measure:
    rows = scope.rows
    rows.only(inner, "expressions")
    if len(inner.expressions) != 1:
        raise rows.refusal(node, "COUNT(DISTINCT …) takes one expression", "Count each by itself.")
    if rows.is_unit(inner.expressions[0]):
        return CountUnits(where=scope.condition)
    chosen = _units_where(inner.expressions[0], scope)
    if chosen is not None:
        return CountUnits(where=chosen)
    return CountDistinct(argument=only_where(bind_expression(inner.expressions[0], rows), scope.condition))


def _units_where(node: exp.Expression, scope: Scope) -> Expression | None:
    """Return the condition of CASE WHEN condition THEN unit END, which is a FILTER in other words."""
    branches = node.args.get("ifs") or [] if type(node) is exp.Case and node.this is None else []
    if len(branches) != 1 or not scope.rows.is_unit(branches[0].args["true"]):
        return None
    if not isinstance(node.args.get("default"), exp.Null | None):
        return None
    scope.rows.only(node, "ifs", "default")
    scope.rows.only(branches[0], "this", "true")
    condition = _condition(branches[0].this, scope.rows, "CASE")
    return condition if scope.condition is None else functions.both(scope.condition, condition)


def _count_if(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this")
    condition = _condition(node.this, scope.rows, "COUNT_IF")
    both = condition if scope.condition is None else functions.both(scope.condition, condition)
    return Released(measure=_counted(both))


def _total(node: exp.Expression, scope: Scope) -> Sum:
    rows = scope.rows
    rows.only(node, "this")
    name = node.key.upper()
    if isinstance(node.this, exp.Distinct):
        raise rows.refusal(node, f"{name}(DISTINCT …) is not answered", _ONCE)
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        kind = describe(argument.type)
        raise rows.refusal(node, f"{name} needs a number, not {kind}", as_number(kind))
    try:
        inside = scope.searching.inside(argument, scope.named(node), scope.condition)
        return Sum(argument=only_where(conversion.summable(inside), scope.condition))
    except QueryRefused as refused:
        raise rows.refusal(node, f"{name}: {refused.reason[0].lower()}{refused.reason[1:]}", refused.remedy) from None


def _sum(node: exp.Expression, scope: Scope) -> Derived:
    return Released(measure=_total(node, scope))


def _average(node: exp.Expression, scope: Scope) -> Derived:
    """Bind AVG as a sum around the middle of the bounds, which halves what one row can change, over a count."""
    total = _total(node, scope)
    low, high = total.type.low or 0, total.type.high or 0
    if scope.condition is None:
        counted = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
    else:
        bare = bind_expression(node.this, scope.rows)
        counted = Count(argument=total.argument) if conversion.nullable(bare) else _counted(scope.condition)
    return Average(total=replace(total, origin=(low + high) // 2), count=counted)


def _spread(*, sample: bool, root: bool) -> Callable[[exp.Expression, Scope], Derived]:
    def handler(node: exp.Expression, scope: Scope) -> Derived:
        named = scope.named(node)
        return bind_variance(node, scope.rows, scope.condition, named, scope.searching, sample=sample, root=root)

    return handler


def _joint(kind: str) -> Callable[[exp.Expression, Scope], Derived]:
    def handler(node: exp.Expression, scope: Scope) -> Derived:
        return bind_covariance(node, scope.rows, scope.condition, scope.named(node), scope.searching, kind=kind)

    return handler


def _ranked(node: exp.Expression, scope: Scope) -> Derived:
    """Bind a median, a quantile, a least or a greatest value."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Expression) and scope.named(node.this):
        reason, remedy = "WITHIN GROUP takes no named arguments", "Write PERCENTILE_CONT(x, 0.5, …)."
        raise scope.rows.refusal(node.this, reason, remedy)
    # Each grouping set has cells of its own, by its keys alone; of private keys nobody knows how many there are.
    sets = scope.sets or (scope.keys,)
    private = any(key.private for keys in sets for key in keys)
    cells = None if private else sum(prod(len(key.domain) for key in keys) for keys in sets)
    return order_statistic(node, scope.rows, scope.condition, scope.named(node), cells)


_AGGREGATES: Mapping[type[exp.Expression], Callable[[exp.Expression, Scope], Derived]] = {
    **dict.fromkeys(ORDER_STATISTICS, _ranked),
    exp.VariancePop: _spread(sample=False, root=False),
    exp.Variance: _spread(sample=True, root=False),
    exp.StddevPop: _spread(sample=False, root=True),
    exp.StddevSamp: _spread(sample=True, root=True),
    exp.Stddev: _spread(sample=True, root=True),
    exp.CovarPop: _joint("population"),
    exp.CovarSamp: _joint("sample"),
    exp.Corr: _joint("correlation"),
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _average,
}


# ---- post-processing ------------------------------------------------------------------------------------------------

_ONCE = "Leave DISTINCT out, or GROUP BY x and COUNT(*): a list of the values that are there."
_OVER_THE_ANSWER = (
    "Use keys and aggregates (COUNT, SUM, AVG, MEDIAN, STDDEV …), and arithmetic, comparisons, CASE over them."
)


def derived(node: exp.Expression, scope: Scope) -> Derived:
    """Bind an expression over aggregates and keys."""
    require_present(node)
    key = _as_key(node, scope)
    if key is not None:
        return key
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise scope.rows.refusal(
            node,
            f"{name_of(node)} is not answered here",
            instead_of_aggregate(node) or _OVER_THE_ANSWER,
        )
    try:
        value = handler(node, scope)
        return _as_said(value, node, scope) if scope.named(node) is not None else value
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise scope.rows.refusal(node, refused.reason, refused.remedy) from None


def _as_said(value: Derived, node: exp.Expression, scope: Scope) -> Derived:
    """Apply what an aggregate says about its own privacy."""
    named = scope.named(node)
    if named is None:
        return value
    if named.contribution_bounds_per_group is not None:
        if not isinstance(value, Released) or not isinstance(value.measure, Count | Sum):
            raise QueryRefused(
                f"{name_of(node)} takes no contribution_bounds_per_group",
                remedy="COUNT and SUM do; others take contribution_bounds_per_row.",
            )
        value = _bounded_by_group(value.measure, named, scope)
    if named.contribution_bounds_per_row is not None and isinstance(node, exp.Count | exp.CountIf):
        raise QueryRefused("COUNT takes no contribution_bounds_per_row", remedy="A row counts as one.")
    if "auto" in (named.contribution_bounds_per_row, named.contribution_bounds_per_group):
        scope.unsettled.update(measure for measure in measures_of(value) if isinstance(measure, Count | Sum))
    if named.epsilon is not None:
        measures = measures_of(value)
        for measure in measures:
            share = Share(epsilon=named.epsilon, among=len(measures))
            scope.shares[measure] = max(share, scope.shares.get(measure, share), key=lambda said: said.epsilon)
    return value


def _bounded_by_group(measure: Count | Sum, named: NamedArguments, scope: Scope) -> Derived:
    """Limit what a unit adds to a group in all: to what is written, what is found, or by a race."""
    if units_of_row(scope.selection.relation) > 1:
        return _raced(truncated(measure, named, scope.searching), scope)
    require_units(scope.selection)
    match named.contribution_bounds_per_group:
        case "auto":
            return Released(measure=settled(measure, scope.selection.rows_per_unit, scope.searching))
        case "race":
            return _raced(race(measure, scope.selection.rows_per_unit), scope)
    return Released(measure=per_group(measure, named))


def _raced(value: Derived, scope: Scope) -> Derived:
    """Give all levels of a race together the weight of a race."""
    levels = measures_of(value)
    if len(levels) > 1:
        scope.weights.update(dict.fromkeys(levels, RACE_WEIGHT / len(levels)))
    return value


def _as_key(node: exp.Expression, scope: Scope) -> KeyValue | None:
    """Return the key that a node is, written as in GROUP BY."""
    if isinstance(node, exp.Literal | exp.Boolean | exp.Null) or has_aggregate(node):
        return None
    try:
        expression = bind_expression(node, scope.rows)
    except QueryRefused:
        return None
    found = next((key for key in scope.keys if key.expression == expression), None)
    return None if found is None else KeyValue(key=found, shape=_shape_of(expression.type))


def _reference(node: exp.Expression, scope: Scope) -> Derived:
    rows = scope.rows
    rows.only(node, "this", "table")
    if is_column(node) and node.args.get("table") is None:
        rows.only(node.this, "this", "quoted")
        alias = scope.aliases.get(node.name.casefold())
        if alias is not None:
            return alias
    if rows.is_unit(node):
        raise rows.refusal(node, "The privacy unit is never shown", f"Use COUNT(DISTINCT {node.name}).")
    if isinstance(node, exp.Column):
        rows.column(node)
    raise rows.refusal(node, f"'{node.name}' is neither a key nor inside an aggregate", "Add it to GROUP BY.")


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
        scope.rows.only(node, *parts, *ignored)
        nodes: list[exp.Expression] = []
        for part in parts:
            value = node.args.get(part)
            nodes.extend(value if isinstance(value, list) else [value] if value is not None else [])
        return compute(function, *(derived(child, scope) for child in nodes))

    return handler


def _between(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "low", "high")
    return compute("between", *(derived(node.args[part], scope) for part in ("this", "low", "high")))


def _is(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "expression")
    scope.rows.only(node.expression, "this")
    if not isinstance(node.expression, exp.Null):
        raise scope.rows.refusal(node, "IS over the answer takes NULL", "Write IS NULL.")
    return compute("is_null", derived(node.this, scope))


def _case(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "ifs", "default")
    chosen = derived(node.this, scope) if node.this is not None else None
    # It is repeated in every branch, which would let nested ones grow without end.
    if isinstance(chosen, Compute) and any(isinstance(part, Compute) for part in chosen.arguments):
        raise scope.rows.refusal(node, "CASE x WHEN repeats a long x too often", "Write CASE WHEN condition THEN ….")
    parts: list[Derived] = []
    for branch in node.args["ifs"]:
        scope.rows.only(branch, "this", "true")
        condition = derived(branch.this, scope)
        parts.append(condition if chosen is None else compute("=", chosen, condition))
        parts.append(derived(branch.args["true"], scope))
    default = node.args.get("default")
    return compute("case", *parts, derived(default, scope) if default else Fixture(value=None, shape="null"))


def _round(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "decimals")
    digits = node.args.get("decimals")
    if digits is None:
        return compute("round", derived(node.this, scope))
    places = _fixture(digits, scope) if isinstance(digits, exp.Literal | exp.Neg) else None
    value = places.value if isinstance(places, Fixture) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > 12:
        raise scope.rows.refusal(node, "ROUND takes a whole number of digits up to 12", "Write ROUND(x, 2).")
    return compute("round", derived(node.this, scope), Fixture(value=value, shape="integer"))


def _called(node: exp.Expression, scope: Scope) -> Derived:
    """Bind DP_INTERVAL_LOW(x) and DP_INTERVAL_HIGH(x): the ends of the 95 % interval of a column of the answer."""
    side = _SIDES.get(node.name.upper())
    if side is None:
        raise scope.rows.refusal(node, f"{name_of(node)} is not answered here", "See the SQL reference for what is.")
    scope.rows.only(node, "this", "expressions")
    if len(node.expressions) != 1:
        raise scope.rows.refusal(node, f"{name_of(node)} takes the name of one column of the answer")
    return calendar.end_of(derived(node.expressions[0], scope), side)


def _grouping(node: exp.Expression, scope: Scope) -> Derived:
    """Bind GROUPING(key): 1 in the cells of grouping sets without the key, else 0."""
    scope.rows.only(node, "expressions")
    if len(node.expressions) != 1:
        raise scope.rows.refusal(node, "GROUPING takes one key", "Write GROUPING(a), GROUPING(b).")
    value = derived(node.expressions[0], scope)
    if not isinstance(value, KeyValue):
        raise scope.rows.refusal(node, "GROUPING takes a key of GROUP BY")
    one, zero = (Fixture(value=Fraction(number), shape="integer") for number in (1, 0))
    return compute("case", compute("is_null", value), one, zero)


def _subtract(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "expression")
    left, right = derived(node.this, scope), derived(node.expression, scope)
    if left.shape == right.shape == "date":
        return calendar.days_between(left, right)
    if left.shape == right.shape == "timestamp":
        raise scope.rows.refusal(
            node,
            "The difference of two timestamps is not answered by -",
            "Write DATE_DIFF('second', earlier, later).",
        )
    return compute("subtract", left, right)


def _date_diff(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this", "expression", "unit", "date_part_boundary")
    unit = node.args.get("unit")
    name = unit.name if isinstance(unit, exp.Literal | exp.Var) else ""
    return calendar.difference(name, derived(node.expression, scope), derived(node.this, scope))


def _cast(node: exp.Expression, scope: Scope) -> Derived:
    """Bind a cast; DATE '…' and TIMESTAMP '…' are casts of constants."""
    return _fixture(node, scope) if isinstance(node.this, exp.Literal) else _scalar(cast)(node, scope)


def _scalar(rule: Scalar) -> Callable[[exp.Expression, Scope], Derived]:
    return lambda node, scope: rule(node, scope.rows, lambda part: derived(part, scope))


_SIDES: Mapping[str, Side] = {"DP_INTERVAL_LOW": "low", "DP_INTERVAL_HIGH": "high"}


def _over(node: exp.Expression, scope: Scope) -> Derived:
    return bind_over(node, scope.rows, lambda part: derived(part, scope))


def _paren(node: exp.Expression, scope: Scope) -> Derived:
    scope.rows.only(node, "this")
    return derived(node.this, scope)


HANDLERS: Mapping[type[exp.Expression], Callable[[exp.Expression, Scope], Derived]] = {
    **_AGGREGATES,
    exp.Filter: _filter,
    exp.Column: _reference,
    exp.Literal: _fixture,
    exp.Boolean: _fixture,
    exp.Null: _fixture,
    exp.Paren: _paren,
    exp.Anonymous: _called,
    exp.Grouping: _grouping,
    exp.Window: _over,
    exp.Sqrt: _apply("square_root", "this"),
    exp.Add: _apply("add", "this", "expression"),
    exp.Sub: _subtract,
    exp.DateDiff: _date_diff,
    exp.Cast: _cast,
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
    exp.Nullif: _apply("null_if", "this", "expression"),
    exp.Upper: _apply("upper", "this"),
    exp.Lower: _apply("lower", "this"),
    exp.DPipe: _apply("concatenate", "this", "expression", ignored=("safe",)),
    exp.Mod: _apply("modulo", "this", "expression"),
    exp.Pow: _apply("power", "this", "expression"),
    exp.Exp: _apply("exponential", "this"),
    exp.Ln: _apply("logarithm", "this"),
    exp.Sign: _apply("sign", "this"),
    **{kind: _scalar(rule) for kind, rule in SCALARS.items()},
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
