"""How one unit's events can add up in what a lower triangular Toeplitz matrix makes of them.

Let c_0 ≥ c_1 ≥ … ≥ 0 be the first column of the matrix C, of n rows. An event at tick i that adds v to a cell moves the
cell's Cx by v times column i, which is c from row i on. Let G(i, j) = Σ_{k < n − max(i, j)} c_k·c_{k + |i − j|} be the
inner product of two columns: it is not negative, and falls as either tick gets later and as they get farther apart, for
both leave out terms or make factors smaller. So the most that events can do, they do as early and as close together as
they may be (Kalinin and Lampert 2024, arXiv 2405.13763, for spaced events), and all in one cell: between cells, inner
products are 0.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar, Protocol, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.continual.mixtures import Floats

_FEW, _SOME = 64, 4096

Inner = Callable[[Floats, Floats], Floats]
"""G of pairs of ticks i ≤ j, counted from 0; to be rounded up by who needs a bound."""


class Participation(Hashable, Protocol):
    """What one unit can do over the horizon, in units of the most that one of its events changes in one tick."""

    @property
    def cells(self) -> int:
        """In how many cells at most."""
        ...

    @property
    def steps(self) -> int:
        """Σ over its ticks of the L1 norm of what it changes, at most."""
        ...

    @property
    def needs_convexity(self) -> bool:
        """Whether what is proven of it holds for columns alone that fall ever less."""
        ...

    @property
    def gaps(self) -> tuple[int, ...]:
        """For how many ticks in a row there is one event of it at most, if that is said."""
        ...

    def sensitivity_squared(self, inner: Inner, ticks: int, *, roughly: bool = False) -> float:
        """Return the largest squared L2 norm of what it changes of Cx, to floating-point accuracy.

        Args:
            roughly: Whether to try fewer of the things it can do, where there are many: to compare matrices.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class Events:
    """At most `most` events of a unit, of which at most `per_tick` at one tick; each adds to one cell.

    The events fill the first ticks, `per_tick` each, `spacing` ticks apart. The sum Σ_ab w_a·w_b·G(a·spacing,
    b·spacing) is convex in the weights w. So it is largest where all but one are at their limit r. The rest w ≤ r of
    them is best last: if it moves there from place q, those behind move up. Their G's gain and its own loss
    both telescope to P + L. Here P and L ≥ 0 are what differs with the places before q and behind it. The sum grows by
    2·(r² − r·w)·(P + L) + (r² − w²)·(G(q, q) − G(last, last)) ≥ 0.

    Args:
        most: From 1.
        per_tick: From 1, by default all of them.
        spacing: Ticks between two ticks of a unit, from 1.
    """

    needs_convexity: ClassVar[bool] = False
    most: int
    per_tick: int | None = None
    spacing: int = 1

    def __post_init__(self) -> None:
        for name, value in (("most", self.most), ("per_tick", self.per_tick), ("spacing", self.spacing)):
            if value is not None or name != "per_tick":
                _require_whole(name, value)

    @property
    def cells(self) -> int:
        """In how many cells at most."""
        return self.most

    @property
    def steps(self) -> int:
        """Each event is one."""
        return self.most

    @property
    def gaps(self) -> tuple[int, ...]:
        """For how many ticks in a row there is one tick with events of it at most."""
        return (self.spacing,) if self.spacing > 1 else ()

    def sensitivity_squared(self, inner: Inner, ticks: int, *, roughly: bool = False) -> float:
        """Return Σ_ab w_a·w_b·G(a·spacing, b·spacing); for many ticks an upper bound with G(0, (b − a)·spacing)."""
        each = min(self.per_tick or self.most, self.most)
        places = min(-(-self.most // each), -(-ticks // self.spacing))
        if places > _FEW:
            lags = np.arange(min(places, _SOME) if roughly else places, dtype=float)
            pairs = np.where(lags == 0, 1, 2) * (places - lags)
            return each**2 * float(pairs @ inner(np.zeros_like(lags), lags * self.spacing))
        weights = np.minimum(each, self.most - np.arange(places) * each)
        earlier, later = (place.astype(float) for place in np.triu_indices(places))
        pairs = np.where(earlier == later, 1, 2) * weights[earlier.astype(int)] * weights[later.astype(int)]
        return float(pairs @ inner(earlier * self.spacing, later * self.spacing))


@final
@dataclass(frozen=True, slots=True)
class OncePerCell:
    """At most `most` events of a unit, no two of them in the same cell: as each person is first seen in a cell once.

    Columns of different cells have inner product 0, so squares add up, and each is largest at tick 0.
    """

    needs_convexity: ClassVar[bool] = False
    gaps: ClassVar[tuple[int, ...]] = ()
    most: int

    def __post_init__(self) -> None:
        _require_whole("most", self.most)

    @property
    def cells(self) -> int:
        """In how many cells at most."""
        return self.most

    @property
    def steps(self) -> int:
        """Each event is one."""
        return self.most

    def sensitivity_squared(self, inner: Inner, ticks: int, *, roughly: bool = False) -> float:
        """Return `most` times G(0, 0)."""
        start = np.zeros(1)
        return self.most * float(inner(start, start)[0])


@final
@dataclass(frozen=True, slots=True)
class Stays:
    """At most `most` stays of a unit, one after the other; each adds 1 to a cell as it begins, and −1 as it ends.

    Let c be convex as well: c_k − c_{k+1} does not grow. Then a unit's stays add up like the sides of a right or obtuse
    angle, and Σ‖stay‖² bounds the square of all. Two stays in different cells meet nowhere. In the same cell, let u and
    v be what the earlier and the later do to Cx. The first ends at tick e, no later than the other begins, at s, and v
    ends at tick f. From e on u ≤ 0. And v ≥ 0 from s to f, and ≤ 0 from f on. So Σuv begins with terms ≤ 0 and goes on
    with terms ≥ 0. It is largest if nothing is cut off at the end. With g(lag) = Σ_k c_k·c_{k + lag} it is then g(a +
    L) + g(a + L') − g(a) − g(a + L + L'). Here L, L' are lengths and a = s − e ≥ 0. As c is convex and c ≥ 0, g is
    convex, and this is not positive.

    A stay is longest in L2 if it begins at tick 0; how long it lasts is tried, up to all of the horizon.
    """

    needs_convexity: ClassVar[bool] = True
    gaps: ClassVar[tuple[int, ...]] = ()
    most: int

    def __post_init__(self) -> None:
        _require_whole("most", self.most)

    @property
    def cells(self) -> int:
        """In how many cells at most."""
        return self.most

    @property
    def steps(self) -> int:
        """A beginning and an end each."""
        return 2 * self.most

    def sensitivity_squared(self, inner: Inner, ticks: int, *, roughly: bool = False) -> float:
        """Return `most` times the largest G(0, 0) + G(L, L) − 2·G(0, L); a stay to the end has no G(L, ·)."""
        ends, start = np.arange(1, ticks, dtype=float), np.zeros(1)
        if roughly and len(ends) > _FEW:
            ends = np.unique(np.geomspace(1, ticks - 1, _FEW).round())
        own = float(inner(start, start)[0])
        if not len(ends):
            return self.most * own
        # Each G is off by less than 1e-10 of the largest, G(0, 0); a difference of three by less than 4e-10 of it.
        longest = float(np.max(own + inner(ends, ends) - 2 * inner(np.zeros_like(ends), ends))) + 4e-10 * own
        return self.most * max(own, longest)


def _require_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 30:
        raise InvalidParameter(f"{name} is {value!r:.60}; it must be a whole number from 1 to 2^30 − 1.")
