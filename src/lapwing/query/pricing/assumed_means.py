"""How far a mean may be off in a cell that is assumed to have so many rows, and what it costs to be as near."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.exact.arrays import integer_array
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.measures import PRIVACY_MEASURES
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue, NoisyCells
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import CONFIDENCE, NoisyMeasure, Quote, at_loss
from lapwing.query.sensitivity.stability import SensitivityBound

_LEAST: Final = Fraction(1, 2**40)
_DOUBLINGS: Final = 80
_HALVINGS: Final = 14
"""Steps of the search for a price: what is found is at most a ten-thousandth above the cheapest."""


def half_width_of_mean(average: Average, terms: Mapping[Measure, NoisyMeasure], count: int) -> Fraction:
    """Return the largest distance between a mean and the ends of its interval, over all means inside the bounds.

    With n rows of mean m around the origin, the released sum lies within a of nm and the released count within b of
    n. The quotient's distance from m is convex in m, so that it is largest at a bound.
    """
    level = 1 - (1 - CONFIDENCE) / 2
    parts: tuple[Measure, ...] = (average.total, average.count)
    margins = {part: terms[part].half_width(level) for part in parts}
    low, high = average.total.type.interval()
    if low is None or high is None:
        raise ValueError("a sum's argument is bounded")
    origin = average.total.origin * average.total.step
    away = margins[average.total]
    cases = [(mean, (mean - origin) * count + error) for mean in (low, high) for error in (-away, away)]
    cells = NoisyCells(
        size=len(cases),
        measures={
            average.total: integer_array([int(total / average.total.step) for _, total in cases]),
            average.count: integer_array([count] * len(cases)),
        },
        keys={},
        margins=lambda _value: margins,
    )
    ends = average.interval(cells, {**margins, average.total: Fraction(0)})
    errors = [abs(Fraction(end) - mean) for side in ends for end, (mean, _) in zip(side.values(), cases, strict=True)]
    return max(errors)


def at_error_of_means(
    plan: Plan, bounds: Sequence[tuple[SensitivityBound, ...]], budget: Budget, error: Fraction, count: int
) -> Quote:
    """Price a plan at about the cheapest loss whose 95 % half-widths are at most `error`, of a cell of `count` rows.

    The price follows from public facts and the assumption alone; where a cell has fewer rows its mean errs by more.

    Raises:
        QueryRefused: If no price makes the noise so small.
    """

    def quote(amount: Fraction) -> Quote:
        return at_loss(
            plan, tuple(bounds), PRIVACY_MEASURES[budget.measure].from_amount(grid_up(amount)), budget, Fraction(0)
        )

    def is_enough(amount: Fraction) -> bool:
        terms = {term.measure: term for term in quote(amount).terms}
        return all(_half_width(output.value, terms, count) <= error for output in plan.outputs)

    enough = next((_LEAST * 2**k for k in range(_DOUBLINGS) if is_enough(_LEAST * 2**k)), None)
    if enough is None:
        raise QueryRefused(
            f"No cost makes a mean over {count:,} rows as exact as {float(error):g}",
            cause=RefusalCause.ERROR_TOO_SMALL,
            remedy="Ask for a wider error, or assume more rows.",
        )
    low = enough / 2
    for _ in range(_HALVINGS):
        middle = (low + enough) / 2
        low, enough = (low, middle) if is_enough(middle) else (middle, enough)
    return quote(enough)


def _half_width(value: Derived, terms: Mapping[Measure, NoisyMeasure], count: int) -> Fraction:
    """Return the half-width of a column; 0 of a key."""
    match value:
        case MeasureValue(measure=measure):
            return terms[measure].half_width(CONFIDENCE)
        case KnownMean(total=total):
            return value.half_width(terms[total].half_width(CONFIDENCE))
        case Average():
            return half_width_of_mean(value, terms, count)
        case _:
            return Fraction(0)
