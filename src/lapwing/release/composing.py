"""Questions over the answers to others: what is asked in their place, and what they are answered with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lapwing.answer import Answer, Note
from lapwing.answer.notes import NO_POSSIBLE_ROWS
from lapwing.errors import QueryRefused
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.derived import values_in
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan.composition import impossible_in
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.joint_price import calibrate_found, found_together
from lapwing.query.pricing.quote import Quote
from lapwing.release.answering import (
    answer_all,
    answers_of,
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
        requests, answers = _answered_after_searches(requests, asked, access)
    else:
        every = [leaf for leaves in asked for leaf in leaves]
        answers = answer_all(every, access) if every else ()  # over only public rows, no question is asked
    each = iter(answers)
    return tuple(_made(request.plan, each, request.priced.loss.nothing())[0] for request in requests)


def _answered_after_searches(
    requests: Sequence[Request], asked: Sequence[Sequence[Request]], access: Access
) -> tuple[list[Request], tuple[Answer, ...]]:
    """Return questions with the bounds and constants that were found for them, and the answers in their place."""
    before = [leaf for leaves in asked for leaf in leaves]
    if not access.timing.trusted:
        require_bounded_work(before, access)
    require_usable(before, access)
    access = replace(access, wording=wordings_of(before))
    found = searched([leaf.priced for leaf in before], access)
    with after_searches(found.values()):
        known = [_settled(request, leaves, found, access) for request, leaves in zip(requests, asked, strict=True)]
        for request in known:
            try_showing(request.plan, request.priced)
        settled = [leaf for request in known for leaf in in_place_of(request)]
        plans, quotes = [leaf.plan for leaf in settled], [leaf.priced for leaf in settled]
        together = found_together(plans, quotes, access.catalog.budget)
        settled = [replace(leaf, priced=quote) for leaf, quote in zip(settled, together, strict=True)]
        notes = [
            (*notes_of(leaf, access), *notes_after(first.plan, found))
            for leaf, first in zip(settled, before, strict=True)
        ]
        numbers = released(settled, replace(access, wording=wordings_of(settled)))
    paid = [
        replace(leaf, priced=replace(leaf.priced, searches=first.priced.searches))
        for leaf, first in zip(settled, before, strict=True)
    ]
    return known, answers_of(paid, notes, numbers, found, access)


def _settled(request: Request, leaves: Sequence[Request], found: Mapping[Question, Release], access: Access) -> Request:
    """Return a question with what was found, at the prices of before."""
    if not any(leaf.priced.searches for leaf in leaves):
        return request
    plan, budget = rebound(request, [leaf.plan for leaf in leaves], found, access), access.catalog.budget
    plans = list(_leaves(plan))
    each = [calibrate_found(one, budget, before.priced) for one, before in zip(plans, leaves, strict=True)]
    found_quotes = iter(found_together(plans, each, budget))

    def quote(plan: Plan) -> Quote:
        if plan.composition is None:
            return next(found_quotes)
        sources = tuple(map(quote, plan.composition.sources))
        return Quote(question=plan.question, terms=(), loss=request.priced.loss.nothing(), sources=sources)

    return replace(request, plan=plan, priced=quote(plan))


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


def notes_on_empty(plan: Plan) -> list[str]:
    """Say why a result is empty, or one that it is made of."""
    words = "the result is empty in any data: WHERE or a joined public table leaves no value of {}"
    return [Note(words.format(named), NO_POSSIBLE_ROWS) for named in impossible_in(plan)]


def _made(plan: Plan, answers: Iterator[Answer], nothing: Loss) -> tuple[Answer, list[Answer]]:
    """Return the answer to a plan, and those to its leaves: public rows have none, and cost nothing."""
    if plan.composition is None:
        answer = next(answers)
        return answer, [answer]
    made = [_made(source, answers, nothing) for source in plan.composition.sources]
    leaves = [leaf for _, of_source in made for leaf in of_source]
    answer = Answer(
        plan=plan,
        mechanisms=(),
        values=(),
        keys=(),
        cost=sum_of([nothing, *(leaf.cost for leaf in leaves)]),
        stored=bool(leaves) and all(leaf.stored for leaf in leaves),
        notes=tuple(dict.fromkeys([*(note for leaf in leaves for note in leaf.notes), *notes_on_empty(plan)])),
        entries=sorted({entry for leaf in leaves for entry in leaf.entries}),
        sources=[source for source, _ in made],
        delta=leaves[0].delta if leaves else None,
    )
    try:
        len(answer)
    except QueryRefused as refused:  # too many rows, which nobody knew
        refused.searches_charged = True
        raise
    return answer, leaves
