"""The parts of a price that measures get where the question says some of them."""

from fractions import Fraction

from lapwing.catalog.model import Budget
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.privacy.measures import Loss
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import request
from lapwing.query.relations.contribution import EpsilonShare


def said_shares(plan: Plan, loss: Loss, budget: Budget, *, selects: bool) -> tuple[Fraction, ...]:
    """Return the part of a loss's amount that each measure gets, then that of the selection of keys if there is one.

    Where an aggregate says an epsilon, its measures get what that alone would be charged; the others share the rest
    evenly, or by their weights.

    Raises:
        QueryRefused: If aggregates say more than the price, or leave nothing of it.
    """
    said = [plan.price_request.shares.get(measure) for measure in plan.question.measures]
    weights = [plan.price_request.weights.get(measure, Fraction(1)) for measure in plan.question.measures]
    if selects:
        chosen = plan.price_request.selection
        said, weights = [*said, None if chosen is None else EpsilonShare(epsilon=chosen)], [*weights, Fraction(1)]
    fixed = [None if share is None else request(share.epsilon, budget).amount / share.among for share in said]
    rest = loss.amount - sum(amount for amount in fixed if amount is not None)
    others = sum(weight for weight, amount in zip(weights, fixed, strict=True) if amount is None)
    if rest < 0 or (others and rest == 0):
        raise QueryRefused(
            "The aggregates of the query ask for more than its cost",
            cause=RefusalCause.SHARES_EXCEED_COST,
            remedy="Give a larger epsilon, or them less.",
        )
    return tuple(
        rest * weight / others if amount is None else amount for weight, amount in zip(weights, fixed, strict=True)
    )
