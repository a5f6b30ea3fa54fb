"""Limits under the cap: what one person, or a group of people, may be charged of it.

The cap of the data set is the guarantee, and stands whoever asks. Allowances say how it is shared out; they are policy,
and no part of the guarantee: analysts may pool what they were told, so a cap for each would protect nobody.

Every charge in the ledger bears the name of who asked. The ledger's state adds up, from the entries, what was charged
to each name; so a limit is a function of the entries and of the policy, and `require_within` decides it in the
transaction that appends the charge. Two requests cannot both find the same room, and a policy that was changed before a
charge is decided is the one that decides it: the policy is asked for with the ledger held.

Amounts are shares of the cap in the ledger's own unit, in which losses add up. Where the data have parts, a name's
charges are added up whatever parts they were for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from operator import itemgetter
from typing import final

from lapwing.errors import AllowanceExhausted, DataStopped, QueryRefused, RefusalCause
from lapwing.ledger.entries import Charge
from lapwing.ledger.events import require_few
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState, Spending, Spent, price_of
from lapwing.ledger.transitions import paid
from lapwing.privacy.amount_texts import short
from lapwing.privacy.figures import cost_and_rest
from lapwing.privacy.figures import share as share_text
from lapwing.privacy.filters import Refused
from lapwing.privacy.fitting import largest_epsilon
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The most that some names may be charged together: a share of the cap, and the same share of `delta_keys`.

    Args:
        holder: Whose it is, for people.
        names: Whose charges count.
        share: From 0 to 1.
        is_personal: Whether it is the limit of one person, for which that person can ask.
    """

    holder: str
    names: frozenset[str]
    share: Fraction
    is_personal: bool = False

    def spent(self, spending: Spending) -> Spent:
        """Return what these names were charged."""
        return sum((spending[name] for name in self.names & spending.keys()), Spent())

    def room(self, spending: Spending, registration: Registration) -> Spent:
        """Return what is left for these names; it is negative if the share was cut below what they were charged."""
        spent, share = self.spent(spending), self.share
        return Spent(
            amount=share * registration.budget.amount - spent.amount,
            delta=share * registration.delta_keys - spent.delta,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The rest after charges, as amounts in the ledger's unit.

    Args:
        cap: The whole budget.
        budget: The rest of the budget.
        own: The rest of the tightest limit of the caller, None if only the budget limits them.
    """

    cap: Fraction
    budget: Fraction
    own: Fraction | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request must keep to beside the cap.

    Args:
        allowances: All that hold for who asks.
        most: Of one request, and the same share of `delta_keys`, None for no such limit.
        least: Of one charge, a share of the cap.
        least_epsilon: Names the least epsilon that is charged so much, for people.
        stopped: Whether the curator has stopped the data set.
        timed: Whether who asks may not see how long anything takes, so that late answers refuse the charge
            (`ledger.events`).
        decided: Hears the rest after charges that fit, before the ledger commits them. The last call is about the
            charges that the ledger made, if it made any.
    """

    allowances: tuple[Allowance, ...] = ()
    most: Loss | None = None
    least: Fraction = Fraction(0)
    least_epsilon: Callable[[Fraction], str] | None = None
    stopped: bool = False
    timed: bool = False
    decided: Callable[[Remaining], None] | None = None


LimitsNow = Callable[[], Limits]
"""Asks for the limits as they stand. It is called with the ledger held, so it must not ask the ledger for anything."""


def require_within(
    limits: Limits,
    spending: Spending,
    registration: Registration,
    charges: Sequence[Charge],
    left: Spent | None = None,
) -> None:
    """Refuse charges of one request that go beyond its limits; a function of policy, entries and request alone.

    Of several limits that they go beyond the refusal names the tightest, so that what keeps to it keeps to all. Args:
    left: what the budget has left, if it does not hold them either; where that is the least, the caller refuses.

    Every single charge has to reach the least: whether a question fails is a fact without noise at any price, so how
    many may be asked is to be bounded. With a least of 1/n there are at most n charges under the cap.

    Raises:
        DataStopped: If the data set is stopped.
        QueryRefused: If the question is not understood or not allowed.
        AllowanceExhausted: If the limits of who asks do not bear it.
    """
    if not charges:
        return
    if limits.stopped:
        raise DataStopped(
            "The curator has stopped this data set. Ask them when it opens again. Nothing was charged; earlier results "
            "stay free."
        )
    total = sum((price_of(charge) for charge in charges), Spent())
    cap = registration.budget.amount
    cheapest = min(price_of(charge).amount for charge in charges)
    if cheapest < limits.least * cap:
        raise _too_cheap(limits, cheapest, cap)
    beyond: list[tuple[tuple[bool, Fraction], AllowanceExhausted | None]] = []
    if left is not None:
        beyond.append((_tightness(total, left), None))
    if limits.most is not None and total.delta * cap > limits.most.amount * registration.delta_keys:
        dear = AllowanceExhausted(
            f"The query needs {_percent(total.delta, registration.delta_keys)} of the delta for private keys, and one "
            f"query may use at most {_percent(limits.most.amount, cap)}, the same share as of the budget. Nothing "
            "was charged. Give a smaller delta, or group by columns with public values."
        )
        beyond.append(((True, limits.most.amount * registration.delta_keys / cap), dear))
    if limits.most is not None and total.amount > limits.most.amount:
        cost, highest = _percents(total.amount, limits.most.amount, cap)
        dear = AllowanceExhausted(
            f"The query costs {cost} of the budget, and one query may cost at most {highest}. Nothing was charged."
            f"{_fitting(limits, limits.most.amount, registration)} Request less accuracy or fewer groups."
        )
        beyond.append(((False, limits.most.amount), dear))
    for allowance in limits.allowances:
        counted = [price_of(charge) for charge in charges if charge.principal in allowance.names]
        price, room = sum(counted, Spent()), allowance.room(spending, registration)
        if counted and (price.amount > room.amount or price.delta > room.delta):
            beyond.append((_tightness(price, room), _beyond(limits, allowance, price, room, registration)))
    tightest = min(beyond, key=itemgetter(0), default=(None, None))[1]
    if tightest is not None:
        raise tightest if len(beyond) == 1 else _without_larger_limit(tightest)


def _tightness(price: Spent, room: Spent) -> tuple[bool, Fraction]:
    """Return what sorts limits that a price is beyond: those of the loss by what is left, then those of the delta."""
    return (False, room.amount) if price.amount > room.amount else (True, room.delta)


def require_chargeable(limits: Limits, state: LedgerState, charges: Sequence[Charge]) -> None:
    """Refuse charges of one request that go beyond its limits, or that come too late for who may not see time.

    Raises:
        DataStopped: If the data set is stopped.
        QueryRefused: If the question is not understood or not allowed.
        AllowanceExhausted: If the limits of who asks do not bear it.
    """
    after = _paid_together(state, charges)
    left = _left_for(state, charges) if isinstance(after, Refused) else None
    require_within(limits, state.spending, state.registration, charges, left)
    if limits.timed:
        require_few(state, charges)
    if limits.decided is not None and not isinstance(after, Refused):
        limits.decided(_remaining(limits, state, charges, after))


def left_if_refused(state: LedgerState, charges: Sequence[Charge]) -> Spent | None:
    """Return what the budget has left for charges that it does not hold together, or None: it holds them."""
    return _left_for(state, charges) if isinstance(_paid_together(state, charges), Refused) else None


def _paid_together(state: LedgerState, charges: Sequence[Charge]) -> LedgerState | Refused:
    """Return the state after charges, or the refusal of the first one that does not fit after the others."""
    for charge in charges:
        outcome = paid(state, charge)
        if isinstance(outcome, Refused):
            return outcome
        state = outcome
    return state


def _left_for(state: LedgerState, charges: Sequence[Charge]) -> Spent:
    amount = min(state.room(one.parts).amount for one in charges)
    return Spent(amount=amount, delta=min(state.delta_room(one.parts) for one in charges))


def _remaining(limits: Limits, state: LedgerState, charges: Sequence[Charge], after: LedgerState) -> Remaining:
    """Return the rest after charges; the state `after` has paid them."""
    cap, budget = after.account.budget.amount, after.account.remaining.amount
    shares = []
    for allowance in limits.allowances:
        counted = sum((price_of(charge) for charge in charges if charge.principal in allowance.names), Spent())
        shares.append(allowance.room(state.spending, state.registration).amount - counted.amount)
    return Remaining(cap=cap, budget=budget, own=min([budget, *shares]) if shares else None)


def _too_cheap(limits: Limits, price: Fraction, cap: Fraction) -> QueryRefused:
    named = "" if limits.least_epsilon is None else f", as ε = {limits.least_epsilon(limits.least * cap)} does"
    return QueryRefused(
        f"The query costs {_percent(price, cap, down=True)} of the budget, and each query or refinement must cost at "
        f"least {_percent(limits.least * cap, cap)}. Nothing was charged",
        cause=RefusalCause.COST_BELOW_MINIMUM,
        remedy=f"Request more accuracy{named}. In a batch, and with AUTO bounds, each part counts separately.",
    )


def rooms(limits: Limits, name: str, spending: Spending, registration: Registration) -> tuple[Spent, ...]:
    """Return what is left of each allowance that holds for a name; it may be negative, like `Allowance.room`."""
    return tuple(allowance.room(spending, registration) for allowance in limits.allowances if name in allowance.names)


def _beyond(
    limits: Limits, allowance: Allowance, price: Spent, room: Spent, registration: Registration
) -> AllowanceExhausted:
    if price.amount > room.amount:
        cap, need, left = registration.budget.amount, price.amount, max(room.amount, Fraction(0))
        what = "of the budget"
    else:
        cap, need, left = registration.delta_keys, price.delta, max(room.delta, Fraction(0))
        what = "of the delta for private keys"
    cost, rest = _percents(need, left, cap)
    fitting = _fitting(limits, left, registration) if price.amount > room.amount else ""
    enough = _larger_limit(allowance, price, room, registration)
    limit = "give a larger limit" if enough is None else f"raise the limit to {share_text(enough)}"
    error = AllowanceExhausted(
        f"The query costs {cost} {what}, and {rest} is left for {allowance.holder} "
        f"(limit: {share_text(allowance.share)}). Nothing was charged; earlier results stay free.{fitting}",
        curator_remedy=limit,
    )
    error.larger_limit = enough
    return error


def _larger_limit(allowance: Allowance, price: Spent, room: Spent, registration: Registration) -> Fraction | None:
    """Return a limit that bears a price after all that was charged, in whole percent; None if even the budget is less.

    It follows from the ledger's charges and the price, as the refusal's other figures do. Nobody asks for the limit of
    a team by the limit of a person, so that of a team has none.
    """
    if not allowance.is_personal:
        return None
    more = (price.amount - room.amount) / registration.budget.amount if registration.budget.amount else Fraction(0)
    keys = (price.delta - room.delta) / registration.delta_keys if registration.delta_keys else Fraction(0)
    enough = Fraction(ceil(100 * (allowance.share + max(more, keys))), 100)
    return enough if enough <= 1 else None


def _without_larger_limit(error: AllowanceExhausted) -> AllowanceExhausted:
    """Return the refusal by one of several limits: a larger one alone would not help."""
    if error.larger_limit is None:
        return error
    return AllowanceExhausted(error.message, curator_remedy="give a larger limit")


def _fitting(limits: Limits, left: Fraction, registration: Registration) -> str:
    """Say which epsilon would still fit, if any that is not less than a query must cost."""
    if left < limits.least * registration.budget.amount:
        return ""
    fitting = largest_epsilon(registration.budget.from_amount(left), registration.delta - registration.delta_keys)
    return f" A query with ε = {fitting} would still fit." if fitting else ""


def _percents(cost: Fraction, left: Fraction, cap: Fraction) -> tuple[str, str]:
    return cost_and_rest(cost / cap, left / cap) if cap else ("0 %", "0 %")


def _percent(amount: Fraction, cap: Fraction, *, down: bool = False) -> str:
    if not cap:
        return "0 %"
    return f"{short(100 * amount / cap, down=down)} %"
