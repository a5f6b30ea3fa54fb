"""Numbers of a result as texts: CAST(x AS VARCHAR), x || '%', CONCAT(x, ' days').

Whole numbers, conditions and dates have one text. A fraction has one if the query says to how many digits: ROUND(x, 2)
or CAST(x AS DECIMAL(10, 2)). DuckDB writes all digits of a DECIMAL, 12.50, and no more than needed of a DOUBLE, 12.5
and 12.0. Sums and products of exact decimals are DECIMALs there. A quotient, an average or a root is a DOUBLE.
"""

from fractions import Fraction

from lapwing.query.derivation.answer_functions import AS_NEEDED
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, compute
from lapwing.query.derivation.node import Derived


def as_decimal(value: Derived, digits: Fraction) -> Derived:
    """Round as CAST(x AS DECIMAL(p, digits)) does: ROUND has a whole number for its digits, and this a decimal."""
    return compute("round", value, ConstantValue(value=digits, shape="decimal"))


def as_text(value: Derived) -> Derived:
    """Write a value as a text.

    Raises:
        QueryRefused: If it is a fraction of no stated number of digits.
    """
    if value.shape == "text":
        return value
    digits = _digits(value)
    if digits is None:
        return compute("written", value)
    return compute("written_decimal", value, ConstantValue(value=digits, shape="integer"))


def _digits(value: Derived) -> Fraction | None:
    """Return how many digits after the point the text of a decimal has; None if that is not said."""
    match value:
        case FunctionValue(
            function="round", arguments=(rounded, ConstantValue(value=Fraction() as digits, shape=kind))
        ):
            if rounded.shape == "integer" and kind == "integer":
                return Fraction(0)
            return AS_NEEDED if rounded.shape == "real" and kind == "integer" else max(digits, Fraction(0))
        case FunctionValue(function="coalesce" | "case" as function, arguments=parts):
            branches = parts if function == "coalesce" else (*parts[1::2], parts[-1])
            said_of = {_digits(part) for part in branches if part.shape not in ("integer", "null")}
            return said_of.pop() if len(said_of) == 1 else None
    return None
