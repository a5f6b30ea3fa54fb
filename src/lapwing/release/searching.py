"""Questions that leave bounds to be found, and their answers."""

from collections.abc import Sequence
from dataclasses import replace

from lapwing.answer import Answer
from lapwing.catalog.model import Budget
from lapwing.query.pricing.joint_price import found_together
from lapwing.release.answering import answers_of, notes_of, released, wordings_of
from lapwing.release.request import Access, Request
from lapwing.release.searches import after_searches, searched, settled
from lapwing.release.trial import try_showing

Found = tuple[Request, tuple[str, ...]]
"""A question with the bounds that were found for it, and what is said of them."""


def answers_after_searches(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    """Answer questions of which some leave bounds to be found: first the searches, then the questions with them.

    Guarantee:
        As `answer_all`.

    Raises:
        LapwingError: As `answer_all`.
    """
    bounds = searched([request.priced for request in requests], access)
    with after_searches(bounds.values()):
        found = _together([settled(request, bounds, access) for request in requests], access.catalog.budget)
        notes = [(*notes_of(request, access), *said) for request, said in found]
        asked = [request for request, _ in found]
        for request in asked:
            try_showing(request.plan, request.priced)
        numbers = released(asked, replace(access, wording=wordings_of(asked)))
    # With the searches of each again, of which settled questions know nothing: they are a part of its cost.
    paid = [
        replace(request, priced=replace(request.priced, searches=before.priced.searches))
        for (request, _), before in zip(found, requests, strict=True)
    ]
    return answers_of(paid, notes, numbers, bounds, access)


def _together(found: Sequence[Found], budget: Budget) -> list[Found]:
    quotes = found_together([request.plan for request, _ in found], [request.priced for request, _ in found], budget)
    return [(replace(request, priced=quote), said) for (request, said), quote in zip(found, quotes, strict=True)]
