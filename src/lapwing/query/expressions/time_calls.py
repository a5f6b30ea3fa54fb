"""Bind what tools write about time: AT TIME ZONE, buckets, differences and ages, spans, seconds, texts by a format."""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import conversion, days, instants, logic, temporal
from lapwing.query.expressions.calls import bind_expression, computing, summed
from lapwing.query.expressions.casts import ZONED
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import DATE, TEXT, TIMESTAMP, Plain, is_temporal
from lapwing.query.expressions.weight import bearable, require_small

_SPAN: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
_INTERVAL: Final = "Write INTERVAL '15' MINUTE, or INTERVAL '1 day 12 hours'."
_DIFFERENCE: Final = "Write later - earlier > INTERVAL 2 DAY, of timestamps."
_LETTERS: Final = {"m": "minute", "w": "week", "y": "year"}
"""In a text of an INTERVAL databases agree on what these are."""
_MONTHS: Final = {1: "month", 3: "quarter", 12: "year"}


# ---- spans -----------------------------------------------------------------------------------------------------------


def spans_of(node: exp.Expression, rows: RowScope) -> list[tuple[str, Fraction]]:
    """Return the units and amounts of a constant INTERVAL, or of a text that stands for one.

    Raises:
        QueryRefused: If it is neither.
    """
    if isinstance(node, exp.Interval):
        rows.only(node, "this", "unit", "fraction_in_string")
        unit, text = node.args.get("unit"), node.this
        if isinstance(text, exp.Neg) or not isinstance(text, exp.Literal):
            raise rows.refusal(node, RefusalCause.NOT_CONSTANT, "A constant INTERVAL is needed", _INTERVAL)
        rows.only(text, "this", "is_string")
        if unit is not None:
            rows.only(unit, "this")
        written = f"{text.this} {unit.name}" if unit is not None else str(text.this)
    elif isinstance(node, exp.Literal) and node.is_string:
        written = str(node.this)
    else:
        raise rows.refusal(node, RefusalCause.NOT_CONSTANT, "A constant INTERVAL is needed", _INTERVAL)
    found, at = list[tuple[str, Fraction]](), 0
    while (part := _SPAN.match(written, at)) is not None:
        unit_name = temporal.unit_of(_LETTERS.get(part[2].casefold(), part[2]))
        if unit_name not in temporal.SHIFTS:
            break
        found, at = [*found, (unit_name, Fraction(part[1]))], part.end()
    if not found or at < len(written):
        raise rows.refusal(
            node, RefusalCause.UNKNOWN_TIME_UNIT, f"The INTERVAL '{written[:40]}' is not understood", _INTERVAL
        )
    return found


def shifted(argument: Expression, node: exp.Expression, rows: RowScope, sign: int) -> Expression:
    """Move a time by an INTERVAL of several units, largest first."""
    for unit, amount in spans_of(node, rows):
        if amount.denominator != 1:
            unit, amount = "microsecond", amount * _length(unit, node, rows)
        argument = temporal.shift(argument, unit, conversion.number(amount), sign)
    return argument


def _length(unit: str, node: exp.Expression, rows: RowScope) -> int:
    base, factor = temporal.SHIFTS[unit]
    if base == "months":
        raise rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, "A month has no fixed length", "Write days: INTERVAL 30 DAY."
        )
    return factor * (days.DAY if base == "days" else 1)


def microseconds_of(node: exp.Expression, rows: RowScope) -> int:
    """Return how long a constant INTERVAL is."""
    length = sum(amount * _length(unit, node, rows) for unit, amount in spans_of(node, rows))
    if length.denominator != 1:
        raise rows.refusal(node, RefusalCause.INVALID_ARGUMENT, "An INTERVAL goes beyond microseconds", _INTERVAL)
    return int(length)


def seconds_of(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind an INTERVAL beside a difference of times, which is a number of seconds."""
    return conversion.number(Fraction(microseconds_of(node, rows), instants.SECOND))


# ---- differences and ages --------------------------------------------------------------------------------------------


def part_of_span(unit: str, node: exp.Expression, rows: RowScope) -> Expression | None:
    """Bind a part of a difference, or of an AGE; None if the node is neither."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == "AGE" and len(node.expressions) == 2:
        rows.only(node, "this", "expressions")
        later, earlier = (_of_time(part, rows) for part in node.expressions)
        return instants.part_of_age(unit, later, earlier)
    if not isinstance(node, exp.Sub):
        return None
    value, is_span = _bind_time(node, rows)
    return (instants.part_of_span if is_span else temporal.part)(unit, value)


def compared_spans(symbol: str, node: exp.Expression, sides: Sequence[exp.Expression], rows: RowScope) -> Expression:
    """Compare two values; beside a difference of times, which is a number of seconds, an INTERVAL is one, too."""
    intervals = [type(side) is exp.Interval for side in sides]
    bound = [None if interval else _bind_time(side, rows) for side, interval in zip(sides, intervals, strict=True)]
    spans = [each is None or each[1] for each in bound]
    if any(spans) and (all(intervals) or not all(spans)):
        raise rows.refusal(
            node, RefusalCause.INCOMPATIBLE_TYPES, "An INTERVAL is compared with a difference of times", _DIFFERENCE
        )
    left, right = (seconds_of(side, rows) if each is None else each[0] for side, each in zip(sides, bound, strict=True))
    return logic.compare(symbol, left, right)


def _bind_time(node: exp.Expression, rows: RowScope) -> tuple[Expression, bool]:
    """Bind a value once, and tell whether it is a difference of two times, of which one has a time of day."""
    sides = (node.this, node.expression) if isinstance(node, exp.Sub) else ()
    if not sides or any(isinstance(side.unnest(), exp.Interval) for side in sides):
        return bind_expression(node, rows), False
    rows.only(node, "this", "expression")
    first, second = (bind_expression(side, computing(rows)) for side in sides)
    kinds = (first.type, second.type)
    is_span = all(map(is_temporal, kinds)) and any(isinstance(k, Plain) and k.name == "timestamp" for k in kinds)
    ready = rows.ready(node)
    if ready is not None:
        return ready, is_span
    with rows.pointing(node):
        return bearable(require_small(summed(first, second, -1))), is_span


def _of_time(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind a time, which may be a constant text."""
    value = bind_expression(node, rows)
    if isinstance(value, Literal) and isinstance(value.value, str):
        return conversion.temporal(value.value, TIMESTAMP)
    return value


# ---- buckets ---------------------------------------------------------------------------------------------------------


def _bucket(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind TIME_BUCKET(width, x) and DATE_BIN(width, x, origin)."""
    rows.only(node, "this", "expression", "unit")
    argument, origin = bind_expression(node.expression, rows), node.args.get("unit")
    spans = spans_of(node.this, rows)
    if all(temporal.SHIFTS[unit][0] == "months" for unit, _ in spans):
        months = sum(amount * temporal.SHIFTS[unit][1] for unit, amount in spans)
        if months not in _MONTHS or origin is not None:
            remedy = "Write DATE_TRUNC('month', x), 'quarter' or 'year'."
            raise rows.refusal(
                node, RefusalCause.UNKNOWN_TIME_UNIT, "Buckets of several months are not supported", remedy
            )
        return temporal.truncate(_MONTHS[int(months)], argument)
    width, start = microseconds_of(node.this, rows), instants.MONDAY
    if not 0 < width <= 36_600 * days.DAY:
        raise rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, "A bucket is longer than 0 and at most 100 years", _INTERVAL
        )
    if origin is not None:
        known = _of_time(origin, rows)
        if not isinstance(known, Literal) or not is_temporal(known.type):
            raise rows.refusal(
                node,
                RefusalCause.NOT_CONSTANT,
                "The origin of buckets is a constant",
                "Write TIMESTAMP '2024-01-01 00:00:00'.",
            )
        start = days.microseconds(known.type)[0] if isinstance(known.type, Plain) else start
    return instants.bucket(width, argument, start)


# ---- zones -----------------------------------------------------------------------------------------------------------


def _at_time_zone(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "zone")
    zone, inner = bind_expression(node.args["zone"], rows), bind_expression(node.this, rows)
    name = zone.value if isinstance(zone, Literal) else None
    if not isinstance(name, str):
        raise rows.refusal(
            node, RefusalCause.NOT_CONSTANT, "AT TIME ZONE takes a constant", "Write AT TIME ZONE 'Europe/Berlin'."
        )
    zoned = is_zoned(node.this)
    if isinstance(inner, Literal) and isinstance(inner.value, str):
        zoned, inner = True, conversion.temporal(inner.value, TIMESTAMP, zoned=True)
    return instants.in_zone(inner, name) if zoned else instants.from_zone(inner, name)


def is_zoned(node: exp.Expression) -> bool:
    """Tell whether a time knows that it is one in UTC, as TIMESTAMPTZ does: AT TIME ZONE shows it in another zone."""
    inner = node.unnest()
    match inner:
        case exp.Cast():
            return inner.args["to"].this in ZONED
        case exp.AtTimeZone():
            return not is_zoned(inner.this)
        case exp.UnixToTime():
            return True
        case exp.Add() | exp.Sub() | exp.TimestampTrunc():
            return is_zoned(inner.this)
    return False


# ---- seconds, and texts by a format ----------------------------------------------------------------------------------


_PARTS_OF_SECOND: Final = {"3": 1_000, "6": 1_000_000}
"""Parts of a second, by the scale that the parser gives to EPOCH_MS and MAKE_TIMESTAMP."""


def _to_timestamp(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind TO_TIMESTAMP(seconds) and TO_TIMESTAMP(text, format)."""
    rows.only(node, "this", "scale")
    argument, template = bind_expression(node.this, rows), node.args.get("scale")
    if isinstance(template, exp.Literal) and (parts := _PARTS_OF_SECOND.get(str(template.this))) is not None:
        remedy = f"Write TO_TIMESTAMP(x / {parts})."
        raise rows.refusal(node, RefusalCause.FUNCTION_NOT_SUPPORTED, f"{name_of(node)} is not answered here", remedy)
    if template is not None:
        return by_format(argument, instants.template_of(_text(template, node, rows)), TIMESTAMP)
    if argument.type == TEXT:
        raise rows.refusal(
            node,
            RefusalCause.INVALID_FORMAT,
            "TO_TIMESTAMP of a text takes a format",
            "Write TRY_CAST(x AS TIMESTAMP).",
        )
    return conversion.to_timestamp(argument) if is_temporal(argument.type) else instants.of_epoch(argument)


def _strptime(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "format")
    return by_format(bind_expression(node.this, rows), _text(node.args["format"], node, rows), TIMESTAMP)


def bind_by_format(node: exp.Expression, rows: RowScope) -> Expression | None:
    """Bind TO_DATE(x, format) and its like; None if the function is another one."""
    name, given = node.name.upper(), node.expressions
    if name not in _BY_FORMAT or len(given) != 2:
        return None
    kind, postgres, first = _BY_FORMAT[name]
    template = _text(given[1 - first], node, rows)
    template = instants.template_of(template) if postgres else template
    return by_format(bind_expression(given[first], rows), template, kind)


_BY_FORMAT: Final[Mapping[str, tuple[Plain, bool, int]]] = {
    "TO_DATE": (DATE, True, 0),
    "TRY_TO_DATE": (DATE, True, 0),
    "TRY_TO_TIMESTAMP": (TIMESTAMP, True, 0),
    "TRY_STRPTIME": (TIMESTAMP, False, 0),
    "PARSE_DATE": (DATE, False, 1),
    "PARSE_TIMESTAMP": (TIMESTAMP, False, 1),
}


def by_format(argument: Expression, template: str, kind: Plain) -> Expression:
    """Read a text by a format.

    Raises:
        QueryRefused: If it is no text, or a constant that is none.
    """
    if argument.type != TEXT:
        raise QueryRefused(
            "A text is read by a format",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write CAST(x AS TIMESTAMP) of a date or timestamp.",
        )
    return instants.read_by_format(argument, template, kind)


def _text(node: exp.Expression, around: exp.Expression, rows: RowScope) -> str:
    value = bind_expression(node, rows)
    if not isinstance(value, Literal) or not isinstance(value.value, str) or len(value.value) > 100:
        raise rows.refusal(
            around,
            RefusalCause.INVALID_FORMAT,
            "A format is a constant text of up to 100 characters",
            "Write '%Y-%m-%d'.",
        )
    return value.value


TIME_CALLS: Final[Mapping[type[exp.Expression], Callable[[exp.Expression, RowScope], Expression]]] = {
    exp.AtTimeZone: _at_time_zone,
    exp.DateBin: _bucket,
    exp.StrToTime: _strptime,
    exp.UnixToTime: _to_timestamp,
}
