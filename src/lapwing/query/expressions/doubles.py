"""Doubles and steps: the same arithmetic here and in the engine, so that a bound computed here holds there.

Every engine rounds + − * / to the nearest double (IEEE 754), and that rounding never turns two numbers around. So the
bounds of a result are the results at the bounds of its arguments, computed in doubles by the same operations in the
same order; exact bounds would be overstepped by the last bit, and what oversteps its bounds may overflow.
"""

from fractions import Fraction


def nearest(value: Fraction) -> Fraction:
    """Return the double nearest to a value."""
    return Fraction(float(value))


def in_steps(value: Fraction, step: Fraction) -> Fraction:
    """Divide a double by a step as `print_in_steps` does."""
    return Fraction(float(value) * float(step.denominator) / float(step.numerator))


def print_in_steps(value: str, step: Fraction) -> str:
    """Divide a double by a step, in one rounding where the step is 1/n or n."""
    multiplied = value if step.denominator == 1 else f"{value} * {double(Fraction(step.denominator))}"
    return multiplied if step.numerator == 1 else f"{multiplied} / {double(Fraction(step.numerator))}"


def double(value: Fraction) -> str:
    """Write the double nearest to a constant."""
    return f"{float(value)!r}::DOUBLE"
