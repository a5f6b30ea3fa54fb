"""What would come of asking now: what is left for the asker, how many such questions fit, and what would refuse them.

The same rules decide here and at a charge: the limits of the asker (`ledger.allowances`), and the budget, the faults
and the end of the data set (`ledger.transitions`). So a preview and the charge that follows it can only differ by what
others are charged in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.catalog.model import Catalog
from lapwing.errors import AllowanceExhausted, BudgetExhausted, DataStopped, QueryRefused
from lapwing.ledger.allowances import Limits, left_if_refused, require_chargeable, rooms
from lapwing.ledger.faults import stopped
from lapwing.ledger.state import LedgerState
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss
from lapwing.query.pricing.quote import Quote
from lapwing.release.refusals import exhausted
from lapwing.release.stored import charge_of, key_of

MOST_FREE: Final = 10**9
"""How many questions that cost nothing are said to fit."""
NO_LIMITS: Final = Limits()
"""Of who asks a catalog, and no service: the budget alone."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Affordability:
    """What is left for who asks, how many questions of a price it holds, and why asking now would be refused, if so.

    `share` is the part of what is left that a question takes: of the loss, or of the delta for private keys if it takes
    a larger part of that; above 1 if it does not fit. `larger_limit` is a limit of the caller that would bear it
    (`errors.AllowanceExhausted`).
    """

    remaining: Loss
    share: float
    fits: int
    refusal: str | None
    refusal_code: str | None
    larger_limit: Fraction | None = None


def affordability(
    asked: Sequence[Quote],
    price: Loss,
    parts: tuple[str, ...] | None,
    *,
    delta: Fraction,
    state: LedgerState,
    catalog: Catalog,
    principal: str,
    limits: Limits = NO_LIMITS,
) -> Affordability:
    """Return what would come of questions that are asked now; a function of ledger and limits alone.

    Args:
        asked: What would be charged, nothing if it was bought before.
        price: Of one such question.
        delta: Of one such question.
        parts: That it reads, None for all.
    """
    left = rooms(limits, principal, state.spending, state.registration)
    remaining = min((state.room(parts).amount, *(max(room.amount, Fraction(0)) for room in left)))
    keys_left = delta_left(parts, state=state, principal=principal, limits=limits)
    taken = sum((grid_up(priced.delta) for priced in asked), Fraction(0))
    refusal, code, larger_limit = _refusal(asked, state, catalog, principal, limits)
    room = price.from_amount(remaining)
    times = fits(Account(budget=room, spent=room.nothing()), price) if price.amount else MOST_FREE
    if taken:
        times = min(times, keys_left // taken)
    share = max(_share(price.amount, remaining), _share(delta, keys_left) if delta else 0.0)
    times = 0 if refusal is not None else times
    return Affordability(
        remaining=room, share=share, fits=times, refusal=refusal, refusal_code=code, larger_limit=larger_limit
    )


def delta_left(
    parts: tuple[str, ...] | None, *, state: LedgerState, principal: str, limits: Limits = NO_LIMITS
) -> Fraction:
    """Return what is left of the delta for private keys, for questions that read these parts, None for all."""
    left = rooms(limits, principal, state.spending, state.registration)
    return max(Fraction(0), min((state.delta_room(parts), *(room.delta for room in left))))


def _share(price: Fraction, left: Fraction) -> float:
    return float(price / left) if left else float("inf")


def _refusal(
    asked: Sequence[Quote], state: LedgerState, catalog: Catalog, principal: str, limits: Limits
) -> tuple[str | None, str | None, Fraction | None]:
    """Return message, code and larger limit of the refusal, if there would be one; checked in the order of a charge."""
    if not asked:
        return None, None, None
    charges = [charge_of(priced, key_of(priced.question), catalog, principal, state) for priced in asked]
    try:
        require_chargeable(limits, state, charges)
        state.require_open()
    except AllowanceExhausted as error:
        return error.analyst_text, error.code, error.larger_limit
    except (DataStopped, QueryRefused) as error:
        return error.analyst_text, error.code, None
    if state.stopped:
        return stopped().analyst_text, DataStopped.code, None
    if left_if_refused(state, charges) is None:
        return None, None, None
    return str(exhausted(asked, state, catalog)), BudgetExhausted.code, None
