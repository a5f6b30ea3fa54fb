"""Narrower intervals of means and variances: errors of their numbers are taken together, not each at its worst.

Let S be the sum of x − c over n rows and d = S/n their mean, so that S − d·n = 0. Of what is released, S + e and n +
f, the combination (S + e) − d·(n + f) is then e − d·f and nothing else. For e from N(0, s²) and f from N(0, t²) it is
within z·√(s² + d²t²) of 0 with the wanted probability, exactly, for the true mean d, whatever it is; rounding both to
integers adds at most ½ + |d|/2 (their slack in place of ½, where they are reconstructed). The root is convex in |d|,
and the mean lies inside public bounds, |d| ≤ D. So all of it is at most a + b·|d|, with a its value at 0, and a + b·D
its value at D.

And whenever (S + e) − d·(n + f) is a δ of at most a + b·|d|, d is a quotient of a sum within a of the released one and
a count within b of it: move the sum by −δ·a/(a + b|d|), and the count by δ·b/(a + b|d|) with the sign of d. So a and b
take the place of margins, and dividing the two intervals is all that follows. The count that is met in this way is not
the true one: where it may be below 1, the mean may be anywhere inside its bounds.

This is Fieller's argument (1954) with the bounds of the mean put in. In gdp ledgers, where sum and count usually have
noise in proportion to what a row adds, the interval is 0.62 of the one from two margins of 97.5 % each for a mean at a
bound, and 0.88 of it for one in the middle.

A variance v = E − d², with E the mean of (x − c)² and d that of x − c, has such a combination too: with Q the sum of
the squares around their origin q, Q + (q − v + d²)·n − 2d·S = 0, as n·E = Q + q·n. Its noise is Gaussian, and z of its
deviations are the root of the squares of z of those of Q, of S by 2|d|, and of n by |q − v + d²|. These three are the
margins of a variance, and `moments.Variance` puts them together, with d inside an interval of its own.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionCall
from lapwing.query.derivation.derived import Derived, KeyValue, measures_of
from lapwing.query.derivation.intervals import JointMargins
from lapwing.query.derivation.moments import Variance
from lapwing.query.measures import Count, Measure, Sum

_BITS: Final = 64
_HALF: Final = Fraction(1, 2)
_SHARES: Final = 10
"""One over the part of the chance that a variance gives to its mean, and if it is of a sample to its count."""
_IN_ONE_CELL: Final = (FunctionCall, ConstantValue, KeyValue)
"""What looks at one cell alone, and at no released number by itself."""
_FINENESS: Final = 16
"""Margins are rounded up to this part of a step, so that numbers stay short."""


def joint_margins(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> JointMargins[Measure] | None:
    """Return margins of the numbers behind a mean or a variance that hold together, in their units; None if unknown.

    They are known where a value rests on one mean or one variance and nothing else, and on Gaussian noise.
    """
    found = _alone(value)
    if found is None:
        return None
    deviations: dict[Measure, Fraction] = {}
    slacks: dict[Measure, Fraction] = {}
    for measure in measures_of(found):
        law = mechanisms[measure]
        if not isinstance(law, RoundedGaussian | ReconstructedGaussian):
            return None
        deviations[measure] = law.sigma * measure.step
        slacks[measure] = (_HALF if isinstance(law, RoundedGaussian) else law.slack) * measure.step
    chance = 1 - confidence
    if isinstance(found, Average):
        return _of_mean(found.total, found.count, deviations, slacks, chance)
    mean = _of_mean(found.total, found.count, deviations, slacks, chance / _SHARES)
    if mean is None or any(slack != _HALF * measure.step for measure, slack in slacks.items()):
        return None
    z = _quantile(chance * (_SHARES - 1 - found.sample) / _SHARES)
    margins = {measure: _up(z * deviation, measure.step) for measure, deviation in deviations.items()}
    apart: dict[Measure, Fraction] = {found.count: Fraction(mechanisms[found.count].half_width(1 - chance / _SHARES))}
    return JointMargins(margins, mean, apart)


def _alone(value: Derived) -> Average | Variance | None:
    """Return the mean or the variance that is all that a value rests on."""
    found: set[Average | Variance] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Average | Variance):
            found.add(node)
        elif isinstance(node, _IN_ONE_CELL):
            waiting.extend(node.children)
        else:
            return None
    return found.pop() if len(found) == 1 else None


def _of_mean(
    total: Sum,
    count: Count,
    deviations: Mapping[Measure, Fraction],
    slacks: Mapping[Measure, Fraction],
    chance: Fraction,
) -> JointMargins[Measure] | None:
    furthest = _furthest(total)
    if not furthest:
        return None
    z, of_sum, of_count = _quantile(chance), deviations[total], deviations[count]
    least = z * of_sum
    most = z * square_root_up(of_sum**2 + (furthest * of_count) ** 2, _BITS)
    by_count = (most - least) / furthest + slacks[count]
    return JointMargins({total: _up(least + slacks[total], total.step), count: _up(by_count, count.step)})


def _furthest(total: Sum) -> Fraction:
    """Return how far a mean may be from the origin of its sum."""
    low, high = total.type.interval()
    origin = total.origin * total.step
    return max(abs((low or Fraction(0)) - origin), abs((high or Fraction(0)) - origin))


def _quantile(chance: Fraction) -> Fraction:
    return enclose_tightly(normal_two_sided_quantile_ball, chance, bits=_BITS).upper


def _up(margin: Fraction, step: Fraction) -> Fraction:
    return Fraction(ceil(margin / step * _FINENESS), _FINENESS) * step
