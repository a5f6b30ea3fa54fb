"""Draw from any law on the integers by table, exactly.

Theory of operation. Let F be the law's distribution function and U uniform on [0, 1). Then X = min {k : U < F(k)} has
the law: P(X ≤ k) = P(U < F(k)) = F(k). U is a sequence of fair coins that is revealed only as far as it is needed,
and X is a function of U alone, whatever the order in which things are found out:

1. 16 bits of U pick one of 65,536 cells. If no boundary F(k) can lie in the cell, the whole cell has one outcome,
   and the guide holds it. This decides all but about (number of likely outcomes) / 65,536 of the draws.
2. Otherwise 48 more bits of the same U, so that U lies in [u, u + 1) / 2^64. With brackets a_k ≤ 2^64 F(k) ≤ b_k,
   b_k ≤ u proves F(k) ≤ U, and a_k ≥ u + 1 proves F(k) > U. If the number of boundaries that are proven to lie at
   or below U equals the number that may, that number gives the outcome.
3. Otherwise (about 2^-53 of the draws; the tails beyond the table are among them) the search of `LazyUniform.quantile`
   continues with integers of any size, ball arithmetic of any precision and as many more bits of U as it takes.

No step approximates: the brackets are proven, an undecided case is always passed on, and the last step has no limit.
So the law is exact, and no rounding can change it.

Timing. A small draw, whose time could tell of a single number, skips step 1: each number has its 64 bits read and
searched for by halving, in arrays of fixed length. Only step 3 takes longer, about once in 2^53 draws. A large draw
uses the guide, and its time tells about how many of its more than two thousand numbers fell into undecided cells.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, assign
from lapwing.exact.bounds import Bracket
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.uniform import LazyUniform

_CELLS = 1 << 16
_CELL_BITS = 48
_MOST_BOUNDARIES = (1 << 15) - 1
_UNDECIDED = 0
# Draws up to this size do the same work whatever is drawn.
FIXED_WORK = 1 << 11


class Boundaries(NamedTuple):
    """Brackets on 2^64 · F(first), 2^64 · F(first + 1), and so on without a gap."""

    first: int
    brackets: list[Bracket]


class IntegerLaw(Protocol):
    """The brackets on F(k) = P(X ≤ k) that a table needs of a law on the integers, at any precision."""

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Return integers lower ≤ 2^bits · F(outcome) ≤ upper, both within 0 … 2^bits.

        upper − lower stays bounded as `bits` grows, so more bits always tell more.
        """
        ...

    def boundaries(self) -> Boundaries:
        """Return brackets for all outcomes but a tail of probability about 2^−64 on either side."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InversionTable:
    """A law with its boundaries at 64 bits and its guide of 65,536 cells.

    A position counts the boundaries at or below U, so position i ≥ 1 is the outcome `first` + i; position 0, and a
    position past the last boundary, stand for a whole tail and are therefore never decided by the table.

    `law` answers what the table leaves open; `first` is the outcome of the first of the `boundaries`. `possible` holds
    the lower ends of the brackets (boundaries that may lie at or below a prefix), `certain` the upper ends (boundaries
    that are proven to), both ascending and without those at 2^64, which no prefix reaches. `guide` has the position
    for each value of U's first 16 bits, 0 where they do not decide it.
    """

    law: IntegerLaw
    first: int
    possible: NDArray[np.uint64] = field(repr=False)
    certain: NDArray[np.uint64] = field(repr=False)
    boundaries: int
    guide: NDArray[np.int16] = field(repr=False)

    def __post_init__(self) -> None:
        if not 2 <= self.boundaries <= _MOST_BOUNDARIES:
            raise ValueError(f"a table has 2 to {_MOST_BOUNDARIES} boundaries, not {self.boundaries}")

    @classmethod
    def of(cls, law: IntegerLaw) -> Self:
        """Build the table of a law."""
        first, brackets = law.boundaries()
        possible, certain = _ends(brackets)
        guide = _guide(possible, certain, len(brackets))
        return cls(law=law, first=first, possible=possible, certain=certain, boundaries=len(brackets), guide=guide)

    def draw(self, size: int, entropy: Entropy) -> IntArray:
        """Return `size` independent draws."""
        if size <= FIXED_WORK:
            prefixes = np.frombuffer(read_exactly(entropy, 8 * size), dtype="<u8")
            return self._search(np.zeros(size, dtype=np.int64), np.arange(size), prefixes, entropy)
        words = np.frombuffer(read_exactly(entropy, 2 * size), dtype="<u2")
        positions = self.guide.take(words, mode="wrap")
        outcomes = np.add(positions, self.first, dtype=np.int64)
        undecided = np.flatnonzero(positions == _UNDECIDED)
        more = np.frombuffer(read_exactly(entropy, 8 * undecided.size), dtype="<u8") >> np.uint64(64 - _CELL_BITS)
        prefixes = (words[undecided].astype(np.uint64) << np.uint64(_CELL_BITS)) | more
        return self._search(outcomes, undecided, prefixes, entropy)

    def draw_one(self, entropy: Entropy) -> int:
        """Return one draw: what `draw` does with the same bytes for a size of 1, without its arrays."""
        prefix = int.from_bytes(read_exactly(entropy, 8), "little")
        key = np.uint64(prefix)
        least = int(self.certain.searchsorted(key, side="right"))
        # The boundaries that may lie at or below U are no more than `least` if the next one's bracket begins above U.
        if 0 < least < self.boundaries and (least == self.possible.size or self.possible[least] > key):
            return least + self.first
        return LazyUniform(prefix=prefix, bits=64, entropy=entropy).quantile(self.law.cumulative)

    def _search(
        self, outcomes: IntArray, indices: NDArray[np.intp], prefixes: NDArray[np.uint64], entropy: Entropy
    ) -> IntArray:
        """Decide some of the draws by their first 64 bits, or by as many more as it takes."""
        least = self.certain.searchsorted(prefixes, side="right")
        most = self.possible.searchsorted(prefixes, side="right")
        outcomes[indices] = least + self.first
        for i in np.flatnonzero(~_decided(least, most, self.boundaries)):
            uniform = LazyUniform(prefix=int(prefixes[i]), bits=64, entropy=entropy)
            outcomes = assign(outcomes, int(indices[i]), uniform.quantile(self.law.cumulative))
        return outcomes


def _ends(brackets: list[Bracket]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the ends of the brackets as sorted arrays, without those that no 64-bit prefix reaches.

    A prefix is only ever compared with how many ends lie at or below it, so their order does not matter and may as
    well be ascending; since F ascends, n boundaries proven to lie at or below U mean that the first n do.
    """
    unit = 1 << 64
    possible = sorted(bracket.lower for bracket in brackets if bracket.lower < unit)
    certain = sorted(bracket.upper for bracket in brackets if bracket.upper < unit)
    return np.array(possible, dtype=np.uint64), np.array(certain, dtype=np.uint64)


def _guide(possible: NDArray[np.uint64], certain: NDArray[np.uint64], boundaries: int) -> NDArray[np.int16]:
    """Return for each cell [c, c + 1) · 2^48 the position that all its prefixes have, or 0.

    A prefix u of the cell has at least as many certain boundaries as the cell's first prefix and at most as many
    possible ones as its last. Where these two counts agree, every u of the cell has that position.
    """
    shift, last = np.uint64(_CELL_BITS), np.uint64((1 << _CELL_BITS) - 1)
    first_cell_after = (certain >> shift) + ((certain & last) > 0)
    least = np.cumsum(np.bincount(first_cell_after.astype(np.intp), minlength=_CELLS + 1)[:_CELLS])
    most = np.cumsum(np.bincount((possible >> shift).astype(np.intp), minlength=_CELLS))
    return np.where(_decided(least, most, boundaries), least, _UNDECIDED).astype(np.int16)


def _decided(least: NDArray[np.intp], most: NDArray[np.intp], boundaries: int) -> NDArray[np.bool_]:
    decided: NDArray[np.bool_] = (least == most) & (least > 0) & (least < boundaries)
    return decided
