"""Dominating pairs made of others: a mechanism run on a sample, and one of several mechanisms."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.privacy import discretisation
from lapwing.privacy.amount_texts import short
from lapwing.privacy.discretisation import Piece
from lapwing.privacy.loss_laws import LossLaw, MixtureLaw
from lapwing.privacy.pairs import (
    LEAST_LOSS,
    BoundedRangePair,
    Direction,
    GaussianPair,
    LaplacePair,
    Pair,
    Side,
    cut_law,
    law_of,
    pieces_of,
    positive,
)
from lapwing.privacy.sampled_gaussian import MOST_RATE, SampledGaussianLaw
from lapwing.privacy.sampled_laplace import MOST_EPSILON, SampledLaplaceLaw

_UNCOVERED = Fraction(1, 1 << 100)


@final
@dataclass(frozen=True, slots=True)
class SubsampledPair:
    """A mechanism run on a Poisson sample: each privacy unit is in it with probability `rate`, on its own.

    remove: (1 − rate)·Q + rate·P against Q; add: Q against that mixture. They differ. Neighbouring is add_remove.

    For a sample S of the others, the output's distribution is M(S) without the unit. With the unit it is (1 − r)·M(S) +
    r·M(S ∪ unit). The hockey-stick curve H is jointly convex, so it suffices to look at the worst S. There, let P, Q be
    M(S ∪ unit), M(S), and x = e^ε. H of (1 − r)Q + rP against Q at x is r·H(P, Q) at 1 + (x − 1)/r. H of Q against (1 −
    r)Q + rP at x is s·H(Q, P) at rx/s. Here s = 1 − (1 − r)x; if s ≤ 0, it is 0. Both rise with the curves of the pair.

    Args:
        pair: A symmetric pair with finite losses, of the mechanism under add_remove.
        rate: Above 0, at most 1.

    Source:
        Zhu, Dong and Wang 2022, Theorem 11.
    """

    pair: Pair
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(self.rate, "rate"))
        if not LEAST_LOSS <= self.rate <= 1:
            raise InvalidParameter(f"rate is {short(self.rate)}; it must be above 0, from 1e-90 to 1.")
        if not self.pair.symmetric or sum(piece.p for piece in pieces_of(self.pair, 8)) < 1 - _UNCOVERED:
            raise InvalidParameter(
                "Only a pair that is the same in both directions, with δ = 0, can be subsampled. Sample once, and list "
                "the other mechanisms next to it."
            )

    symmetric = False

    @property
    def closed(self) -> bool:
        """Whether the law is exact."""
        return self._exact_law("remove") is not None

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss in one direction, or one above or below it."""
        return self._exact_law(direction) or cut_law(self, direction, side, cells)

    def _exact_law(self, direction: Direction) -> LossLaw | None:
        if self.rate > MOST_RATE:
            return None
        match self.pair:
            case GaussianPair(mu_squared):
                return SampledGaussianLaw(mu_squared, self.rate, direction)
            case LaplacePair(epsilon) if epsilon <= MOST_EPSILON:
                return SampledLaplaceLaw(epsilon, self.rate, direction, has_atoms=True)
            case BoundedRangePair(eta) if eta <= MOST_EPSILON:
                return SampledLaplaceLaw(eta, self.rate, direction, has_atoms=False)
        return None

    def pieces(self, cells: int) -> list[Piece]:
        """Return the remove pair."""
        return discretisation.thinned(self.pair.pieces(cells), self.rate)


@final
@dataclass(frozen=True, slots=True)
class MixturePair:
    """One of several mechanisms, drawn by public chances, with an output that says which.

    Args:
        parts: (chance, pair), chances > 0 that sum to 1.
    """

    parts: tuple[tuple[Fraction, Pair], ...]

    def __post_init__(self) -> None:
        parts = tuple((positive(weight, "chance"), pair) for weight, pair in self.parts)
        object.__setattr__(self, "parts", parts)
        if any(weight < LEAST_LOSS for weight, _ in parts):
            raise InvalidParameter("A probability of a mixture is below 1e-90; it must be from there to 1.")
        if sum(weight for weight, _ in parts) != 1:
            raise InvalidParameter("The probabilities of a mixture do not sum to 1; give exact fractions that do.")

    @property
    def symmetric(self) -> bool:
        """Whether all parts are."""
        return all(pair.symmetric for _, pair in self.parts)

    @property
    def closed(self) -> bool:
        """Whether all parts are."""
        return all(pair.closed for _, pair in self.parts)

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the mixture of laws."""
        return MixtureLaw(tuple((weight, law_of(pair, direction, side, cells)) for weight, pair in self.parts))

    def pieces(self, cells: int) -> list[Piece]:
        """Return the pieces of all parts."""
        return [
            Piece(weight * p, weight * q, low, high)
            for weight, pair in self.parts
            for p, q, low, high in pair.pieces(cells)
        ]
