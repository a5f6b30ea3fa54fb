"""Questions that wait in the queue: what becomes of them, and a button that cancels them."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act
from lapwing.server.console.ask.question import QuestionForm, question_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem

HERE: Final = "/console/questions"
ONE: Final = f"{HERE}/{{query}}"
MOST: Final = 50
PAUSE: Final = 2
"""Seconds between two looks at a question that waits or runs."""
OPEN: Final = ("waiting", "running")


async def show(visit: PageRequest) -> Response:
    """List questions in the queue, and those that were there: one's own, or with the right to it, everybody's."""
    everybody = visit.asked("everybody") == "1"
    query = {"everybody": "true" if everybody else None}
    found = await listed(visit, "queries", texts=_texts, most=MOST, query=query)
    return visit.show("queue/page.html", jobs=found.items, everybody=everybody, found=found)


def _texts(job: Any) -> tuple[object, ...]:
    """Return the texts of a query in the queue in which words are looked for."""
    return job["request"].get("label"), job["request"]["sql"], job["dataset"], job["person"], job["status"]


async def follow(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show what has become of a question; lead to its answer once it is there."""
    job = await visit.api.get("queries", visit.part("query"))
    if job["answer"] is not None and refused is None:
        return redirect(f"/console/answers/{segment(job['answer'])}?done=asked")
    waits, question = job["status"] in OPEN, question_of(job["request"])
    return visit.show(
        "queue/question.html",
        refused["status"] if refused else 200,
        dataset=job["dataset"],
        job=job,
        question=question,
        deadline=await _deadline(visit, job, question) if waits else None,
        pause=PAUSE if waits else None,
        refused=refused,
    )


async def _deadline(visit: PageRequest, job: Mapping[str, Any], question: QuestionForm) -> float | None:
    """Return how long after its turn an answer leaves, if at a deadline: that is public, and free to ask for."""
    if job["person"] != visit.caller.name:  # others are told what holds for themselves
        return None
    try:
        reply = await visit.api.send("POST", "datasets", job["dataset"], "explain", body=question.priced)
    except ApiRefusal:
        return None
    deadline: float | None = reply.document.get("deadline")
    return deadline


async def cancel(visit: PageRequest) -> Response:
    """Cancel a question."""
    query = visit.part("query")
    return await act(visit, visit.api.send("DELETE", "queries", query), f"{HERE}/{segment(query)}", follow)


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("everybody", "after", SEARCH)),
    ConsolePage(method="GET", path=ONE, handle=follow),
    ConsolePage(method="POST", path=f"{ONE}/cancel", handle=cancel),
)
