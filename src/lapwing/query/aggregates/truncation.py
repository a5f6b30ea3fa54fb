"""Choose the truncation threshold of a sum of rows that several units share, privately.

No bound on what a unit adds to such rows is public, and there is no histogram of what units add: removing one changes
what others add. But the sum truncated at a threshold τ (`mechanisms.packing`) moves by τ at most, whatever the data
are. So the thresholds themselves are compared: a question of its own computes the truncated sum at each, from a quarter
of the greatest value of a row, and by doublings, up to 2²⁰ rows, and releases nothing but which of them does best, by
the generalised exponential mechanism. A threshold scores by its sum, less a handicap in proportion to the threshold: so
a higher threshold is chosen if what it adds to the sum is clearly more than what noise explains. The question is asked
afterwards at twice the chosen threshold.

Guarantee:
    The score of a threshold is the sum over all cells of one measure, so that a unit moves it by the measure's L1
    sensitivity at most (`stability`); with these for its sensitivities, the loss is that of `mechanisms.generalised`.
    The question at the threshold of its answer is one with a number for it. Both are charged before the rows that they
    read are read; losses of questions chosen along the way add up (`privacy.filters`), to the price of both.

How good it is. With probability 1 − β, what the sum at the chosen threshold lacks of the sum at any other threshold τ,
in all cells together, is at most (t + r)·τ·C, C cells, r = scale·ln(n/β) plus a little, t the handicap (`shortfall`).
Two fifths of the price, doublings, a handicap at a confidence of 0.9999, and twice the chosen threshold were taken
together from trials with the totals of TPC-H that have two private units, with flat, uniform, lognormal and Pareto ones
of 1,000 and 20,000 units, and ε from 0.1 to 3: there the mean error is about 3 times that of the best threshold at the
whole price, which nobody knows, and 7 times less than a race's.

Source:
    That a Lipschitz extension is chosen by this mechanism: Raskhodnikova and Smith 2016 (Lipschitz Extensions for
    Node-Private Graph Statistics and the Generalized Exponential Mechanism); the program is that of
    `mechanisms.packing`.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.mechanisms.generalised import LARGEST_SENSITIVITY, GeneralisedExponential
from lapwing.mechanisms.packing import MOST_LEVEL, slack
from lapwing.query.aggregates.approximate_bounds import ApproximateBounds
from lapwing.query.aggregates.scope import Requests
from lapwing.query.expressions.magnitudes import NO_LADDER, DoublingLadder, Magnitudes
from lapwing.query.measures.measures import Count, Key, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.plan.search import Search
from lapwing.query.relations.relation import FilteredRows

MOST_ROWS: Final = 1 << 20
"""What a unit may add at the highest threshold, in rows of the greatest value."""
DOUBLINGS: Final = 22
"""How often the lowest threshold, a quarter of that value, is doubled up to the highest."""
THRESHOLD_SHARE: Final = Fraction(2, 5)
"""The part of a question's price that finds a threshold."""
CONFIDENCE: Final = Fraction(95, 100)


def highest(measure: Count | Sum) -> int:
    """Return the highest threshold of a measure, in steps."""
    return min(max(measure.row_range[1], 1) * MOST_ROWS, MOST_LEVEL)


def truncated_by_search(measure: Count | Sum, requests: Requests) -> Count | Sum:
    """Return a measure that is truncated at the threshold of its search, else at the highest."""
    requests.total_searches.add(measure)
    bounds = requests.bounds.get(measure)
    threshold = highest(measure) if bounds is None else int(bounds[1] / measure.step)
    return replace(measure, clamp=(0, threshold))


def threshold_search(
    measure: Count | Sum, selection: FilteredRows, keys: Sequence[Key], name: str, units: int
) -> Search:
    """Return the question for the threshold at which a measure is truncated.

    Args:
        units: How many units may share a row.

    Raises:
        QueryRefused: If there are too many cells.
    """
    magnitudes = _magnitudes(measure)
    measures = tuple(replace(measure, clamp=(0, int(edge / measure.step))) for edge in magnitudes.edges[1:])
    question = Question(selection=selection, keys=tuple(sorted(keys, key=str)), measures=measures, choosing=True)
    top = highest(measure)
    if (question.cells or 1) * (top + slack(top, units)) > LARGEST_SENSITIVITY:
        raise QueryRefused(
            f"A level is not found for {question.cells:,} cells at once of so large numbers",
            cause=RefusalCause.BOUNDS_NOT_SEARCHABLE,
            remedy="Write contribution_bounds_per_group => (0, 100), or group by fewer values.",
        )
    return Search(question=question, magnitudes=magnitudes, name=name, total=measure)


def _magnitudes(measure: Count | Sum) -> Magnitudes:
    """Return the thresholds: a lowest one, its doublings, and the highest."""
    top = highest(measure)
    lowest = -(-top >> DOUBLINGS) or 1
    doublings = 0
    while lowest << doublings < top:
        doublings += 1
    ladder = DoublingLadder(unit=lowest * measure.step, doublings=doublings, last=top * measure.step)
    return Magnitudes(below=NO_LADDER, above=ladder)


def threshold_from_choice(place: int, mechanism: GeneralisedExponential, search: Search) -> ApproximateBounds:
    """Return the threshold that follows from the place of the chosen one: the next.

    Its `beyond` is how many steps the sum lacks at most, with 95 % probability, of the sum at twice that threshold.
    """
    thresholds = search.magnitudes.edges[1:]
    last = len(thresholds) - 1
    next_place = min(place + 1, last)
    lacking = mechanism.shortfall(min(next_place + 1, last), CONFIDENCE)
    return ApproximateBounds(bounds=(Fraction(0), thresholds[next_place]), beyond=lacking, clear=next_place < last)
