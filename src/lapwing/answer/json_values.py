"""Values of answers as JSON has them."""

import math
from datetime import date
from decimal import Decimal

from lapwing.answer.python_values import Cell

JsonValue = bool | int | float | str | None


def json_value(value: Cell) -> JsonValue:
    """Return a value that JSON has; a decimal is a number where that is exact, else a text."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return float(value) if Decimal(repr(float(value))) == value else f"{value:f}"
        case date():
            return value.isoformat()
        case _:
            return value
