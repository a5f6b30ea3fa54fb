"""Dominating pairs of integer noise: discrete Laplace and discrete Gaussian."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import fixed_points
from lapwing.privacy.amount_texts import short
from lapwing.privacy.discretisation import Piece, tight
from lapwing.privacy.loss_laws import LossLaw
from lapwing.privacy.pairs import FAR, Direction, Side, atoms_of, cut_law, loss_size, positive, whole

_MOST_ATOMS = 4096


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplacePair:
    """Discrete Laplace noise, P(x) ∝ e^(−|x|/scale) on the integers, at an integer sensitivity.

    At or below both centres the loss is ε = sensitivity/scale with probability 1/(1 + r), r = e^(−1/scale). At distance
    x from the first towards the second it is ε − 2x/scale with probability (1 − r)/(1 + r)·r^x. At or beyond both it is
    −ε. At sensitivity 1 this is randomized response.

    Args:
        scale: > 0.
        sensitivity: ≥ 1.
    """

    scale: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        whole(self.sensitivity, "sensitivity", 1)
        loss_size(1 / self.scale, "1/scale")
        loss_size(self.sensitivity / self.scale, "sensitivity/scale")

    symmetric = True

    @property
    def closed(self) -> bool:
        """Whether there are few enough atoms to keep each."""
        return self.sensitivity <= _MOST_ATOMS

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return atoms_of(self) if self.closed else cut_law(self, "remove", side, cells)

    def pieces(self, cells: int) -> list[Piece]:
        """Take the outer parts as atoms, and the points between them one by one or in even runs."""
        e, unit = self.sensitivity / self.scale, 1 / self.scale
        end = tight(lambda u: 1 / (1 + (-u).exp()), unit)
        tail = tight(lambda u, e: (-e).exp() / (1 + (-u).exp()), unit, e)
        result = [Piece(end, tail, e, e), Piece(tail, end, -e, -e)]
        run = 1 if self.closed else -(-self.sensitivity // cells)
        for first in range(1, self.sensitivity, run):
            last = min(first + run, self.sensitivity) - 1
            p = self._run(Fraction(first), Fraction(last))
            q = self._run(Fraction(self.sensitivity - last), Fraction(self.sensitivity - first))
            result.append(Piece(p, q, e - 2 * last * unit, e - 2 * first * unit))
        return result

    def _run(self, first: Fraction, last: Fraction) -> Fraction:
        return tight(
            lambda u, a, b: ((-a * u).exp() - (-(b + 1) * u).exp()) / (1 + (-u).exp()), 1 / self.scale, first, last
        )


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianPair:
    """Discrete Gaussian noise, P(x) ∝ e^(−x²/(2·variance)) on the integers, at an integer sensitivity in one dimension.

    P is centred at `sensitivity` and Q at 0, so the loss at x is (2x − sensitivity)·sensitivity/(2·variance). Integers
    beyond 14 standard deviations and the sensitivity are two pieces of their own.

    Args:
        variance: From 0.01 to 10⁶ (the law is summed point by point).
        sensitivity: From 1 to 10 standard deviations.
    """

    variance: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        whole(self.sensitivity, "sensitivity", 1)
        if not Fraction(1, 100) <= self.variance <= 10**6 or self.sensitivity**2 > 100 * self.variance:
            raise InvalidParameter(
                f"variance is {short(self.variance)} and sensitivity {self.sensitivity}. The privacy loss of discrete "
                "Gaussian noise takes variances from 0.01 to 1e6, and sensitivities up to 10 standard deviations. "
                "Use a rounded Gaussian beyond."
            )

    symmetric = True
    closed = False

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return a distribution above or below the loss's own."""
        return cut_law(self, "remove", side, cells)

    def pieces(self, cells: int) -> list[Piece]:
        """Cut the integers into even runs.

        Weights e^(−x²/(2·variance)) are summed as integers, up to a distance of `most`. Their unit is 2⁻⁴⁵⁰ of the
        weight with which the farthest sum begins, because pieces need them to a relative 2⁻¹⁹⁰. That is at reach +
        sensitivity + 1. A point beyond `most` has a weight below e^(−3·reach²/(2·variance)) ≤ e^(−294) of it. Weights
        fall faster than a geometric series of ratio e^(−reach/variance). So the sum beyond is below e^(−294)·(σ/14 + 2)
        < 2⁻⁴⁰⁰ of it.
        """
        shift, reach = self.sensitivity, math.isqrt(math.ceil(FAR**2 * self.variance)) + 1
        most = 2 * reach + shift
        rows = [(Fraction(x * x) / (2 * self.variance),) for x in range(most + 1)]
        bits = 450 + math.ceil(Fraction(3, 4) * (reach + shift + 1) ** 2 / self.variance)  # ¾ > log₂(e)/2
        weights = [bracket.lower for bracket in fixed_points(lambda x: (-x).exp(), rows, bits=bits)]
        sums = list(accumulate([*reversed(weights[1:]), *weights], initial=0))

        def between(first: int, last: int) -> Fraction:
            return Fraction(sums[min(last, most) + most + 1] - sums[max(first, -most) + most], sums[-1])

        def loss(x: int) -> Fraction:
            return (2 * x - shift) * shift / (2 * self.variance)

        first, last = -reach, reach + shift
        run = -(-(last - first + 1) // cells)
        result = [Piece(between(-most, first - 1 - shift), between(-most, first - 1), None, loss(first - 1))]
        for start in range(first, last + 1, run):
            stop = min(start + run - 1, last)
            result.append(Piece(between(start - shift, stop - shift), between(start, stop), loss(start), loss(stop)))
        result.append(Piece(between(last + 1 - shift, most), between(last + 1, most), loss(last + 1), None))
        return result
