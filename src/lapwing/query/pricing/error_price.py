"""The cheapest price at which every number of a question errs by at most a wanted half-width."""

from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, strays
from lapwing.privacy.measures import PRIVACY_MEASURES, Loss, PureDP
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
            "The error of a query whose bounds are found is not a public fact",
            cause=RefusalCause.ERROR_NOT_PUBLIC,
            remedy="Give epsilon instead.",
        )
    if plan.price_request.shares or plan.price_request.selection is not None:
        raise InvalidParameter("An aggregate of the query says its own epsilon; give epsilon, and not error.")
    if plan.question.private_keys:
        raise QueryRefused(
            "The error of a query with private keys has no single cost",
            cause=RefusalCause.ERROR_NOT_PUBLIC,
            remedy="Give epsilon instead.",
        )
    means = any(isinstance(output.value, Average) for output in plan.outputs)
    for output in plan.outputs:
        promised = isinstance(output.value, MeasureValue | KnownMean)
        if not promised and measures_of(output.value) and not (means and isinstance(output.value, Average)):
            raise QueryRefused(
                f"The error of '{output.name}' is not a public fact: it depends on the data",
                cause=RefusalCause.ERROR_NOT_PUBLIC,
                remedy="Give epsilon instead, or ask for COUNT and SUM alone.",
            )
    if means and assuming_count is None:
        raise QueryRefused(
            "The error of an average depends on the number of rows, which is not public",
            remedy="Say how many you assume as assuming_count, for example 1000, or give epsilon.",
            cause=RefusalCause.ASSUMES_ROWS,
        )
    if plan.question.distributions:
        raise QueryRefused(
            "How far a quantile is off depends on the data",
            cause=RefusalCause.ERROR_NOT_PUBLIC,
            remedy="Give epsilon instead.",
        )
    if means and assuming_count is not None:
        return at_error_of_means(plan, bounds, budget, error, assuming_count)
    measure_kind = PRIVACY_MEASURES[budget.measure]
    terms = []
    for measure, candidates in zip(plan.question.measures, bounds, strict=True):
        shown = [output.value for output in plan.outputs if measure in measures_of(output.value)]
        of_measure = min((_of_measure(value, measure, error) for value in shown), default=error)
        steps = of_measure // measure.step
        if steps < 1:
            raise QueryRefused(
                f"An error of {float(of_measure):g} is finer than the step {float(measure.step):g}",
                cause=RefusalCause.ERROR_TOO_SMALL,
                remedy="Ask for a wider error.",
            )
        mechanisms = [kind.for_half_width(int(steps), CONFIDENCE) for kind in MECHANISMS[budget.measure]]
        options = [NoisyMeasure(measure=measure, candidate=c, mechanism=m) for m in mechanisms for c in candidates]
        terms.append(min(options, key=lambda term: term.loss(budget.measure).amount))
    total = measure_kind.from_amount(sum((term.loss(budget.measure).amount for term in terms), Fraction(0)))
    priced = Quote(question=plan.question, terms=tuple(terms), loss=total.rounded_up())
    one = len(terms) < 2 and plan.question.table.people is None
    return priced if one else _as_vector(priced, plan, bounds, budget)


_NEAR: Final = Fraction(1, 1 << 10)
"""The cheapest price is found to within this part of the dearest."""


def _as_vector(priced: Quote, plan: Plan, bounds: tuple[tuple[SensitivityBound, ...], ...], budget: Budget) -> Quote:
    """Return the cheapest quote of the same half-widths that measures a vector, or the quote if none is cheaper.

    Normal noise is in proportion to the root of the price, and Laplace noise to the price, both but for roundings. So
    what a vector errs by at the price of the quote says about where the cheapest is: it is looked for around there.
    """
    best, low, high, step, part = priced, Fraction(0), Fraction(1), _NEAR, Fraction(1)
    wanted = [term.mechanism.half_width(CONFIDENCE) for term in priced.terms]
    while True:
        loss = priced.loss.from_amount(priced.loss.amount * part).rounded_up()
        found = at_loss(plan, bounds, loss, budget, Fraction(0))
        is_vector = found.vector is not None and found.vector.is_bought
        widths = [term.mechanism.half_width(CONFIDENCE) for term in found.terms]
        if (
            found.vector is not None
            and is_vector
            and all(now <= most for now, most in zip(widths, wanted, strict=True))
        ):
            best, high = replace(found, vector=replace(found.vector, before=priced)), part
        elif part == 1:
            return priced
        else:
            low = part
        if high - low <= _NEAR:
            return best
        if part == 1:  # the first time
            pairs = zip(found.terms, wanted, strict=True)
            part = Fraction(round(max(_needed(term.mechanism, most, loss) for term, most in pairs) / _NEAR)) * _NEAR
        else:
            part, step = (high - step if high == part else low + step), 2 * step
        if not low < part < high or (low and high < 1):
            part = (low + high) / 2


def _needed(law: NoiseLaw, most: int, loss: Loss) -> float:
    """Return about which part of a loss makes noise as narrow as is wanted; half-widths are rounded to whole steps."""
    beyond, slack = law.half_width(CONFIDENCE) + 0.5, 0.0
    if isinstance(law, CombinedNoise):
        slack = float(law.rounding + sum(map(abs, law.weights)) / 2)
        beyond = float(strays(law.weights, law.laws, 1 - CONFIDENCE) + law.rounding) - slack
    needed: float = beyond / max(0.5, most + 1 - slack)
    return needed if isinstance(loss, PureDP) else needed**2


def _of_measure(value: Derived, measure: Measure, error: Fraction) -> Fraction:
    """Return the half-width of a measure that one of a column asks for."""
    return value.of_sum(error) if isinstance(value, KnownMean) and value.total == measure else error
