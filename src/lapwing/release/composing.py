"""Questions over the answers to others, or after searches and constants: what is asked, and how it is answered.

Searches for bounds and constants are asked first. They may leave a question no cell. Then its result is empty in any
data, so that it is not asked, and costs only what was asked first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapwing.answer import Answer, Note
from lapwing.answer.notes import NO_POSSIBLE_ROWS
from lapwing.catalog.model import Budget
from lapwing.errors import QueryRefused
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.derived import values_in
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan.composition import impossible_in, plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.joint_price import calibrate_found, composed_of, found_together
from lapwing.query.pricing.quote import Quote
from lapwing.release.answering import (
    answer_all,
    answers_of,
    by_declaration,
    notes_of,
    released,
    sum_of,
    wordings_of,
)
from lapwing.release.bounded_work import require_bounded_work
from lapwing.release.request import Access, Release, Request
from lapwing.release.searches import after_searches, notes_after, rebound, searched, stored_searches
from lapwing.release.trial import try_showing
from lapwing.release.usable import require_usable
from lapwing.release.verdicts import notes_on_rows


def answer_composed(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    """Answer questions of which some are over the answers to others: all are charged together, or none.

    Guarantee:
        Nothing but the questions in their place touches data; what follows is post-processing.

    Raises:
        LapwingError: As `answer_all`.
        QueryRefused: With all charged and kept, for a join of private keys with too many rows.
    """
    asked = [tuple(in_place_of(request)) for request in requests]
    if any(leaf.priced.searches for leaves in asked for leaf in leaves):
        requests, answers, empty = _answered_after_searches(requests, asked, access)
    else:
        every = [leaf for leaves in asked for leaf in leaves]
        answers, empty = answer_all(every, access) if every else (), ()  # of only public rows, no question is asked
    each = iter(answers)
    return tuple(_made(request.plan, each, request.priced.loss.nothing(), empty)[0] for request in requests)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a plan, once all that it was to be asked with was found: a leaf, or one that constants left no cell.

    Args:
        before: The leaves that stood there before.
    """

    before: tuple[Request, ...]
    plan: Plan

    @property
    def is_empty(self) -> bool:
        """Whether it is asked no more."""
        return self.plan.composition is not None


def _parts(before: Plan, leaves: Iterator[Request], after: Plan) -> Iterator[_Part]:
    """Yield the parts of a plan whose bounds and constants were found.

    Args:
        leaves: Of the plan before that.
    """
    if before.composition is not None and after.composition is not None and plans_asked(after):
        for sources in zip(before.composition.sources, after.composition.sources, strict=True):
            yield from _parts(sources[0], leaves, sources[1])
        return
    stood = tuple(next(leaves) for _ in _leaves(before))
    if stood:
        yield _Part(stood, after)


def _answered_after_searches(
    requests: Sequence[Request], asked: Sequence[Sequence[Request]], access: Access
) -> tuple[list[Request], Sequence[Answer], Sequence[Plan]]:
    """Return questions with the bounds and constants that were found for them, and the answers to their parts.

    Returns:
        Also the parts that are empty, as the constants left them no cell.
    """
    before = [leaf for leaves in asked for leaf in leaves]
    if not access.timing.trusted:
        require_bounded_work(before, access)
    require_usable(before, access)
    if access.timing.pays:  # what goes wrong here costs nothing
        for leaf in before:
            notes_of(leaf, access)
    access = replace(access, wording=wordings_of(before))
    found = searched([leaf.priced for leaf in before], access)
    with after_searches(found.values()):
        known = [_settled(request, leaves, found, access) for request, leaves in zip(requests, asked, strict=True)]
        for request in known:
            try_showing(request.plan, request.priced)
        parts = [
            part
            for request, leaves, after in zip(requests, asked, known, strict=True)
            for part in _parts(request.plan, iter(leaves), after.plan)
        ]
        first = [part.before[0] for part in parts if not part.is_empty]
        settled = [leaf for request in known for leaf in in_place_of(request)]
        plans, quotes = [leaf.plan for leaf in settled], [leaf.priced for leaf in settled]
        together = found_together(plans, quotes, access.catalog.budget)
        settled = [replace(leaf, priced=quote) for leaf, quote in zip(settled, together, strict=True)]
        notes = [
            tuple(
                dict.fromkeys(
                    [*notes_of(leaf, access), *notes_on_first(earlier.plan), *notes_after(earlier.plan, found)]
                )
            )
            for leaf, earlier in zip(settled, first, strict=True)
        ]
        numbers = released(settled, replace(access, wording=wordings_of(settled))) if settled else ()
    # With the searches of each again, of which settled questions know nothing: they are a part of its cost.
    paid = [
        replace(leaf, priced=replace(leaf.priced, searches=earlier.priced.searches))
        for leaf, earlier in zip(settled, first, strict=True)
    ]
    each, charged = iter(answers_of(paid, notes, numbers, found, access)), {one.question for one in _searches_of(paid)}
    answers = []
    for part in parts:
        answers.append(_empty(part, found, charged, access.catalog.budget) if part.is_empty else next(each))
        charged |= {one.question for one in _searches_of(part.before)}
    return known, answers, [part.plan for part in parts if part.is_empty]


def _searches_of(requests: Sequence[Request]) -> list[Quote]:
    return [search for request in requests for search in request.priced.searches]


def _empty(part: _Part, found: Mapping[Question, Release], charged: Collection[Question], budget: Budget) -> Answer:
    """Return the answer to a part that was left no cell: it costs what was asked first, unless that is charged."""
    questions = dict.fromkeys(search.question for search in _searches_of(part.before))
    mine = [found[question] for question in questions if question not in charged]
    nothing = part.before[0].priced.loss.nothing()
    said = [note for leaf in part.before for note in (*notes_on_first(leaf.plan), *notes_after(leaf.plan, found))]
    sources = () if part.plan.composition is None else part.plan.composition.sources
    return Answer(
        plan=part.plan,
        mechanisms=(),
        values=(),
        keys=(),
        cost=sum_of([nothing, *(release.cost for release in mine)]),
        stored=all(release.stored for release in mine),
        notes=tuple(dict.fromkeys([*said, *notes_on_composed(part.plan)])),
        entries=sorted({found[question].sequence for question in questions}),
        sources=[_made(source, iter(()), nothing)[0] for source in sources],
        delta=budget.delta - budget.delta_keys,
    )


def _settled(request: Request, leaves: Sequence[Request], found: Mapping[Question, Release], access: Access) -> Request:
    """Return a question with what was found, at the prices of before."""
    if not any(leaf.priced.searches for leaf in leaves):
        return request
    plan, budget = rebound(request, [leaf.plan for leaf in leaves], found, access), access.catalog.budget
    parts = [part for part in _parts(request.plan, iter(leaves), plan) if not part.is_empty]
    each = [calibrate_found(part.plan, budget, part.before[0].priced) for part in parts]
    found_quotes = iter(found_together([part.plan for part in parts], each, budget))
    priced = composed_of(plan, lambda _: next(found_quotes), request.priced.loss.nothing())
    return replace(request, plan=plan, priced=priced)


def settled_if_stored(request: Request, access: Access) -> Request:
    """Return a question with the bounds and constants that its answers need, if all of them were bought before."""
    leaves = tuple(in_place_of(request))
    needed = {search.question: search for leaf in leaves for search in leaf.priced.searches}
    found = {
        answer.question: answer for leaf in leaves for answer in stored_searches(leaf.priced, access.ledger).values()
    }
    return _settled(request, leaves, found, access) if needed and len(found) == len(needed) else request


def in_place_of(request: Request) -> Iterator[Request]:
    """Yield what is asked in the place of a question, in the order of its leaves: itself, if it touches data."""
    if request.plan.composition is None:
        yield request
        return
    for source, quote in zip(request.plan.composition.sources, request.priced.sources, strict=True):
        yield from in_place_of(replace(request, plan=source, priced=quote))


def _leaves(plan: Plan) -> Iterator[Plan]:
    """Yield the plans that touch data, in the order of `in_place_of`."""
    if plan.composition is None:
        yield plan
        return
    for source in plan.composition.sources:
        yield from _leaves(source)


def source_columns(plan: Plan, value: Derived) -> Iterator[tuple[Plan, Derived]]:
    """Yield the columns of leaves that a value is computed from, each with its leaf."""
    if plan.composition is None:
        yield plan, value
        return
    for inner in values_in(value):
        for one in inner.values if isinstance(inner, UnionValue) else (inner,):
            if isinstance(one, SourceValue):
                yield from source_columns(plan.composition.sources[one.source], one.value)


def notes_on_first(plan: Plan) -> list[str]:
    """Say what is clamped, and which rows are in no group, of what is asked before a plan."""
    return [note for constant in plan.constants for note in by_declaration(constant)]


def notes_on_composed(plan: Plan) -> list[str]:
    """Say why a result is empty, or one that it is made of; and which rows its functions take."""
    words = "the result is empty for any data, because no value of {} in the catalog meets WHERE and the joins"
    empty = [Note(words.format(named), NO_POSSIBLE_ROWS) for named in impossible_in(plan)]
    return [*empty, *(notes_on_rows(plan, plans_asked(plan)) if plan.composition is not None else ())]


def _made(
    plan: Plan, answers: Iterator[Answer], nothing: Loss, empty: Sequence[Plan] = ()
) -> tuple[Answer, list[Answer]]:
    """Return the answer to a plan, and those to its parts: public rows have none, and cost nothing."""
    if plan.composition is None or any(plan is part for part in empty):
        answer = next(answers)
        return answer, [answer]
    made = [_made(source, answers, nothing, empty) for source in plan.composition.sources]
    leaves = [leaf for _, of_source in made for leaf in of_source]
    answer = Answer(
        plan=plan,
        mechanisms=(),
        values=(),
        keys=(),
        cost=sum_of([nothing, *(leaf.cost for leaf in leaves)]),
        stored=bool(leaves) and all(leaf.stored for leaf in leaves),
        notes=tuple(dict.fromkeys([*(note for leaf in leaves for note in leaf.notes), *notes_on_composed(plan)])),
        entries=sorted({entry for leaf in leaves for entry in leaf.entries}),
        sources=[source for source, _ in made],
        delta=leaves[0].delta if leaves else None,
        dictionary=leaves[0].dictionary if leaves else None,
    )
    try:
        len(answer)
    except QueryRefused as refused:  # too many rows, which nobody knew
        refused.searches_charged = True
        raise
    return answer, leaves
