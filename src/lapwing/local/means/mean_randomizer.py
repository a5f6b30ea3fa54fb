"""What mechanisms for a mean have in common: the grid, a position from each report, and its variance.

The *position* of a point i of a grid of s steps is u = i/s, from 0 at the lower bound to 1 at the upper. A report of
each mechanism here has an unbiased position: on average exactly u, by the mechanism's own thresholds, so that no bias
is left of their rounding. It may lie far outside [0, 1]. Its variance is a polynomial of degree 2 in u, exactly.

A device rounds a number between two points at random (`client.Number`), so that the point's position is right on
average, too. A mean is thus biased by one thing only: numbers beyond the public bounds are moved to them.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.frequencies.randomizer import MOST_IN_A_MATRIX, Reports, Transitions, codes
from lapwing.local.mechanism import Mechanism
from lapwing.privacy.amounts import Number, exact

Positions = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Parabola:
    """The polynomial constant + linear·u + square·u², for positions u from 0 to 1."""

    constant: Fraction
    linear: Fraction
    square: Fraction

    def at(self, u: Fraction) -> Fraction:
        """Return its value."""
        return self.constant + self.linear * u + self.square * u**2

    def most(self) -> Fraction:
        """Return the largest value, at an end or at the top between them."""
        tops = [Fraction(0), Fraction(1)]
        if self.square < 0:
            tops.append(min(max(-self.linear / (2 * self.square), Fraction(0)), Fraction(1)))
        return max(map(self.at, tops))

    def average(self, mean: Fraction, deviation: Fraction) -> Fraction:
        """Return the mean of its values over positions with a mean and a standard deviation."""
        return self.at(mean) + self.square * deviation**2

    def mixed(self, other: "Parabola", weight: Fraction) -> "Parabola":
        """Return the mean of the two, of which the first has a weight."""
        rest = 1 - weight
        return Parabola(
            weight * self.constant + rest * other.constant,
            weight * self.linear + rest * other.linear,
            weight * self.square + rest * other.square,
        )


class MeanRandomizer(Mechanism, Protocol):
    """A mechanism for a number on a grid. `randomize` is for simulations; devices run the client."""

    @property
    def number(self) -> client.Number:
        """The grid."""

    @property
    def variance(self) -> Parabola:
        """The variance of one report's position, for a point at position u."""

    @property
    def extremes(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest position of any report."""

    def positions(self, reports: Reports) -> Positions:
        """Return the unbiased position of each report."""

    def transition_matrix(self) -> Transitions:
        """Return the exact law of a report for each point, of at most eight points."""

    def randomize(self, points: IntArray, entropy: Entropy = ...) -> Reports:
        """Return a report for each point of the grid, 0 … steps."""

    @property
    def report_bytes(self) -> int:
        """How many bytes hold what a report says, packed."""


def grid(lower: Number, upper: Number, steps: int = 1000) -> client.Number:
    """Return a public grid of steps of equal length between two bounds.

    Raises:
        InvalidParameter: Unless lower < upper, with 6 decimal places and 12 digits before them at most.
    """
    try:
        return client.Number(_decimal(lower, "lower"), _decimal(upper, "upper"), steps)
    except client.TaskRefused as refused:
        raise InvalidParameter(str(refused)) from None


def on_grid(number: client.Number, values: NDArray[np.float64], entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
    """Return a point of the grid for each value like a device does, except for floating point: for simulations."""
    low, high = float(number.lower), float(number.upper)
    place = (np.clip(values, low, high) - low) * (number.steps / (high - low))
    down = np.floor(place)
    drawn = samplers.uniform_integers(1 << 53, values.size, entropy).astype(np.float64) * 2.0**-53
    points: NDArray[np.int64] = np.minimum(down + (drawn < place - down), number.steps).astype(np.int64)
    return points


def points_of(points: IntArray, number: client.Number) -> NDArray[np.int64]:
    """Return points of the grid as int64.

    Raises:
        InvalidParameter: If one is not on the grid; the message does not say which.
    """
    return codes(points, number.size)


def few_points(number: client.Number) -> range:
    """Return the points of a grid whose transition matrix is asked for.

    Raises:
        InvalidParameter: If they are too many.
    """
    if number.size > MOST_IN_A_MATRIX:
        raise InvalidParameter(f"A transition matrix is written out for {MOST_IN_A_MATRIX} points at most.")
    return range(number.size)


def _decimal(value: Number, name: str) -> Decimal:
    """Return a number of at most six decimal places."""
    number = exact(value, name) * 10**client.DECIMALS
    if number.denominator != 1:
        raise InvalidParameter(f"{name} is {value}; it must have at most {client.DECIMALS} decimal places.")
    return Decimal(number.numerator).scaleb(-client.DECIMALS).normalize()
