"""Other spellings of what is answered: VAR(x), COUNT(DISTINCT a, b), (a, b) IN (…), FETCH FIRST 3 ROWS ONLY.

A question is spelled anew in the words that binding knows before it is bound (`normalise`): no rule touches what
binding knows as it stands, and what is bound, checked and priced is the new spelling alone. A node is spelled anew only
if nothing is in it but what its new spelling says too; anything else stays, to be refused.
"""

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import partial
from typing import Final

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds
from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.listed_values import has_only, values_of_list, with_listed_values
from lapwing.query.from_clause.scope import Scope
from lapwing.query.normalise.clause_spellings import (
    as_limit,
    grouped,
    is_star,
    with_items_for_star,
    with_named_parentheses,
    without_parentheses,
    without_schema,
)
from lapwing.query.normalise.distinct_on import with_first_rows
from lapwing.query.normalise.distinct_rows import with_distinct_rows
from lapwing.query.normalise.lateral_joins import with_grouped_laterals
from lapwing.query.normalise.listed_joins import with_listed_joins
from lapwing.query.normalise.most_common import with_most_common
from lapwing.query.normalise.named_columns import with_named_columns
from lapwing.query.normalise.report_fields import field_of_report, with_intervals, with_parts_of_list
from lapwing.query.normalise.server_spellings import beginning_of_month, of_server, since_day_zero, with_named_items
from lapwing.query.text.trees import copied, depth_first, nodes_of

Spelling = Callable[[exp.Expression], exp.Expression | None]
"""Returns a node in other words, or None."""

_SCHEMAS: Final = ("main", "public", "dbo")
"""That tables are in by default, in DuckDB, PostgreSQL and SQL Server."""


def rewritten(select: exp.Select, kept: Collection[int], within: Scope) -> exp.Select | None:
    """Return a SELECT in other words; None if all of it is written as it is known.

    Args:
        kept: Where aggregates start that say something of their own privacy; only those keep it that stay one.
    """
    if not any(map(_may_be_respelled, nodes_of(select))):
        return None
    # The name of the data set may stand before that of a table as a schema does.
    schemas = partial(without_schema, schemas=(*_SCHEMAS, within.catalog.name.lower()))
    selects = (
        partial(with_listed_joins, within=within),
        *_SELECTS,
        partial(with_named_items, within=within),
        partial(with_distinct_rows, kinds=Kinds(within)),
    )
    spellings: Mapping[type[exp.Expression], Spelling] = {
        **_SPELLINGS,
        exp.Table: schemas,
        exp.Column: schemas,
        exp.Select: lambda select: next(filter(None, (other(select) for other in selects)), None),
    }
    new, changed = copied(select), False
    for node in depth_first(new, exp.Expression):
        spelling = spellings.get(type(node))
        if spelling is None or (node.meta.get("start", -1) in kept and type(node) not in _AGGREGATES):
            continue
        if (other := spelling(node)) is not None:
            changed = True
            if type(node) in _AGGREGATES:
                other.meta.update(node.meta)
            if other is not node:
                node.replace(other)
    return (rewritten(new, kept, within) or new) if changed else None


def _may_be_respelled(node: exp.Expr) -> bool:
    """Tell whether a node may be in other words, or be what makes another one so: most texts have none."""
    match node:
        case exp.Subquery():
            return isinstance(node.this, exp.Table | exp.Subquery)
        case exp.Group():
            keys = any(isinstance(key, exp.Literal) for key in node.expressions)
            return keys or bool(node.args.get("rollup") or node.args.get("cube"))
        case exp.EQ():
            return node.arg_key == "expressions" and isinstance(node.parent, exp.Select)
        case exp.Cast():
            return isinstance(node.this, exp.Add | exp.DPipe)
        case exp.Star():
            return is_star(node) and node.parent is not None and node.parent.args.get("group") is not None
        case exp.DataType():
            return node.this in _NATIONAL
        case exp.CTE():
            return bool(node.args["alias"].args.get("columns"))
    return isinstance(node, _OTHERS) or node.args.get("db") is not None


# ---- aggregates ------------------------------------------------------------------------------------------------------

_NAMES: Final[Mapping[str, Callable[[exp.Expression], exp.Expression]]] = {
    "COUNT_BIG": lambda x: exp.Count(this=x),
    "EOMONTH": lambda x: exp.LastDay(this=x),
    "VAR": lambda x: exp.Variance(this=x),
    "STD": lambda x: exp.Stddev(this=x),
    "GEOMEAN": lambda x: exp.Exp(this=exp.Avg(this=exp.Ln(this=x))),
    "GEOMETRIC_MEAN": lambda x: exp.Exp(this=exp.Avg(this=exp.Ln(this=x))),
}


def _named(node: exp.Expression) -> exp.Expression | None:
    if str(node.this).upper() == "ABOVE_THRESHOLD" and node.expressions and has_only(node, "this", "expressions"):
        numbered = enumerate(node.expressions, 1)
        return exp.Case(ifs=[exp.If(this=copied(c), true=exp.Literal.number(place)) for place, c in numbered])
    rule = _NAMES.get(str(node.this).upper())
    if rule is None and (other := of_server(node)) is not None:
        return other
    if rule is None or len(node.expressions) != 1 or not has_only(node, "this", "expressions"):
        return None
    return rule(node.expressions[0].copy())


def _length_of_list(node: exp.Expression) -> exp.Expression | None:
    """Write COUNT(*) for ARRAY_LENGTH(ARRAY_AGG(x)); of DISTINCT values in a subquery, NULL counts as one of them."""
    made, dimension = node.this, node.args.get("expression")
    if not isinstance(made, exp.ArrayAgg) or not has_only(node, "this", "expression") or not has_only(made, "this"):
        return None
    if dimension is not None and dimension != exp.Literal.number(1):
        return None
    if not isinstance(made.this, exp.Distinct):
        return exp.Count(this=exp.Star()) if is_column(made.this) else None
    inside = node.parent_select is not None and node.parent_select.parent_select is not None
    if not inside or not has_only(made.this, "expressions") or len(made.this.expressions) != 1:
        return None
    unknown = exp.Is(this=made.this.expressions[0].copy(), expression=exp.Null())
    zero, one = (exp.Literal.number(number) for number in (0, 1))
    null = exp.Max(this=exp.Case(ifs=[exp.If(this=unknown, true=one)], default=zero))
    return exp.Paren(this=exp.Add(this=exp.Count(this=copied(made.this)), expression=null))


def _approximate_count(node: exp.Expression) -> exp.Expression | None:
    """Write COUNT(DISTINCT x) for APPROX_COUNT_DISTINCT(x): noise is larger than what it approximates by."""
    if not isinstance(node.this, exp.Expr) or not has_only(node, "this"):
        return None
    return exp.Count(this=exp.Distinct(expressions=[copied(node.this)]))


def _average(node: exp.Expression) -> exp.Expression | None:
    """Write SUM(DISTINCT x) / COUNT(DISTINCT x) for AVG(DISTINCT x)."""
    distinct = node.this
    if not isinstance(distinct, exp.Distinct) or len(distinct.expressions) != 1 or not has_only(node, "this"):
        return None
    if not has_only(distinct, "expressions"):
        return None
    return exp.Div(this=exp.Sum(this=copied(distinct)), expression=exp.Count(this=copied(distinct)))


def _quantile(node: exp.Expression) -> exp.Expression | None:
    """Write QUANTILE(x, 0.25) for APPROX_QUANTILES(x, 4)[OFFSET(1)]: the first of its list is the least value."""
    call, place = node.this, node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(call, exp.ApproxQuantiles) or not has_only(call, "this", "expression"):
        return None
    if not isinstance(place, exp.Anonymous) or len(place.expressions) != 1:
        return None
    if not all(has_only(part, "this", "expressions") for part in (node, place)):
        return None
    parts, number, first = call.expression, place.expressions[0], {"OFFSET": 0, "ORDINAL": 1}
    name = str(place.this).upper().removeprefix("SAFE_")
    if name not in first or not all(isinstance(n, exp.Literal) and n.this.isdecimal() for n in (parts, number)):
        return None
    whole, chosen = int(parts.this), int(number.this) - first[name]
    if not 0 <= chosen <= whole <= 1000 or not whole:
        return None
    share = f"{chosen * 10**18 // whole / Decimal(10**18):f}"
    other = exp.Quantile(this=copied(call.this), quantile=exp.Literal.number(share))
    other.meta.update(call.meta)
    return other


def _count(node: exp.Expression) -> exp.Expression | None:
    """Write COUNT(DISTINCT a, b) as that of one text for each pair: as long as the first, and then both.

    As in MySQL and Spark a row in which one of them is NULL is not counted.
    """
    distinct = node.this
    if not isinstance(distinct, exp.Distinct) or len(distinct.expressions) < 2:
        return None
    if not has_only(node, "this", "big_int") or not has_only(distinct, "expressions", "on"):
        return None
    texts = [_text(part) for part in distinct.expressions]
    joined = texts.pop()
    for text in reversed(texts):
        length = _text(exp.Length(this=copied(text)))
        for part in (text, exp.Literal.string(":"), length):
            joined = exp.DPipe(this=part, expression=joined)
    return exp.Count(this=exp.Distinct(expressions=[joined], on=distinct.args.get("on")))


def _text(node: exp.Expression) -> exp.Expression:
    return exp.Cast(this=copied(node), to=exp.DataType(this=exp.DType.TEXT))


def _regression(rule: Callable[[exp.Expression, exp.Expression, "_Pairs"], exp.Expression]) -> Spelling:
    def spelling(node: exp.Expression) -> exp.Expression | None:
        if not has_only(node, "this", "expression") or isinstance(node.parent, exp.Filter | exp.Window):
            return None
        if node.this is None or node.args.get("expression") is None:
            return None
        return exp.Paren(this=rule(node.this, node.expression, _Pairs(node.this, node.expression)))

    return spelling


class _Pairs:
    """Aggregates over the rows in which neither of two values is NULL."""

    def __init__(self, y: exp.Expression, x: exp.Expression) -> None:
        self._y, self._x = y, x

    def of(self, aggregate: exp.Expression) -> exp.Expression:
        """Return an aggregate over these rows."""
        known = [exp.Not(this=exp.Is(this=copied(value), expression=exp.Null())) for value in (self._y, self._x)]
        return exp.Filter(this=aggregate, expression=exp.Where(this=exp.And(this=known[0], expression=known[1])))

    @property
    def slope(self) -> exp.Expression:
        """The slope of y by x; NULL where x does not vary."""
        together = exp.CovarPop(this=copied(self._y), expression=copied(self._x))
        return exp.Div(this=self.of(together), expression=self.of(exp.VariancePop(this=copied(self._x))))

    def mean(self, value: exp.Expression) -> exp.Expression:
        """Return the mean of one of them."""
        return self.of(exp.Avg(this=copied(value)))

    @property
    def intercept(self) -> exp.Expression:
        """Where the line of y by x begins."""
        part = exp.Mul(this=exp.Paren(this=self.slope), expression=self.mean(self._x))
        return exp.Sub(this=self.mean(self._y), expression=part)


def _squared_correlation(y: exp.Expression, x: exp.Expression) -> exp.Expression:
    correlation = exp.Corr(this=copied(y), expression=copied(x))
    return exp.Mul(this=correlation, expression=copied(correlation))


_NATIONAL: Final = (exp.DType.NVARCHAR, exp.DType.NCHAR)


def _text_type(node: exp.Expression) -> exp.Expression | None:
    """Write TEXT for NVARCHAR(10) of SQL Server: its length means nothing, as that of VARCHAR(10) in DuckDB."""
    plain = has_only(node, "this", "expressions", "nested")
    return exp.DataType(this=exp.DType.TEXT) if plain and node.this in _NATIONAL else None


# ---- tuples ----------------------------------------------------------------------------------------------------------


def _equal(left: exp.Expression, right: exp.Expression) -> exp.Expression | None:
    """Write (a, b) = (1, 2) as a = 1 AND b = 2."""
    if not (type(left) is exp.Tuple and type(right) is exp.Tuple and len(left.expressions) == len(right.expressions)):
        return None
    if not left.expressions or not (has_only(left, "expressions") and has_only(right, "expressions")):
        return None
    pairs = zip(left.expressions, right.expressions, strict=True)
    first, *others = [exp.EQ(this=copied(one), expression=copied(other)) for one, other in pairs]
    both: exp.Expression = first
    for other in others:
        both = exp.And(this=both, expression=other)
    return exp.Paren(this=both)


def _equality(node: exp.Expression) -> exp.Expression | None:
    return _equal(node.this, node.expression) if has_only(node, "this", "expression") else None


def _member(node: exp.Expression) -> exp.Expression | None:
    """Write (a, b) IN ((1, 2), (3, 4)) as comparisons, and x IN UNNEST([1, 2]) as x IN (1, 2)."""
    unnest = node.args.get("unnest")
    if isinstance(unnest, exp.Unnest) and has_only(node, "this", "unnest") and has_only(unnest, "expressions"):
        values = values_of_list(unnest.expressions[0]) if len(unnest.expressions) == 1 else []
        return exp.In(this=copied(node.this), expressions=[copied(value) for value in values]) if values else None
    if type(node.this) is not exp.Tuple or not has_only(node, "this", "expressions"):
        return None
    choices = [_equal(node.this, choice) for choice in node.expressions]
    any_of: exp.Expression | None = None
    for choice in choices:
        if choice is None:
            return None
        any_of = choice if any_of is None else exp.Or(this=any_of, expression=choice)
    return None if any_of is None else exp.Paren(this=any_of)


_AGGREGATES: Final[Mapping[type[exp.Expression], Spelling]] = {
    exp.Anonymous: _named,
    exp.ApproxDistinct: _approximate_count,
}
_SELECTS: Final = (
    with_items_for_star, with_listed_values, with_most_common, with_intervals, with_parts_of_list, with_first_rows,
    with_grouped_laterals,
)  # fmt: skip
_SPELLINGS: Final[Mapping[type[exp.Expression], Spelling]] = {
    **_AGGREGATES,
    exp.ArraySize: _length_of_list,
    exp.Avg: _average,
    exp.Bracket: _quantile,
    exp.Count: _count,
    exp.CTE: with_named_columns,
    exp.Cast: beginning_of_month,
    exp.DataType: _text_type,
    exp.DateDiff: since_day_zero,
    exp.Dot: field_of_report,
    exp.RegrSlope: _regression(lambda _y, _x, pairs: pairs.slope),
    exp.RegrIntercept: _regression(lambda _y, _x, pairs: pairs.intercept),
    exp.RegrR2: _regression(lambda y, x, _pairs: _squared_correlation(y, x)),
    exp.RegrCount: _regression(lambda _y, _x, pairs: pairs.of(exp.Count(this=exp.Star()))),
    exp.RegrAvgx: _regression(lambda _y, x, pairs: pairs.mean(x)),
    exp.RegrAvgy: _regression(lambda y, _x, pairs: pairs.mean(y)),
    exp.EQ: _equality,
    exp.In: _member,
    exp.From: without_parentheses,
    exp.Subquery: with_named_parentheses,
    exp.Fetch: as_limit,
    exp.Length: _length_of_list,
    exp.Group: grouped,
}
_OTHERS: Final = (
    exp.Anonymous, exp.ApproxDistinct, exp.ApproxQuantiles, exp.ApproxTopK, exp.ArrayAgg, exp.Bracket, exp.DateDiff,
    exp.Distinct, exp.Dot, exp.Fetch, exp.Lateral, exp.Mode, exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount,
    exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.SetOperation, exp.Tuple, exp.Unnest, exp.Values,
)  # fmt: skip
"""One of these is in whatever is spelled anew, but for schemas, parentheses and GROUP BY."""
