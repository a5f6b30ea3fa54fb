"""Find the level at which a sum of rows that several units share is truncated, privately.

No bound on what a unit adds to such rows is public, and there is no histogram of what units add: removing one changes
what others add. But the sum truncated at a level τ (`mechanisms.packing`) moves by τ at most, whatever the data are. So
the levels themselves are compared: a question of its own computes the truncated sum at each, from a quarter of the
greatest value of a row, and by doublings, up to 2²⁰ rows, and releases nothing but which of them does best, by the
generalised exponential mechanism. A level scores by its sum, less a handicap in proportion to the level: so a higher
level is chosen if what it adds to the sum is clearly more than what noise explains. The question is asked afterwards at
twice the chosen level.

Guarantee: the score of a level is the sum over all cells of one measure, so that a unit moves it by the measure's L1
sensitivity at most (`stability`); with these for its sensitivities, the loss is that of `mechanisms.generalised`. The
question at the level that was found is one with a number for it. Both are charged before the rows that they read are
read; losses of questions chosen along the way add up (`privacy.filters`), to the price of both.

How good it is. With probability 1 − β, what the sum at the chosen level lacks of the sum at any other level τ, in all
cells together, is at most (t + r)·τ·C, C cells, r = scale·ln(n/β) plus a little, t the handicap (`shortfall`). Two
fifths of the price, doublings, a handicap at a confidence of 0.9999, and twice the chosen level were taken together
from trials with the totals of TPC-H that have two private units, with flat, uniform, lognormal and Pareto ones of 1,000
and 20,000 units, and ε from 0.1 to 3: there the mean error is about 3 times that of the best level at the whole price,
which nobody knows, and 7 times less than a race's.

Source: that a Lipschitz extension is chosen by this mechanism: Raskhodnikova and Smith 2016 (Lipschitz Extensions for
Node-Private Graph Statistics and the Generalized Exponential Mechanism); the program is that of `mechanisms.packing`.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused
from lapwing.mechanisms.generalised import LARGEST_SENSITIVITY, GeneralisedExponential
from lapwing.mechanisms.packing import MOST_LEVEL, slack
from lapwing.query.aggregates.searches import Found, Searching
from lapwing.query.expressions.magnitudes import NO_LADDER, Ladder, Magnitudes
from lapwing.query.keys import Key
from lapwing.query.measures import Count, Sum
from lapwing.query.plan import Question, Search
from lapwing.query.relations.relation import Selection
from lapwing.query.stability import row_range

MOST_ROWS: Final = 1 << 20
"""What a unit may add at the highest level: so many rows of the greatest value."""
DOUBLINGS: Final = 22
"""How far below it the lowest is: at a quarter of that value."""
LEVEL_SHARE: Final = Fraction(2, 5)
"""The part of a question's price that finds a level."""
CONFIDENCE: Final = Fraction(95, 100)


def highest(measure: Count | Sum) -> int:
    """Return the highest level of a measure, in steps."""
    return min(max(row_range(measure)[1], 1) * MOST_ROWS, MOST_LEVEL)


def at_found_level(measure: Count | Sum, searching: Searching) -> Count | Sum:
    """Return a measure that is truncated at the level that was found, else at the highest."""
    searching.totals.add(measure)
    found = searching.found.get(measure)
    level = highest(measure) if found is None else int(found[1] / measure.step)
    return replace(measure, clamp=(0, level))


def level_search(measure: Count | Sum, selection: Selection, keys: Sequence[Key], name: str, units: int) -> Search:
    """Return the question for the level at which a measure is truncated.

    Args: units: how many units may share a row.
    Raises: QueryRefused if there are too many cells.
    """
    magnitudes = _magnitudes(measure)
    measures = tuple(replace(measure, clamp=(0, int(edge / measure.step))) for edge in magnitudes.edges[1:])
    question = Question(selection=selection, keys=tuple(sorted(keys, key=str)), measures=measures, choosing=True)
    top = highest(measure)
    if (question.cells or 1) * (top + slack(top, units)) > LARGEST_SENSITIVITY:
        raise QueryRefused(
            f"A level is not found for {question.cells:,} cells at once of so large numbers",
            remedy="Write contribution_bounds_per_group => (0, 100), or group by fewer values.",
        )
    return Search(question=question, magnitudes=magnitudes, name=name, total=measure)


def _magnitudes(measure: Count | Sum) -> Magnitudes:
    """Return the levels: a lowest one, its doublings, and the highest."""
    top = highest(measure)
    lowest = -(-top >> DOUBLINGS) or 1
    doublings = 0
    while lowest << doublings < top:
        doublings += 1
    ladder = Ladder(unit=lowest * measure.step, doublings=doublings, last=top * measure.step)
    return Magnitudes(below=NO_LADDER, above=ladder)


def found_level(place: int, mechanism: GeneralisedExponential, search: Search) -> Found:
    """Return the level that follows from the place of the chosen one: the next.

    Its `beyond` is how many steps the sum lacks at most, with 95 % probability, of the sum at twice that level.
    """
    levels = search.magnitudes.edges[1:]
    last = len(levels) - 1
    found = min(place + 1, last)
    lacking = mechanism.shortfall(min(found + 1, last), CONFIDENCE)
    return Found(bounds=(Fraction(0), levels[found]), beyond=lacking, clear=found < last)
