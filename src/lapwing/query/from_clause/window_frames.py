"""Bind the frame of a window: ROWS and RANGE BETWEEN …, brought to one form for each meaning.

Frames that mean the same become the same: RANGE UNBOUNDED PRECEDING is left out, as an aggregate with an order has it
anyway; an aggregate over all rows of a part has no order; no frame reaches further than a unit has rows.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions import conversion, days, temporal
from lapwing.query.expressions.calls import bind_expression, exact_number
from lapwing.query.expressions.conversion import bounds_of, in_calendar
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Fixed, Plain, describe, is_temporal
from lapwing.query.from_clause.window_functions import OF_ONE_ROW, RANKED, called_by
from lapwing.query.relations.windowed import SortTerm, WindowFrame

Order = tuple[SortTerm, ...]

LARGEST_DISTANCE = 2**61
"""Order values and distances up to it add up inside 64 bits."""
WHOLE = WindowFrame(unit="rows", start=None, end=None)


def bind_frame(
    spec: exp.Expression | None, node: exp.Window, order: Order, most: int, rows: RowScope
) -> tuple[WindowFrame | None, Order]:
    """Return the frame that is written, if one is, and the order that its distances are measured in.

    Args:
        node: The window, to point at.
        most: The most rows of a unit.
    """
    if spec is None:
        return None, order
    rows.only(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE"):
        raise rows.refusal(
            node,
            RefusalCause.INVALID_FRAME,
            f"A frame in {kind} is not supported",
            "Write ROWS BETWEEN … or RANGE BETWEEN ….",
        )
    ends = [(spec.args.get("start"), spec.args.get("start_side"))]
    ends.append((spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side")))
    unit: Choice["rows", "range"] = "rows" if kind == "ROWS" else "range"
    if unit == "range" and any(isinstance(end, exp.Expression) for end, _ in ends):
        order = (_measured(order, node, rows),)
    start, end = (_end(which, end, side, unit, order, most, node, rows) for which, (end, side) in enumerate(ends))
    if start is not None and end is not None and start > end:
        raise rows.refusal(
            node, RefusalCause.INVALID_FRAME, "A frame ends before it starts", "Write the earlier end first."
        )
    return WindowFrame(unit=unit, start=start, end=end), order


def _end(
    which: int,
    end: object,
    side: object,
    unit: Choice["rows", "range"],
    order: Order,
    most: int,
    node: exp.Window,
    rows: RowScope,
) -> int | None:
    """Return one end of a frame: 0 for the current row, None for the first or the last row of the part."""
    if end == "CURRENT ROW":
        return 0
    sign = {"PRECEDING": -1, "FOLLOWING": 1}.get(str(side).upper())
    if sign is None:
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, "A frame needs PRECEDING or FOLLOWING", _EXAMPLE)
    if end == "UNBOUNDED":
        if (sign < 0) != (which == 0):
            raise rows.refusal(
                node,
                RefusalCause.INVALID_FRAME,
                "A frame starts at UNBOUNDED PRECEDING and ends at UNBOUNDED FOLLOWING",
                _EXAMPLE,
            )
        return None
    if not isinstance(end, exp.Expression):
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, "A frame of this kind is not supported", _EXAMPLE)
    if unit == "range":
        return sign * _distance(end, order[0].value, node, rows)
    expression = bind_expression(end, rows)
    number = expression.value if isinstance(expression, Literal) else None
    if not isinstance(number, Fraction) or number.denominator != 1 or number < 0:
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, "A frame in ROWS takes whole numbers", _EXAMPLE)
    if number >= most and (sign < 0) == (which == 0):
        return None
    return sign * min(int(number), most)


_EXAMPLE = "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW."


# ---- RANGE with distances -------------------------------------------------------------------------------------------


def _measured(order: Order, node: exp.Window, rows: RowScope) -> SortTerm:
    """Return the one ORDER BY term as a bounded whole number of steps: a date as its day, a timestamp in microseconds.

    Integers and their distances are exact, and small enough that no engine's arithmetic on them can overflow.
    """
    if len(order) != 1:
        raise rows.refusal(
            node,
            RefusalCause.INVALID_FRAME,
            "RANGE with a distance needs one ORDER BY column",
            "Order by one column, or use ROWS.",
        )
    (term,) = order
    value = term.value
    if is_temporal(value.type):
        value = _number_of(value, node, rows)
    kind = value.type
    if (
        not isinstance(kind, Fixed)
        or not kind.bounded
        or max(map(abs, conversion.integers_of(value))) > LARGEST_DISTANCE
    ):
        reason = f"RANGE with a distance orders by a number or time with bounds, not by this {describe(kind)}"
        raise rows.refusal(
            node,
            RefusalCause.UNBOUNDED_TIME,
            reason,
            "Use ROWS.",
            "" if isinstance(kind, Plain) else conversion.DECLARE_BOUNDS,
        )
    return replace(term, value=value)


def _number_of(value: Expression, node: exp.Window, rows: RowScope) -> Expression:
    kind = value.type
    if not isinstance(kind, Plain) or kind.low is None or kind.high is None:
        reason = f"RANGE with a distance orders by a number or time with bounds, not by this {describe(kind)}"
        raise rows.refusal(
            node,
            RefusalCause.UNBOUNDED_TIME,
            reason,
            "Use ROWS.",
            conversion.DECLARE_BOUNDS,
        )
    value = in_calendar(value)
    low, high = bounds_of(value)
    if kind.name == "date":
        return Operation(function="day_number", arguments=(value,), type=conversion.fixed(Fraction(1), low, high))
    return Operation(
        function="microsecond_number", arguments=(value,), type=conversion.fixed(Fraction(1, 10**6), low, high)
    )


def _distance(end: exp.Expression, value: Expression, node: exp.Window, rows: RowScope) -> int:
    """Return a distance in steps of the order value."""
    step = value.type.step if isinstance(value.type, Fixed) else Fraction(1)
    timed = isinstance(value, Operation) and value.function in ("day_number", "microsecond_number")
    if isinstance(end, exp.Interval) == timed:
        number = _seconds(end, node, rows) if timed else _constant(end, rows)
        if timed and isinstance(value, Operation) and value.function == "day_number":
            number = None if number is None else number / 86_400
        if number is not None and number >= 0 and (number / step).denominator == 1:
            steps = int(number / step)
            if steps <= LARGEST_DISTANCE:
                return steps
    remedy = "Write INTERVAL 7 DAY." if timed else "Write a number that is a multiple of the column's step."
    raise rows.refusal(
        node,
        RefusalCause.INVALID_FRAME,
        "RANGE needs a constant distance in whole steps of the ORDER BY column",
        remedy,
    )


def _constant(node: exp.Expression, rows: RowScope) -> Fraction | None:
    expression = bind_expression(node, rows)
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, Fraction) else None


def _seconds(interval: exp.Expression, node: exp.Window, rows: RowScope) -> Fraction | None:
    rows.only(interval, "this", "unit")
    unit = interval.args.get("unit")
    if not isinstance(unit, exp.Var):
        return None
    rows.only(unit, "this")
    name = temporal.unit_of(unit.name)
    if name not in ("second", "minute", "hour", "day", "week"):
        raise rows.refusal(
            node,
            RefusalCause.INVALID_FRAME,
            f"A distance in {unit.name.upper()} has no fixed length",
            "Write INTERVAL 30 DAY.",
        )
    amount, seconds = interval.this, days.FIXED[name] // 10**6
    if isinstance(amount, exp.Literal) and amount.is_string:
        return exact_number(str(amount.this), amount, rows) * seconds
    number = _constant(amount, rows) if isinstance(amount, exp.Expression) else None
    return None if number is None else number * seconds


# ---- one form for each meaning --------------------------------------------------------------------------------------


def settled(
    function: str, node: exp.Window, order: Order, frame: WindowFrame | None, ignores_nulls: bool, rows: RowScope
) -> tuple[WindowFrame | None, Order]:
    """Return the frame and the order that a function has in plans.

    Raises:
        QueryRefused: If the function takes no such frame, or lacks an order.
    """
    name = called_by(node)
    counts_rows = frame is not None and frame.unit == "rows" and not frame.whole
    if not order and (counts_rows or function in RANKED | OF_ONE_ROW):
        raise rows.refusal(
            node, RefusalCause.WINDOW_NEEDS_ORDER, f"{name} needs an order", "Write OVER (PARTITION BY … ORDER BY …)."
        )
    if function in RANKED:
        if frame is not None and not frame.whole:  # over all rows of a part it says nothing
            raise rows.refusal(node, RefusalCause.INVALID_FRAME, f"{name} takes no frame", "Leave it out.")
        return None, order
    if function in OF_ONE_ROW:
        return _of_one_row(function, node, frame, ignores_nulls, rows), order
    if frame is not None and frame.whole:
        return None, ()
    # By itself an aggregate sees the rows up to the last peer of its own, and without an order all rows are peers.
    usual = frame is None or not order or (frame.unit, frame.start, frame.end) == ("range", None, 0)
    return (None if usual else frame), order


def _of_one_row(
    function: str, node: exp.Window, frame: WindowFrame | None, ignores_nulls: bool, rows: RowScope
) -> WindowFrame:
    """Return the frame in ROWS: ties are broken, so that where a frame ends among peers must not matter."""
    if frame is not None and (frame.whole or frame.unit == "rows"):
        return WHOLE if frame.whole else frame
    starts_first = frame is None or (frame.start is None and (frame.end or 0) >= 0)
    if function == "first_value" and not ignores_nulls and starts_first:
        return WHOLE
    reason = f"{called_by(node)} sees the rows up to its own and its peers, which have no order among themselves"
    raise rows.refusal(
        node, RefusalCause.WINDOW_NEEDS_ORDER, reason, "Write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING."
    )
