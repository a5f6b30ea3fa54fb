"""What one has bought, to be opened again for nothing; and what was charged, to oneself or, for auditors, all."""

from collections.abc import Iterator
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.ask.question import question_of, single
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.visits import ConsolePage, PageRequest

ANSWERS, CHARGES = 50, 200
QUERY: Final = ("after", SEARCH)


async def show(visit: PageRequest) -> Response:
    """List one's answers, the newest first."""
    dataset = visit.part("dataset")
    found = await listed(visit, "datasets", dataset, "answers", texts=_texts, most=ANSWERS)
    answers = [{**one, "request": single(one["request"])} for one in found.items]
    links = {answer["id"]: question_of(answer["request"]).link for answer in answers if "sql" in answer["request"]}
    return visit.show(
        "history/page.html",
        dataset=dataset,
        answers=answers,
        links=links,
        found=found,
    )


def _texts(answer: Any) -> Iterator[object]:
    """Yield the texts of an answer in which words are looked for."""
    request = single(answer["request"])
    yield from (request.get("label"), request.get("sql"))
    yield from (one["sql"] for one in request.get("questions", ()))


async def charges(visit: PageRequest) -> Response:
    """List what was charged, in order."""
    dataset, key = visit.part("dataset"), "sequence"
    found = await listed(visit, "datasets", dataset, "history", texts=_charge_texts, most=CHARGES, key=key)
    budget = await visit.api.get("datasets", dataset, "budget")
    return visit.show(
        "history/charges.html",
        dataset=dataset,
        charges=found.items,
        total=float(budget["total"]["amount"]),
        found=found,
    )


def _charge_texts(charge: Any) -> tuple[object, ...]:
    return charge["label"], charge["text"], charge["question"], charge["principal"]


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/history", handle=show, query=QUERY),
    ConsolePage(method="GET", path="/console/data/{dataset}/charges", handle=charges, query=QUERY),
)
