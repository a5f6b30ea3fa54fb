"""The largest epsilon of a query that still fits into what is left, for people."""

from fractions import Fraction

from lapwing.privacy.amounts import exact
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import Loss


def largest_epsilon(remaining: Loss, delta: Fraction) -> str:
    """Return the largest query `epsilon`, in thousandths, whose loss fits into what remains; empty if there is none.

    Args:
        delta: At which a query's epsilon is read as a loss.
    """
    if remaining.amount <= 0:
        return ""
    thousandths = int(exact(remaining.to_epsilon(delta=delta), "epsilon") * 1000)
    while thousandths > 0 and not loss_for(remaining.kind, Fraction(thousandths, 1000), delta) <= remaining:
        thousandths -= 1
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".") if thousandths else ""
