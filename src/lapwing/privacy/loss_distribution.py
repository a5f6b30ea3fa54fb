"""What a list of mechanisms, fixed in advance, loses together: certified from both sides.

A `LossDistribution` is a multiset of dominating pairs. Its statements are intervals: the true δ at an ε of the pairs'
composition lies between both ends, and so does the true ε at a δ. The upper end holds for every mechanism that the
pairs dominate; the lower end for the pairs themselves (see `pairs`). If answers so far decide which pairs come next,
it says nothing: a ledger's filter does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_down, float_up
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative
from lapwing.privacy.certified_curve import Interval, Parts, bound_delta, bound_epsilon, epsilon_above
from lapwing.privacy.pairs import MOST_MU_SQUARED, Direction, GaussianPair, Pair, whole
from lapwing.privacy.survival import bound_survival
from lapwing.privacy.windows import CurveCache

WIDTH = Fraction(1, 10**4)
"""The width of an interval that is aimed at for an ε from 0.01 to 2,000, unless another is asked for."""

_SMALL, _LARGE = 0.01, 5e-8
"""Of an ε below that range, an interval is to be at most the first share wide, and of one above, the second."""

MOST_USES = 10**12
"""Of one pair: beyond, rounding is as large as the result."""

_NARROWEST = Fraction(1, 10**9)


@final
@dataclass(frozen=True, slots=True)
class LossDistribution:
    """The composition of pairs, each taken a number of times; made by `compose`.

    Args:
        parts: No pair twice, all Gaussian noise in one.
        width: The width of an interval in ε from which on more work is done to narrow it, where that is possible. None
            for one in keeping with ε (see `usual_width`).
    """

    parts: Parts = ()
    width: Fraction | None = None

    def compose(self, *others: "LossDistribution") -> "LossDistribution":
        """Return the loss of all together."""
        return compose([part for each in (self, *others) for part in each.parts], width=self.width)

    def __add__(self, other: "LossDistribution") -> "LossDistribution":
        return self.compose(other)

    def self_compose(self, times: int) -> "LossDistribution":
        """Return the loss of this list run a number of times."""
        whole(times, "the number of times", 1)
        return compose([(pair, count * times) for pair, count in self.parts], width=self.width)

    def to_delta(self, epsilon: Number) -> Interval:
        """Return bounds on the δ for which (epsilon, δ)-DP holds."""
        return self.to_deltas([epsilon])[0]

    def to_deltas(self, epsilons: Sequence[Number]) -> tuple[Interval, ...]:
        """Return `to_delta` at each ε, which for many takes far less time than one by one."""
        kept = {direction: CurveCache() if len(epsilons) > 1 else None for direction in self.directions()}
        return tuple(self._delta(non_negative(epsilon, "epsilon"), kept) for epsilon in epsilons)

    def _delta(self, epsilon: Fraction, kept: Mapping[Direction, CurveCache | None]) -> Interval:
        lower = upper = Fraction(0)
        width = float(self.width) if self.width else max(float(WIDTH), usual_width(float_up(epsilon)))
        for direction, curves in kept.items():
            bounds = bound_delta(self.parts, direction, epsilon, width, lower, curves)
            lower, upper = max(lower, bounds.lower), max(upper, bounds.upper)
        return Interval(max(0.0, float_down(lower)), min(1.0, float_up(upper)))

    def to_epsilon(self, delta: Number) -> Interval:
        """Return bounds on the least ε ≥ 0 for which (ε, delta)-DP holds; infinite if there is none.

        Raises:
            InvalidParameter: Unless delta is at least 0 and below 1.
        """
        target = non_negative(delta, "delta")
        if target >= 1:
            raise InvalidParameter(f"delta is {short(target)}; it must be at least 0 and below 1.")
        if self.width:
            return self._epsilon(target, float(self.width))
        about = max(epsilon_above(self.parts, direction, target) for direction in self.directions())
        width = max(float(WIDTH), usual_width(about))
        interval = self._epsilon(target, width)
        # How small ε is shows only by and by; each time around the width is less than half of what it was.
        while interval.upper - interval.lower > (narrower := usual_width(interval.upper)) and narrower < width / 2:
            width = narrower
            finer = self._epsilon(target, width)
            interval = Interval(max(interval.lower, finer.lower), min(interval.upper, finer.upper))
        return interval

    def _epsilon(self, delta: Fraction, width: float) -> Interval:
        lower = upper = 0.0
        for direction in self.directions():
            interval = bound_epsilon(self.parts, direction, delta, width, lower).interval
            lower, upper = max(lower, interval.lower), max(upper, interval.upper)
        return Interval(lower, upper)

    def survival(self, losses: Sequence[Number], *, direction: Direction = "remove") -> tuple[Interval, ...]:
        """Return bounds on the chance, under P, that the privacy loss is above each of some losses.

        It is the law of the loss of these pairs, so of mechanisms that attain them. Mechanisms that these pairs only
        dominate have a curve δ below theirs, but may have another distribution.

        Returns:
            Intervals with P(L > loss), of which the upper end also bounds P(L ≥ loss).

        Args:
            losses: Any numbers.
            direction: The neighbour that is P, "remove" being the one with the unit.

        Raises:
            InvalidParameter: For another direction.
        """
        if direction not in ("remove", "add"):
            raise InvalidParameter(f"direction is {direction!r:.60}; it must be remove or add.")
        kept = CurveCache()
        width = float(self.width or WIDTH)
        chances = [bound_survival(self.parts, direction, exact(at, "loss"), width, kept) for at in losses]
        return tuple(Interval(max(0.0, float_down(lower)), min(1.0, float_up(upper))) for lower, upper in chances)

    def directions(self) -> tuple[Direction, ...]:
        """Return the directions whose curves differ."""
        return ("remove",) if all(pair.symmetric for pair, _ in self.parts) else ("remove", "add")


def compose(parts: Iterable[tuple[Pair, int]], *, width: Number | None = None) -> LossDistribution:
    """Return the loss of a list of (pair, count) fixed in advance.

    Gaussian pairs are one Gaussian pair: losses N(μ²/2, μ²) add up, so μ² does.

    Args:
        width: The wanted width of intervals in ε, from 10⁻⁹ to 1, None for `usual_width`.

    Raises:
        InvalidParameter: For a count below 1, or a width out of range. For uses or noise beyond what is computed (10¹²
            of a pair, a μ² of 10⁸ in all).
    """
    counts: dict[Pair, int] = {}
    gaussian = Fraction(0)
    for pair, count in parts:
        whole(count, "the count", 1)
        if isinstance(pair, GaussianPair):
            gaussian += count * pair.mu_squared
        else:
            counts[pair] = counts.get(pair, 0) + count
    if max(counts.values(), default=0) > MOST_USES:
        raise InvalidParameter("A pair is taken more than 1e12 times; it must be at most that.")
    if gaussian:
        counts[GaussianPair(gaussian)] = 1
        if gaussian > MOST_MU_SQUARED:
            raise InvalidParameter(f"The μ² of all Gaussian noise is {short(gaussian)}; it must be at most 1e8.")
    if width is None:
        return LossDistribution(tuple(counts.items()))
    exact_width = exact(width, "width")
    if not _NARROWEST <= exact_width <= 1:
        raise InvalidParameter(f"width is {short(exact_width)}; it must be from 1e-9 to 1, such as 1e-3.")
    return LossDistribution(tuple(counts.items()), exact_width)


def usual_width(epsilon: float) -> float:
    """Return how wide an interval around an ε may be where no width is asked for."""
    return max(min(float(WIDTH), _SMALL * epsilon), _LARGE * epsilon, float(_NARROWEST))
