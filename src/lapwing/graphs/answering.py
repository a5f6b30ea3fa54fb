"""From a recipe to an answer or a preview: priced by the budget as it stands, and asked on somebody's behalf."""

from dataclasses import replace
from fractions import Fraction

from lapwing.catalog.graph import EDGE
from lapwing.errors import AllowanceExhausted, BudgetExhausted, DataStopped
from lapwing.graphs.answer import GraphAnswer, GraphPreview, NumberPreview
from lapwing.graphs.asking import Wording, answer, require_chargeable, stored_answer
from lapwing.graphs.opened import OpenGraph
from lapwing.graphs.pricing import CONFIDENCE, Priced, PricedNumber, levels, priced
from lapwing.graphs.recipe import BestOf, NoisyVector, PublicNumber, Recipe
from lapwing.ledger.allowances import rooms
from lapwing.ledger.state import State
from lapwing.mechanisms.graphs.ladder import Ladder
from lapwing.mechanisms.packing import require_solver
from lapwing.mechanisms.selection import PermuteAndFlip
from lapwing.mechanisms.top_k import TopK
from lapwing.preview import ColumnPreview, MeasurePreview, Preview
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss, Number
from lapwing.query.quote import request
from lapwing.release.request import Access


def answered(held: OpenGraph, recipe: Recipe, epsilon: Number, wording: Wording | None = None) -> GraphAnswer:
    """Answer and charge a statistic. Guarantee, Raises: as `asking.answer`."""
    asked = priced_for(held, recipe, epsilon)
    outcome = answer(held.graph, asked, held.reader, held.account, held.beside, wording)
    return GraphAnswer(question=recipe.text, protects=held.graph.unit, outcome=outcome)


def priced_for(held: OpenGraph, recipe: Recipe, epsilon: Number) -> Priced:
    """Return the price of a recipe in the graph's budget."""
    require_solver()
    _, account = _current(held.account)
    return priced(recipe, request(epsilon, account.catalog.budget), account.catalog.budget.neighbouring)


def previewed(held: OpenGraph, recipe: Recipe, epsilon: Number) -> GraphPreview:
    """Return what a statistic would cost and promise; free, and no row is read."""
    asked = priced_for(held, recipe, epsilon)
    possible, beside = levels(asked), held.beside
    shown = possible if len(possible) < 3 else (possible[0], possible[-1])
    return GraphPreview(
        question=recipe.text,
        protects=held.graph.unit,
        loss=asked.loss,
        beside={} if beside is None else {beside.access.catalog.name: beside.loss(asked.loss)},
        fits=_fits(held, asked),
        numbers=tuple(one for level in shown for one in _numbers(asked, level)),
        notes=held.graph.notes + _searching(asked) + _not_usable(asked),
    )


def previewed_in_sql(held: OpenGraph, recipe: Recipe, epsilon: Number) -> Preview:
    """Return the same in the form in which questions about tables are previewed."""
    found, asked = previewed(held, recipe, epsilon), priced_for(held, recipe, epsilon)
    _, account = _current(held.account)
    stored = stored_answer(held.graph, asked, account) is not None
    refusal, remaining = None, _left(held.account)
    if not stored:
        try:
            require_chargeable(held.graph, asked, account, held.beside)
        except (AllowanceExhausted, BudgetExhausted, DataStopped) as error:
            refusal = str(error)
    budget, widths = account.catalog.budget, {one.name: one.half_width for one in found.numbers}
    beside = tuple(f"it counts as {loss} in the budget of {name}, too" for name, loss in found.beside.items())
    return Preview(
        cost=asked.loss.nothing() if stored else asked.loss,
        price=asked.loss,
        epsilon=asked.loss.to_epsilon(delta=budget.delta - budget.delta_keys),
        share_of_remaining=float(asked.loss.amount / remaining.amount) if remaining.amount else float("inf"),
        remaining=remaining,
        fits=0 if refusal is not None else found.fits,
        refusal=refusal,
        cells=None,
        unit=_unit(held),
        bound="what each node adds is limited at a level" if recipe.search is not None else "nothing is cut",
        measures=tuple(
            MeasurePreview(
                measure=one.name if one.level is None else f"{one.name} at level {one.level:,}",
                sensitivity=one.sensitivity,
                reason=one.because,
                mechanism=one.mechanism,
                scale=one.scale,
                half_width=float("inf") if one.half_width is None else one.half_width,
            )
            for one in found.numbers
        ),
        columns=tuple(
            ColumnPreview(name=name, rests_on=(name,), half_width=None if recipe.search is not None else width)
            for name, width in widths.items()
        ),
        notes=(*found.notes, *beside),
    )


def _current(access: Access) -> tuple[State, Access]:
    """Return the state of a ledger, and what it is asked with under the budget that others have raised, if they did."""
    state = access.ledger.seen()
    budget = replace(access.catalog.budget, epsilon=state.registration.epsilon, delta=state.registration.delta)
    return state, replace(access, catalog=replace(access.catalog, budget=budget))


def _left(access: Access) -> Loss:
    """Return what is left for who asks: of the budget, and of the shares of it that a service gives."""
    state, _ = _current(access)
    limits = None if access.limits is None else access.limits()
    shares = () if limits is None else rooms(limits, access.principal, state.spending, state.registration)
    budget = state.room(None)
    return budget.from_amount(min([budget.amount, *(max(share.amount, Fraction(0)) for share in shares)]))


def _fits(held: OpenGraph, asked: Priced) -> int:
    """Return how many such questions both budgets hold."""
    left = [(_left(held.account), asked.loss)]
    if held.beside is not None:
        left.append((_left(held.beside.access), held.beside.loss(asked.loss)))
    return min(fits(Account(budget=room, spent=room.nothing()), loss) for room, loss in left)


def _unit(held: OpenGraph) -> str:
    """Return whom a graph hides, as other questions say it: an edge, or a node with all its edges."""
    graph = held.graph
    if graph.privacy == EDGE:
        return f"edge of {graph.name}"
    return f"{' or '.join(str(table.privacy_unit) for table in graph.nodes)} with all edges in {graph.name}"


def _half_width(one: PricedNumber) -> int | None:
    if isinstance(one.mechanism, Ladder) or one.mechanism is None:
        return None
    if isinstance(one.mechanism, PermuteAndFlip | TopK):
        return one.mechanism.shortfall(one.number.candidates, CONFIDENCE) if isinstance(one.number, BestOf) else None
    return one.mechanism.half_width(CONFIDENCE)


def _searching(asked: Priced) -> tuple[str, ...]:
    if asked.chooser is None:
        return ()
    possible, share = levels(asked), float(1 - asked.shared.amount / asked.loss.amount)
    return (
        f"a level from {possible[0]:,} to {possible[-1]:,} is chosen by {share:.0%} of the price; say level to "
        "spend all of it on the number",
    )


def _not_usable(asked: Priced) -> tuple[str, ...]:
    """Say where public figures show that a price buys nothing but noise: at every level at which it may be spent.

    What a level cuts off of a graph is private, so that no more can be said before.
    """
    beyond = list[bool]()
    for level in levels(asked):
        for one in asked.numbers(level):
            if isinstance(one.number, NoisyVector) and one.number.most is not None:
                beyond.append(2 * (_half_width(one) or 0) >= one.number.most)
    if not beyond or not all(beyond):
        return ()
    return ("not usable at this price: at every level the ± is half or more of the most that there can be",)


def _numbers(asked: Priced, level: int | None) -> tuple[NumberPreview, ...]:
    return tuple(
        NumberPreview(
            name=one.number.name,
            mechanism=one.mechanism.name,
            sensitivity=one.sensitivity.l1,
            scale=float(one.mechanism.scale),
            half_width=_half_width(one),
            because=one.number.because,
            level=level,
        )
        for one in asked.numbers(level)
        if one.mechanism is not None and not isinstance(one.number, PublicNumber)
    )
