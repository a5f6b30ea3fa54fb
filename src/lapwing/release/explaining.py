"""What a question would be charged now, and how good its answer would be: from plan, catalog, ledger and limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.catalog.protection import bound_of, units_of
from lapwing.errors import LapwingError, QueryRefused
from lapwing.ledger.state import LedgerState
from lapwing.preview import ColumnPreview, LedgerPreview, PartPreview, Preview
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.node import Output
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.measure_names import measure_names
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.joint_price import Asked, asked_by
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release.affordability import NO_LIMITS, Affordability, affordability
from lapwing.release.answering import notes_of, sum_of
from lapwing.release.composing import in_place_of, notes_on_composed, notes_on_first, settled_if_stored, source_columns
from lapwing.release.measured import notes_on_vector
from lapwing.release.previews import (
    at_widest,
    column_previews,
    measure_previews,
    previews_of,
    selection_preview,
    unpromised,
)
from lapwing.release.public_people import notes_on_public_people
from lapwing.release.request import Access, Release, Request
from lapwing.release.searches import notes_before, settled, stored_searches
from lapwing.release.stored import Purchase, key_of, look_up, parts_charged
from lapwing.release.trial import try_showing
from lapwing.release.usable import refusal_of

USUAL_DELTA: Final = Fraction(1, 10**6)
"""Of a gdp ledger beside a pure one, which has none."""


def explain(request: Request, state: LedgerState, access: Access, assuming_count: int | None) -> Preview:
    """Return price, mechanisms and promised errors of a question, without touching data or budget.

    Raises:
        QueryRefused: If its answer would be refused to somebody whose time is not trusted.
        AnswerFault: If it could not be shown.
    """
    if request.priced.sources or request.plan.constants:
        found = settled_if_stored(request, access)
        request = found if request.priced.sources or not plans_asked(found.plan) else request
    asked = tuple({asked_by(leaf.plan): leaf for leaf in in_place_of(request)}.values())
    if not asked:
        return _free_preview(request, state, access)
    try_showing(request.plan, request.priced)
    if not access.timing.trusted:
        from lapwing.release.bounded_work import require_bounded_work  # here: what it loads, only a service needs

        require_bounded_work(asked, access)
    bought = [_buying(leaf, access, within=bool(request.priced.sources)) for leaf in asked]
    previews = [_preview(buying, state, access, assuming_count) for buying in bought]
    if not request.priced.sources:
        return previews[0]
    plan, total = request.plan, previews[0]
    each = {leaf.plan.question: buying for leaf, buying in zip(asked, bought, strict=True)}
    tables = tuple({table.name: table for leaf in asked for table in leaf.plan.question.lineage}.values())
    parts = [parts_charged(leaf.plan.question, state) for leaf in asked]
    read = None if None in parts else tuple(dict.fromkeys(part for some in parts for part in some or ()))
    # What several of them need first is bought once.
    quotes = {name: quote for buying in bought for name, quote in _named(buying.request, buying.quotes)}
    whole = {name: quote for leaf in asked for name, quote in _named(leaf, (leaf.priced, *leaf.priced.searches))}
    price = sum_of([quote.loss for quote in (whole | quotes).values()])
    delta = sum((preview.delta for preview in previews), Fraction(0))
    now = _now(tuple(quotes.values()), price, delta, read, state, access)
    return replace(
        total,
        cost=sum_of([price.nothing(), *(quote.loss for quote in quotes.values())]),
        price=price,
        epsilon=price.to_epsilon(delta=access.catalog.budget.delta - access.catalog.budget.delta_keys),
        share_of_remaining=now.share,
        share_of_budget=_share_of_budget(price, state),
        remaining=now.remaining,
        fits=now.fits,
        refusal=now.refusal,
        refusal_code=now.refusal_code,
        larger_limit=now.larger_limit,
        cells=None if plan.composition is None else plan.composition.most_rows,
        unit=units_of(tables, access.catalog.dictionary),
        bound=bound_of(tables, access.catalog.dictionary),
        measures=tuple(measure for preview in previews for measure in preview.measures),
        columns=tuple(_composed_column(plan, output, each, assuming_count) for output in plan.outputs),
        notes=tuple(dict.fromkeys([*(n for preview in previews for n in preview.notes), *notes_on_composed(plan)])),
        delta=delta,
        sharpens=any(preview.sharpens for preview in previews),
        epsilon_before=None,
        epsilon_in_all=None,
        parts=_part_previews(read, state),
        selection=next((preview.selection for preview in previews if preview.selection is not None), None),
        elsewhere=None,
    )


def _free_preview(request: Request, state: LedgerState, access: Access) -> Preview:
    """Return the preview of a question over only public rows: it is free, and no limit refuses it."""
    plan, nothing = request.plan, request.priced.loss.nothing()
    now = _now((), nothing, Fraction(0), (), state, access)
    columns = tuple(ColumnPreview(name=output.name, rests_on=(), half_width=None) for output in plan.outputs)
    return Preview(
        cost=nothing,
        price=nothing,
        epsilon=0.0,
        share_of_remaining=0.0,
        share_of_budget=0.0,
        remaining=now.remaining,
        fits=now.fits,
        refusal=None,
        cells=None if plan.composition is None else plan.composition.most_rows,
        unit=units_of(access.catalog.tables, access.catalog.dictionary),
        bound="no row of a protected table is read",
        measures=(),
        columns=columns,
        notes=tuple(dict.fromkeys(notes_on_composed(plan))),
    )


def _named(request: Request, quotes: Sequence[Quote]) -> Iterator[tuple[Asked, Quote]]:
    """Yield the quotes of a question and of its searches, after what tells each from those of others."""
    for quote in quotes:
        own = quote.question == request.plan.question
        yield asked_by(request.plan) if own else (quote.question,), quote


@dataclass(frozen=True, slots=True, kw_only=True)
class _Buying:
    """What asking now would buy.

    Args:
        request: With the bounds that are known.
        known: Whether these are all.
        lookup: The answer that is stored, or what is bought.
        quotes: What would be charged.
    """

    request: Request
    notes: tuple[str, ...]
    known: bool
    searched: Mapping[Question, Release]
    lookup: Release | Purchase
    quotes: tuple[Quote, ...]

    @property
    def stored(self) -> bool:
        """Whether it was bought before."""
        return isinstance(self.lookup, Release)


def _buying(request: Request, access: Access, *, within: bool) -> _Buying:
    """Return what a question that touches data buys; `within` another, whose text is not its own."""
    bounds = stored_searches(request.priced, access.ledger)
    needed, first = {search.question for search in request.priced.searches}, notes_on_first(request.plan)
    if needed and len(bounds) == len(needed) and not within:
        request, notes = settled(request, bounds, access)
    else:
        notes = notes_before(request.plan, request.priced)
    plan, priced = request.plan, request.priced
    # What a question with unknown bounds would release is not known yet, nor whether it is stored.
    key, known = key_of(plan.question), not plan.unsettled and not plan.constants
    lookup = look_up(priced, access.ledger.answers, access) if known else Purchase(key=key, bought=priced)
    if priced.vector is not None and isinstance(lookup, Purchase):
        wanted = lookup.bought if lookup.refinement is None else lookup.refinement.refinement.wanted
        if wanted == priced.vector.before:
            # An answer with a noise for each number is made sharper: so it keeps one for each.
            request = replace(request, priced=priced.vector.before)
    searches = [_lacking(search, access) for search in priced.searches if search.question not in bounds]
    own = () if isinstance(lookup, Release) else (lookup.bought,)
    quotes, notes = (*searches, *own), (*first, *notes)
    return _Buying(request=request, notes=notes, known=known, searched=bounds, lookup=lookup, quotes=quotes)


def _lacking(search: Quote, access: Access) -> Quote:
    """Return what is bought of a search: where a stored answer is made sharper, only what it lacks."""
    lookup = look_up(search, access.ledger.answers, access)
    return lookup.bought if isinstance(lookup, Purchase) else search


def _now(
    quotes: Sequence[Quote],
    price: Loss,
    delta: Fraction,
    parts: tuple[str, ...] | None,
    state: LedgerState,
    access: Access,
) -> Affordability:
    return affordability(
        quotes,
        price,
        parts,
        delta=delta,
        state=state,
        catalog=access.catalog,
        principal=access.principal,
        limits=NO_LIMITS if access.limits is None else access.limits(),
    )


def _preview(buying: _Buying, state: LedgerState, access: Access, assuming_count: int | None) -> Preview:
    """Return the preview of one question that touches data."""
    plan, priced, stored = buying.request.plan, buying.request.priced, buying.stored
    whole = buying.quotes if not stored else (*buying.quotes, priced)
    price = sum_of([one.loss for one in whole])
    parts = parts_charged(plan.question, state)
    delta = sum((one.delta for one in whole), Fraction(0))
    now = _now(() if stored else buying.quotes, price, delta, parts, state, access)
    budget, names = access.catalog.budget, measure_names(plan)
    unusable = None if stored or now.refusal is not None else refusal_of(plan)
    means = any(isinstance(output.value, Average) for output in plan.outputs)
    public = notes_on_public_people(plan, price, state, budget, assuming_count) if means and not stored else ()
    read_at, earlier = budget.delta - budget.delta_keys, _paid_before(buying, access)
    return Preview(
        cost=price.nothing() if stored else price,
        price=price,
        epsilon=price.to_epsilon(delta=read_at),
        epsilon_before=None if earlier is None else earlier.to_epsilon(delta=read_at),
        epsilon_in_all=None if earlier is None else sum_of([earlier, price]).to_epsilon(delta=read_at),
        share_of_remaining=now.share,
        share_of_budget=_share_of_budget(price, state),
        remaining=now.remaining,
        fits=now.fits,
        refusal=now.refusal if unusable is None else unusable,
        refusal_code=now.refusal_code if unusable is None else QueryRefused.code,
        larger_limit=now.larger_limit,
        cells=plan.question.cells,
        unit=units_of(plan.question.lineage, access.catalog.dictionary),
        bound=bound_of(plan.question.lineage, access.catalog.dictionary),
        measures=(*previews_of(priced, plan), *at_widest(plan, priced, measure_previews(priced, names))),
        columns=unpromised(plan, column_previews(plan, priced.terms, names, assuming_count)),
        notes=tuple(
            dict.fromkeys([*notes_of(buying.request, access), *buying.notes, *notes_on_vector(plan, priced), *public])
        ),
        delta=priced.delta,
        sharpens=isinstance(buying.lookup, Purchase) and buying.lookup.refinement is not None,
        assuming_count=assuming_count,
        parts=_part_previews(parts, state),
        selection=selection_preview(priced),
        elsewhere=_elsewhere(buying.request, state, budget) if buying.known and not stored else None,
    )


def _share_of_budget(price: Loss, state: LedgerState) -> float:
    return float(price.amount / state.account.budget.amount)


def _paid_before(buying: _Buying, access: Access) -> Loss | None:
    """Return what the results cost that a query makes more exact; None if it makes none so, or needs more first.

    This tells of no other person more than previews do: the largest epsilon that is free is what was paid, by anybody.
    """
    lookup = buying.lookup
    if isinstance(lookup, Release) or lookup.refinement is None or len(buying.quotes) > 1:
        return None
    kept = access.ledger.answers(lookup.key)  # none where what becomes more exact was bought under an earlier plan
    return sum_of([stored.loss for stored in kept]) if kept else None


def _composed_column(
    plan: Plan, output: Output, each: Mapping[Question, _Buying], assuming_count: int | None
) -> ColumnPreview:
    """Describe a column that is computed from those of other answers: its error is theirs where it is one of them."""
    parts: list[ColumnPreview] = []
    for leaf, value in source_columns(plan, output.value):
        request = each[leaf.question].request
        own = next((own for own in leaf.outputs if own.value == value), Output(name=output.name, value=value))
        one = replace(leaf, outputs=(own,))
        parts += column_previews(one, request.priced.terms, measure_names(one), assuming_count)
    widths = [part.half_width for part in parts]
    alone = isinstance(output.value, SourceValue | UnionValue) and None not in widths
    return ColumnPreview(
        name=output.name,
        rests_on=tuple(dict.fromkeys(name for part in parts for name in part.rests_on)),
        half_width=max((width or 0.0 for width in widths), default=None) if alone else None,
        selected=any(part.selected for part in parts),
    )


def _elsewhere(request: Request, state: LedgerState, budget: Budget) -> LedgerPreview | None:
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


def _part_previews(parts: tuple[str, ...] | None, state: LedgerState) -> tuple[PartPreview, ...] | None:
    if parts is None or state.division is None:
        return None
    spent, left = state.division.losses.spent_by_part(), state.division.losses.rooms()
    return tuple(PartPreview(part=part, spent=spent[part], remaining=left[part]) for part in parts)
