"""Values as columns, and aggregates of the rows of one unit, as Spark's SQL: of its groups and of its windows."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, cast

from lapwing.engines.spark.expressions import expression
from lapwing.engines.spark.literals import clamp, double, print_in_steps, width
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed, Real, Type


def column_of(value: Expression) -> str:
    """Return an expression as it becomes a column: inside its bounds, and zero without a sign.

    What is summed of a column is not clamped again. So a bound is enforced here even where it is proven.
    """
    printed, kind = expression(value), value.type
    if isinstance(kind, Real) and not isinstance(value, Literal):
        return f"({printed} + 0.0D)"
    if isinstance(value, Operation) and isinstance(kind, Fixed) and kind.low is not None and kind.high is not None:
        return inside(printed, kind.low, kind.high)
    return printed


def inside(value: str, low: int, high: int) -> str:
    """Clamp an integer to its bounds; NULL stays NULL."""
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"


def aggregate(function: str, argument: Expression | None, kind: Type, over: str = "") -> str:
    """Return an aggregate of rows of one unit.

    Args:
        kind: The type of its result.
        over: Which rows of a window it sees.
    """
    value = "*" if argument is None else column_of(argument)
    match function:
        case "sum":
            return f"TRY_CAST({summed(value)}{over} AS {width(cast(Fixed, kind))})"
        case "average":
            step = cast(Fixed, cast(Expression, argument).type).step
            return _averaged(f"{summed(value)}{over}", f"COUNT({value}){over}", cast(Real, kind), step)
    return f"{FUNCTIONS[function].format(value)}{over}"


def summed(value: str) -> str:
    """Add up integers: SUM of 64 bits raises beyond them, that of 38 digits has room for 10¹⁹ of them."""
    return f"SUM(CAST({value} AS DECIMAL(38,0)))"


FUNCTIONS: Final[Mapping[str, str]] = {
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "least": "MIN({})",
    "greatest": "MAX({})",
    "all": "BOOL_AND({})",
    "any": "BOOL_OR({})",
}


def _averaged(total: str, count: str, kind: Real, step: Fraction) -> str:
    """Divide a sum of steps by a count: a double, which a rounding could take past the bounds."""
    mean = print_in_steps(f"CAST({total} AS DOUBLE) / NULLIF(CAST({count} AS DOUBLE), 0.0D)", 1 / step)
    low, high = (double(cast(Fraction, end)) for end in (kind.low, kind.high))
    return f"CASE WHEN {count} = 0 THEN NULL ELSE LEAST(GREATEST({mean}, {low}), {high}) END"
