"""Choose mechanisms: from a wanted loss to the least error, or from a wanted error to the least loss."""

from fractions import Fraction

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number, exact, positive
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.error_price import at_error
from lapwing.query.pricing.joint_price import calibrate_sources, with_searches
from lapwing.query.pricing.missing_price import no_single_price
from lapwing.query.pricing.quote import Quote, at_loss, bounds_of, request
from lapwing.query.pricing.selection_mechanisms import delta_for_keys


def calibrate(
    plan: Plan,
    budget: Budget,
    *,
    epsilon: Number | None = None,
    error: Number | None = None,
    delta: Number | None = None,
    assuming_count: int | None = None,
) -> Quote:
    """Price a plan at a wanted `epsilon`, or at the cheapest loss whose 95 % half-widths are at most `error`.

    Args:
        delta: For a question with private keys, what their selection may take of the delta kept for keys.
        assuming_count: With an error, of how many rows each mean is assumed to be.

    Raises:
        InvalidParameter: Unless exactly one of epsilon and error is given, positive and finite.
        QueryRefused: Where an error is not a public fact, or private keys cannot be selected.
    """
    epsilon = _given_once(epsilon, plan.price_request.epsilon, "epsilon")
    delta = _given_once(delta, plan.price_request.delta, "delta")
    if plan.composition is not None or plan.constants:
        return calibrate_sources(plan, budget, epsilon=epsilon, delta=delta, error=error, assuming_count=assuming_count)
    if (epsilon is None) == (error is None):
        raise no_single_price(both=epsilon is not None)
    question, selected = plan.question, bool(plan.question.private_keys) or delta is not None
    bounds = bounds_of(question, budget)
    keys_delta = delta_for_keys(question, budget, delta) if selected else Fraction(0)
    if epsilon is not None:
        loss = request(epsilon, budget)
        if plan.searches:
            return with_searches(plan, bounds, loss, budget, keys_delta)
        return at_loss(plan, bounds, loss, budget, keys_delta)
    return at_error(plan, bounds, budget, positive(error, "error"), assuming_count)


def _given_once(here: Number | None, said: Fraction | None, name: str) -> Number | None:
    """Return what is given beside a question or inside it, but not otherwise in both."""
    if here is not None and said is not None and exact(here, name) != said:
        raise InvalidParameter(f"{name} is {here}, and the query itself says {float(said):g}; give one of them.")
    return said if here is None else here
