"""What one has bought, to be opened again for nothing; and what was charged, to oneself or, for auditors, all."""

from typing import Final

from starlette.responses import Response

from lapwing.server.console.ask.question import question_of, single
from lapwing.server.console.visits import ConsolePage, PageRequest

ANSWERS, CHARGES = 50, 200
QUERY: Final = ("after",)


async def show(visit: PageRequest) -> Response:
    """List one's answers, the newest first."""
    dataset = visit.part("dataset")
    asked = {"limit": ANSWERS, "after": visit.asked("after") or None}
    reply = await visit.api.send("GET", "datasets", dataset, "answers", query=asked)
    answers = [{**one, "request": single(one["request"])} for one in reply.document]
    links = {answer["id"]: question_of(answer["request"]).link for answer in answers if "sql" in answer["request"]}
    return visit.show(
        "history/page.html",
        dataset=dataset,
        answers=answers,
        links=links,
        following=answers[-1]["id"] if answers and reply.following else None,
    )


async def charges(visit: PageRequest) -> Response:
    """List what was charged, in order."""
    dataset, after = visit.part("dataset"), visit.asked("after", "0")
    reply = await visit.api.send("GET", "datasets", dataset, "history", query={"limit": CHARGES, "after": after})
    budget = await visit.api.get("datasets", dataset, "budget")
    rows = reply.document
    return visit.show(
        "history/charges.html",
        dataset=dataset,
        charges=rows,
        total=float(budget["total"]["amount"]),
        following=rows[-1]["sequence"] if rows and reply.following else None,
    )


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/history", handle=show, query=QUERY),
    ConsolePage(method="GET", path="/console/data/{dataset}/charges", handle=charges, query=QUERY),
)
