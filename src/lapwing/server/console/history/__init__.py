"""What one has bought, to be opened again for nothing; and what was charged, to oneself or, for auditors, all."""

from collections.abc import Iterator
from typing import Any, Final

from starlette.responses import Response

from lapwing.documents.budget_document import history_of
from lapwing.ledger.charged_queries import refining
from lapwing.privacy.amounts import read
from lapwing.server.console.ask.question import question_of, single
from lapwing.server.console.days import DAYS, days_of, yesterday
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
    """List what was charged, in order; of some days, if they are asked for."""
    dataset, days = visit.part("dataset"), days_of(visit)
    belongs = (lambda charge: days.holds(charge["time"])) if days.chosen else None
    found = await listed(
        visit,
        "datasets",
        dataset,
        "history",
        texts=_charge_texts,
        most=CHARGES,
        key="sequence",
        belongs=belongs,
    )
    budget = await visit.api.get("datasets", dataset, "budget")
    delta = read(budget["guarantee"]["delta"], "delta") - read(budget["delta_keys"], "delta_keys")
    charged = history_of(found.items)
    finer, total = refining(charged), float(budget["total"]["amount"])
    raises = await _raises(visit, dataset) if budget["earlier"] else []
    return visit.show(
        "history/charges.html",
        dataset=dataset,
        charges=[
            {
                **row,
                "epsilon": one.loss.to_epsilon(delta=delta),
                "refines": one.sequence in finer,
                "total_then": _total_at(one.sequence, raises, total),
            }
            for row, one in zip(found.items, charged, strict=True)
        ],
        total=total,
        budget=budget,
        found=found,
        days=days,
        yesterday=yesterday(),
    )


async def _raises(visit: PageRequest, dataset: str) -> list[Any]:
    """Return the raises of the budget, the oldest first; none to who may not see the ledger."""
    if not visit.caller.at(dataset).may("audit"):
        return []
    versions = await visit.api.get("datasets", dataset, "versions")
    return list(reversed(versions["raises"]))


def _total_at(sequence: int, raises: list[Any], total: float) -> float:
    """Return the budget, as the ledger counts it, when an entry was written.

    >>> raises = [{"sequence": 5, "was_total": {"amount": "1"}}, {"sequence": 9, "was_total": {"amount": "2"}}]
    >>> [_total_at(sequence, raises, 4.0) for sequence in (3, 7, 10)]
    [1.0, 2.0, 4.0]
    """
    return next((float(one["was_total"]["amount"]) for one in raises if sequence < one["sequence"]), total)


def _charge_texts(charge: Any) -> tuple[object, ...]:
    return charge["label"], charge["text"], charge["question"], charge["principal"]


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/history", handle=show, query=QUERY),
    ConsolePage(method="GET", path="/console/data/{dataset}/charges", handle=charges, query=(*QUERY, *DAYS)),
)
