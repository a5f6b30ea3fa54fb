"""The cheapest price at which every number that a question shows of several answers errs by at most a half-width."""

from collections.abc import Iterator

from lapwing.catalog.model import Budget
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.privacy.amounts import Number, positive
from lapwing.query.derivation.derived import measures_of, values_in
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.error_price import at_error
from lapwing.query.pricing.quote import Quote, bounds_of

_REMEDY = "Give a cost, epsilon, or ask for each of them at its error first."


def at_error_each(plan: Plan, error: Number | None, budget: Budget, assuming_count: int | None) -> dict[int, Quote]:
    """Price each question that a plan is over so that all of its numbers err by at most `error`; by the plans' ids.

    What is shown must be these numbers themselves: of what is computed from several no one error is promised.
    A question that is asked in several places is bought once, at the dearest price of them.

    Raises:
        QueryRefused: Where numbers are computed from others or conditions take some; and as `at_error`.
    """
    wanted, leaves = positive(error, "error"), plans_asked(plan)
    if plan.constants or any(leaf.constants for leaf in leaves):
        raise QueryRefused(
            "A query with a noisy number in a condition has no one error",
            cause=RefusalCause.ERROR_NOT_SINGLE,
            remedy=_REMEDY,
        )
    for output in plan.outputs:
        if not _is_handed_on(plan, output.value):
            reason = f"'{output.name}' is computed from several noisy numbers, so that it has no one error"
            raise QueryRefused(reason, cause=RefusalCause.ERROR_NOT_SINGLE, remedy=_REMEDY)
    quotes = {
        id(leaf): at_error(leaf, bounds_of(leaf.question, budget), budget, wanted, assuming_count) for leaf in leaves
    }
    dearest = {quote.question: quote for quote in sorted(quotes.values(), key=lambda quote: quote.loss.amount)}
    return {leaf: dearest[quote.question] for leaf, quote in quotes.items()}


def _is_handed_on(plan: Plan, value: Derived) -> bool:
    """Tell whether a value is a column of an answer as it is, in every row, or nothing noisy."""
    if plan.composition is None:
        return True  # what its error is, `at_error` says
    if isinstance(value, UnionValue):
        return all(_is_handed_on(plan, one) for one in value.values)
    if isinstance(value, SourceValue):
        return _is_handed_on(plan.composition.sources[value.source], value.value)
    return not any(measures_of(inner) for inner in _columns_in(plan, value))


def _columns_in(plan: Plan, value: Derived) -> Iterator[Derived]:
    """Yield the columns of the answers that touch data which a value is computed from."""
    if plan.composition is None:
        yield value
        return
    for inner in values_in(value):
        for one in inner.values if isinstance(inner, UnionValue) else (inner,):
            if isinstance(one, SourceValue):
                yield from _columns_in(plan.composition.sources[one.source], one.value)
