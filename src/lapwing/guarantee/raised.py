"""What a larger budget would promise, beside what is promised now: shown before anything is raised."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from lapwing.budget import raised_reading
from lapwing.catalog.model import Budget
from lapwing.guarantee.numbers import Towards, odds_factor_up, towards_group
from lapwing.ledger.raising import raised_to, require_raise
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import State
from lapwing.privacy.measures import Loss
from lapwing.privacy.odometers import Reading

FAMILY: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a budget promises: to one unit, and to four together.

    Args: odds: e^epsilon; raised: what holds for certain if the budget was raised, whatever it was raised for.
    """

    epsilon: Fraction
    delta: Fraction
    total: Loss
    odds: float
    family: Towards
    raised: Reading | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A budget before and after it is raised; `done` says that the ledger has it already."""

    before: Promise
    after: Promise
    done: bool = False


def preview(budget: Budget, state: State, epsilon: Fraction, delta: Fraction) -> Raise:
    """Return what raising a budget would change; nothing is changed.

    Args: budget: of the catalog; state: of the ledger.
    Raises: InvalidParameter, CatalogMismatch, CatalogError if it cannot be raised to this; DataStopped if the data set
        was closed.
    """
    now = state.registration
    after = raised_to(now, epsilon, delta)
    done = (now.epsilon, now.delta) == (after.epsilon, after.delta)
    if not done:
        state.require_open()
        require_raise(now, after)
    return Raise(before=_promise(budget, state.first, now), after=_promise(budget, state.first, after), done=done)


def _promise(budget: Budget, first: Registration, now: Registration) -> Promise:
    stated = replace(budget, epsilon=now.epsilon, delta=now.delta)
    return Promise(
        epsilon=now.epsilon,
        delta=now.delta,
        total=now.budget,
        odds=odds_factor_up(now.epsilon),
        family=towards_group(stated, now.budget, FAMILY),
        raised=None if now.budget == first.budget else raised_reading(first, now),
    )
