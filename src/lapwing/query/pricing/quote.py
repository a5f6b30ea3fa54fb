"""The price of a question and the mechanisms that it buys: for a given loss, those that err least.

Everything here is a function of the plan, the catalog and the request, so that a price can be shown before it is paid
and says nothing about the data.

Guarantee:
    The losses of the chosen mechanisms add up to at most the price, exactly (each mechanism states its own loss; the
    measures compose additively, `privacy.measures`).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.additive import CellMechanism, Mechanism
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number, positive
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import PRIVACY_MEASURES, Loss
from lapwing.query.aggregates.order_statistics import check_nodes
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.noisy_trees import rank_error
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.one_noise import with_one_noise
from lapwing.query.pricing.selection_mechanisms import ChoiceQuote, KeySelectionQuote, choosing, key_selection_for
from lapwing.query.sensitivity.stability import SensitivityBound, of_question

if TYPE_CHECKING:
    from lapwing.query.pricing.measured_vectors import MeasuredVector
    from lapwing.query.pricing.row_price import RowsOfQuestion

CONFIDENCE = Fraction(95, 100)

# The mechanisms worth trying in each kind of ledger. A Laplace answer in a gdp or zcdp ledger costs about three times
# the Gaussian's variance when losses are small and wins only when they are large.
MECHANISMS: dict[str, tuple[type[Mechanism], ...]] = {
    "pure": (DiscreteLaplace,),
    "gdp": (RoundedGaussian, DiscreteLaplace),
    "zcdp": (RoundedGaussian, DiscreteLaplace),
}
NORMAL_UP_TO = {"gdp": Fraction(1), "zcdp": Fraction(1, 8)}
"""Losses up to which Laplace noise is wider at 95 % than Gaussian noise: proof in docs/theory/noise.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMeasure:
    """A measure, its bound and mechanism; `noisy_alternative` is, of what is chosen (`choices`), noise of its price."""

    measure: Measure
    candidate: SensitivityBound
    mechanism: CellMechanism
    noisy_alternative: CellMechanism | None = None

    @property
    def accepted(self) -> tuple[CellMechanism, ...]:
        """Of what was bought before, what is as good as this: its mechanism's, or noise on numbers."""
        return (self.mechanism,) if self.noisy_alternative is None else (self.mechanism, self.noisy_alternative)

    def loss(self, kind: str) -> Loss:
        """Return what releasing this measure loses."""
        return self.mechanism.loss(self.candidate.sensitivity, kind)

    def half_width(self, confidence: Fraction) -> Fraction:
        """Return the half-width of a cell's interval, in units of the measure: a public fact.

        Of a distribution, how far any one rank in it may be off.
        """
        if isinstance(self.measure, Distribution):
            return Fraction(rank_error(self.measure, self.mechanism, confidence))
        return self.mechanism.half_width(confidence) * self.measure.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A question with its mechanisms and its price.

    Args:
        terms: the measures with their noise; none if the question is `choosing`.
        loss: the price, without that of the searches.
        searches: the questions that find bounds for this one; they are bought first, each at its own price.
        sources: of a plan that is over the answers to others, these in its place.
        vector: what is measured, if that is other numbers; the terms say what those that follow from them err by.
        rows: what a unit can have, where the measures lose less together than one by one (`row_price`).
    """

    question: Question
    terms: tuple[NoisyMeasure, ...]
    loss: Loss
    key_selection: KeySelectionQuote | None = None
    searches: tuple["Quote", ...] = ()
    choosing: ChoiceQuote | None = None
    sources: tuple["Quote", ...] = ()
    vector: "MeasuredVector | None" = None
    rows: "RowsOfQuestion | None" = None

    def lost(self, terms: tuple[NoisyMeasure, ...]) -> Loss:
        """Return what releasing some of the measures loses."""
        if self.rows is not None:
            return self.rows.loss(terms, self.loss.kind)
        return sum((term.loss(self.loss.kind) for term in terms), self.loss.nothing())

    @property
    def delta(self) -> Fraction:
        """The delta of the selection of private keys; 0 if there are none."""
        return Fraction(0) if self.key_selection is None else self.key_selection.delta

    @property
    def together(self) -> Loss:
        """The price of the question and of the searches for its bounds."""
        return self.loss.from_amount(sum((search.loss.amount for search in self.searches), self.loss.amount))

    def __post_init__(self) -> None:
        spent = self.loss.nothing() if self.key_selection is None else self.key_selection.loss
        spent = spent if self.choosing is None else spent + self.choosing.loss
        # A vector's own quote is checked as here.
        spent = spent + self.lost(self.terms) if self.vector is None else self.vector.bought.loss
        if not spent <= self.loss:
            raise InvalidParameter("the mechanisms of a question lose more than its cost; this is a bug in Lapwing")


def request(epsilon: Number, budget: Budget) -> Loss:
    """Return the loss that a query's `epsilon` buys in a budget's measure.

    It is the largest loss that alone implies (epsilon, delta − delta_keys)-DP.
    """
    return loss_for(budget.measure, positive(epsilon, "epsilon"), budget.delta - budget.delta_keys)


def bounds_of(question: Question, budget: Budget) -> tuple[tuple[SensitivityBound, ...], ...]:
    """Return the valid sensitivities of every measure, in order."""
    if question.distributions:
        check_nodes(question.distributions, question.cells)
    return of_question(question, budget.neighbouring)


def at_loss(
    plan: Plan, bounds: tuple[tuple[SensitivityBound, ...], ...], loss: Loss, budget: Budget, delta: Fraction
) -> Quote:
    """Price a plan at a loss, shared among its measures as it says."""
    priced = numbers = at_price(plan.question, bounds, loss, shares_of(plan, loss, budget, selects=bool(delta)), delta)
    formula = not plan.question.keys and isinstance(plan.outputs[0].value, FunctionValue)
    if plan.question.distributions or plan.limit or formula:
        from lapwing.query.pricing.choices import with_choices  # here: of few questions is anything chosen

        priced = with_choices(priced, plan, budget.neighbouring)
    priced = with_one_noise(priced, plan.price_request, narrowest) if delta else priced
    if len(priced.terms) > 1 or plan.question.table.people is not None:
        from lapwing.query.pricing.measured_vectors import as_vector  # here: it takes several numbers

        priced = as_vector(priced, numbers, plan, budget)
    return priced


def shares_of(plan: Plan, loss: Loss, budget: Budget, *, selects: bool) -> tuple[Fraction, ...]:
    """Return the part of a loss's amount that each measure gets, then that of the selection of keys if there is one."""
    if not (selects or plan.price_request.shares or plan.price_request.weights) and loss.amount:  # as mostly: evenly
        return (loss.amount / max(1, among := len(plan.question.measures)),) * among
    from lapwing.query.pricing.said_shares import said_shares  # here: few questions say any

    return said_shares(plan, loss, budget, selects=selects)


def at_price(
    question: Question,
    bounds: tuple[tuple[SensitivityBound, ...], ...],
    loss: Loss,
    shares: tuple[Fraction, ...],
    delta: Fraction,
) -> Quote:
    """Choose the mechanisms that spend a loss in these shares; if even, measures err alike for what a unit changes."""
    measure = type(loss)
    if question.choosing:
        return Quote(question=question, terms=(), loss=loss, choosing=choosing(bounds, loss))

    parts = zip(question.measures, bounds, shares, strict=False)  # after them that of the selection of keys
    terms = tuple(_best(measured, found, measure.from_amount(share)) for measured, found, share in parts)
    keys = key_selection_for(measure.from_amount(shares[-1]), delta, question) if delta else None
    spent = measure.from_amount(sum(shares, Fraction(0)))
    return Quote(question=question, terms=terms, loss=spent, key_selection=keys)


def _best(measure: Measure, found: tuple[SensitivityBound, ...], part: Loss) -> NoisyMeasure:
    """Take the bound and the mechanism that promise the narrowest interval for a part of the loss."""
    if not isinstance(measure, Distribution):
        place, mechanism = narrowest(part.kind, part.amount, tuple(candidate.sensitivity for candidate in found))
        return NoisyMeasure(measure=measure, candidate=found[place], mechanism=mechanism)
    terms = [
        NoisyMeasure(measure=measure, candidate=candidate, mechanism=mechanism.for_loss(part, candidate.sensitivity))
        for mechanism in MECHANISMS[part.kind]
        for candidate in found
    ]
    return min(terms, key=lambda term: (term.half_width(CONFIDENCE), term.mechanism.standard_deviation))


@lru_cache(maxsize=1024)
def narrowest(kind: str, amount: Fraction, sensitivities: tuple[Sensitivity, ...]) -> tuple[int, Mechanism]:
    """Return the place of a bound, and the mechanism that promises the narrowest interval with it, of a number.

    Remembered, as many questions have the same bounds and price: public facts, all of them.
    """
    part = PRIVACY_MEASURES[kind].from_amount(amount)
    kinds = MECHANISMS[kind][:1] if amount <= NORMAL_UP_TO.get(kind, Fraction(0)) else MECHANISMS[kind]
    options = [
        (place, mechanism.for_loss(part, sensitivity))
        for mechanism in kinds
        for place, sensitivity in enumerate(sensitivities)
    ]
    return min(options, key=lambda option: (option[1].half_width(CONFIDENCE), option[1].standard_deviation))
