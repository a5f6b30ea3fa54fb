"""Fields of GoogleSQL's reports: SUM(x, report_format => 'JSON').result.noise_confidence_interval.

Here every answer has its intervals, and no report is made. What a question takes out of one is said in other words:
the value is the aggregate, and the ends of its interval are DP_INTERVAL_LOW and DP_INTERVAL_HIGH of it, in two columns
if the whole interval is shown.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.listed_values import has_only

_REPORTS: Final = frozenset({"value", "result"})
"""What holds a report: a field of a protocol buffer, or of JSON."""
_INTERVAL: Final = "noise_confidence_interval"
_ENDS: Final = {"lower_bound": "DP_INTERVAL_LOW", "upper_bound": "DP_INTERVAL_HIGH"}
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
