"""What people may ask whose time is not trusted: questions to which no unit adds much work, or that are stored.

How long an answer takes is a function of the data. For people who may be after one person's data, questions are refused
in which one unit can multiply it (`query.work`), and those in which different units meet: how many do is what the data
say. That is decided by plan, catalog and ledger alone, before anything is charged. What somebody else has bought is
served to everybody: nothing is computed for it.
"""

from collections.abc import Sequence
from dataclasses import replace

from lapwing.catalog.protection import noun_of
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.plan.plan import Plan
from lapwing.query.plan.work import MULTIPLE, Work, work_of
from lapwing.release.request import Access, Request
from lapwing.release.usable import is_stored


def require_bounded_work(requests: Sequence[Request], access: Access) -> None:
    """Refuse questions, of which those that are not stored take a time that may tell about somebody, all together.

    Raises:
        QueryRefused: With the reason and what to do instead; nothing was charged.
    """
    if _refusal(requests) is None:
        return
    refusal = _refusal([request for request in requests if not is_stored(request, access)])
    if refusal is not None:
        raise refusal


def _measured(request: Request) -> Plan:
    """Return a plan with what is measured in the place of its numbers."""
    vector = request.priced.vector
    return request.plan if vector is None else replace(request.plan, question=vector.bought.question)


def _refusal(requests: Sequence[Request]) -> QueryRefused | None:
    noun = noun_of([table for request in requests for table in request.plan.question.lineage])
    if any(request.plan.question.units_of_row > 1 for request in requests):
        return QueryRefused(
            "The time of a join of several people's rows depends on the data, and only people whom the curator trusts "
            "with time may see it",
            cause=RefusalCause.TIME_DEPENDS_ON_DATA,
            remedy=f"Join on {noun} too.",
            curator_remedy="give you a grant that trusts you with time",
        )
    each = [work_of(_measured(request)) for request in requests]
    work = Work(most=sum(one.most for one in each), reading=max((one.reading for one in each), default=1))
    if not work.excessive:
        return None
    return QueryRefused(
        f"One {noun} can make this take {work.ratio:,.0f} times as long as it takes to read its own rows, which could "
        f"be read off the clock. To people whom the curator does not trust with time, {MULTIPLE} times are answered, "
        "or 1 ms if that is more",
        cause=RefusalCause.TIME_DEPENDS_ON_DATA,
        remedy=f"Join the rows of one {noun} with fewer copies of themselves, or pad and repeat texts less. Use "
        "patterns with fewer repetitions, or fewer windows, grouping sets and queries at a time.",
        curator_remedy=f"give you a grant that trusts you with time, or declare fewer rows per {noun} or shorter texts",
    )
