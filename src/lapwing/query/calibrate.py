"""Choose mechanisms: from a wanted loss to the least error, or from a wanted error to the least loss.

Everything here is a function of the plan, the catalog and the request, so that a price can be shown before it is paid
and says nothing about the data. Guarantee: the losses of the chosen mechanisms add up to at most the price, exactly
(each mechanism states its own loss; the measures compose additively, `privacy.measures`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import MEASURES, Loss, Number, exact
from lapwing.query.derived import Released, measures_of
from lapwing.query.measures import Measure
from lapwing.query.plan import Plan, Question
from lapwing.query.stability import Candidate, of_question

CONFIDENCE = Fraction(95, 100)

# The mechanisms worth trying in each kind of ledger. A Laplace answer in a gdp or zcdp ledger costs about three times
# the Gaussian's variance when losses are small and wins only when they are large.
MECHANISMS: dict[str, tuple[type[DiscreteLaplace] | type[RoundedGaussian], ...]] = {
    "pure": (DiscreteLaplace,),
    "gdp": (RoundedGaussian, DiscreteLaplace),
    "zcdp": (RoundedGaussian, DiscreteLaplace),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A measure with its bound and its mechanism."""

    measure: Measure
    candidate: Candidate
    mechanism: Mechanism

    def loss(self, kind: str) -> Loss:
        """Return what releasing this measure loses."""
        return self.mechanism.loss(self.candidate.sensitivity, kind)

    def half_width(self, confidence: Fraction) -> Fraction:
        """Return the half-width of a cell's interval, in units of the measure: a public fact."""
        return self.mechanism.half_width(confidence) * self.measure.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A question with its mechanisms and its price."""

    question: Question
    terms: tuple[Term, ...]
    loss: Loss

    def __post_init__(self) -> None:
        spent = self.terms[0].loss(self.loss.kind)
        for term in self.terms[1:]:
            spent = spent + term.loss(self.loss.kind)
        if not spent <= self.loss:
            raise InvalidParameter("the mechanisms of a question lose more than its price; this is a bug in Lapwing")


def calibrate(plan: Plan, budget: Budget, *, epsilon: Number | None = None, error: Number | None = None) -> Priced:
    """Price a plan at a wanted `epsilon`, or at the cheapest loss whose 95 % half-widths are at most `error`.

    Raises: InvalidParameter unless exactly one of the two is given, positive and finite; QueryRefused where an error
    is not a public fact.
    """
    if (epsilon is None) == (error is None):
        raise InvalidParameter("give either epsilon (a price) or error (a wanted half-width), and not both")
    bounds = of_question(plan.question, budget.neighbouring)
    if epsilon is not None:
        return _at_price(plan.question, bounds, request(epsilon, budget))
    return _at_error(plan, bounds, budget, _positive(error, "error"))


def request(epsilon: Number, budget: Budget) -> Loss:
    """Return the loss that a query's `epsilon` buys in a budget's measure.

    It is the largest loss that alone implies (epsilon, delta − delta_keys)-DP.
    """
    return loss_for(budget.measure, _positive(epsilon, "epsilon"), budget.delta - budget.delta_keys)


def _positive(value: Number | None, name: str) -> Fraction:
    if value is None:
        raise InvalidParameter(f"{name} is missing; give a positive number")
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {value}; it must be above 0")
    return number


def _at_price(question: Question, bounds: tuple[tuple[Candidate, ...], ...], loss: Loss) -> Priced:
    """Split a loss evenly over the measures: each then errs alike, relative to what one unit can change in it."""
    share = type(loss).from_amount(loss.amount / len(bounds))
    terms = tuple(
        _best(measure, found, loss.kind, lambda kind, candidate: kind.for_loss(share, candidate.sensitivity))
        for measure, found in zip(question.measures, bounds, strict=True)
    )
    return Priced(question=question, terms=terms, loss=loss)


def _best(
    measure: Measure,
    found: tuple[Candidate, ...],
    kind: str,
    calibrated: Callable[[type[DiscreteLaplace] | type[RoundedGaussian], Candidate], Mechanism],
) -> Term:
    """Take the bound and the mechanism that promise the narrowest interval."""
    terms = [
        Term(measure=measure, candidate=candidate, mechanism=calibrated(mechanism, candidate))
        for mechanism in MECHANISMS[kind]
        for candidate in found
    ]
    return min(terms, key=lambda term: (term.half_width(CONFIDENCE), term.mechanism.standard_deviation))


def _at_error(plan: Plan, bounds: tuple[tuple[Candidate, ...], ...], budget: Budget, error: Fraction) -> Priced:
    for output in plan.outputs:
        if not isinstance(output.value, Released) and measures_of(output.value):
            raise QueryRefused(
                f"The error of '{output.name}' is not a public fact: it depends on the data",
                remedy="Give epsilon instead, or ask for COUNT and SUM alone.",
            )
    measure_kind = MEASURES[budget.measure]
    terms = []
    for measure, found in zip(plan.question.measures, bounds, strict=True):
        steps = error // measure.step
        if steps < 1:
            raise QueryRefused(
                f"An error of {float(error):g} is finer than the step {float(measure.step):g}",
                remedy="Ask for a wider error.",
            )
        mechanisms = [kind.for_half_width(int(steps), CONFIDENCE) for kind in MECHANISMS[budget.measure]]
        options = [Term(measure=measure, candidate=c, mechanism=m) for m in mechanisms for c in found]
        terms.append(min(options, key=lambda term: term.loss(budget.measure).amount))
    total = measure_kind.from_amount(sum((term.loss(budget.measure).amount for term in terms), Fraction(0)))
    return Priced(question=plan.question, terms=tuple(terms), loss=total.rounded_up())
