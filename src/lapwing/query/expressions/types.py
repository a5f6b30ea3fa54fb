"""What an expression may be worth: its type, with public bounds on every number.

Numbers are of two kinds. A `Fixed` is an integer number of public steps inside known integer bounds: it is computed
exactly by every engine. A `Real` is a double, which division and unbounded columns give; it is compared, or rounded
back to a `Fixed` before it is summed. Bounds are facts of the catalog and the question alone; `None` says that no
bound is declared.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import Literal

# Engines compute sums and products in 128 bits; bounds are kept well inside.
LARGEST_INTEGER = 2**120
# Doubles reach 1.8e308; staying below this keeps every product of two of them finite.
LARGEST_REAL = Fraction(10) ** 150

Mode = Literal["value", "read", "computed", "within", "bounded"]
"""What a bounded number is where an expression looks at it (`as_read.in_mode`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """An integer number `k` of steps, low ≤ k ≤ high; the value is k·step."""

    step: Fraction = field(hash=False)  # hashing a fraction takes longer than all else; equal types are so all the same
    low: int | None
    high: int | None

    @property
    def bounded(self) -> bool:
        """Whether both bounds are declared."""
        return self.low is not None and self.high is not None

    def interval(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the bounds of the value itself."""
        return (
            None if self.low is None else self.low * self.step,
            None if self.high is None else self.high * self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """A double, never NaN, inside [low, high]."""

    low: Fraction | None
    high: Fraction | None

    @property
    def bounded(self) -> bool:
        """Whether both bounds are declared."""
        return self.low is not None and self.high is not None

    def interval(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the bounds of the value."""
        return (self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A value that is not a number.

    Args:
        low: The first and the last date, in days since 1970-01-01, or the first and the last timestamp, in microseconds
            since then. None where no bound is known; an unbounded value may also be infinite.
        high: As `low`.
    """

    name: Literal["boolean", "text", "date", "timestamp", "null"]
    low: int | None = None
    high: int | None = None


Number = Fixed | Real
Type = Fixed | Real | Plain

BOOLEAN = Plain(name="boolean")
TEXT = Plain(name="text")
DATE = Plain(name="date")
TIMESTAMP = Plain(name="timestamp")
NULL = Plain(name="null")
UNBOUNDED_INTEGER = Fixed(step=Fraction(1), low=None, high=None)
UNBOUNDED_REAL = Real(low=None, high=None)
# Bounds of bounded numbers as they are read (`as_read`): products of two integers stay inside 128 bits, and products
# of three doubles inside doubles.
READ_INTEGER = Fixed(step=Fraction(1), low=-(2**56), high=2**56)
READ_REAL = Real(low=-(Fraction(2) ** 150), high=Fraction(2) ** 150)


def is_temporal(kind: Type) -> bool:
    """Tell whether a type is of dates or timestamps."""
    return isinstance(kind, Plain) and kind.name in ("date", "timestamp")


def describe(kind: Type) -> str:
    """Name a type the way an analyst would."""
    if isinstance(kind, Plain):
        return {"null": "NULL"}.get(kind.name, kind.name)
    return "number"


def common_step(first: Fraction, second: Fraction) -> Fraction:
    """Return the largest step of which both are whole multiples."""
    return Fraction(gcd(first.numerator, second.numerator), lcm(first.denominator, second.denominator))


def least(first: Fraction | int | None, second: Fraction | int | None) -> Fraction | int | None:
    """Return the smaller bound; an undeclared one stays undeclared."""
    return None if first is None or second is None else min(first, second)


def greatest(first: Fraction | int | None, second: Fraction | int | None) -> Fraction | int | None:
    """Return the larger bound; an undeclared one stays undeclared."""
    return None if first is None or second is None else max(first, second)


def inside(kind: Real, step: Fraction) -> Fixed:
    """Return the type of a bounded Real rounded half up to `step` and clamped to whole steps inside its bounds."""
    if kind.low is None or kind.high is None:
        raise ValueError("only a bounded real has a fixed-point type")
    low, high = ceil(kind.low / step), floor(kind.high / step)
    return Fixed(step=step, low=min(low, high), high=max(low, high))


# ---- doubles ---------------------------------------------------------------------------------------------------------
# Every engine rounds + − * / to the nearest double (IEEE 754), and that rounding never turns two numbers around. So the
# bounds of a result are the results at the bounds of its arguments, computed in doubles by the same operations in the
# same order; exact bounds would be overstepped by the last bit, and what oversteps its bounds may overflow.


def nearest(value: Fraction) -> Fraction:
    """Return the double nearest to a value."""
    return Fraction(float(value))


def in_steps(value: Fraction, step: Fraction) -> Fraction:
    """Divide a double by a step as the engines that print it do (`print_in_steps`)."""
    return Fraction(float(value) * float(step.denominator) / float(step.numerator))
