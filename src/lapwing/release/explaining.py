"""What a question would be charged now, and how good its answer would be: from plan, catalog, ledger and limits."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget, Table
from lapwing.errors import LapwingError
from lapwing.ledger.state import State
from lapwing.preview import LedgerPreview, PartPreview, Preview
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import GaussianDP, PureDP
from lapwing.query.calibrate import calibrate
from lapwing.query.measure_names import measure_names
from lapwing.query.quote import CONFIDENCE
from lapwing.release.affordability import NO_LIMITS, affordability
from lapwing.release.answering import bound_of, notes_of, sum_of
from lapwing.release.previews import (
    at_widest,
    column_previews,
    measure_previews,
    previews_of,
    selection_preview,
    unpromised,
)
from lapwing.release.request import Access, Release, Request
from lapwing.release.searches import notes_before, settled, stored_searches
from lapwing.release.stored import Purchase, key_of, look_up, parts_charged
from lapwing.release.usable import refusal_of

USUAL_DELTA: Final = Fraction(1, 10**6)
"""Of a gdp ledger beside a pure one, which has none."""


def explain(request: Request, state: State, access: Access, assuming_count: int | None) -> Preview:
    """Return price, mechanisms and promised errors of a question, without touching data or budget.

    Raises: QueryRefused if its answer would be refused to somebody whose time is not trusted.
    """
    if not access.timing.trusted:
        from lapwing.release.bounded_work import require_bounded_work  # here: what it loads, only a service needs

        require_bounded_work([request], access)
    bounds = stored_searches(request.priced, access.ledger)
    if request.plan.searches and len(bounds) == len(request.plan.searches):
        request, notes = settled(request, bounds, access)
    else:
        notes = notes_before(request.plan, request.priced)
    plan, priced, budget = request.plan, request.priced, access.catalog.budget
    # What a question with unknown bounds would release is not known yet, nor whether it is stored.
    key = key_of(plan.question)
    known = not plan.unsettled
    lookup = look_up(priced, key, access.ledger.answers(key)) if known else Purchase(key=key, bought=priced)
    stored = isinstance(lookup, Release)
    bought = priced if isinstance(lookup, Release) else lookup.bought
    buying = [*(search for search in priced.searches if search.question not in bounds), bought]
    price = sum_of([one.loss for one in buying])
    parts = parts_charged(plan.question, state)
    now = affordability(
        () if stored else buying,
        price,
        parts,
        state=state,
        catalog=access.catalog,
        principal=access.principal,
        limits=NO_LIMITS if access.limits is None else access.limits(),
    )
    names = measure_names(plan)
    return Preview(
        cost=price.nothing() if stored else price,
        price=price,
        epsilon=price.to_epsilon(delta=budget.delta - budget.delta_keys),
        share_of_remaining=float(price.amount / now.remaining.amount) if now.remaining.amount else float("inf"),
        remaining=now.remaining,
        fits=now.fits,
        refusal=now.refusal if stored or now.refusal is not None else refusal_of(plan),
        cells=plan.question.cells,
        unit=units_of(plan.question.lineage),
        bound=bound_of(plan.question.lineage),
        measures=(*previews_of(priced, plan.searches), *at_widest(plan, priced, measure_previews(priced, names))),
        columns=unpromised(plan, column_previews(plan, priced, names, assuming_count)),
        notes=(*notes_of(plan, priced), *notes),
        delta=priced.delta,
        sharpens=not isinstance(lookup, Release) and lookup.further is not None,
        assuming_count=assuming_count,
        parts=_part_previews(parts, state),
        selection=selection_preview(priced),
        elsewhere=_elsewhere(request, state, budget) if known and not stored else None,
    )


def _elsewhere(request: Request, state: State, budget: Budget) -> LedgerPreview | None:
    """Say what the other kind of ledger would give for the same epsilon, while one can still be made anew."""
    plan, priced = request.plan, request.priced
    if state.account.spent.amount or state.delta_spent or state.division is not None or not priced.terms:
        return None
    kind, delta = (PureDP.kind, budget.delta_keys) if budget.measure != PureDP.kind else (GaussianDP.kind, USUAL_DELTA)
    other = replace(budget, measure=kind, delta=delta + (budget.delta_keys if kind == GaussianDP.kind else 0))
    epsilon = priced.together.to_epsilon(delta=budget.delta - budget.delta_keys)
    try:
        there = calibrate(plan, other, epsilon=epsilon, error=None, delta=priced.delta or None)
    except LapwingError:  # not every question is answered in every kind
        return None
    times = fits(Account.opened(other.loss), there.together)
    return LedgerPreview(
        measure=kind,
        delta=other.delta,
        half_widths=tuple(float(term.half_width(CONFIDENCE)) for term in there.terms),
        fits=min(times, int(other.delta_keys // grid_up(there.delta))) if there.delta else times,
    )


def _part_previews(parts: tuple[str, ...] | None, state: State) -> tuple[PartPreview, ...] | None:
    if parts is None or state.division is None:
        return None
    spent, left = state.division.losses.spent_by_part(), state.division.losses.rooms()
    return tuple(PartPreview(part=part, spent=spent[part], remaining=left[part]) for part in parts)


def units_of(tables: Sequence[Table]) -> str:
    """Say whom a question about tables protects: of each kind of units one after the other."""
    kinds = {table.units: table.root for table in tables}
    named = ("each row" if root.unit_is_row else f"each {root.privacy_unit}" for root in kinds.values())
    return " and ".join(dict.fromkeys(named))
