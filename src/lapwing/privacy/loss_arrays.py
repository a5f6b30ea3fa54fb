"""Privacy loss distributions as arrays: out, a law above that of a list, on a grid; and in, as a pair to compose.

**Out.** Let h be the hockey-stick curve as a function of x = e^ε: convex, falling, 1 at x = 0. At each loss l of a grid
let d be an upper bound on h at some X ≤ e^l. The lower convex hull g of the point (0, 1) and all (X, d), continued
level beyond the last, is above h, which is convex and below each point. And g is the curve of a law: with the slope s
it turns at X by s₊ − s₋ ≥ 0, as X·(s₊ − s₋)·max(0, 1 − x/X) does, so it has the masses X·(s₊ − s₋) at the losses
log X, and what is left at the end is at +∞. Putting them at l ≥ log X and rounding them up raises it. So what is made
of the arrays, by anyone, loses at least what the list does (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022,
Section 4, where d is exact).
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import exp
from lapwing.exact.floats import float_up
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, probability
from lapwing.privacy.atoms import AtomLaw
from lapwing.privacy.certified_curve import bound_delta, bound_epsilon, largest_loss
from lapwing.privacy.discretisation import Piece
from lapwing.privacy.loss_distribution import WIDTH, LossDistribution
from lapwing.privacy.loss_laws import LossLaw
from lapwing.privacy.pairs import Direction, Side, positive
from lapwing.privacy.windows import CurveCache

MOST_LOSSES: Final = 20_000

_CELLS = 1024
_BITS = 80
_SUMS_TO_ONE = Fraction(1, 10**6)

FloatArray = NDArray[np.float64]
_Point = tuple[Fraction, Fraction]


class LossArrays(NamedTuple):
    """The law of a privacy loss in one direction: `probabilities` under P of `losses`, which rise, and of +∞."""

    losses: FloatArray
    probabilities: FloatArray
    infinite: float


def arrays_of(
    loss: LossDistribution, *, step: Number = Fraction(1, 100), direction: Direction = "remove", tail: Number = 1e-15
) -> LossArrays:
    """Return a distribution above the one of a list's privacy loss, on the multiples of `step`.

    Guarantee:
        For every ε, the arrays have their own δ = Σ p·max(0, 1 − e^(ε−l)) + infinite. The list is (ε, δ)-DP, in this
        direction; compositions of arrays too.

    Args:
        step: Of the losses, > 0.
        direction: As for `LossDistribution.survival`.
        tail: The δ from which on losses count as infinite. At the lower end, losses with less than this δ are moved up;
            above 0, below 1.

    Raises:
        InvalidParameter: If that takes more than MOST_LOSSES losses, or for numbers outside.
    """
    width, rest = positive(step, "step"), probability(tail, "tail")
    if direction not in ("remove", "add"):
        raise InvalidParameter(f"direction is {direction!r:.60}; it must be remove or add.")
    first = math.floor(-_end(loss, "add" if direction == "remove" else "remove", rest) / width) - 1
    last = math.ceil(_end(loss, direction, rest) / width) + 1
    if last - first >= MOST_LOSSES:
        raise InvalidParameter(
            f"From {short(first * width)} to {short(last * width)} there are {last - first:,} steps of {short(width)}; "
            f"give a larger step, for at most {MOST_LOSSES:,}."
        )
    losses = [float(n * width) for n in range(first, last + 1)]
    kept, points = CurveCache(), [(Fraction(0), Fraction(1))]
    for at in losses:
        place = exp(Fraction(at), bits=_BITS).lower
        below = Fraction(math.nextafter(at, -math.inf))  # below log(place), which is within 2⁻⁷⁰ of `at`
        points.append((place, bound_delta(loss.parts, direction, below, float(WIDTH), Fraction(0), kept).upper))
    masses = dict.fromkeys((place for place, _ in points[1:]), 0.0)
    hull = [*_hull(points), (2 * points[-1][0], min(value for _, value in points))]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull)]
    for (place, _), (before, after) in zip(hull[1:], pairwise(slopes), strict=False):
        masses[place] = float_up(place * (after - before))
    return LossArrays(np.array(losses), np.array(list(masses.values())), float_up(hull[-1][1]))


def _end(loss: LossDistribution, direction: Direction, tail: Fraction) -> Fraction:
    """Return an ε from which on δ is at most `tail`, or that more than the mass at +∞."""
    infinite = largest_loss(loss.parts, direction, _CELLS)[1].upper if loss.parts else Fraction(0)
    upper = bound_epsilon(loss.parts, direction, min(tail + infinite, Fraction(1, 2)), float(WIDTH)).interval.upper
    if not math.isfinite(upper):
        raise InvalidParameter("The losses are too large, or infinite too often, for arrays of them.")
    return Fraction(upper)


def _hull(points: list[_Point]) -> list[_Point]:
    """Return the lower convex hull of points of rising places, up to the first of the lowest."""
    lowest = min(value for _, value in points)
    hull: list[_Point] = []
    for place, value in points:
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if (y2 - y1) * (place - x1) < (value - y1) * (x2 - x1):
                break
            hull.pop()
        hull.append((place, value))
        if value == lowest:
            break
    return hull


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrayPair:
    """A pair by the law of its loss as arrays, in one direction or both: your own, or another accountant's.

    The guarantee is only as good as the arrays. They must be above the mechanism's distribution, like the arrays of
    `arrays_of`. If they sum to less than 1, the rest counts as infinite. If they sum to more, by rounding, the excess
    is taken off the smallest losses.

    Args:
        remove: The law where a unit leaves.
        add: Where one joins, None if it is the same.
    """

    remove: LossArrays
    add: LossArrays | None = None
    _laws: tuple[AtomLaw, AtomLaw] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        leaves = _law(self.remove)
        object.__setattr__(self, "_laws", (leaves, leaves if self.add is None else _law(self.add)))

    @property
    def symmetric(self) -> bool:
        """Whether both directions have one law."""
        return self.add is None

    @property
    def closed(self) -> bool:
        """Whether the law is exact, and the same in both directions: else it would be cut where there is one use."""
        return self.symmetric

    def law(self, direction: Direction, side: Side, cells: int) -> LossLaw:
        """Return the law of the loss."""
        return self._laws[direction == "add"]

    def pieces(self, cells: int) -> list[Piece]:
        """Refuse: a law of the loss says nothing of a mechanism on a sample here."""
        raise InvalidParameter("Arrays of losses cannot be sampled; make arrays of the mechanism on the sample.")


def _law(arrays: LossArrays) -> AtomLaw:
    losses, probabilities = _vector(arrays.losses, "losses"), _vector(arrays.probabilities, "probabilities")
    if len(losses) != len(probabilities) or not 1 <= len(losses) <= MOST_LOSSES:
        raise InvalidParameter(
            f"There are {len(losses):,} losses and {len(probabilities):,} probabilities; give as many of both, from 1 "
            f"to {MOST_LOSSES:,}."
        )
    infinite = exact(arrays.infinite, "infinite")
    if (np.diff(losses) <= 0).any() or (probabilities < 0).any() or infinite < 0:
        raise InvalidParameter("Losses must rise, and probabilities must not be negative; sort and merge them first.")
    atoms = [(Fraction(at), Fraction(mass)) for at, mass in zip(losses.tolist(), probabilities.tolist(), strict=True)]
    over = sum((mass for _, mass in atoms), infinite) - 1
    if abs(over) > _SUMS_TO_ONE:
        raise InvalidParameter(
            f"The probabilities sum to {float(1 + over):.9g}, with the probability of infinity; it must be 1."
        )
    infinite += max(Fraction(0), -over)
    kept = []
    for at, mass in atoms:
        taken = min(mass, max(Fraction(0), over))
        over -= taken
        if mass > taken:
            kept.append((at, mass - taken))
    return AtomLaw(tuple(at for at, _ in kept), tuple(mass for _, mass in kept), infinite)


def _vector(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InvalidParameter(f"The {name} must be finite numbers in one dimension; infinity has only a probability.")
    return array
