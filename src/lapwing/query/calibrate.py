"""Choose mechanisms: from a wanted loss to the least error, or from a wanted error to the least loss.

Everything here is a function of the plan, the catalog and the request, so that a price can be shown before it is paid
and says nothing about the data. Guarantee: the losses of the chosen mechanisms add up to at most the price, exactly
(each mechanism states its own loss; the measures compose additively, `privacy.measures`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.mechanisms import (
    DiscreteLaplace,
    GeneralisedExponential,
    Mechanism,
    RoundedGaussian,
    Sensitivity,
    TruncatedGeometric,
    WeightedGaussian,
)
from lapwing.mechanisms.partitions import MOST_KEYS
from lapwing.privacy.amounts import grid_down, probability
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import (
    MEASURES,
    ApproxDP,
    ApproximateGaussianDP,
    GaussianDP,
    Loss,
    Number,
    PureDP,
    ZeroConcentratedDP,
    exact,
)
from lapwing.query.aggregates.approximate_bounds import SHARE
from lapwing.query.aggregates.order_statistics import check_nodes
from lapwing.query.aggregates.truncation import THRESHOLD_SHARE
from lapwing.query.derivation.derived import Released, measures_of
from lapwing.query.derivation.ranks import rank_error
from lapwing.query.measures import Distribution, Measure
from lapwing.query.plan import Plan, Question
from lapwing.query.relations.contribution import Asked, Share
from lapwing.query.stability import Candidate, of_question

CONFIDENCE = Fraction(95, 100)
CHOICE_CONFIDENCE = Fraction(9999, 10000)
"""Of the handicap with which candidates are compared (`aggregates.truncation` says why)."""

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
        """Return the half-width of a cell's interval, in units of the measure: a public fact.

        Of a distribution, how far any one rank in it may be off.
        """
        if isinstance(self.measure, Distribution):
            return Fraction(rank_error(self.measure, self.mechanism, confidence))
        return self.mechanism.half_width(confidence) * self.measure.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Selecting:
    """The selection of private keys: its mechanism, and what it loses, but for `delta`.

    That keys and measures together lose the sum of their losses, and `delta` once, is proven in `release`.
    """

    mechanism: WeightedGaussian | TruncatedGeometric
    loss: Loss
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """The choice of the best measure of a question that releases nothing else: its mechanism, and what it loses.

    Guarantee: the score of a measure is its sum over all cells, which moves by no more than the measure does in L1. Of
        its bounds the least in L1 is taken for its sensitivity.
    """

    mechanism: GeneralisedExponential
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A question with its mechanisms and its price.

    `delta` is what the selection of keys takes of the delta that is kept for keys. `searches` are the questions that
    find bounds for this one, priced by themselves: they are bought before, and `loss` does not hold their price. A
    question that is `choosing` has no terms.
    """

    question: Question
    terms: tuple[Term, ...]
    loss: Loss
    selecting: Selecting | None = None
    searches: tuple["Priced", ...] = ()
    choosing: Choosing | None = None

    @property
    def delta(self) -> Fraction:
        """The delta of the selection of private keys; 0 if there are none."""
        return Fraction(0) if self.selecting is None else self.selecting.delta

    @property
    def together(self) -> Loss:
        """The price of the question and of the searches for its bounds."""
        return self.loss.from_amount(sum((search.loss.amount for search in self.searches), self.loss.amount))

    def __post_init__(self) -> None:
        spent = self.loss.nothing() if self.selecting is None else self.selecting.loss
        spent = spent if self.choosing is None else spent + self.choosing.loss
        for term in self.terms:
            spent = spent + term.loss(self.loss.kind)
        if not spent <= self.loss:
            raise InvalidParameter("the mechanisms of a question lose more than its price; this is a bug in Lapwing")


def calibrate(
    plan: Plan,
    budget: Budget,
    *,
    epsilon: Number | None = None,
    error: Number | None = None,
    delta: Number | None = None,
) -> Priced:
    """Price a plan at a wanted `epsilon`, or at the cheapest loss whose 95 % half-widths are at most `error`.

    Args: delta: for a question with private keys, what their selection may take of the delta kept for keys.
    Raises: InvalidParameter unless exactly one of epsilon and error is given, positive and finite; QueryRefused where
        an error is not a public fact, or private keys cannot be selected.
    """
    epsilon = _given_once(epsilon, plan.asked.epsilon, "epsilon")
    delta = _given_once(delta, plan.asked.delta, "delta")
    if (epsilon is None) == (error is None):
        raise InvalidParameter("give either epsilon (a price) or error (a wanted half-width), and not both")
    bounds = _bounds(plan.question, budget)
    keys_delta = _delta_for_keys(plan.question, budget, delta)
    if epsilon is not None:
        return _with_searches(plan, bounds, request(epsilon, budget), budget, keys_delta)
    if plan.searches:
        raise QueryRefused(
            "The error of a question whose bounds are found is not a public fact", remedy="Give epsilon instead."
        )
    if plan.asked.shares or plan.asked.selection is not None:
        raise InvalidParameter("An aggregate of the question says its own epsilon; give epsilon, and not error.")
    if plan.question.private_keys:
        raise QueryRefused("The error of a question with private keys has no one price", remedy="Give epsilon instead.")
    return _at_error(plan, bounds, budget, _positive(error, "error"))


def calibrate_together(
    plans: Sequence[Plan], budget: Budget, *, epsilon: Number, delta: Number | None = None
) -> tuple[Priced, ...]:
    """Price several plans at one `epsilon` together: every measure of every plan gets the same part of it.

    A question that stands there twice is priced once. Parts are rounded down to the grid of the ledger, which rounds
    charges up: so a batch never costs more than its price, and one at all that is left fits.

    Args: delta: for all questions with private keys together.
    Raises: InvalidParameter if a question says a price of its own; QueryRefused as `calibrate`.
    """
    if any(plan.asked != Asked(weights=plan.asked.weights) for plan in plans):
        raise InvalidParameter("A question of a batch says its own price; leave it out, the batch has one.")
    loss = request(epsilon, budget)
    questions = {plan.question: plan for plan in plans}
    choosing = sum(bool(question.private_keys) for question in questions)
    each = None if delta is None else grid_down(_positive(delta, "delta") / max(1, choosing))
    counts = {question: len(question.measures) + bool(question.private_keys) for question in questions}
    priced = {}
    for question, plan in questions.items():
        part = type(loss).from_amount(grid_down(loss.amount * counts[question] / sum(counts.values())))
        keys_delta = _delta_for_keys(question, budget, each)
        priced[question] = _with_searches(plan, _bounds(question, budget), part, budget, keys_delta)
    return tuple(priced[plan.question] for plan in plans)


def calibrate_found(plan: Plan, budget: Budget, priced: Priced) -> Priced:
    """Price a plan whose bounds are found as it was priced before they were: what is charged does not change."""
    return _at_loss(plan, _bounds(plan.question, budget), priced.loss, budget, priced.delta)


def share_of_searches(plan: Plan) -> Fraction:
    """Return the part of a plan's price that the searches for its bounds take together."""
    return THRESHOLD_SHARE if any(search.question.choosing for search in plan.searches) else SHARE


def _with_searches(
    plan: Plan, bounds: tuple[tuple[Candidate, ...], ...], loss: Loss, budget: Budget, delta: Fraction
) -> Priced:
    """Divide a price between a plan and the searches for its bounds, which get a fixed part of it, each the same.

    The parts of the searches are rounded down to the grid of the ledger, so that all charges add up to the price.
    """
    each = grid_down(loss.amount * share_of_searches(plan) / len(plan.searches)) if plan.searches else Fraction(0)
    part = loss.from_amount(each)
    searches = tuple(
        _at_price(search.question, _bounds(search.question, budget), part, (each,), Fraction(0))
        for search in plan.searches
    )
    rest = loss.from_amount(loss.amount - each * len(searches)) if searches else loss
    return replace(_at_loss(plan, bounds, rest, budget, delta), searches=searches)


def _at_loss(
    plan: Plan, bounds: tuple[tuple[Candidate, ...], ...], loss: Loss, budget: Budget, delta: Fraction
) -> Priced:
    return _at_price(plan.question, bounds, loss, _shares(plan, loss, budget, selects=bool(delta)), delta)


def _bounds(question: Question, budget: Budget) -> tuple[tuple[Candidate, ...], ...]:
    if question.distributions:
        check_nodes(question.distributions, question.cells)
    return of_question(question, budget.neighbouring)


def _weight(plan: Plan) -> Fraction:
    """Return the part of a joint price that a plan gets: the weights of its measures, and of the selection of keys."""
    weights = [plan.asked.weights.get(measure, Fraction(1)) for measure in plan.question.measures]
    return sum(weights, Fraction(bool(plan.question.private_keys)))


def _given_once(here: Number | None, said: Fraction | None, name: str) -> Number | None:
    """Return what is given beside a question or inside it, but not otherwise in both."""
    if here is not None and said is not None and exact(here, name) != said:
        raise InvalidParameter(f"{name} is {here}, and the question itself says {float(said):g}; give one of them.")
    return said if here is None else here


def _shares(plan: Plan, loss: Loss, budget: Budget, *, selects: bool) -> tuple[Fraction, ...]:
    """Return the part of a loss's amount that each measure gets, then that of the selection of keys if there is one.

    Where an aggregate says an epsilon, its measures get what that alone would be charged; the others share the rest
    evenly.
    """
    said = [plan.asked.shares.get(measure) for measure in plan.question.measures]
    weights = [plan.asked.weights.get(measure, Fraction(1)) for measure in plan.question.measures]
    if selects:
        chosen = plan.asked.selection
        said, weights = [*said, None if chosen is None else Share(epsilon=chosen)], [*weights, Fraction(1)]
    fixed = [None if share is None else request(share.epsilon, budget).amount / share.among for share in said]
    rest = loss.amount - sum(amount for amount in fixed if amount is not None)
    others = sum(weight for weight, amount in zip(weights, fixed, strict=True) if amount is None)
    if rest < 0 or (others and rest == 0):
        raise QueryRefused(
            "The aggregates of the question ask for more than its price", remedy="Give a larger epsilon, or them less."
        )
    return tuple(
        rest * weight / others if amount is None else amount for weight, amount in zip(weights, fixed, strict=True)
    )


def _delta_for_keys(question: Question, budget: Budget, delta: Number | None) -> Fraction:
    """Check that private keys can be selected, and return the delta that it takes."""
    names = ", ".join(key.name for key in question.private_keys)
    if not names:
        if delta is not None and not 0 <= exact(delta, "delta") < 1:
            raise InvalidParameter(f"delta is {delta}; it must be from 0 to below 1, or left out: all keys are public.")
        return Fraction(0)
    if not budget.delta_keys:
        raise QueryRefused(
            f"The values of {names} are not public, and the budget keeps no delta for private keys",
            remedy="Declare the values in the catalog if they are public, list some as in WHERE x IN ('a', 'b'), or "
            "set budget.delta_keys.",
        )
    if budget.neighbouring != "add_remove":
        raise QueryRefused(
            f"The values of {names} are not public, and their selection is proven for add_remove neighbours only",
            remedy="Declare the values in the catalog if they are public.",
        )
    if delta is None:
        raise QueryRefused(
            f"The values of {names} are not public, so that their selection takes some delta",
            remedy=f"Give delta, of which the budget keeps {float(budget.delta_keys):g} for all such questions; or "
            "list values, as in WHERE x IN ('a', 'b').",
        )
    if question.table.unit_is_row and question.keys_per_unit > 1:
        raise QueryRefused(
            f"One row may hold {question.keys_per_unit:,} values of {names} after a join or a union, which bear no "
            "mark of it",
            remedy="Declare the values in the catalog if they are public, or join and unite less.",
        )
    if question.keys_per_unit > MOST_KEYS:
        raise QueryRefused(
            f"One unit may hold {question.keys_per_unit:,} keys, more than {MOST_KEYS:,}",
            remedy="Give max_groups_contributed.",
        )
    return probability(_positive(delta, "delta"), "delta")


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


def _at_price(
    question: Question,
    bounds: tuple[tuple[Candidate, ...], ...],
    loss: Loss,
    shares: tuple[Fraction, ...],
    delta: Fraction,
) -> Priced:
    """Choose the mechanisms that spend a loss in these shares.

    Without further word the shares are even: each measure then errs alike, relative to what one unit can change in it.
    """
    measure = type(loss)
    if question.choosing:
        return Priced(question=question, terms=(), loss=loss, choosing=_choosing(bounds, loss))

    parts = zip(question.measures, bounds, shares, strict=False)  # after them that of the selection of keys
    terms = tuple(_best(measured, found, measure.from_amount(share)) for measured, found, share in parts)
    selecting = _selecting(measure.from_amount(shares[-1]), delta, question) if delta else None
    spent = measure.from_amount(sum(shares, Fraction(0)))
    return Priced(question=question, terms=terms, loss=spent, selecting=selecting)


def _choosing(bounds: Sequence[Sequence[Candidate]], loss: Loss) -> Choosing:
    """Return the choice among measures that spends a loss."""
    moved = [min(int(candidate.sensitivity.l1) for candidate in found) for found in bounds]
    mechanism = GeneralisedExponential.for_loss(loss, moved, CHOICE_CONFIDENCE)
    return Choosing(mechanism=mechanism, loss=mechanism.loss(loss.kind))


def _selecting(share: Loss, delta: Fraction, question: Question) -> Selecting:
    """Return the selection of keys that loses at most a share, and delta.

    In a pure ledger it flips coins whose chances follow from ε and δ; else it adds Gaussian noise to weights of length
    1, which loses 1/σ² in a gdp ledger and 1/(2σ²) in a zcdp ledger, but for δ (`mechanisms.partitions`: there P⁰ and Q
    are a Gaussian mechanism and its rounding, whatever measure its loss is stated in).
    """
    max_keys, minimum = question.keys_per_unit, question.fewest_units
    if isinstance(share, PureDP):
        coins = TruncatedGeometric.for_loss(ApproxDP(share.epsilon, delta), max_keys=max_keys, minimum=minimum)
        return Selecting(mechanism=coins, loss=PureDP(coins.epsilon), delta=delta)
    amount = 2 * share.amount if isinstance(share, ZeroConcentratedDP) else share.amount
    wanted = ApproximateGaussianDP.of(GaussianDP.from_mu_squared(amount), delta)
    noise = WeightedGaussian.for_loss(wanted, max_keys=max_keys, minimum=minimum)
    lost = 1 / noise.sigma**2
    loss = type(share).from_amount(lost / 2 if isinstance(share, ZeroConcentratedDP) else lost)
    return Selecting(mechanism=noise, loss=loss, delta=delta)


def _best(measure: Measure, found: tuple[Candidate, ...], part: Loss) -> Term:
    """Take the bound and the mechanism that promise the narrowest interval for a part of the loss."""
    if not isinstance(measure, Distribution):
        place, mechanism = _narrowest(part.kind, part.amount, tuple(candidate.sensitivity for candidate in found))
        return Term(measure=measure, candidate=found[place], mechanism=mechanism)
    terms = [
        Term(measure=measure, candidate=candidate, mechanism=mechanism.for_loss(part, candidate.sensitivity))
        for mechanism in MECHANISMS[part.kind]
        for candidate in found
    ]
    return min(terms, key=lambda term: (term.half_width(CONFIDENCE), term.mechanism.standard_deviation))


@lru_cache(maxsize=1024)
def _narrowest(kind: str, amount: Fraction, sensitivities: tuple[Sensitivity, ...]) -> tuple[int, Mechanism]:
    """Return the place of a bound, and the mechanism that promises the narrowest interval with it, of a number.

    Remembered, as many questions have the same bounds and price: public facts, all of them.
    """
    part = MEASURES[kind].from_amount(amount)
    options = [
        (place, mechanism.for_loss(part, sensitivity))
        for mechanism in MECHANISMS[kind]
        for place, sensitivity in enumerate(sensitivities)
    ]
    return min(options, key=lambda option: (option[1].half_width(CONFIDENCE), option[1].standard_deviation))


def _at_error(plan: Plan, bounds: tuple[tuple[Candidate, ...], ...], budget: Budget, error: Fraction) -> Priced:
    for output in plan.outputs:
        if not isinstance(output.value, Released) and measures_of(output.value):
            raise QueryRefused(
                f"The error of '{output.name}' is not a public fact: it depends on the data",
                remedy="Give epsilon instead, or ask for COUNT and SUM alone.",
            )
    if plan.question.distributions:
        raise QueryRefused("How far a quantile is off depends on the data", remedy="Give epsilon instead.")
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
