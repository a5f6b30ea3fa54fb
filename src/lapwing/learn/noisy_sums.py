"""Sums over units of what each contributes, clipped unit by unit, with exact Gaussian noise.

Theory of operation. Training is a list of vectors, each f(D) = Σ_u clip(v_u), where v_u is made of the rows of unit u
and of what was released before, as exact integers. `clip` shortens a vector to length C: each entry is multiplied by
C/r and rounded toward zero, where r is the whole number at or above the length. Rounding toward zero makes no entry
longer, so that ‖clip(v)‖ ≤ C·‖v‖/r ≤ C, exactly. (To nearest could pass C.) The noise is added afterwards, to the sum.

Guarantee:
    Neighbours that differ by a unit's presence move f by clip(v_u), at most C; by replacement by at most 2C. All else
    is bit by bit the same: v_u are integers, and sums of integers do not depend on the order. With noise round(N(0,
    σ²)) on every entry a release is (C/σ)-GDP, and (C²/2σ²)-zCDP (`mechanisms.rounded_gaussian`). A list of them, each
    chosen in the light of those before, is √Σ(C_i/σ_i)²-GDP, ρ adding up likewise (Dong, Roth and Su 2022, theorem 4;
    Bun and Steinke 2016, lemma 2.3). So σ_i is chosen for a part of the loss, and the parts add up to at most 1.
    `Releases` has so many parts and no more: a release that was not paid is refused.
"""

from fractions import Fraction
from typing import Final, cast, final

import numpy as np

from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.learn.unit_rows import Integers, UnitRows
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import Loss, PureDP

MOST_LENGTH: Final = 1 << 31
"""A vector's length stays below, so that its square, and an entry times a bound, fit 63 bits."""


def clip(vectors: Integers, bound: int) -> Integers:
    """Shorten whole vectors, a row each, shorter than MOST_LENGTH, to a length of at most `bound`, each by itself."""
    lengths = root_up((vectors * vectors).sum(axis=1))
    return _shortened(vectors, np.repeat(lengths[:, None], vectors.shape[1], axis=1), bound)


def _shortened(entries: Integers, lengths: Integers, bound: int) -> Integers:
    """Shorten entries of vectors of these lengths, each beside its own: by a whole division, toward zero."""
    shorter = np.sign(entries) * (np.abs(entries) * bound // np.maximum(lengths, 1))
    return np.where(lengths > bound, shorter, entries)


def root_up(squares: Integers) -> Integers:
    """Return the least whole numbers at or above the roots, exactly: a double's root is off by less than one."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    found = roots + 2
    for step in (1, 0, -1):
        candidates = np.maximum(roots + step, 0)
        found = np.where(candidates * candidates >= squares, candidates, found)
    return found


@final
class Releases:
    """Releases that are paid: vectors that leave, each with the noise that its part of the loss asks for.

    Args:
        loss: What was charged for all.
        parts: Of each kind of release how often it is used and its part of the loss each time, together at most 1.
        replaced: Whether neighbours replace a unit.
    """

    def __init__(
        self, loss: Loss, parts: dict[str, tuple[int, Fraction]], *, replaced: bool, entropy: Entropy = SYSTEM
    ) -> None:
        if isinstance(loss, PureDP):
            raise InvalidParameter(PURE)
        if sum((times * part for times, part in parts.values()), Fraction(0)) > 1:
            raise InvalidParameter("The parts of a cost exceed the cost; this is a bug in Lapwing.")
        self._loss = loss
        self._parts = {name: part for name, (_, part) in parts.items()}
        self._left = {name: times for name, (times, _) in parts.items()}
        self._replaced = replaced
        self._entropy = entropy

    def noise(self, name: str, bound: int, entries: int) -> RoundedGaussian:
        """Return the noise of a kind of release, of vectors of so many entries, clipped to a bound."""
        part = self._loss.from_amount(self._loss.amount * self._parts[name])
        moved = (2 * bound if self._replaced else bound) ** 2
        return RoundedGaussian.for_loss(part, Sensitivity.from_l2_squared(moved, entries=entries))

    def release(self, name: str, rows: UnitRows, contributions: Integers, *, reach: int, bound: int) -> Integers:
        """Return the sum over units of what their rows contribute together, clipped unit by unit, with noise.

        Args:
            contributions: A whole vector of each row.
            reach: What no entry of a unit's sum passes, by the meaning of these numbers.
            bound: Of the length of a unit's vector, in the same parts.

        Raises:
            BudgetExhausted: If no such release is left.
        """
        size = contributions.shape[1]
        self._take(name, size, reach, bound)
        by_unit = np.clip(rows.summed(contributions), -reach, reach)
        exact = clip(by_unit, bound).sum(axis=0, dtype=np.int64)
        return cast(Integers, self.noise(name, bound, size).release(exact, self._entropy))

    def release_counts(
        self, name: str, rows: UnitRows, codes: Integers, values: Integers, *, size: int, reach: int, bound: int
    ) -> Integers:
        """Return what `release` does of long vectors with few entries that are not 0.

        Args:
            codes: Of each row some places below `size`.
            values: What the row adds at each of them.
            reach: As in `release`.
            bound: As in `release`.
        """
        self._take(name, size, reach, bound)
        units = np.repeat(np.arange(rows.starts.size), rows.sizes)
        pairs = (units[:, None] * size + codes).ravel()
        held, places = np.unique(pairs, return_inverse=True)
        sums = np.zeros(held.size, dtype=np.int64)
        np.add.at(sums, places, np.broadcast_to(values, codes.shape).ravel())
        sums = np.clip(sums, -reach, reach)
        owners, exact = held // size, np.zeros(size, dtype=np.int64)
        squares = np.zeros(rows.starts.size, dtype=np.int64)
        np.add.at(squares, owners, sums * sums)
        np.add.at(exact, held % size, _shortened(sums, root_up(squares)[owners], bound))
        return cast(Integers, self.noise(name, bound, size).release(exact, self._entropy))

    def _take(self, name: str, entries: int, reach: int, bound: int) -> None:
        """Take one release of a kind, of vectors with so many entries that are not 0."""
        if self._left.get(name, 0) < 1:
            raise BudgetExhausted("Training asked for more releases than were paid; this is a bug in Lapwing.")
        if bound < 1 or entries * reach**2 >= MOST_LENGTH**2 or bound >= MOST_LENGTH:
            raise InvalidParameter("Vectors are too long to be clipped exactly; this is a bug in Lapwing.")
        self._left[name] -= 1


PURE: Final = (
    "Gaussian noise has no pure epsilon, so this needs a gdp or zcdp ledger. Naive Bayes and linear regression work "
    "with a pure ledger. Nothing was charged."
)
