"""The dominating pair of a mechanism that is run on a subset of fixed size, drawn without replacement."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import enclose_tightly
from lapwing.privacy import discretisation
from lapwing.privacy.amplification import subset_rate
from lapwing.privacy.atoms import AtomLaw
from lapwing.privacy.discretisation import Piece
from lapwing.privacy.loss_laws import LossLaw
from lapwing.privacy.pairs import Direction, GaussianPair, Pair, Side, pieces_of
from lapwing.privacy.sampled_gaussian import MOST_RATE
from lapwing.privacy.subset_gaussian import MOST_SUBSET_MU_SQUARED, SubsetGaussianLaw

_UNCOVERED = Fraction(1, 1 << 100)
_SLACK = Fraction(1, 1 << 100)
_BITS = 128


@final
@dataclass(frozen=True, slots=True)
class SubsetPair:
    """A mechanism run on a uniformly drawn subset of `size` of the `population` units. Neighbouring is replace_one.

    Let q = size/population, and H the curve of the mechanism's pair under replace_one. On the subset it is at most
    q·H(1 + (x − 1)/q) at x = e^ε ≥ 1 (`amplification`, the proof for a fixed size). At x < 1 it is 1 − x + x·(its value
    at 1/x), because replacing goes both ways. This is the curve of a pair. Take a loss l > 0 of the mechanism's, with
    masses p and r = p·e^(−l). It becomes the loss log(1 + q(e^l − 1)) with the masses qp + (1 − q)r and r. There is its
    mirror, with both swapped, and all else is at the loss 0. The mass left for the loss 0 is not negative, because p +
    r ≤ 1 over all l > 0 in a symmetric pair, so r ≤ ½.

    Above: atoms of a distribution above the mechanism's, each mass and loss then rounded up. With or without mass at 0,
    H stays above if all masses sum to 1 at least. Below alike. No mechanism is known to attain all of it.

    Of Gaussian noise the law is exact (`subset_gaussian`).

    Args:
        pair: A symmetric pair with finite losses, of the mechanism under replace_one.
        size: Public.
        population: Public.
        is_cut: Whether the law is made of pieces, although there is an exact one.

    Source:
        Balle, Barthe and Gaboardi 2018, Theorem 9; Zhu, Dong and Wang 2022, Theorem 11.
    """

    pair: Pair
    size: int
    population: int
    is_cut: bool = False

    def __post_init__(self) -> None:
        subset_rate(self.size, self.population)
        if not self.pair.symmetric or sum(piece.p for piece in pieces_of(self.pair, 8)) < 1 - _UNCOVERED:
            raise InvalidParameter(
                "Only a pair that is the same in both directions, with δ = 0, can be run on a subset. Draw one subset, "
                "and list the other mechanisms next to it."
            )

    symmetric = True

    @property
    def closed(self) -> bool:
        """Whether the law is exact."""
        return self._exact_law() is not None

    @property
    def rate(self) -> Fraction:
        """The chance of a unit to be in the subset."""
        return subset_rate(self.size, self.population)

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return a distribution above or below the loss's own."""
        if exact := self._exact_law():
            return exact
        pieces = pieces_of(self.pair, cells)
        if side == "upper":
            return _in_subset(discretisation.spread(pieces), self.rate, up=True)
        return _in_subset(discretisation.merge(pieces), self.rate, up=False)

    def _exact_law(self) -> LossLaw | None:
        if self.is_cut or self.rate > MOST_RATE or not isinstance(self.pair, GaussianPair):
            return None
        mu_squared = self.pair.mu_squared
        return SubsetGaussianLaw(mu_squared, self.rate) if mu_squared <= MOST_SUBSET_MU_SQUARED else None

    def pieces(self, cells: int) -> list[Piece]:
        """Refuse: a sample of a subset, or a choice among subsets, has no theorem here."""
        raise InvalidParameter(
            "A mechanism on a subset of fixed size cannot be sampled once more; list it next to other mechanisms."
        )


def _in_subset(law: AtomLaw, rate: Fraction, *, up: bool) -> AtomLaw:
    """Return the law on the subset of a pair with this law, above it or below."""
    slack = 1 + _SLACK if up else 1 - _SLACK
    masses: dict[Fraction, Fraction] = {}
    rest = 1 - rate * law.infinite
    for loss, p in zip(law.positions, law.masses, strict=True):
        if loss <= 0:
            continue
        r = p * enclose_tightly(lambda at: (-at).exp(), loss, bits=_BITS).upper
        on_subset = enclose_tightly(lambda at, q: (q * at.expm1()).log1p(), loss, rate, bits=_BITS)
        above, below = rate * p + (1 - rate) * r, r
        high, low = (on_subset.upper, -on_subset.lower) if up else (on_subset.lower, -on_subset.upper)
        masses[high] = masses.get(high, Fraction(0)) + above * slack
        masses[low] = masses.get(low, Fraction(0)) + below * slack
        rest -= (above + below) * (1 - _SLACK if up else 1 + _SLACK)
    masses[Fraction(0)] = max(Fraction(0), rest) * slack
    return discretisation.law_of_masses(masses, rate * law.infinite * slack, upwards=up)
