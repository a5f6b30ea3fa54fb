"""From a recipe to an answer or a preview: priced by the budget as it stands, and asked on somebody's behalf."""

from dataclasses import replace
from fractions import Fraction

from lapwing.answer.notes import GRAPH_BOUND_BOUGHT, GRAPH_LEVEL_CHOSEN, GRAPH_PROMISE, TOO_NOISY
from lapwing.answer.python_values import Note
from lapwing.catalog.graph import EDGE
from lapwing.catalog.model import Budget
from lapwing.errors import AllowanceExhausted, BudgetExhausted, DataStopped, QueryRefused, RefusalCause
from lapwing.graphs.answer import GraphAnswer, GraphPreview, NumberPreview
from lapwing.graphs.asking import Wording, answer, require_chargeable, stored_answer
from lapwing.graphs.opened import OpenGraph
from lapwing.graphs.pricing import CONFIDENCE, Priced, PricedNumber, levels, priced, takes_delta
from lapwing.graphs.recipe import BestOf, LadderCount, NoisyVector, PublicNumber, Recipe
from lapwing.graphs.shown import promise_notes
from lapwing.ledger.allowances import rooms
from lapwing.ledger.state import LedgerState
from lapwing.mechanisms.graphs.ladder import Ladder
from lapwing.mechanisms.graphs.local_sensitivity import NoisyLocalSensitivity
from lapwing.mechanisms.packing import require_solver
from lapwing.mechanisms.private_selection import PermuteAndFlip
from lapwing.mechanisms.top_k import TopK
from lapwing.preview import ColumnPreview, MeasurePreview, Preview
from lapwing.privacy.amounts import grid_up, positive, probability
from lapwing.privacy.figures import delta
from lapwing.privacy.figures import share as share_text
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss, Number
from lapwing.query.pricing.quote import request
from lapwing.release.request import Access


def answered(
    held: OpenGraph, recipe: Recipe, epsilon: Number, wording: Wording | None = None, *, delta: Number | None = None
) -> GraphAnswer:
    """Answer and charge a statistic.

    Guarantee:
        As `asking.answer`.

    Raises:
        LapwingError: As `asking.answer`.
    """
    asked = priced_for(held, recipe, epsilon, delta)
    outcome = answer(held.graph, asked, held.reader, held.account, held.beside, wording)
    return GraphAnswer(question=outcome.priced.text, protects=held.graph.unit, outcome=outcome)


def priced_for(held: OpenGraph, recipe: Recipe, epsilon: Number, delta: Number | None = None) -> Priced:
    """Return the price of a recipe in the graph's budget.

    Args:
        delta: Of what the budget keeps as `delta_keys`, for bounds in the place of ladders.
    """
    require_solver()
    _, account = _current(held.account)
    budget = account.catalog.budget
    share = Fraction(0) if delta is None else _delta(held, budget, delta)
    return priced(recipe, request(epsilon, budget), budget.neighbouring, share)


def _delta(held: OpenGraph, budget: Budget, delta: Number) -> Fraction:
    """Return a delta that was given, or refuse it where nothing can be bought with it.

    A bound that is released at no price would show how far one edge moves the graph.
    """
    if not budget.delta_keys:
        raise QueryRefused(
            "The budget of the graph has no delta to spend",
            cause=RefusalCause.NEEDS_DELTA,
            remedy="Leave delta out.",
            curator_remedy="set delta and delta_keys in the graph's budget",
        )
    if budget.measure == "zcdp":
        raise QueryRefused(
            "A zcdp ledger has no proof for a bound on a local sensitivity",
            cause=RefusalCause.COST_NOT_ALLOWED,
            remedy="Leave delta out.",
        )
    if held.beside is not None:  # of a group, the δ of one edge becomes far more
        raise QueryRefused(
            f"The query also counts in the budget of {held.beside.access.catalog.name}, which has no proof for a delta",
            cause=RefusalCause.COST_NOT_ALLOWED,
            remedy="Leave delta out.",
        )
    return probability(positive(delta, "delta"), "delta")


def previewed(held: OpenGraph, recipe: Recipe, epsilon: Number, *, delta: Number | None = None) -> GraphPreview:
    """Return what a statistic would cost and promise; free, and no row is read."""
    asked = priced_for(held, recipe, epsilon, delta)
    possible, beside = levels(asked), held.beside
    shown = possible if len(possible) < 3 else (possible[0], possible[-1])
    return GraphPreview(
        question=asked.text,
        protects=held.graph.unit,
        loss=asked.loss,
        delta=asked.delta,
        beside={} if beside is None else {beside.access.catalog.name: beside.loss(asked.loss)},
        fits=_fits(held, asked),
        numbers=tuple(number for level in shown for number in _numbers(asked, level)),
        notes=promise_notes(held.graph) + _searching(asked) + _not_usable(asked) + _bought(held, asked),
    )


def previewed_in_sql(held: OpenGraph, recipe: Recipe, epsilon: Number, *, delta: Number | None = None) -> Preview:
    """Return the same in the form in which questions about tables are previewed."""
    found, asked = previewed(held, recipe, epsilon, delta=delta), priced_for(held, recipe, epsilon, delta)
    state, account = _current(held.account)
    stored = stored_answer(held.graph, asked, account) is not None
    refusal, code, limit, remaining = None, None, None, _left(held.account)
    if not stored:
        try:
            require_chargeable(held.graph, asked, account, held.beside)
        except (AllowanceExhausted, BudgetExhausted, DataStopped) as error:
            refusal, code = error.analyst_text, error.code
            limit = error.larger_limit if isinstance(error, AllowanceExhausted) else None
    budget, widths = account.catalog.budget, {number.name: number.half_width for number in found.numbers}
    counts = (f"it counts as {loss} in the budget of {name}, too" for name, loss in found.beside.items())
    beside = tuple(Note(text, GRAPH_PROMISE) for text in counts)
    return Preview(
        cost=asked.loss.nothing() if stored else asked.loss,
        price=asked.loss,
        epsilon=asked.loss.to_epsilon(delta=budget.delta - budget.delta_keys),
        share_of_remaining=_share(held, asked),
        share_of_budget=float(asked.loss.amount / state.account.budget.amount),
        remaining=remaining,
        fits=0 if refusal is not None else found.fits,
        refusal=refusal,
        refusal_code=code,
        larger_limit=limit,
        cells=None,
        unit=_unit(held),
        bound="Lapwing limits what each node adds to a level" if recipe.search is not None else "nothing is cut",
        measures=tuple(
            MeasurePreview(
                measure=number.name if number.level is None else f"{number.name} at level {number.level:,}",
                sensitivity=number.sensitivity,
                reason=number.because,
                mechanism=number.mechanism,
                scale=number.scale,
                half_width=float("inf") if number.half_width is None else number.half_width,
            )
            for number in found.numbers
        ),
        columns=tuple(
            ColumnPreview(name=name, rests_on=(name,), half_width=None if recipe.search is not None else width)
            for name, width in widths.items()
        ),
        notes=(*found.notes, *beside),
        delta=asked.delta,
    )


def _current(access: Access) -> tuple[LedgerState, Access]:
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


def _rooms(held: OpenGraph, asked: Priced) -> list[tuple[Loss, Loss]]:
    """Return what is left of each budget that a question counts in, and what it costs there."""
    left = [(_left(held.account), asked.loss)]
    if held.beside is not None:
        left.append((_left(held.beside.access), held.beside.loss(asked.loss)))
    return left


def _fits(held: OpenGraph, asked: Priced) -> int:
    """Return how many such questions both budgets hold, and the delta that is left."""
    times = min(fits(Account(budget=room, spent=room.nothing()), loss) for room, loss in _rooms(held, asked))
    return min(times, int(_delta_left(held) // grid_up(asked.delta))) if asked.delta else times


def _share(held: OpenGraph, asked: Priced) -> float:
    """Return how much of what is left a question takes: of a budget or of the delta, whichever is the larger part."""
    parts = [(loss.amount, left.amount) for left, loss in _rooms(held, asked)]
    if asked.delta:
        parts.append((grid_up(asked.delta), _delta_left(held)))
    return max(float(price / left) if left else float("inf") for price, left in parts)


def _delta_left(held: OpenGraph) -> Fraction:
    return held.account.ledger.seen().delta_room()


def _unit(held: OpenGraph) -> str:
    """Return whom a graph hides, as other questions say it: an edge, or a node with all its edges."""
    graph = held.graph
    if graph.privacy == EDGE:
        return f"edge of {graph.name}"
    return f"{' or '.join(str(table.privacy_unit) for table in graph.nodes)} with all edges in {graph.name}"


def _half_width(one: PricedNumber) -> int | None:
    if isinstance(one.mechanism, Ladder | NoisyLocalSensitivity) or one.mechanism is None:
        return None
    if isinstance(one.mechanism, PermuteAndFlip | TopK):
        return one.mechanism.shortfall(one.number.candidates, CONFIDENCE) if isinstance(one.number, BestOf) else None
    return one.mechanism.half_width(CONFIDENCE)


def _searching(asked: Priced) -> tuple[str, ...]:
    if asked.chooser is None:
        return ()
    possible, share = levels(asked), float(1 - asked.shared.amount / asked.loss.amount)
    text = (
        f"Lapwing chooses a level from {possible[0]:,} to {possible[-1]:,} with {share_text(share)} of the cost; give "
        f"level to spend all of it on the number"
    )
    return (Note(text, GRAPH_LEVEL_CHOSEN),)


def _bought(held: OpenGraph, asked: Priced) -> tuple[str, ...]:
    """Say what a delta would buy, or how wide the ± is for each step of a bound that is bought."""
    _, account = _current(held.account)
    if not asked.delta:
        keeps, measure = account.catalog.budget.delta_keys, account.catalog.budget.measure
        if not keeps or measure == "zcdp" or held.beside is not None or not takes_delta(asked.recipe):
            return ()
        text = (
            "with a delta, Lapwing also pays for a bound on how far one edge moves the count; the ± is then "
            "mostly narrower"
        )
        return (Note(text, GRAPH_BOUND_BOUGHT),)
    said = []
    for number in asked.numbers(asked.recipe.level):
        if isinstance(number.mechanism, NoisyLocalSensitivity):
            law, steps = number.mechanism, 1_000
            times = law.noise(min(law.cap, steps)).half_width(CONFIDENCE) / min(law.cap, steps)
            said.append(
                f"{number.number.name}: the ± is about {times:.2g} times the bound, which is {law.margin:,} above what "
                "the graph has, up to noise"
            )
    said.append(f"it takes δ = {delta(asked.delta)} of the {delta(account.catalog.budget.delta_keys)} available")
    return tuple(Note(text, GRAPH_BOUND_BOUGHT) for text in said)


def _not_usable(asked: Priced) -> tuple[str, ...]:
    """Say where public figures show that a price buys nothing but noise: at every level at which it may be spent.

    What a level cuts off of a graph is private, so that no more can be said before.
    """
    beyond = list[bool]()
    for level in levels(asked):
        for number in asked.numbers(level):
            most = (number.number.most or number.number.ceiling) if isinstance(number.number, NoisyVector) else None
            if most is not None:
                beyond.append(2 * (_half_width(number) or 0) >= most)
    if not beyond or not all(beyond):
        return ()
    text = "not usable at this cost: at every level the ± is half or more of the most that there can be"
    return (Note(text, TOO_NOISY),)


def _because(one: PricedNumber) -> str:
    """Say why a number has its sensitivity, or how its noise follows the graph."""
    if isinstance(one.mechanism, NoisyLocalSensitivity) and isinstance(one.number, LadderCount):
        return "" if one.number.local is None else one.number.local.because
    return "" if isinstance(one.number, PublicNumber) else one.number.because


def _numbers(asked: Priced, level: int | None) -> tuple[NumberPreview, ...]:
    return tuple(
        NumberPreview(
            name=number.number.name,
            mechanism=number.mechanism.name,
            sensitivity=number.sensitivity.l1,
            scale=float(number.mechanism.scale),
            half_width=_half_width(number),
            because=_because(number),
            level=level,
        )
        for number in asked.numbers(level)
        if number.mechanism is not None and not isinstance(number.number, PublicNumber)
    )
