"""Why questions are not charged: another has to be waited for, or the budget cannot bear them."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Catalog
from lapwing.catalog.source_address import renewal
from lapwing.catalog.table import Table
from lapwing.errors import BudgetExhausted, DataChanged, DataFault
from lapwing.exact.floats import float_up
from lapwing.ledger.allowances import left_if_refused, require_within
from lapwing.ledger.entries import Charge
from lapwing.ledger.state import LedgerState
from lapwing.ledger.waiting import UnderWay
from lapwing.privacy.figures import cost_and_rest, margin
from lapwing.privacy.figures import delta as delta_text
from lapwing.privacy.filters import Refused
from lapwing.privacy.fitting import largest_epsilon
from lapwing.privacy.measures import Loss
from lapwing.query.pricing.quote import CONFIDENCE, Quote, at_price, bounds_of
from lapwing.release.request import Access
from lapwing.release.stored import charge_of, key_of, parts_charged

MOST_NAMED: Final = 10
"""How many parts an error names at most."""
COUNTED: Final = frozenset({"counts", "counts of units", "counts of different values"})
"""Measures that a query shows as they are, each with the error that its cost buys."""


def stands_against(
    charges: Sequence[Charge], then: Sequence[Quote], state: LedgerState, access: Access
) -> UnderWay | Refused | None:
    """Return why charges are not made now, as seen with the questions after them; None if nothing is in the way.

    Raises:
        AllowanceExhausted: If all of them together are beyond the asker's limits.
    """
    # First, as the answer of one that is under way is free, where the budget might not bear all of them.
    awaited = access.ledger.under_way(charges, state.sequence)
    if awaited is not None:
        return awaited
    keys, others = [key_of(priced.question) for priced in then], (access.catalog, access.principal, state)
    together = [*charges, *(charge_of(priced, key, *others) for priced, key in zip(then, keys, strict=True))]
    left = left_if_refused(state, together)
    if access.limits is not None:
        require_within(access.limits(), state.spending, state.registration, together, left)
    return None if left is None else Refused(shortfall=charges[0].loss.nothing())


def missing_data(table: Table) -> DataFault:
    """Return the fault of a table whose data are missing or unreadable, in words that follow from the catalog."""
    return DataFault(
        f"The data of {table.name} are missing, or cannot be read as the catalog describes them. Nothing was charged.",
        curator_remedy="find out what is wrong with them",
        command=renewal(table.source),
    )


def changed_data(table: Table, state: LedgerState) -> DataChanged:
    """Return the refusal of a table whose data have changed since the ledger's current version."""
    return DataChanged(
        f"The data of {table.name} have changed since version {state.version}. Nothing was charged. "
        "The spent budget stays spent.",
        curator_remedy="accept the new data, if the change is meant",
        command=renewal(table.source),
    )


def exhausted(asked: Sequence[Quote], state: LedgerState, catalog: Catalog) -> BudgetExhausted:
    """Return the refusal of questions that the budget cannot bear, saying what would still fit, and in which parts."""
    loss, charged = asked[0].loss.nothing(), [parts_charged(priced.question, state) for priced in asked]
    for priced in asked:
        loss = loss + priced.loss
    delta = sum((priced.delta for priced in asked), Fraction(0))
    parts = _united(charged, state)
    where = _lacking(asked, charged, state)
    if delta > state.delta_room(parts):
        return BudgetExhausted(
            f"The selection of keys takes δ = {delta_text(delta)}, and "
            f"{delta_text(state.delta_room(parts), down=True)} of the {delta_text(catalog.budget.delta_keys)} kept for "
            f"keys is left{where}. Nothing was charged. Give a smaller delta, or group by columns with public values."
        )
    remaining = state.room(parts)
    fitting = largest_epsilon(remaining, catalog.budget.delta - catalog.budget.delta_keys)
    error = _error_that_fits(asked[0], remaining, catalog) if fitting and len(asked) == 1 else ""
    what = "The query costs" if len(asked) == 1 else f"The {len(asked)} queries together cost"
    still = f"A query with ε = {fitting} would still fit" if fitting else "No further query fits"
    still += f", or one with an error of {error}" if error else ""
    price, left = cost_and_rest(*(part.amount / state.account.budget.amount for part in (loss, remaining)))
    return BudgetExhausted(
        f"{what} {price} of the budget, of which {left} is left{where}. "
        f"Nothing was charged. {still}; results that were bought before stay free."
    )


def _united(charged: Sequence[tuple[str, ...] | None], state: LedgerState) -> tuple[str, ...] | None:
    """Return all parts that several questions are charged to, in order; None for all."""
    if state.division is None or None in charged:
        return None
    named = {part for parts in charged if parts is not None for part in parts}
    return tuple(part for part in state.division.parts.values if part in named)


def _lacking(asked: Sequence[Quote], charged: Sequence[tuple[str, ...] | None], state: LedgerState) -> str:
    """Name the parts that lack budget for the questions that read them; nothing where there are no parts."""
    if state.division is None:
        return ""
    nothing = (asked[0].loss.nothing(), Fraction(0))
    wanted = dict.fromkeys(state.division.parts.values, nothing)
    for priced, parts in zip(asked, charged, strict=True):
        for part in wanted if parts is None else parts:
            loss, delta = wanted[part]
            wanted[part] = loss + priced.loss.rounded_up(), delta + priced.delta
    short_of = state.division.short(wanted, state.registration.delta_keys)
    if not short_of:
        return " for the parts that are read together"
    more = f" and {len(short_of) - MOST_NAMED:,} more" if len(short_of) > MOST_NAMED else ""
    named = f"{'part' if len(short_of) == 1 else 'parts'} {', '.join(short_of[:MOST_NAMED])}{more}"
    return f" for the parts that are read, too little in {named}"


def _error_that_fits(priced: Quote, remaining: Loss, catalog: Catalog) -> str:
    """Return an error that the budget still holds, of a query of counts or of one sum; nothing for any other.

    At the loss that is left each number gets an even share, and the narrowest noise for it. The price of an error finds
    for each number the least loss with this half-width, so it takes no more than the share: the widest of them fits. An
    error is rounded up, which costs less. Of a mean or a quantile it is no public fact (`error_price`).
    """
    question = priced.question
    counts = all(measure.construct in COUNTED for measure in question.measures)
    a_sum = [measure.construct for measure in question.measures] == ["sums"] and question.table.people is None
    if priced.searches or priced.sources or priced.delta or question.choosing or not (counts or a_sum):
        return ""
    share = remaining.amount / len(question.measures)
    shares = (share,) * len(question.measures)
    fitting = at_price(question, bounds_of(question, catalog.budget), remaining, shares, Fraction(0))
    return margin(float_up(max(term.half_width(CONFIDENCE) for term in fitting.terms)))
