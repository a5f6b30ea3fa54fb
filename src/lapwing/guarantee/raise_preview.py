"""What a larger budget would promise, beside what is promised now, to be seen before it is raised; also as JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, final

from typing_extensions import TypedDict

from lapwing.budget import raised_reading
from lapwing.catalog.model import Budget, Catalog
from lapwing.guarantee.meaning import Towards, odds_change_up, odds_factor_up, times_of_100, towards_group
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.raising import raised_to, require_expected, require_raise
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState
from lapwing.privacy.amounts import Number, exact, read, written
from lapwing.privacy.measures import Loss, from_record
from lapwing.privacy.odometers import Reading

FAMILY: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a budget promises: to one unit, and to four together.

    Args:
        odds: e^epsilon.
        times: Out of 100, how often a guess whether a unit is in the data is right at most.
        raised: What holds for certain if the budget was raised, whatever it was raised for.
    """

    epsilon: Fraction
    delta: Fraction
    total: Loss
    odds: float
    family: Towards
    raised: Reading | None
    times: int = 100

    @property
    def change(self) -> tuple[float, Fraction]:
        """The largest change of odds by all results, and the chance of a larger one."""
        return odds_change_up(self.epsilon, self.delta)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A budget before and after it is raised; `done` says that the ledger has it already."""

    before: Promise
    after: Promise
    done: bool = False


def figures(*budgets: tuple[Number, Number]) -> list[tuple[Fraction, Fraction]]:
    """Return the (epsilon, delta) of budgets exactly.

    Raises:
        InvalidParameter: For what is no number.
    """
    return [(exact(epsilon, "epsilon"), exact(delta, "delta")) for epsilon, delta in budgets]


def expected_preview(
    catalog: Catalog, state: LedgerState, before: tuple[Fraction, Fraction], after: tuple[Fraction, Fraction]
) -> Raise:
    """Return what raising a catalog's budget would change, if it is what it is expected to be, or raised already.

    Raises:
        LapwingError: As `preview`.
        CatalogMismatch: If the budget is not `before`.
    """
    if after != (state.registration.epsilon, state.registration.delta):
        require_expected(state.registration, *before, catalog.ledger_path.name)
    return preview(catalog.budget, state, *after)


def raise_now(
    catalog: Catalog, ledger: Ledger, principal: str, *, was: tuple[Number, Number], to: tuple[Number, Number]
) -> Catalog:
    """Make a ledger's budget larger, for everybody and for ever; return the catalog with it, whose file stays as it is.

    What this promises depends on why it is done: see `BudgetView.raised`. `lapwing.raising.raise_budget` writes the
    file too.

    Args:
        was: The (epsilon, delta) as they are expected to be.

    Raises:
        CatalogMismatch: If they are others.
        InvalidParameter: For what is no larger budget. Nothing is changed.
    """
    before, after = figures(was, to)
    budget = replace(catalog.budget, epsilon=after[0], delta=after[1])  # that no catalog can hold is refused
    ledger.raise_budget(was=before, epsilon=after[0], delta=after[1], principal=principal)
    return replace(catalog, budget=budget)


def preview(budget: Budget, state: LedgerState, epsilon: Fraction, delta: Fraction) -> Raise:
    """Return what raising a budget would change; nothing is changed.

    Args:
        budget: Of the catalog.
        state: Of the ledger.

    Raises:
        InvalidParameter: If it cannot be raised to this.
        CatalogMismatch: If it cannot be raised to this.
        CatalogError: If it cannot be raised to this.
        DataStopped: If the data set was closed.
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
        times=times_of_100(stated, now.budget),
    )


class TogetherDocument(TypedDict):
    """What is promised to several people together; no δ where nothing is."""

    epsilon: float
    delta: str | None


class RaisedDocument(TypedDict):
    """What is proven whatever the budget was raised for, and when it `holds`."""

    epsilon: float
    delta: str
    holds: str


class PromiseDocument(TypedDict):
    """What a budget promises; `odds` is e^ε, none beyond what a float holds.

    A guess whether one unit is in the data is right in at most `times_of_100`. Results change odds by a factor of
    `odds_at_most`, but for a chance below `odds_exception`.
    """

    epsilon: str
    delta: str
    total: dict[str, str]
    odds: float | None
    odds_at_most: float | None
    odds_exception: str
    times_of_100: int
    four_together: TogetherDocument | None
    raised: RaisedDocument | None


class RaiseDocument(TypedDict):
    """What a budget promises before and after a raise; `done` says that this is the budget already."""

    before: PromiseDocument
    after: PromiseDocument
    done: bool


def raise_document(seen: Raise) -> RaiseDocument:
    """Return a budget before and after it is raised."""
    return {"before": _promise_document(seen.before), "after": _promise_document(seen.after), "done": seen.done}


def raise_of(document: Mapping[str, Any]) -> Raise:
    """Read what `raise_document` wrote."""
    return Raise(before=_promise_of(document["before"]), after=_promise_of(document["after"]), done=document["done"])


def _promise_document(promise: Promise) -> PromiseDocument:
    """Return what a budget promises; `raised` is what holds whatever it was raised for, the rest if it was settled."""
    family, raised = promise.family, promise.raised
    most, exception = promise.change
    return {
        "epsilon": written(promise.epsilon),
        "delta": written(promise.delta),
        "total": promise.total.to_record(),
        "odds": promise.odds if math.isfinite(promise.odds) else None,
        "odds_at_most": most if math.isfinite(most) else None,
        "odds_exception": written(exception),
        "times_of_100": promise.times,
        "four_together": None
        if family.epsilon is None
        else {"epsilon": family.epsilon, "delta": None if family.delta is None else written(family.delta)},
        "raised": None
        if raised is None
        else {"epsilon": raised.epsilon, "delta": written(raised.delta), "holds": raised.holds},
    }


def _promise_of(document: Mapping[str, Any]) -> Promise:
    odds, four, raised = document["odds"], document["four_together"], document["raised"]
    return Promise(
        epsilon=read(document["epsilon"], "epsilon"),
        delta=read(document["delta"], "delta"),
        total=from_record(document["total"]),
        odds=math.inf if odds is None else odds,
        family=_family_of(four),
        raised=None
        if raised is None
        else Reading(epsilon=raised["epsilon"], delta=read(raised["delta"], "delta"), holds=raised["holds"]),
        times=document.get("times_of_100", 100),  # services of earlier versions do not say it
    )


def _family_of(document: Mapping[str, Any] | None) -> Towards:
    if document is None:
        return Towards(people=FAMILY, epsilon=None, delta=None)
    delta = document["delta"]
    return Towards(people=FAMILY, epsilon=document["epsilon"], delta=None if delta is None else read(delta, "delta"))
