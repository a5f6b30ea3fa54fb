"""Pairs of laws that dominate a mechanism: what an adversary who knows all but one privacy unit has to tell apart.

A pair (P, Q) dominates a mechanism if no neighbouring data sets give outputs with a larger hockey-stick curve
δ(ε) = sup over events S of P(S) − e^ε·Q(S). Under add_remove a mechanism has two directions, a unit that leaves and one
that joins; where they differ, the pair says both, "remove" being (P, Q) and "add" being (Q, P). Pairs compose by
products, also where later mechanisms are chosen in the light of earlier answers as long as their pairs were fixed in
advance (Zhu, Dong and Wang 2022, Theorem 10).

Each pair is *attained* by the mechanism that its docstring names first, so that a lower bound holds for that
mechanism. For a post-processing of it, or for a class of mechanisms, only the upper bound speaks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Protocol, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, enclose, fixed_points, normal_cdf_ball
from lapwing.privacy import discretisation
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative
from lapwing.privacy.atoms import AtomLaw
from lapwing.privacy.discretisation import Piece, tight
from lapwing.privacy.loss_laws import BoundedRangeLaw, GaussianLaw, LaplaceLaw, LossLaw

Direction = Literal["remove", "add"]
Side = Literal["upper", "lower"]

FAR = 14
_NEAR, _RARE = 6, 6
"""Each side's outcomes beyond so many standard deviations, of less than 10⁻⁹, take one cell in so many."""

LEAST_LOSS, MOST_LOSS = Fraction(1, 10**90), Fraction(10**4)
"""The sizes of a loss for which there is a law: e^(−MOST_LOSS) is still written out, to all its digits."""

MOST_MU_SQUARED = MOST_LOSS**2
MOST_SAMPLED_MU_SQUARED = 256
_MOST_CHOICES = 1 << 40


class Pair(Protocol):
    """A dominating pair.

    `symmetric`: both directions have one curve; `closed`: the law is exact, the same from above and from below.
    """

    @property
    def symmetric(self) -> bool:
        """Whether add and remove have one curve."""

    @property
    def closed(self) -> bool:
        """Whether the law is exact."""

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the distribution of the loss, or one above or below it, cut into about `cells` cells."""

    def pieces(self, cells: int) -> list[Piece]:
        """Return the pair (P, Q) cut into pieces; atoms are not cut."""

    def __hash__(self) -> int:
        """Pairs are values."""


@final
@dataclass(frozen=True, slots=True)
class GaussianPair:
    """Gaussian noise, N(μ, 1) against N(0, 1); its post-processing by rounding is dominated, not attained.

    Args:
        mu_squared: The square of sensitivity (ℓ²) over standard deviation, > 0.
    """

    mu_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu_squared", positive(self.mu_squared, "mu_squared"))
        if not LEAST_LOSS**2 <= self.mu_squared <= MOST_MU_SQUARED:
            raise InvalidParameter(f"mu_squared is {short(self.mu_squared)}; it must be from 1e-180 to 1e8.")

    symmetric = closed = True

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return GaussianLaw(self.mu_squared)

    def pieces(self, cells: int) -> list[Piece]:
        """Cut the line between 14 standard deviations below 0 and above μ: evenly, but with larger steps beyond 6.

        Probabilities are differences of Φ in units of 2⁻¹⁰²⁴, mirrored right of the middle. For μ ≤ 16 the least,
        beyond the last cut, is above Φ(−31) > 2⁻⁷⁰⁰, which leaves a relative 2⁻³⁰⁰.
        """
        if self.mu_squared > MOST_SAMPLED_MU_SQUARED:
            raise InvalidParameter(
                f"μ² is {short(self.mu_squared)}; subsampling is computed up to a μ² of 256: add more noise."
            )
        rare = cells // _RARE
        step = Fraction((2 * _NEAR + math.sqrt(self.mu_squared)) / (cells - 2 * rare))
        cuts = [-_NEAR + n * step for n in range(cells - 2 * rare + 1)]
        jumps = [Fraction(n * (FAR - _NEAR), rare) for n in range(1, rare + 1)]
        cuts = [*(cuts[0] - jump for jump in reversed(jumps)), *cuts, *(cuts[-1] + jump for jump in jumps)]
        losses = [enclose(lambda x, m: m.sqrt() * x - m / 2, x, self.mu_squared) for x in cuts]
        p, q = _normal_masses(cuts, self.mu_squared), _normal_masses(cuts, Fraction(0))
        lows = [None, *(loss.lower for loss in losses)]
        highs = [*(loss.upper for loss in losses), None]
        return [Piece(*piece) for piece in zip(p, q, lows, highs, strict=True)]


@final
@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Laplace noise on the real line.

    Args:
        epsilon: Sensitivity (ℓ¹) over scale, > 0.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss_size(self.epsilon, "epsilon"))

    symmetric = closed = True

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return LaplaceLaw(self.epsilon)

    def pieces(self, cells: int) -> list[Piece]:
        """Take the two outer parts as atoms and cut the part between the centres evenly (see `LaplaceLaw`)."""
        e, half = self.epsilon, Fraction(1, 2)
        tail = tight(lambda e: (-e).exp() / 2, e)
        cuts = [e * n / cells for n in range(cells + 1)]
        result = [Piece(half, tail, e, e), Piece(tail, half, -e, -e)]
        for near, far in pairwise(cuts):
            p = tight(lambda a, b: (-a).exp() * -(a - b).expm1() / 2, near, far)
            q = tight(lambda a, b, e: (b - e).exp() * -(a - b).expm1() / 2, near, far, e)
            result.append(Piece(p, q, e - 2 * far, e - 2 * near))
        return result


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponsePair:
    """Randomized response among k choices: the truth with probability e^ε/(e^ε + k − 1), else one of the others evenly.

    The pair comes from two different truths. With two choices it dominates every ε-DP mechanism (Kairouz, Oh and
    Viswanath 2015).

    Args:
        epsilon: > 0.
        choices: k ≥ 2.
    """

    epsilon: Fraction
    choices: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss_size(self.epsilon, "epsilon"))
        whole(self.choices, "choices", 2)
        if self.choices > _MOST_CHOICES:
            raise InvalidParameter("The number of choices is above 2^40; it must be at most that.")

    symmetric = closed = True

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return atoms_of(self)

    def pieces(self, cells: int) -> list[Piece]:
        """Take the two truths, and the other choices together."""
        e, others = self.epsilon, Fraction(self.choices - 1)
        high = tight(lambda e, k: 1 / (1 + k * (-e).exp()), e, others)
        low = tight(lambda e, k: 1 / (e.exp() + k), e, others)
        rest = [Piece(low * (others - 1), low * (others - 1), Fraction(0), Fraction(0))] if others > 1 else []
        return [Piece(high, low, e, e), *rest, Piece(low, high, -e, -e)]


@final
@dataclass(frozen=True, slots=True)
class ApproximatePair:
    """All that (ε, δ)-DP allows: with probability δ it shows the truth, else it is randomized response at ε.

    Its curve at ε' < ε is δ + (1 − δ)·(e^ε − e^ε')/(1 + e^ε), the largest of any (ε, δ)-DP mechanism.

    Args:
        epsilon: ≥ 0.
        delta: From 0, below 1.

    Source:
        Kairouz, Oh and Viswanath 2015, Section 3.
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss_size(self.epsilon, "epsilon") if self.epsilon else Fraction(0))
        object.__setattr__(self, "delta", non_negative(self.delta, "delta"))
        if self.delta >= 1:
            raise InvalidParameter(f"delta is {short(self.delta)}; it must be at least 0 and below 1.")

    symmetric = closed = True

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return atoms_of(self, self.delta)

    def pieces(self, cells: int) -> list[Piece]:
        """Take randomized response; the truth told has no piece, as Q never does what P does there."""
        e, kept = self.epsilon, 1 - self.delta
        if e == 0:
            return [Piece(kept, kept, e, e)]
        high, low = tight(lambda e: 1 / (1 + (-e).exp()), e), tight(lambda e: 1 / (1 + e.exp()), e)
        return [Piece(kept * high, kept * low, e, e), Piece(kept * low, kept * high, -e, -e)]


@final
@dataclass(frozen=True, slots=True)
class BoundedRangePair:
    """All that bounded range η allows, as of the exponential mechanism; see `BoundedRangeLaw`.

    No single mechanism attains it everywhere: of a lower bound only the one-fold at one ε is attained.

    Args:
        eta: > 0, the most by which the log-ratio varies over outputs.
    """

    eta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", loss_size(self.eta, "eta"))

    symmetric = closed = True

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return BoundedRangeLaw(self.eta)

    def pieces(self, cells: int) -> list[Piece]:
        """Cut [−η, η] evenly: between a and b, p = (e^((b−η)/2) − e^((a−η)/2))/(1 − e^(−η)), and q is its mirror."""
        cuts = [self.eta * (2 * n - cells) / cells for n in range(cells + 1)]

        def mass(a: Ball, b: Ball, e: Ball) -> Ball:
            return ((b - e) / 2).exp() * -((a - b) / 2).expm1() / -(-e).expm1()

        return [Piece(tight(mass, a, b, self.eta), tight(mass, -b, -a, self.eta), a, b) for a, b in pairwise(cuts)]


@final
@dataclass(frozen=True, slots=True)
class CutPair:
    """A pair of which the law is made of pieces, although it has a closed one."""

    pair: Pair

    symmetric = closed = False

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return a law above or below that of the loss."""
        return cut_law(self.pair, direction, side, cells)

    def pieces(self, cells: int) -> list[Piece]:
        """Return the pair's own."""
        return pieces_of(self.pair, cells)


@lru_cache(maxsize=1 << 11)
def law_of(pair: Pair, direction: Direction, side: Side, cells: int) -> LossLaw:
    """Return a pair's law, made once."""
    return pair.law(direction, side, cells)


@lru_cache(maxsize=1 << 10)
def atoms_of(pair: Pair, infinite: Fraction = Fraction(0)) -> AtomLaw:
    """Return the law of a pair that is all atoms."""
    pieces = sorted((piece.low or Fraction(0), piece.p) for piece in pair.pieces(1))
    return AtomLaw(tuple(at for at, _ in pieces), tuple(p for _, p in pieces), infinite)


def cut_law(pair: Pair, direction: Direction, side: Side, cells: int) -> AtomLaw:
    """Return a law above or below that of the loss, from pieces."""
    pieces = pieces_of(pair, cells) if direction == "remove" else discretisation.swapped(pieces_of(pair, cells))
    return discretisation.spread(pieces) if side == "upper" else discretisation.merge(pieces)


def _normal_masses(cuts: list[Fraction], mu_squared: Fraction) -> list[Fraction]:
    """Return the masses of N(μ, 1) left of the first cut, between cuts, and right of the last."""
    bits = 1024
    middle = sum(1 for x in cuts if x <= 0 or x * x <= mu_squared)

    def masses(beyond: Callable[[Ball, Ball], Ball], some: list[Fraction]) -> list[int]:
        return [b.lower for b in fixed_points(beyond, [(x, mu_squared) for x in some], bits=bits)]

    left = masses(lambda x, m: normal_cdf_ball(x - m.sqrt()), cuts[: middle + 1])
    right = masses(lambda x, m: normal_cdf_ball(m.sqrt() - x), cuts[middle:])
    inner = [b - a for a, b in pairwise([0, *left])] + [a - b for a, b in pairwise([*right, 0])]
    return [Fraction(mass, 1 << bits) for mass in inner]


@lru_cache(maxsize=1 << 6)
def pieces_of(pair: Pair, cells: int) -> list[Piece]:
    """Return the pieces of (P, Q), made once."""
    return pair.pieces(cells)


def positive(value: Number, name: str) -> Fraction:
    """Return an exact number above 0."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {short(number)}; it must be above 0.")
    return number


def loss_size(value: Number, name: str) -> Fraction:
    """Return the size of a loss that a law can have."""
    number = positive(value, name)
    if not LEAST_LOSS <= number <= MOST_LOSS:
        raise InvalidParameter(f"{name} is {short(number)}; it must be from 1e-90 to 10,000.")
    return number


def whole(value: int, name: str, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameter(f"{name} is {value!r}; it must be a whole number from {least} upwards.")
