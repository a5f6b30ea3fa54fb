"""Narrower intervals of a mean: the errors of its sum and its count are taken together, not each at its worst.

Let S be the sum of x − c over n rows and d = S/n their mean, so that S − d·n = 0. Of what is released, S + e and n + f,
the combination (S + e) − d·(n + f) is then e − d·f and nothing else. For e from N(0, s²) and f from N(0, t²) it is
within z·√(s² + d²t²) of 0 with the wanted probability, exactly, for the true mean d, whatever it is; rounding both to
integers adds at most ½ + |d|/2. The root is convex in |d|, and the mean lies inside public bounds, |d| ≤ D. So all of
it is at most a + b·|d|, with a its value at 0, and a + b·D its value at D.

And whenever (S + e) − d·(n + f) is a δ of at most a + b·|d|, d is a quotient of a sum within a of the released one and
a count within b of it: move the sum by −δ·a/(a + b|d|), and the count by δ·b/(a + b|d|) with the sign of d. So a and b
take the place of margins, and dividing the two intervals is all that follows. The count that is met in this way is not
the true one: where it may be below 1, the mean may be anywhere inside its bounds.

This is Fieller's argument (1954) with the bounds of the mean put in. In gdp ledgers, where sum and count usually have
noise in proportion to what a row adds, the interval is 0.62 of the one from two margins of 97.5 % each for a mean at a
bound, and 0.88 of it for one in the middle.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionCall
from lapwing.query.derivation.derived import Derived, KeyValue, values_in
from lapwing.query.derivation.intervals import JointMargins
from lapwing.query.measures import Measure

_BITS: Final = 64
_IN_ONE_CELL: Final = (Average, FunctionCall, ConstantValue, KeyValue)
"""What looks at one cell alone, and at no released number but those of a mean."""
_FINENESS: Final = 16
"""Margins are rounded up to this part of a step, so that numbers stay short."""


def joint_margins(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> JointMargins[Measure] | None:
    """Return the margins of a mean's sum and count that hold together, in their units; None where none are known.

    They are known where a value rests on one mean and nothing else, and on Gaussian noise.
    """
    nodes = set(values_in(value))
    averages = [node for node in nodes if isinstance(node, Average)]
    if len(averages) != 1 or not all(isinstance(node, _IN_ONE_CELL) for node in nodes):
        return None
    (average,) = averages
    of_sum, of_count = mechanisms[average.total], mechanisms[average.count]
    if not isinstance(of_sum, RoundedGaussian) or not isinstance(of_count, RoundedGaussian):
        return None
    kind, origin = average.total.type, average.total.origin
    furthest = max(abs((kind.low or 0) - origin), abs((kind.high or 0) - origin))
    if not furthest:
        return None
    z = enclose_tightly(normal_two_sided_quantile_ball, 1 - confidence, bits=_BITS).upper
    least = z * of_sum.sigma + Fraction(1, 2)
    most = z * square_root_up(of_sum.sigma**2 + (furthest * of_count.sigma) ** 2, _BITS) + Fraction(1 + furthest, 2)
    by_count = (most - least) / furthest
    return JointMargins({average.total: _up(least) * average.total.step, average.count: _up(by_count)})


def _up(margin: Fraction) -> Fraction:
    return Fraction(ceil(margin * _FINENESS), _FINENESS)
