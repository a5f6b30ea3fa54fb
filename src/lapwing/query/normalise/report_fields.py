"""Fields of GoogleSQL's reports: SUM(x, report_format => 'JSON').result.noise_confidence_interval.

Here every answer has its intervals, and no report is made. What a question takes out of one is said in other words:
the value is the aggregate, and the ends of its interval are DP_INTERVAL_LOW and DP_INTERVAL_HIGH of it, in two columns
if the whole interval is shown.

A list of quantiles with such reports, `APPROX_QUANTILES(x, 4, report_format => 'JSON').result AS q`, of which the
SELECT around it takes `q[OFFSET(1)].value`, is shown as one column for each of its parts that is taken.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.text.trees import nodes_of

_REPORTS: Final = frozenset({"value", "result"})
"""What holds a report: a field of a protocol buffer, or of JSON."""
_INTERVAL: Final = "noise_confidence_interval"
_ENDS: Final = {"lower_bound": "DP_INTERVAL_LOW", "upper_bound": "DP_INTERVAL_HIGH"}
_LEVELS: Final = "confidence_level"
_CASTS: Final = ("DOUBLE", "FLOAT64", "INT64")
"""What reads a number out of JSON."""
_CALL: Final = ("this", "expressions")
_LEVEL: Final = "0.95"
"""The probability with which an interval holds what it is of."""
_VALUES: Final = ("value", "int_value", "float_value")


def field_of_report(node: exp.Expression) -> exp.Expression | None:
    """Return what a field of a report is in other words; None if it is none, or the whole interval."""
    aggregate, names = _taken_apart(node)
    if aggregate is None or names[0] not in _REPORTS:
        return None
    match names[1:]:
        case [name] if name in _VALUES:
            return aggregate.copy()
        case [interval, end] if interval == _INTERVAL and end in _ENDS:
            return _end(aggregate, end)
    return None


def with_intervals(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT that shows both ends where it shows whole intervals; None if it shows none."""
    items, changed = list[exp.Expression](), False
    for item in select.expressions:
        aggregate, names = _taken_apart(item.this if type(item) is exp.Alias else item)
        if aggregate is None or len(names) != 2 or names[0] not in _REPORTS or names[1] != _INTERVAL:
            items.append(item)
            continue
        changed = True
        prefix = f"{item.alias if type(item) is exp.Alias else _INTERVAL}."
        items += [
            exp.Alias(this=_end(aggregate, end), alias=exp.to_identifier(prefix + end, quoted=True)) for end in _ENDS
        ]
    if changed:
        select.set("expressions", items)
    return select if changed else None


def with_parts_of_list(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT over one that shows lists of quantiles, over their parts; None if it is none."""
    clause = select.args.get("from_")
    inner = clause.this.this if isinstance(clause, exp.From) and isinstance(clause.this, exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return None
    lists = {item.alias.casefold(): call for item in inner.expressions if (call := _list_of(item)) is not None}
    taken = [
        column
        for node in select.expressions
        for column in nodes_of(node, exp.Column)
        if column.name.casefold() in lists and not column.args.get("table")
    ]
    parts: dict[str, exp.Expression] = {}
    for column in taken:
        whole, part, shown = _part_of(column, lists[column.name.casefold()])
        if part is None:
            return None
        parts[str(shown.name)] = part
        whole.replace(exp.Literal.number(_LEVEL) if shown.name.lower().endswith(_LEVELS) else shown)
    if not parts:
        return None
    others = [item for item in inner.expressions if _list_of(item) is None]
    named = [exp.Alias(this=part, alias=exp.to_identifier(name, quoted=True)) for name, part in parts.items()]
    inner.set("expressions", [*others, *named])
    return select


def _list_of(item: exp.Expression) -> exp.ApproxQuantiles | None:
    """Return the call whose list of reports a column of a SELECT is; None if it is none."""
    value = item.this if type(item) is exp.Alias else None
    if isinstance(value, exp.Anonymous) and str(value.this).upper() == "JSON_QUERY_ARRAY" and has_only(value, *_CALL):
        value = value.expressions[0] if len(value.expressions) == 1 else None
    call, names = (None, ()) if value is None else _taken_apart(value)
    whole = list(names) in (["result"], ["values", "values"])
    return call if whole and isinstance(call, exp.ApproxQuantiles) else None


def _part_of(
    column: exp.Expression, call: exp.Expression
) -> tuple[exp.Expression, exp.Expression | None, exp.Expression]:
    """Return what is taken of a list of reports, the same of one quantile, and a name for it.

    Args:
        column: The list, in a tree.
    """
    place, names = column.parent, list[str]()
    if not isinstance(place, exp.Bracket) or not has_only(place, "this", "expressions"):
        return column, None, column
    whole: exp.Expression = place
    while isinstance(whole.parent, exp.Dot) and has_only(whole.parent, "this", "expression"):
        whole = whole.parent
        names.append(str(whole.expression.name).lower())
    shown = exp.Column(this=exp.to_identifier(whole.sql(comments=False), quoted=True))
    around = whole.parent
    if isinstance(around, exp.Anonymous) and str(around.this).upper() in _CASTS and has_only(around, *_CALL):
        whole = around if len(around.expressions) == 1 else whole
    quantile = exp.Bracket(this=call.copy(), expressions=[part.copy() for part in place.expressions])
    match names:
        case [name] if name in _VALUES:
            return whole, quantile, shown
        case [interval, end] if interval == _INTERVAL and end in _ENDS:
            return whole, _end(quantile, end), shown
        case [interval, level] if interval == _INTERVAL and level == _LEVELS:
            return whole, quantile, shown
    return whole, None, shown


def _end(aggregate: exp.Expression, end: str) -> exp.Expression:
    return exp.Anonymous(this=_ENDS[end], expressions=[aggregate.copy()])


def _taken_apart(node: exp.Expression) -> tuple[exp.Expression | None, Sequence[str]]:
    """Return the aggregate whose field a node is, and the names behind it."""
    names: list[str] = []
    while isinstance(node, exp.Dot) and has_only(node, "this", "expression"):
        name = node.expression
        if not isinstance(name, exp.Identifier):
            return None, ()
        names.insert(0, name.name.lower())
        node = node.this
    return (node, names) if names and isinstance(node, exp.AggFunc) else (None, ())
