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

Laplace noise goes the same way, in pure ledgers. How far e − d·f strays from 0 is the quantile T(s, |d|·t) of a sum of
two Laplace numbers of these scales (`mechanisms.laplace_combinations`). Rounding adds halves as above. T is convex in
|d|, too. Of a variance, each number's scale is its margin, and the quantile for the three scales together takes the
place of the root.

Sum and count that are computed from the same noisy numbers (`mechanisms.combined_noise`) go the same way: e − d·f is
Σ (w_j − d·v_j)·X_j, with their weights w and v. How far it strays is a convex function of d again. A line in |d| lies
above both sides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final, final

import numpy as np

from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, NoNoise, strays
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.laplace_combinations import combination_quantile, continuous_scale
from lapwing.mechanisms.merged_gaussian import Noisy, gaussians, slack_of
from lapwing.query.derivation import intervals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import Rationals
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.derived import KeyValue, measures_of
from lapwing.query.derivation.intervals import Endpoints, JointMargins, root_of_squares
from lapwing.query.derivation.moments import Variance
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Count, Measure, Sum

_BITS: Final = 64
_HALF: Final = Fraction(1, 2)
_SHARES: Final = 20
"""One over the part of the chance that a variance gives to its mean, and if it is of a sample to its count."""
_IN_ONE_CELL: Final = (FunctionValue, ConstantValue, KeyValue)
"""What looks at one cell alone, and at no released number by itself."""
_FINENESS: Final = 16
"""Margins are rounded up to this part of a step, so that numbers stay short."""
_RATIOS: Final = 64
"""Ratios of scales are rounded up to a multiple of one over this, so that few quantiles serve all cells."""


_Law = Noisy | DiscreteLaplace | CombinedNoise | NoNoise


@final
@dataclass(frozen=True, slots=True)
class _Noise:
    """The noise of several numbers, of one kind: what scales it, in their steps, and what rounding adds to it."""

    scales: Sequence[Fraction]
    slacks: Sequence[Fraction]
    gaussian: bool


def joint_margins(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> JointMargins[Measure] | None:
    """Return margins of the numbers behind a mean or a variance that hold together, in their units; None if unknown.

    They are known where a value rests on one mean or one variance and nothing else, and on noise that is Gaussian in
    all of them or Laplace in all of them.
    """
    found = _alone(value)
    if found is None:
        return None
    chance = 1 - confidence
    mean = _of_mean(found.total, found.count, mechanisms, chance if isinstance(found, Average) else chance / _SHARES)
    if isinstance(found, Average) or mean is None:
        return mean
    measures = measures_of(found)
    noise = _noise([mechanisms[measure] for measure in measures])
    if noise is None or any(slack != _HALF for slack in noise.slacks):
        return None
    rest = chance * (_SHARES - 1 - found.sample) / _SHARES
    factor = _quantile(rest) if noise.gaussian else Fraction(1)
    scales = zip(measures, noise.scales, strict=True)
    margins = {measure: _up(factor * scale) * measure.step for measure, scale in scales}
    apart: dict[Measure, Fraction] = {found.count: Fraction(mechanisms[found.count].half_width(1 - chance / _SHARES))}
    return JointMargins(margins, mean, apart, root_of_squares if noise.gaussian else _of_laplaces(rest))


def _noise(laws: Sequence[NoiseLaw]) -> _Noise | None:
    """Return the noise of some numbers if all of it is of one kind."""
    laws = _apart_from_others(laws)
    drawn = [law for law in laws if not isinstance(law, NoNoise)]
    normal = gaussians(drawn)
    if normal is not None:
        known = dict(zip(drawn, normal, strict=True))  # a public number is taken to be rounded, as others are
        scales = [known[law].sigma if law in known else Fraction(0) for law in laws]
        return _Noise(scales, [slack_of(known[law]) if law in known else _HALF for law in laws], gaussian=True)
    if not all(isinstance(law, DiscreteLaplace) for law in drawn):
        return None
    scales = [continuous_scale(law.scale) if isinstance(law, DiscreteLaplace) else Fraction(0) for law in laws]
    return _Noise(scales, [_HALF] * len(laws), gaussian=False)


def _apart_from_others(laws: Sequence[NoiseLaw]) -> Sequence[NoiseLaw]:
    """Return the measured noise in place of each combined one, if every combined number is another measured number."""
    shared = [law for law in laws if isinstance(law, CombinedNoise)]
    if len({law.weights for law in shared}) < len(shared):
        return laws
    return [(law.alone or law) if isinstance(law, CombinedNoise) else law for law in laws]


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
    total: Sum, count: Count, mechanisms: Mapping[Measure, NoiseLaw], chance: Fraction
) -> JointMargins[Measure] | None:
    by_sum, by_count, ends = mechanisms[total], mechanisms[count], total.type
    if not (isinstance(by_sum, _Law) and isinstance(by_count, _Law)):
        return None
    furthest = max(abs((ends.low or 0) - total.origin), abs((ends.high or 0) - total.origin))
    apart = _apart(furthest, by_sum, by_count, chance) if furthest else None
    return None if apart is None else JointMargins({total: apart[0] * ends.step, count: apart[1]})


@lru_cache(maxsize=1024)
def _apart(furthest: int, by_sum: _Law, by_count: _Law, chance: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return a and b for a mean that is at most so many steps of its sum from the origin, in steps of both numbers.

    Remembered, as these numbers are public, and the same for all questions of the same columns at one price.
    """
    noise = _noise((by_sum, by_count))
    if noise is None and NoNoise() in (by_sum, by_count):
        return None
    if noise is None and (isinstance(by_sum, CombinedNoise) or isinstance(by_count, CombinedNoise)):
        return _line_above_combined(*_of_the_same(by_sum, by_count), furthest, chance)
    if noise is None:
        return None
    line = _line_above_gaussian if noise.gaussian else _line_above_laplace
    least, most = line(noise.scales[0], furthest * noise.scales[1], chance)
    return _up(least + noise.slacks[0]), _up((most - least) / furthest + noise.slacks[1])


def _of_the_same(first: _Law, second: _Law) -> tuple[CombinedNoise, CombinedNoise]:
    """Return two laws as those of combinations of the same numbers; one that is no combination is in no other."""
    if isinstance(first, CombinedNoise) and isinstance(second, CombinedNoise):
        return first, second
    if isinstance(first, CombinedNoise):
        after, before = _of_the_same(second, first)
        return before, after
    others = second if isinstance(second, CombinedNoise) else CombinedNoise(weights=(Fraction(1),), laws=(second,))
    laws, none = (first, *others.laws), Fraction(0)
    alone = CombinedNoise(weights=(Fraction(1), *(none for _ in others.laws)), laws=laws)
    return alone, CombinedNoise(weights=(none, *others.weights), laws=laws)


def _line_above_combined(
    by_sum: CombinedNoise, by_count: CombinedNoise, farthest: int, chance: Fraction
) -> tuple[Fraction, Fraction]:
    """Return a and b with a + b·|d| above what e − d·f strays by, for means d up to so many steps from the origin."""
    laws = by_sum.laws

    def at(mean: Fraction) -> tuple[Fraction, ...]:
        return tuple(w - mean * v for w, v in zip(by_sum.weights, by_count.weights, strict=True))

    def line(side: int) -> tuple[Fraction, Fraction]:
        least, most = (strays(at(Fraction(mean)), laws, chance) for mean in (0, side * farthest))
        return least, (most - least) / farthest

    lines = [line(1), line(-1)]
    least, slope = max(first for first, _ in lines), max(Fraction(0), *(slope for _, slope in lines))
    return _up(least + by_sum.rounding), _up(slope + by_count.rounding)


def _line_above_gaussian(scale: Fraction, farthest: Fraction, chance: Fraction) -> tuple[Fraction, Fraction]:
    """Return the ends of a line that is above z·√(scale² + x²) for x from 0 to `farthest`: that is convex."""
    z = _quantile(chance)
    return z * scale, z * square_root_up(scale**2 + farthest**2, _BITS)


def _line_above_laplace(scale: Fraction, farthest: Fraction, chance: Fraction) -> tuple[Fraction, Fraction]:
    """Return the ends of a line that is above the quantile for `scale` and x, which is convex in x, as above."""
    return combination_quantile((scale,), chance), combination_quantile((scale, farthest), chance)


def _of_laplaces(chance: Fraction) -> Callable[[Sequence[Endpoints]], Endpoints]:
    """Return how far sums of three Laplace numbers stray but with this chance, given their scales in each cell."""

    def strays(scales: Sequence[Endpoints]) -> Endpoints:
        (size,) = np.broadcast_shapes(*((end.size,) for end in scales))  # of no cells it is 0, beside ends of one entry
        ordered = -np.sort(-np.array([end.floats(size) for end in scales]), axis=0)
        largest = ordered[0]
        known = np.isfinite(largest) & (largest > 1e-280)  # else a ratio of doubles might be off: 1 is above it
        # Doubles are within a few units of their last place, which the factor is more than.
        shares = ordered[1:] / np.where(known, largest, 1) * (_RATIOS * (1 + 2.0**-40))
        ratios = np.where(known, np.ceil(np.where(known, shares, 0)), _RATIOS).astype(np.int64)
        pairs, places = np.unique(ratios, axis=1, return_inverse=True)
        quantiles = [
            combination_quantile((Fraction(1), *(Fraction(int(ratio), _RATIOS) for ratio in pair)), chance)
            for pair in pairs.T
        ]
        column = intervals.of_ends(quantiles).numbers
        factors = Rationals(tops=column.tops[places.reshape(-1)], scale=column.scale)
        return intervals.times(intervals.greater(*scales), Endpoints(numbers=factors))

    return strays


def _quantile(chance: Fraction) -> Fraction:
    return enclose_tightly(normal_two_sided_quantile_ball, chance, bits=_BITS).upper


def _up(steps: Fraction) -> Fraction:
    return Fraction(ceil(steps * _FINENESS), _FINENESS)
