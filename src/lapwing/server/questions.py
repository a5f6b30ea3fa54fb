"""Routes of those who ask: data sets, prices, answers, budgets, history."""

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from lapwing.budget import AllowanceView, BudgetView
from lapwing.builder.opened import names_of
from lapwing.builder.relations import Named
from lapwing.documents.budgets import account_document, history_document
from lapwing.documents.previews import preview_document
from lapwing.errors import InvalidParameter
from lapwing.ledger.allowances import Allowance
from lapwing.ledger.reading import HistoryRow
from lapwing.privacy.amounts import probability, read
from lapwing.server.answers import Kept
from lapwing.server.bodies import Asked, AskedTogether, Previewed
from lapwing.server.datasets import Served, schema_document
from lapwing.server.people import missing
from lapwing.server.rights import Caller
from lapwing.server.service import Service
from lapwing.session import Session

ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
MOST_LISTED: Final = 1_000
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")]
Confidence = Annotated[str | None, Query(max_length=50, description="Of the intervals; as it was asked unless given.")]
ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The answer, as JSON or as an Arrow stream, by the Accept header.", "content": {ARROW: {}}}
}


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["questions"])
    reader, asker = Depends(service.callers.demand("read")), Depends(service.callers.demand("ask"))

    async def seen(caller: Caller, dataset: str) -> Served:
        """Return a data set that somebody may see.

        At once if that takes no more than a look at a file. Else in a thread, so that nobody else waits: for a database
        over a network, or until a data set is open that is being registered.
        """
        known = service.datasets.known(caller, dataset) if service.people.near else None
        if known is not None:
            return known
        return await run_in_threadpool(service.datasets.visible, caller, dataset)

    async def kept_answer(caller: Caller, answer: str) -> tuple[Served, Kept]:
        """Return an answer that somebody may see, and its data set."""
        kept = await run_in_threadpool(service.answers.find, answer)  # it may be long
        if kept is None or not (kept.person == caller.name or caller.may("audit")):
            raise missing("answer")
        return await seen(caller, kept.dataset), kept

    @router.get("/datasets")
    def list_datasets(caller: Caller = reader) -> list[dict[str, Any]]:
        """List the data sets that one may see."""
        return [{"name": served.name} for served in service.datasets.all_visible(caller)]

    @router.get("/datasets/{dataset}")
    def describe(dataset: str, caller: Caller = reader) -> dict[str, Any]:
        """Say what is public about a data set."""
        served = service.datasets.visible(caller, dataset)
        return schema_document(served.name, served.session.catalog) | {"relations": _relations(served.session)}

    @router.post("/datasets/{dataset}/explain")
    def explain(dataset: str, body: Previewed, caller: Caller = reader) -> dict[str, Any]:
        """Price a question, and say what is left for the caller: free, and no row is read."""
        served = service.datasets.visible(caller, dataset)
        with service.callers.pricing(caller):
            preview = served.for_caller(caller, service.policies).explain(
                body.sql, body.values(), **body.prices(), assuming_count=body.assuming_count
            )
        return preview_document(preview, served.session.catalog.budget.neighbouring)

    @router.post("/datasets/{dataset}/query", responses=ANSWER)
    async def query(
        dataset: str, body: Asked, request: Request, caller: Caller = asker, idempotency_key: Key = None
    ) -> Response:
        """Answer a question and charge it; the same question again is free."""
        served = await seen(caller, dataset)
        (kept,) = await service.asking.ask(caller, served, body, idempotency_key, lambda: hung_up(request))
        return answer_response(kept, request)

    @router.post("/datasets/{dataset}/batch")
    async def batch(
        dataset: str, body: AskedTogether, request: Request, caller: Caller = asker, idempotency_key: Key = None
    ) -> dict[str, Any]:
        """Answer several questions at one price: all are charged, or none."""
        served = await seen(caller, dataset)
        kept = await service.asking.ask(caller, served, body, idempotency_key, lambda: hung_up(request))
        return {"answers": [answer_shown(one) for one in kept]}

    @router.get("/datasets/{dataset}/answers")
    def list_answers(dataset: str, caller: Caller = reader) -> list[dict[str, Any]]:
        """List one's own answers, the newest first."""
        served = service.datasets.visible(caller, dataset)
        return service.answers.of(caller.name, served.name, MOST_LISTED)

    @router.get("/answers/{answer}", responses=ANSWER)
    async def reopen(answer: str, request: Request, caller: Caller = reader, confidence: Confidence = None) -> Response:
        """Open an answer again, as it was shown, or with intervals of another confidence; free."""
        served, kept = await kept_answer(caller, answer)
        if confidence is None:
            return answer_response(kept, request)
        level = _confidence(confidence)
        again = await service.asking.reopen(caller, served, kept, level, lambda: hung_up(request))
        return answer_response(again, request)

    @router.get("/answers/{answer}/consistent", responses=ANSWER)
    async def consistent(answer: str, request: Request, caller: Caller = reader) -> Response:
        """Return the rows of an answer with numbers that can be true together; free."""
        served, kept = await kept_answer(caller, answer)
        view = await service.asking.made_consistent(caller, served, kept, lambda: hung_up(request))
        return answer_response(view, request)

    @router.get("/datasets/{dataset}/budget")
    def budget(dataset: str, caller: Caller = reader) -> dict[str, Any]:
        """Say what is granted, spent and left, and what of it the caller may use."""
        served = service.datasets.visible(caller, dataset)
        view = served.session.budget()
        limits = service.policies.limits(served.name, caller.name, served.session.price)
        allowances = tuple(_allowance(allowance, view) for allowance in limits.allowances)
        own = _own_view(view, caller)
        within = replace(own, allowances=allowances, most=limits.most, stopped_by_curator=limits.stopped)
        return account_document(within)

    @router.get("/datasets/{dataset}/history")
    def history(dataset: str, caller: Caller = reader) -> list[dict[str, Any]]:
        """List one's own charges; to auditors and curators, everybody's."""
        served = service.datasets.visible(caller, dataset)
        return [history_document(row) for row in _own_history(served.session.budget(), caller)]

    return router


def answer_response(kept: Kept, request: Request) -> Response:
    """Return an answer in the form that is asked for: an Arrow stream, or else JSON."""
    if ARROW in request.headers.get("accept", ""):
        return Response(kept.arrow, media_type=ARROW, headers={"X-Answer": kept.id})
    return JSONResponse(answer_shown(kept))


def answer_shown(kept: Kept) -> dict[str, Any]:
    """Return an answer as a document."""
    return {"id": kept.id, "dataset": kept.dataset, "created": kept.created, **kept.document}


async def hung_up(request: Request) -> None:
    """Wait until the caller has closed the connection; to be called when the body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _relations(session: Session) -> list[dict[str, Any]]:
    """Return what a question may begin with: the columns of every table and view, and which of them is the unit."""
    begun = [session.table(name).relation for name in names_of(session.catalog)]
    return [{"name": one.name, "columns": one.names, "unit": one.unit} for one in begun if isinstance(one, Named)]


def _own_history(view: BudgetView, caller: Caller) -> tuple[HistoryRow, ...]:
    return tuple(row for row in view.history if caller.may("audit") or row.principal == caller.name)


def _own_view(view: BudgetView, caller: Caller) -> BudgetView:
    """Return a budget with what the caller may know of others: the total."""
    spending = {name: spent for name, spent in view.spending.items() if caller.may("audit") or name == caller.name}
    return replace(view, history=_own_history(view, caller), spending=spending)


def _allowance(allowance: Allowance, view: BudgetView) -> AllowanceView:
    cap, spent = view.total.amount, allowance.spent(view.spending)
    left = max(allowance.share * cap - spent.amount, Fraction(0))
    return AllowanceView(
        holder=allowance.holder,
        share=allowance.share,
        spent=view.total.from_amount(spent.amount),
        remaining=view.total.from_amount(left),
    )


def _confidence(text: str) -> Fraction:
    try:
        return probability(read(text, "confidence"), "confidence")
    except ArithmeticError:
        raise InvalidParameter("confidence must be a number between 0 and 1.") from None
