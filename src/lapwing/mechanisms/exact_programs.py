"""Linear programs solved exactly: the last word where floating point leaves a value undecided.

A value f that a unit moves by at most Δ, in one direction, is released as an integer: of f the function

    rounded(f, s) = s·⌊(f + θ)/s⌋

for a step s, a public integer, and θ below. It is increasing, so that it moves in the same direction, by at most
s·⌈Δ/s⌉ ≤ Δ + s − 1; and f + θ − s < rounded(f, s) ≤ f + θ.

Any lower end P ≤ f and upper end D ≥ f with rounded(P, s) = rounded(D, s) settle it, wherever they come from. So a
solver in floating point may propose weights and prices, from which such ends follow in integers: a bad proposal makes
them lie far apart, and cannot make them wrong. Where they do not agree `ExactProgram` computes f itself, by the simplex
method in fractions. So the result is a function of f alone, and there is always one. θ keeps f + θ away from integers:
it is near 2 − φ (φ the golden ratio), so that a fraction of denominator q plus θ is 1/(3q²) or more from an integer;
and as its own denominator is a prime of 61 bits, it is none unless that divides q.

The simplex method with bounds: max c·x where A x ≤ b, 0 ≤ x_j ≤ u_j, b ≥ 0. It starts from x = 0. Of the variables that
would raise the value the first enters, in a fixed order; of those that stop it the first leaves, itself among them
where it reaches its other bound (Bland 1977: no basis comes back). There are finitely many bases; so it ends. Columns
may be added between runs: what was allowed stays allowed.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Final, final

from flint import fmpq

THETA: Final = Fraction(880_753_656_798_294_140, 2**61 - 1)
"""What is added before a value is rounded down: just below 0.382."""


def rounded(value: Fraction | int, step: int) -> int:
    """Return s·⌊(value + θ)/s⌋: see the module."""
    return step * floor((value + THETA) / step)


@final
class ExactProgram:
    """A linear program that grows by columns, solved in fractions. Private data: it has no `repr` of its own.

    Args:
        limits: b, one for each row, 0 or more.
    """

    def __init__(self, limits: Sequence[int]) -> None:
        rows = len(limits)
        self._columns: list[list[tuple[int, int]]] = [[(row, 1)] for row in range(rows)]  # the slack of each row first
        self._gains = [0] * rows
        self._most: list[int | None] = [None] * rows
        self._basis = list(range(rows))
        self._inverse = [[fmpq(int(row == column)) for column in range(rows)] for row in range(rows)]
        self._values = [fmpq(int(limit)) for limit in limits]
        self._at_most: set[int] = set()
        """Variables outside the basis that are at their upper bound."""

    def add(self, column: Mapping[int, int], gain: int, most: int | None = None) -> None:
        """Add a variable: its entries by row, what a unit of it is worth, and its upper bound, if it has one."""
        self._columns.append([(int(row), int(entry)) for row, entry in column.items()])
        self._gains.append(int(gain))
        self._most.append(most if most is None else int(most))

    def solve(self) -> None:
        """Reach a best solution over the columns that there are."""
        while True:
            entering = self._entering(self.prices)
            if entering is None:
                return
            self._enter(entering)

    @property
    def value(self) -> Fraction:
        """The value of the solution at hand."""
        found = sum((self._gains[j] * value for j, value in zip(self._basis, self._values, strict=True)), fmpq(0))
        for j in self._at_most:
            found += self._gains[j] * (self._most[j] or 0)
        return Fraction(int(found.p), int(found.q))

    @property
    def prices(self) -> list[fmpq]:
        """What more of each limit would be worth: of a best solution, a solution of the dual program."""
        prices = [fmpq(0)] * len(self._basis)
        for j, row in zip(self._basis, self._inverse, strict=True):
            gain = self._gains[j]
            if gain:
                prices = [price + gain * entry for price, entry in zip(prices, row, strict=True)]
        return prices

    def _entering(self, prices: Sequence[fmpq]) -> int | None:
        """Return the first variable that would raise the value."""
        inside = set(self._basis)
        for j, column in enumerate(self._columns):
            if j in inside:
                continue
            reduced = self._gains[j] - sum((prices[row] * entry for row, entry in column), fmpq(0))
            if reduced < 0 if j in self._at_most else reduced > 0:
                return j
        return None

    def _enter(self, entering: int) -> None:
        """Move a variable from its bound until it, or one of the basis, is stopped."""
        down = entering in self._at_most
        change = [  # of the basis, for each unit of the variable
            (1 if down else -1) * sum((row[place] * entry for place, entry in self._columns[entering]), fmpq(0))
            for row in self._inverse
        ]
        own = self._most[entering]
        stop: tuple[fmpq, int, int] | None = None if own is None else (fmpq(own), entering, -1)
        for place, (j, value, moved) in enumerate(zip(self._basis, self._values, change, strict=True)):
            most = self._most[j]
            if moved < 0:
                length = value / -moved
            elif moved > 0 and most is not None:
                length = (most - value) / moved
            else:
                continue
            if stop is None or length < stop[0] or (length == stop[0] and j < stop[1]):
                stop = (length, j, place)
        if stop is None:
            raise ValueError("a program has no best value; this is a bug in Lapwing")
        length, leaving, place = stop
        self._values = [value + length * moved for value, moved in zip(self._values, change, strict=True)]
        if place < 0:
            self._at_most ^= {entering}
            return
        start = fmpq(self._most[entering] or 0) if down else fmpq(0)
        self._at_most.discard(entering)
        if change[place] > 0:
            self._at_most.add(leaving)
        self._pivot(place, [-moved if not down else moved for moved in change])
        self._basis[place], self._values[place] = entering, start + (-length if down else length)

    def _pivot(self, place: int, column: Sequence[fmpq]) -> None:
        """Make the inverse that of the basis with a new column at a place, given as a sum of the old ones."""
        pivot = [entry / column[place] for entry in self._inverse[place]]
        for other, (row, factor) in enumerate(zip(self._inverse, column, strict=True)):
            if other != place and factor != 0:
                self._inverse[other] = [entry - factor * new for entry, new in zip(row, pivot, strict=True)]
        self._inverse[place] = pivot
