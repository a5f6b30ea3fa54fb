"""How far an answer can move between neighbouring data sets."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.parameters import rational, whole_number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The most that a vector of integers moves between neighbouring data sets.

    Args: l1: bound on the sum of the entries' absolute changes, in steps; l2_squared: on the sum of their squares.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared"):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"The sensitivity {name}"))

    @classmethod
    def from_l1(cls, l1: int) -> Self:
        """Return what follows from the L1 distance alone: the sum of squares is at most the square of the sum."""
        l1 = whole_number(l1, "l1")
        return cls(l1=l1, l2_squared=l1**2)

    @classmethod
    def from_l2_squared(cls, l2_squared: int, *, entries: int) -> Self:
        """Return what follows from the squared L2 distance of vectors of so many entries.

        l1 = ⌊√(entries · l2_squared)⌋ by Cauchy and Schwarz, a whole number as the entries are; and never more than
        l2_squared, as |c| ≤ c² for a whole number.
        """
        squared, entries = whole_number(l2_squared, "l2_squared"), whole_number(entries, "entries", least=1)
        return cls(l1=min(math.isqrt(entries * squared), squared), l2_squared=squared)

    @classmethod
    def from_linf(cls, linf: int, *, entries: int) -> Self:
        """Return what follows if at most `entries` entries change, each by at most `linf`."""
        linf, entries = whole_number(linf, "linf"), whole_number(entries, "entries", least=1)
        return cls(l1=entries * linf, l2_squared=entries * linf**2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSensitivity:
    """The most that a score moves between neighbouring data sets, for mechanisms that compare scores.

    Args: bound: the most that any one score moves, in the unit of the scores, ≥ 0; monotonic: whether, between two
        neighbours, all scores that move do so in the same direction (as counts of rows do when a row is added).
    """

    bound: Fraction = Fraction(1)
    monotonic: bool = False

    def __post_init__(self) -> None:
        bound = rational(self.bound, "The sensitivity bound")
        if bound < 0:
            raise InvalidParameter(f"The sensitivity bound is {self.bound}; it must be 0 or more.")
        if not isinstance(self.monotonic, bool):
            raise InvalidParameter(f"monotonic is {self.monotonic!r}; it must be True or False.")
        object.__setattr__(self, "bound", bound)

    @property
    def range(self) -> Fraction:
        """The most that the difference of two scores moves: the bound if monotonic, else twice the bound.

        A choice that depends on differences of scores only may be charged by this number alone.
        """
        return self.bound if self.monotonic else 2 * self.bound


def vector(sensitivity: Sensitivity) -> Sensitivity:
    """Return the sensitivity of a vector that gets noise.

    Raises: InvalidParameter if it is anything else.
    """
    if not isinstance(sensitivity, Sensitivity):
        raise InvalidParameter(
            f"The sensitivity is of type {type(sensitivity).__name__}; numbers that get noise need a Sensitivity, such "
            "as Sensitivity.from_l1(1)."
        )
    return sensitivity


def scored(sensitivity: ScoreSensitivity) -> ScoreSensitivity:
    """Return the sensitivity of scores that are compared.

    Raises: InvalidParameter if it is anything else.
    """
    if not isinstance(sensitivity, ScoreSensitivity):
        raise InvalidParameter(
            f"The sensitivity is of type {type(sensitivity).__name__}; scores that are compared need a "
            "ScoreSensitivity, such as ScoreSensitivity(bound=1, monotonic=True)."
        )
    return sensitivity
