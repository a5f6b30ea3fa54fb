"""Routes of questions that wait in the queue: to put them there, to see what becomes of them, to cancel them."""

from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from typing_extensions import TypedDict

from lapwing.errors import InvalidParameter, KeyConflict, NotAuthorised, QueryRefused
from lapwing.machine.waiting import WaitsFor
from lapwing.server.bodies import QueryBody
from lapwing.server.execution import Ask
from lapwing.server.jobs import Job, Status
from lapwing.server.listing import PageOf, cut
from lapwing.server.people import Caller, missing
from lapwing.server.problems import Problem, may_raise
from lapwing.server.question_routes import Key
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import ASKER, READER, OfService, new_router
from lapwing.server.service import Service

Everybody = Annotated[bool, Query(description="Also queries of other people; takes the right `audit`.")]


class QueuedQuestion(TypedDict):
    """A question in the queue, or that was there."""

    id: str
    person: str
    dataset: str
    created: str
    request: dict[str, Any]
    status: Status
    stopping: bool
    ahead: int | None
    waits_for: WaitsFor | None
    answer: str | None
    problem: Problem | None


router: Final = new_router(prefix="/v1", tags=["questions"])


def _document(service: Service, job: Job) -> QueuedQuestion:
    return {
        "id": job.id,
        "person": job.person,
        "dataset": job.dataset,
        "created": job.created,
        "request": job.request,
        "status": job.status,
        "stopping": job.stopping,
        "ahead": service.job_runner.ahead(job),
        "waits_for": service.job_runner.waits_for(job),
        "answer": job.answer,
        "problem": job.problem,
    }


def _visible(service: Service, caller: Caller, query: str) -> Job:
    """Return a question that somebody may see."""
    job = service.jobs.find(query)
    if not (job.person == caller.name or caller.at(job.dataset).may("audit")):
        raise missing("question")
    return job


@router.post(
    "/datasets/{dataset}/queries",
    status_code=202,
    responses=described_by(QueuedQuestion, status=202),
    openapi_extra=may_raise(KeyConflict, InvalidParameter, QueryRefused),
)
def submit(
    service: OfService, dataset: str, body: QueryBody, caller: Caller = ASKER, idempotency_key: Key = None
) -> Response:
    """Let a question wait in the queue; it is charged when its turn comes. A wrong one is refused at once."""
    served = service.datasets.visible(caller, dataset)
    with service.callers.pricing(caller):
        served.for_caller(caller, service.policies).explain(
            body.sql, body.values(), **body.prices(), assuming_count=body.assuming_count
        )
    job = service.job_runner.submit(Ask(caller=caller, served=served, body=body, key=idempotency_key))
    return json_response(_document(service, job), {"Location": f"/v1/queries/{job.id}"}, status=202)


@router.get("/queries", responses=described_by(list[QueuedQuestion]))
def list_queued(
    service: OfService, request: Request, page: PageOf, caller: Caller = READER, everybody: Everybody = False
) -> Response:
    """List one's own queued questions, the newest first."""
    if everybody and not caller.may("audit"):
        raise NotAuthorised("You need the right `audit` to see the queries of others.")
    jobs = service.jobs.of(None if everybody else caller.name, page.most, **page.beginning)
    shown, headers = cut(request, page.limit, jobs, lambda job: job.id)
    return json_response([_document(service, job) for job in shown], headers)


@router.get("/queries/{query}", responses=described_by(QueuedQuestion))
def status(service: OfService, query: str, caller: Caller = READER) -> Response:
    """Say what became of a queued question: where it is, its answer's id, or its problem."""
    return json_response(_document(service, _visible(service, caller, query)))


@router.delete("/queries/{query}", responses=described_by(QueuedQuestion))
def cancel(service: OfService, query: str, caller: Caller = READER) -> Response:
    """Cancel a queued question: what waits is dropped, uncharged; what runs is stopped, and stays charged."""
    job = _visible(service, caller, query)
    if not caller.at(job.dataset).may("admin" if job.person != caller.name else "ask"):
        raise NotAuthorised(
            "You need the right `ask` to cancel your own queries, and `admin` to cancel queries of others."
        )
    return json_response(_document(service, service.job_runner.cancel(query, by=caller.name)))
