"""One price for several questions: a batch, or a question and the searches for its bounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number, grid_down, positive
from lapwing.privacy.measures import PRIVACY_MEASURES, Loss
from lapwing.query.aggregates.approximate_bounds import SHARE
from lapwing.query.aggregates.truncation import THRESHOLD_SHARE
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.search import Search
from lapwing.query.pricing.joint_error import at_error_each
from lapwing.query.pricing.missing_price import no_single_price
from lapwing.query.pricing.quote import Quote, at_loss, at_price, bounds_of, request
from lapwing.query.pricing.selection_mechanisms import delta_for_keys
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.sensitivity.stability import SensitivityBound


def calibrate_together(
    plans: Sequence[Plan],
    budget: Budget,
    *,
    epsilon: Number,
    delta: Number | None = None,
    shares: Sequence[Fraction] | None = None,
) -> tuple[Quote, ...]:
    """Price several plans at one `epsilon` together: every measure of every plan gets the same part of it.

    A question that occurs twice is priced once. Parts are rounded down to the grid of the ledger, which rounds charges
    up: so a batch never costs more than its price, and a batch for all that is left of a budget fits.

    Args:
        delta: For all questions with private keys together.
        shares: Of each plan instead, in proportion to which the loss is divided among them, each above 0. Plans that
            ask the same question pay their shares together.

    Raises:
        InvalidParameter: If a question says a price of its own.
        QueryRefused: As `calibrate`.
    """
    leaves = [leaf for plan in plans for leaf in plans_asked(plan)]
    if any(
        plan.price_request != PriceRequest(weights=plan.price_request.weights, numbers=plan.price_request.numbers)
        for plan in (*plans, *leaves)
    ):
        raise InvalidParameter("A query of a batch states a cost of its own. Leave it out: the batch has one cost.")
    loss = request(epsilon, budget)
    questions = _together(leaves)
    choosing = sum(bool(plan.question.private_keys) for plan in questions.values())
    each = None if delta is None else grid_down(positive(delta, "delta") / max(1, choosing))
    counts = {
        asked: len(plan.question.measures) + bool(plan.question.private_keys) for asked, plan in questions.items()
    }
    parts = counts if shares is None else _parts(plans, shares, counts)
    priced: dict[Asked, Quote] = {}
    for asked, plan in questions.items():
        part = type(loss).from_amount(grid_down(loss.amount * parts[asked] / max(1, sum(parts.values()))))
        question, keys_delta = plan.question, delta_for_keys(plan.question, budget, each)
        priced[asked] = with_searches(plan, bounds_of(question, budget), part, budget, keys_delta)

    def of_leaf(plan: Plan) -> Quote:
        own = priced[asked_by(plan)]
        # What is asked first is looked for as it is: it is measured number by number.
        first = [quote if quote.vector is None else quote.vector.before for quote in map(of_leaf, plan.constants)]
        return replace(own, searches=(*own.searches, *first))

    return tuple(composed_of(plan, of_leaf, loss.nothing()) for plan in plans)


def free_quote(plan: Plan, budget: Budget) -> Quote:
    """Return the quote of a plan over only public rows.

    Guarantee:
        PureDP(0) for all neighbours, which is no loss in any measure. No leaf of the plan touches data
        (`plans_asked`). So its answer is a function of the text, the catalog and public files.
    """
    nothing = PRIVACY_MEASURES[budget.measure].from_amount(Fraction(0))

    def of_leaf(plan: Plan) -> Quote:
        raise InvalidParameter("a query of public rows asks for private ones; this is a bug in Lapwing")

    return composed_of(plan, of_leaf, nothing)


def composed_of(plan: Plan, of_leaf: Callable[[Plan], Quote], nothing: Loss) -> Quote:
    """Return the quote of a plan: of one that is over others, those of them."""
    if plan.composition is None:
        return of_leaf(plan)
    sources = tuple(composed_of(source, of_leaf, nothing) for source in plan.composition.sources)
    return Quote(question=plan.question, terms=(), loss=nothing, sources=sources)


Asked = tuple[Question | Search | int, ...]


def _together(leaves: Sequence[Plan]) -> dict[Asked, Plan]:
    """Return a plan for each question; where several plans read its answer it must be numbers, and no choice."""
    questions: dict[Asked, Plan] = {}
    for plan in leaves:
        known = questions.setdefault(asked_by(plan), plan)
        if known != plan:
            questions[asked_by(plan)] = of_numbers(known)
    return questions


def _parts(
    plans: Sequence[Plan], shares: Sequence[Fraction], counts: Mapping[Asked, int]
) -> Mapping[Asked, Fraction | int]:
    """Return the share of each question: that of its plan, divided evenly among the numbers of the plan."""
    parts: dict[Asked, Fraction | int] = {}
    for plan, share in zip(plans, shares, strict=True):
        asked = dict.fromkeys(map(asked_by, plans_asked(plan)))
        numbers = sum(counts[one] for one in asked)
        for one in asked:
            parts[one] = parts.get(one, 0) + share * counts[one] / max(1, numbers)
    return parts


def of_numbers(plan: Plan) -> Plan:
    """Return a plan whose numbers get noise, and of which nothing is chosen in their place."""
    return replace(plan, price_request=replace(plan.price_request, numbers=True))


def asked_by(plan: Plan) -> Asked:
    """Return what tells a plan's question from those of others, before its constants are known.

    Until then numbers that might be theirs stand in their place, the same for > (SELECT MIN(x) …) and > (SELECT MAX(x)
    …): of two such plans nobody can tell whether they will ask the same, so that each has a price of its own.
    """
    return (plan.question, *plan.searches, *([id(plan)] if plan.constants else []))


def calibrate_sources(
    plan: Plan,
    budget: Budget,
    *,
    epsilon: Number | None,
    delta: Number | None,
    error: Number | None,
    assuming_count: int | None,
) -> Quote:
    """Price the questions that a plan is over, or takes its constants from: as a batch, or each at an error.

    Where it is over only public rows, no question is asked: it is free, and needs no price.
    """
    free = not plans_asked(plan)
    if (epsilon is None) == (error is None) and not (free and epsilon is None):
        raise no_single_price(both=epsilon is not None)
    if free:
        return free_quote(plan, budget)
    if epsilon is None:
        quotes = at_error_each(plan, error, budget, assuming_count)
        return composed_of(
            plan, lambda leaf: quotes[id(leaf)], PRIVACY_MEASURES[budget.measure].from_amount(Fraction(0))
        )
    return calibrate_together(
        [replace(plan, price_request=replace(plan.price_request, epsilon=None, delta=None))],
        budget,
        epsilon=epsilon,
        delta=delta,
    )[0]


def calibrate_found(plan: Plan, budget: Budget, priced: Quote) -> Quote:
    """Price a plan with the bounds and constants that were found, at the price of before: the charge does not change.

    If the constants leave no cell, nothing is asked, and nothing more is charged.
    """
    if not plans_asked(plan):
        return free_quote(plan, budget)
    if all(term.noisy_alternative is None for term in priced.terms):
        plan = of_numbers(plan)  # nor does it become a choice, which others that read the numbers do not make
    return at_loss(plan, bounds_of(plan.question, budget), priced.loss, budget, priced.delta)


def found_together(plans: Sequence[Plan], priced: Sequence[Quote], budget: Budget) -> tuple[Quote, ...]:
    """Return the quotes of plans whose bounds and constants were found, which may have made one question of several.

    It is answered once, for all plans that read it: so it must be numbers, and no choice, at the highest of its prices.

    Guarantee:
        The price of each question is one of those that were said, so that together they lose no more.
    """
    settled: dict[Question, Quote] = {}
    for plan, quote in zip(plans, priced, strict=True):
        known = settled.setdefault(quote.question, quote)
        if known != quote:
            loss, bounds = max(known, quote, key=lambda one: one.loss.amount).loss, bounds_of(quote.question, budget)
            settled[quote.question] = at_loss(of_numbers(plan), bounds, loss, budget, max(known.delta, quote.delta))
    return tuple(settled[quote.question] for quote in priced)


def share_of_searches(plan: Plan) -> Fraction:
    """Return the part of a plan's price that the searches for its bounds take together."""
    return THRESHOLD_SHARE if any(search.question.choosing for search in plan.searches) else SHARE


def with_searches(
    plan: Plan, bounds: tuple[tuple[SensitivityBound, ...], ...], loss: Loss, budget: Budget, delta: Fraction
) -> Quote:
    """Divide a price between a plan and the searches for its bounds, which get a fixed part of it, each the same.

    The parts of the searches are rounded down to the grid of the ledger, so that all charges add up to the price.
    """
    each = grid_down(loss.amount * share_of_searches(plan) / len(plan.searches)) if plan.searches else Fraction(0)
    part = loss.from_amount(each)
    searches = tuple(
        at_price(search.question, bounds_of(search.question, budget), part, (each,), Fraction(0))
        for search in plan.searches
    )
    rest = loss.from_amount(loss.amount - each * len(searches)) if searches else loss
    return replace(at_loss(plan, bounds, rest, budget, delta), searches=searches)
