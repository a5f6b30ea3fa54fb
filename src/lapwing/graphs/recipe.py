"""How a statistic of a graph is made: what is measured, how far an edge or a node moves it, and what is shown of it.

A recipe is a function of the catalog and of what was asked: all of it is public. It has at most one search, which
chooses a level among some (`LevelSearch`), and numbers, which are released at that level: vectors that get noise, or
counts with a ladder. What is shown is made of the released numbers alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.python_values import Cell
from lapwing.engines.graph_rows import GraphRows
from lapwing.mechanisms.noisy import Sensitivity

Integers = NDArray[np.int64]
Ends = tuple[float, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyVector:
    """Integers that get noise.

    Args:
        name: In words.
        sensitivity: Of one addition or removal of an edge or a node, whichever is protected.
        because: Why it is that.
        exact: The integers, of the private graph.
        weight: Of the price, beside the other numbers.
        most: What no entry exceeds, in public, so that noise as large is refused.
        ceiling: The same where it is only said that a price is of no use. None if nothing is known.
    """

    name: str
    sensitivity: Sensitivity
    because: str
    exact: Callable[[GraphRows], Integers]
    weight: int = 1
    most: int | None = None
    ceiling: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBound:
    """A bound on how far an edge moves a count of a graph (`mechanisms.graphs.local_sensitivity`).

    Args:
        exact: The bound, of the private graph.
        moved: How far an edge moves it.
        cap: What no edge exceeds, in public.
        because: Why.
    """

    exact: Callable[[GraphRows], int]
    moved: int
    cap: int
    because: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LadderCount:
    """A count that is released by a ladder, and the noisy base from which its interval follows.

    Args:
        base: What the ladder starts from, of the private graph, which an edge moves by one at most.
        steps: The ladder of a base.
        local: What may be bought in the place of a ladder, with a delta.
    """

    name: str
    because: str
    exact: Callable[[GraphRows], int]
    base: Callable[[GraphRows], int]
    steps: Callable[[int], Callable[[int], int]]
    local: LocalBound | None = None
    weight: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicNumber:
    """A number that neighbours share, as they have the same public nodes: it is shown as it is, and costs nothing."""

    name: str
    exact: Callable[[GraphRows], int]
    weight: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """The best of some candidates, which are public, by scores that are not: which they are is released, no score.

    Args:
        range: The most that the difference of two scores moves by one addition or removal of an edge or a node; it is
            that of a single score if all scores move in one direction.
        scores: Of the private graph.
        candidates: How many there are.
        count: How many are chosen, the best first.
    """

    name: str
    range: int
    because: str
    scores: Callable[[GraphRows], Sequence[int]]
    candidates: int
    count: int = 1
    weight: int = 1


Number = NoisyVector | LadderCount | PublicNumber | BestOf


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSearch:
    """The levels among which one is chosen, how far a node moves the score of each, and the scores."""

    levels: tuple[int, ...]
    sensitivity: Callable[[int], int]
    scores: Callable[[GraphRows, Sequence[int]], list[int]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedNumber:
    """What was released of a number: integers, and how far they may be off.

    Args:
        base: Of a ladder, noisy; or the bound on its local sensitivity that was bought.
    """

    values: list[int]
    half_width: Callable[[Fraction], int] = field(repr=False, compare=False)
    base: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Rows of an answer, and the ends of the intervals of its noisy columns.

    Args:
        one_sided: Which columns are of a graph that was cut, and so a `LOWER_BOUND` or an `UPPER_BOUND` of what there
            is, but for the noise: no interval covers what was cut off.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Cell], ...]
    ends: Mapping[str, tuple[Ends, ...]]
    notes: tuple[str, ...] = ()
    one_sided: Mapping[str, str] = field(default_factory=dict)


LOWER_BOUND: Final = "lower bound"
UPPER_BOUND: Final = "upper bound"


Show = Callable[[Sequence[ReleasedNumber], int | None, Fraction], Shown]
"""Makes what is shown of what was released: the numbers, the level, and the confidence of intervals."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a statistic is made.

    Args:
        text: The canonical question.
        numbers: What is released, at a level (None if there is no search).
        show: From what was released, the level and a confidence to rows.
    """

    text: str
    numbers: Callable[[int | None], tuple[Number, ...]]
    show: Show
    search: LevelSearch | None = None
    level: int | None = None
    public: tuple[str, ...] = ()
