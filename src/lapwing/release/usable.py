"""Questions that are refused for their own sake: hardly anybody would want what they cost.

That is decided by plan, catalog and ledger alone, before anything is charged. What was bought before is served: it is
free.
"""

from collections.abc import Sequence

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.conversion import DECLARE_BOUNDS
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan
from lapwing.release.request import Access, Release, Request
from lapwing.release.searches import settled, stored_searches
from lapwing.release.stored import look_up
from lapwing.release.verdicts import unusable

REMEDY = "Say what is plausible: AVG(x, contribution_bounds_per_row => (0, 40))."


def require_usable(requests: Sequence[Request], access: Access) -> None:
    """Refuse sums and means of formulas of columns without bounds, which may be in the millions in theory alone.

    Raises:
        QueryRefused: With the reason and what to write instead; nothing was charged.
    """
    for request in requests:
        refused = refusal_of(request.plan)
        if refused is not None and not is_stored(request, access):
            cause = RefusalCause.BOUNDS_TOO_WIDE
            raise QueryRefused(refused, cause=cause, remedy=REMEDY, curator_remedy=DECLARE_BOUNDS)


def refusal_of(plan: Plan) -> str | None:
    """Return why a question would be refused, if it was not bought before; None if it would not."""
    return next(map(str, unusable(plan)), None)


def is_stored(request: Request, access: Access) -> bool:
    """Tell whether the answer, and those of the searches before it, were bought before."""
    if request.priced.searches:
        bounds = stored_searches(request.priced, access.ledger)
        if len(bounds) < len({search.question for search in request.priced.searches}):
            return False
        request, _ = settled(request, bounds, access)
    if not plans_asked(request.plan):  # constants left it no cell
        return True
    return isinstance(look_up(request.priced, access.ledger.answers, access), Release)
