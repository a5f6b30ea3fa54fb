"""From priced questions to answers: release their numbers, after the searches for their bounds where they have some."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.answer import Answer
from lapwing.privacy.measures import Loss
from lapwing.query.plan import Question
from lapwing.release.notes import notes_of
from lapwing.release.release import release_all
from lapwing.release.request import Access, Release, Request
from lapwing.release.searches import after_searches, searched, settled


def answer_all(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    """Answer questions: all are charged, or none; one that stands there twice, once.

    Guarantee, Raises: as `release_all`.
    """
    # Before anything is paid: whatever could go wrong here costs nothing.
    notes = [notes_of(request.plan, request.priced) for request in requests]
    if any(request.priced.searches for request in requests):
        return _answers_after_searches(requests, access)
    return _answers(requests, notes, _released(requests, access), {})


def _answers_after_searches(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    bounds = searched([request.priced for request in requests], access)
    with after_searches(bounds.values()):
        found = [settled(request, bounds, access) for request in requests]
        notes = [(*notes_of(request.plan, request.priced), *said) for request, said in found]
        released = _released([request for request, _ in found], access)
    # With the searches of each again, of which settled questions know nothing: they are a part of its cost.
    paid = [
        replace(request, priced=replace(request.priced, searches=before.priced.searches))
        for (request, _), before in zip(found, requests, strict=True)
    ]
    return _answers(paid, notes, released, bounds)


def _released(requests: Sequence[Request], access: Access) -> Sequence[Release]:
    """Return the released numbers of each request: of a question that stands there twice, the same."""
    if len(requests) == 1:  # without hashing its plan, which takes a part of all that a small question does
        return release_all([requests[0].priced], access)
    distinct = {request.priced.question: request.priced for request in requests}
    released = dict(zip(distinct, release_all(tuple(distinct.values()), access), strict=True))
    return [released[request.priced.question] for request in requests]


def _answers(
    requests: Sequence[Request],
    notes: Sequence[Sequence[str]],
    released: Sequence[Release],
    searches: Mapping[Question, Release],
) -> tuple[Answer, ...]:
    """Return answers, each charged what it was the first to need: it is free a second time."""
    charged: list[Release] = []

    def taken(numbers: Release) -> Release:
        if any(numbers is other for other in charged):
            return replace(numbers, cost=numbers.cost.nothing(), stored=True)
        charged.append(numbers)
        return numbers

    answers = []
    for request, said, numbers in zip(requests, notes, released, strict=True):
        priced = request.priced
        parts = [taken(numbers), *(taken(searches[search.question]) for search in priced.searches)]
        cost = sum_of([part.cost for part in parts])
        # What each measure took of the price is known only if all of it was paid now.
        whole = priced.together
        shares = [term.loss(whole.kind).amount / whole.amount for term in priced.terms] if cost == whole else None
        answers.append(
            Answer(
                plan=request.plan,
                mechanisms=numbers.mechanisms,
                keys=numbers.keys,
                values=numbers.values,
                cost=cost,
                stored=all(part.stored for part in parts),
                notes=said,
                shares=shares,
                entries=[part.sequence for part in parts],
            )
        )
    return tuple(answers)


def sum_of(losses: Sequence[Loss]) -> Loss:
    """Add up losses of one measure."""
    return losses[0].from_amount(sum((loss.amount for loss in losses), Fraction(0)))
