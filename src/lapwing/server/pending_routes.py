"""Routes of questions that wait in the queue: to put them there, to see what becomes of them, to cancel them."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from lapwing.errors import NotAuthorised
from lapwing.server.bodies import Asked
from lapwing.server.pending import Pending
from lapwing.server.people import missing
from lapwing.server.questions import MOST_LISTED, Key
from lapwing.server.rights import Caller
from lapwing.server.service import Service

Everybody = Annotated[bool, Query(description="Also those of others; takes the right `audit`.")]


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["questions"])
    reader, asker = Depends(service.callers.demand("read")), Depends(service.callers.demand("ask"))

    def shown(pending: Pending) -> dict[str, Any]:
        return {
            "id": pending.id,
            "person": pending.person,
            "dataset": pending.dataset,
            "created": pending.created,
            "request": pending.request,
            "status": pending.status,
            "stopping": pending.stopping,
            "ahead": service.queued.ahead(pending),
            "answer": pending.answer,
            "problem": pending.problem,
        }

    def seen(caller: Caller, query: str) -> Pending:
        """Return a question that somebody may see."""
        pending = service.pending.find(query)
        if not (pending.person == caller.name or caller.may("audit")):
            raise missing("question")
        return pending

    @router.post("/datasets/{dataset}/queries", status_code=202)
    def submit(
        dataset: str, body: Asked, response: Response, caller: Caller = asker, idempotency_key: Key = None
    ) -> dict[str, Any]:
        """Let a question wait in the queue; it is charged when its turn comes. A wrong one is refused at once."""
        served = service.datasets.visible(caller, dataset)
        with service.callers.pricing(caller):
            served.session.acting_for(caller.name).explain(
                body.sql, body.values(), **body.prices(), assuming_count=None
            )
        pending = service.queued.submit(caller, served, body, idempotency_key)
        response.headers["Location"] = f"/v1/queries/{pending.id}"
        return shown(pending)

    @router.get("/queries")
    def list_queued(caller: Caller = reader, everybody: Everybody = False) -> list[dict[str, Any]]:
        """List one's own queued questions, the newest first."""
        if everybody and not caller.may("audit"):
            raise NotAuthorised("To see the questions of others takes the right `audit`.")
        return [shown(pending) for pending in service.pending.of(None if everybody else caller.name, MOST_LISTED)]

    @router.get("/queries/{query}")
    def status(query: str, caller: Caller = reader) -> dict[str, Any]:
        """Say what became of a queued question: where it is, its answer's id, or its problem."""
        return shown(seen(caller, query))

    @router.delete("/queries/{query}")
    def cancel(query: str, caller: Caller = reader) -> dict[str, Any]:
        """Cancel a queued question: what waits is dropped, uncharged; what runs is stopped, and stays charged."""
        pending = seen(caller, query)
        if not caller.may("admin" if pending.person != caller.name else "ask"):
            raise NotAuthorised("One's own questions are cancelled with the right `ask`, those of others with `admin`.")
        return shown(service.queued.cancel(query, by=caller.name))

    return router
