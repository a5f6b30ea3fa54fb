"""A made-up answer to a priced question, so that one sees before paying what its noise does.

All groups are made up alike, from assumptions that the asker makes. A real answer at this price has the same noise, and
the same formulas over the noisy numbers.

Guarantee:
    The answer is a function of the plan, its price, the assumptions and fresh random bits. Plan and price follow from
    the catalog and the question. No engine and no ledger is an argument, so no row is read and nothing is charged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from lapwing.answer import Answer
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms.trees import levels_above
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Measure, Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import NoisyMeasure, Quote
from lapwing.release.cells import columns_of
from lapwing.release.release import add_noise
from lapwing.release.request import Request

MOST_NODES: Final = 1 << 18
"""Numbers of a made-up answer, of distributions too."""
HALF: Final = Fraction(1, 2)
"""The share of a median."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedGroup:
    """Assumptions that hold for every group.

    Args:
        rows: How many it has, from 1 to 10¹².
        typical: By the name of a column, its result without noise; of other columns, what the bounds say.
    """

    rows: int
    typical: Mapping[str, Fraction]


def simulated(request: Request, group: AssumedGroup, groups: int, entropy: Entropy) -> Answer:
    """Answer a question with as many made-up groups; one if it has no keys.

    Guarantee:
        See the module.

    Raises:
        InvalidParameter: For a question whose result is no table of numbers by public keys.
    """
    plan, priced = request.plan, request.priced
    first = tuple(key.domain[0] for key in plan.question.keys if key.domain)
    if not priced.terms or _is_of_several(plan, priced) or len(first) != len(plan.question.keys):
        raise InvalidParameter(
            "There is no simulated picture of this query. Lapwing simulates aggregates by public groups: counts, sums, "
            "averages, quantiles, and what is computed from them."
        )
    nodes = sum(sum(m.sizes) for m in plan.question.measures if isinstance(m, Distribution))
    size = max(1, min(groups, MOST_NODES // max(1, nodes))) if first else 1
    typical = dict(_targets(plan, group))
    made_up = [_made_up(measure, group.rows, typical.get(measure), size) for measure in plan.question.measures]
    return Answer(
        plan=plan,
        mechanisms=tuple(term.mechanism for term in priced.terms),
        keys=columns_of([first] * size, len(first)),
        values=_with_noise(priced, made_up, size, entropy),
        cost=priced.loss.nothing(),
    )


def _is_of_several(plan: Plan, priced: Quote) -> bool:
    """Tell whether other questions come first, or values are chosen by the data."""
    return bool(
        plan.composition is not None
        or priced.sources
        or priced.searches
        or plan.constants
        or plan.unsettled
        or priced.choosing is not None
        or priced.key_selection is not None
    )


def _with_noise(priced: Quote, made_up: Sequence[IntArray], size: int, entropy: Entropy) -> tuple[IntArray, ...]:
    """Add the noise that is bought, where other numbers are measured, too.

    These numbers are linear in the measured ones. So what they err by is what noise on zeros makes of them.
    """
    vector = priced.vector
    if vector is None or not vector.is_bought:
        return add_noise(priced.terms, made_up, entropy)
    zeros = [_zeros(term, size) for term in vector.bought.terms]
    exact, noisy = vector.values(zeros), vector.values(add_noise(vector.bought.terms, zeros, entropy))
    return tuple(made + ours - bare for made, ours, bare in zip(made_up, noisy, exact, strict=True))


def _zeros(term: NoisyMeasure, size: int) -> IntArray:
    shape = (size, sum(term.measure.sizes)) if isinstance(term.measure, Distribution) else size
    return np.zeros(shape, dtype=np.int64)


def _targets(plan: Plan, group: AssumedGroup) -> Iterator[tuple[Measure, Fraction]]:
    """Yield what a measure is made up to be, for each column with a typical result.

    This is a value of one row for averages and medians, and a number of the group for counts and sums.
    """
    for output in plan.outputs:
        result = group.typical.get(output.name)
        if result is None:
            continue
        match output.value:
            case MeasureValue(measure=Sum() as total):
                yield total, result / group.rows
            case MeasureValue(measure=measure):
                yield measure, result
            case Average(total=total) | KnownMean(total=total):
                yield total, result
            case OrderStatistic(distribution=distribution, share=share) if share == HALF:
                yield distribution, result
            case _:
                pass


def _made_up(measure: Measure, rows: int, target: Fraction | None, size: int) -> IntArray:
    match measure:
        case Distribution():
            value = Fraction(measure.low + measure.high, 2) if target is None else target / measure.type.step
            counts = np.tile(_evenly(measure, rows, value), (size, 1))
            return np.concatenate(levels_above(counts.astype(np.int64), measure.branching), axis=-1)
        case Sum() | SumDistinct():
            low, high = measure.row_range
            origin = measure.origin if isinstance(measure, Sum) else 0
            value = Fraction(low + high, 2) if target is None else target / measure.step - origin
            number = round(value * rows)
        case _:
            number = rows if target is None else round(target)
    return integer_array([number] * size)


def _evenly(measure: Distribution, rows: int, value: Fraction) -> IntArray:
    """Return rows for each leaf: spread evenly over the widest range within the bounds that has a value in its middle.

    >>> from lapwing.query.expressions.expression import ColumnReference
    >>> from lapwing.query.expressions.types import Fixed
    >>> argument = ColumnReference(type=Fixed(step=Fraction(1), low=0, high=9), name="age")
    >>> _evenly(Distribution(argument=argument), 7, Fraction(2)).tolist()
    [1, 1, 2, 1, 2, 0, 0, 0, 0, 0]
    """
    last = measure.sizes[-1] - 1
    leaf = min(max((round(value) - measure.low) // measure.width, 0), last)
    half = min(leaf, last - leaf)
    ends = np.arange(2 * half + 2, dtype=np.int64) * rows // (2 * half + 1)
    counts = np.zeros(last + 1, dtype=np.int64)
    counts[leaf - half : leaf + half + 1] = np.diff(ends)
    return counts
