"""The cheapest price at which every number of a question errs by at most a wanted half-width."""

from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.privacy.measures import MEASURES
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.assumed_means import at_error_of_means
from lapwing.query.pricing.quote import CONFIDENCE, MECHANISMS, NoisyMeasure, Quote, at_loss
from lapwing.query.sensitivity.stability import SensitivityBound


def at_error(
    plan: Plan,
    bounds: tuple[tuple[SensitivityBound, ...], ...],
    budget: Budget,
    error: Fraction,
    assuming_count: int | None = None,
) -> Quote:
    """Price a plan at the cheapest loss whose 95 % half-widths are at most `error`, of each number by itself.

    Args:
        assuming_count: Of how many rows each mean is assumed to be.

    Raises:
        QueryRefused: Where an error is not a public fact, or finer than a number's step.
    """
    if plan.searches:
        raise QueryRefused(
            "The error of a question whose bounds are found is not a public fact", remedy="Give epsilon instead."
        )
    if plan.asked.shares or plan.asked.selection is not None:
        raise InvalidParameter("An aggregate of the question says its own epsilon; give epsilon, and not error.")
    if plan.question.private_keys:
        raise QueryRefused("The error of a question with private keys has no one price", remedy="Give epsilon instead.")
    means = any(isinstance(output.value, Average) for output in plan.outputs)
    for output in plan.outputs:
        promised = isinstance(output.value, MeasureValue | KnownMean)
        if not promised and measures_of(output.value) and not (means and isinstance(output.value, Average)):
            raise QueryRefused(
                f"The error of '{output.name}' is not a public fact: it depends on the data",
                remedy="Give epsilon instead, or ask for COUNT and SUM alone.",
            )
    if means and assuming_count is None:
        raise QueryRefused(
            "The error of a mean depends on how many rows it is of, which is not a public fact",
            remedy="Say how many you assume, as in assuming_count=1000 or --assuming-count 1000, or give epsilon.",
            cause=RefusalCause.ASSUMES_ROWS,
        )
    if plan.question.distributions:
        raise QueryRefused("How far a quantile is off depends on the data", remedy="Give epsilon instead.")
    if means and assuming_count is not None:
        return at_error_of_means(plan, bounds, budget, error, assuming_count)
    measure_kind = MEASURES[budget.measure]
    terms = []
    for measure, candidates in zip(plan.question.measures, bounds, strict=True):
        shown = [output.value for output in plan.outputs if measure in measures_of(output.value)]
        of_measure = min((_of_measure(value, measure, error) for value in shown), default=error)
        steps = of_measure // measure.step
        if steps < 1:
            raise QueryRefused(
                f"An error of {float(of_measure):g} is finer than the step {float(measure.step):g}",
                remedy="Ask for a wider error.",
            )
        mechanisms = [kind.for_half_width(int(steps), CONFIDENCE) for kind in MECHANISMS[budget.measure]]
        options = [NoisyMeasure(measure=measure, candidate=c, mechanism=m) for m in mechanisms for c in candidates]
        terms.append(min(options, key=lambda term: term.loss(budget.measure).amount))
    total = measure_kind.from_amount(sum((term.loss(budget.measure).amount for term in terms), Fraction(0)))
    priced = Quote(question=plan.question, terms=tuple(terms), loss=total.rounded_up())
    return priced if len(terms) < 2 else _as_vector(priced, plan, bounds, budget)


_TRIES: Final = 12
"""How often a cheaper price is looked for: to within a thousandth of the dearest."""


def _as_vector(priced: Quote, plan: Plan, bounds: tuple[tuple[SensitivityBound, ...], ...], budget: Budget) -> Quote:
    """Return the cheapest quote of the same half-widths that measures a vector, or the quote if none is cheaper."""
    best, low, high = priced, Fraction(0), Fraction(1)
    for _ in range(_TRIES):
        middle = (low + high) / 2
        loss = priced.loss.from_amount(priced.loss.amount * middle).rounded_up()
        found = at_loss(plan, bounds, loss, budget, Fraction(0))
        pairs = zip(found.terms, priced.terms, strict=True)
        fine = all(now.half_width(CONFIDENCE) <= own.half_width(CONFIDENCE) for now, own in pairs)
        if fine and found.vector is not None and found.vector.is_bought:
            best, high = replace(found, vector=replace(found.vector, before=priced)), middle
        else:
            low = middle
    return best


def _of_measure(value: Derived, measure: Measure, error: Fraction) -> Fraction:
    """Return the half-width of a measure that one of a column asks for."""
    return value.of_sum(error) if isinstance(value, KnownMean) and value.total == measure else error
