"""Routes of those who ask: data sets, prices, answers, budgets, history."""

import re
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, NotRequired

from fastapi import Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from lapwing import errors
from lapwing.answer.population_shown import read_sampling
from lapwing.budget import AllowanceView, BudgetView
from lapwing.documents.answer_document import AnswerDocument, ConsistentDocument, KeyColumnDocument
from lapwing.documents.budget_document import AccountDocument, ChargeDocument, account_document, history_document
from lapwing.documents.csvw_document import csvw_document
from lapwing.documents.dataset_document import DatasetDocument, dataset_document
from lapwing.documents.dcat_document import dcat_document
from lapwing.documents.preview_document import PreviewDocument, preview_document
from lapwing.documents.session_document import session_document
from lapwing.ledger.allowances import Allowance
from lapwing.privacy.amounts import probability, read, written
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.audit_log import stop_reason
from lapwing.server.batch_prices import BatchPreviewDocument, explain_together
from lapwing.server.bodies import BatchBody, ExplainBody, QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask, PopulationSample, dropped
from lapwing.server.listing import MOST, PageOf, cut
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.readiness import Reason
from lapwing.server.responses import ARROW, CSVW, DCAT, described_by, json_response
from lapwing.server.routing import ASKER, READER, OfService, new_router
from lapwing.server.service import Service
from lapwing.session import Session

ASKED: Final = "/v1/datasets/{dataset}/query"
"""Where questions are asked; the plain ones of them never come to their route (`direct_questions`)."""
KEY: Final = re.compile(r"[\x20-\x7e]{1,200}")
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")]
Confidence = Annotated[str | None, Query(max_length=50, description="Of the intervals; as it was asked unless given.")]
Of = Annotated[Literal["data", "population"], Query(description="The target of the intervals.")]
SamplingText = Annotated[
    str | None, Query(max_length=20, description="Of a population: how many people were drawn, or poisson.")
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Items at most.")]
After = Annotated[int, Query(ge=0, description="The `sequence` after which the list begins.")]
Newest = Annotated[bool, Query(description="The last charges instead, `limit` of them.")]
BY_ACCEPT: Final = "The answer, as JSON or as an Arrow stream, by the Accept header."
MAY_ASK: Final = may_raise(
    errors.QueryRefused,
    errors.InvalidParameter,
    errors.BudgetExhausted,
    errors.AllowanceExhausted,
    errors.DataChanged,
    errors.DataStopped,
    errors.KeyConflict,
    errors.AnswerDropped,
    errors.Interrupted,
    errors.DataFault,
    errors.AnswerFault,
    errors.EngineFault,
    errors.EntropyFault,
    errors.ServiceFault,
    errors.TooManyRequests,
)
BY_ACCEPT_CATALOGUE: Final = "The data set, as JSON, or for data catalogues as DCAT or CSVW, by the Accept header."
MAY_REOPEN: Final = may_raise(
    errors.AnswerDropped, errors.DataChanged, errors.InvalidParameter, errors.ServiceFault, errors.TooManyRequests
)
MAY_READ: Final = may_raise(errors.AnswerDropped)


class DatasetName(TypedDict):
    """A data set that one may see."""

    name: str


class DatasetStanding(TypedDict):
    """Whether a data set takes new queries; `reason` says why not, and is null if it does. `faults` are the charged
    queries that failed since the curator last looked, `late` is how often answers were late since then."""  # noqa: D205, D209

    name: str
    ready: bool
    reason: Reason | None
    faults: int
    late: int


class KeptAnswer(AnswerDocument):
    """An answer. `intervals` has low and high ends by column, `types` the type of each; `keys`, `key_columns` and
    `facts`, if it was kept with them, say which columns are keys, which column of a table each is, and the noise of the
    others. `unit_columns` says which column of a table has the unit of a number. `of` is there if the intervals are of
    the population, `delayed` if it left later than it should."""  # noqa: D205, D209

    id: str
    dataset: str
    created: str
    types: dict[str, str]
    keys: NotRequired[list[str]]
    key_columns: NotRequired[dict[str, KeyColumnDocument]]
    unit_columns: NotRequired[dict[str, KeyColumnDocument]]
    facts: NotRequired[list[dict[str, Any]]]
    of: NotRequired[Literal["population"]]
    delayed: NotRequired[bool]
    truncated: NotRequired[dict[str, str]]


class KeptConsistentAnswer(ConsistentDocument):
    """Rows with numbers that can be true together; `changed` names the columns in which some number is another."""

    id: str
    dataset: str
    created: str
    types: dict[str, str]


class KeptAnswers(TypedDict):
    """Answers, in the order of their questions."""

    answers: list[KeptAnswer]


class BoughtAnswer(TypedDict):
    """An answer, without what it says; who bought it, and with which team they share it, of one alone."""

    id: str
    created: str
    request: dict[str, Any]
    person: NotRequired[str]
    team: NotRequired[str | None]


router: Final = new_router(prefix="/v1", tags=["questions"])


def _pricing(service: Service, caller: Caller, served: ServedDataset) -> Session:
    """Return a session that says what a charge would be refused with, late answers among it."""
    return served.for_caller(caller, service.policies, timed=service.executor.holds_answers)


async def _visible(service: Service, caller: Caller, dataset: str) -> ServedDataset:
    """Return a data set that somebody may see.

    At once if that takes no more than a look at a file. Else in a thread, so that nobody else waits: for a database
    over a network, or until a data set is open that is being registered.
    """
    served = service.datasets.known(caller, dataset) if service.people.is_local else None
    if served is not None:
        return served
    return await run_in_threadpool(service.datasets.visible, caller, dataset)


async def _answer_record(service: Service, caller: Caller, answer: str) -> tuple[ServedDataset, AnswerRecord]:
    """Return an answer that somebody may see, and its data set."""
    record = await run_in_threadpool(service.answers.find, answer)  # it may be long
    own = record is not None and (record.person == caller.name or caller.at(record.dataset).may("audit"))
    if record is None or not (own or await run_in_threadpool(service.saved.may_open, answer, caller.name)):
        raise missing("answer")
    served = await _visible(service, caller, record.dataset)
    if record.dropped:
        raise dropped()
    return served, record


@router.get("/datasets")
def list_datasets(
    service: OfService, request: Request, response: Response, page: PageOf, caller: Caller = READER
) -> list[DatasetName]:
    """List the data sets that one may see."""
    visible = page.start(service.datasets.all_visible(caller), lambda served: served.name)
    shown, headers = cut(request, page.limit, visible, lambda served: served.name)
    response.headers.update(headers)
    return [{"name": served.name} for served in shown]


@router.get("/readiness")
def readiness(service: OfService, caller: Caller = READER) -> list[DatasetStanding]:
    """Say which of the data sets that one may see take new queries, and why others do not."""
    service.readiness.is_ready()
    found, visible = service.readiness.standings(), service.datasets.all_visible(caller)
    known = [(served.name, found[served.name]) for served in visible if served.name in found]
    return [
        {"name": name, "ready": one.reason is None, "reason": one.reason, "faults": one.faults, "late": one.late}
        for name, one in known
    ]


@router.get("/datasets/{dataset}", responses=described_by(DatasetDocument, BY_ACCEPT_CATALOGUE, DCAT, CSVW))
def describe(service: OfService, dataset: str, request: Request, caller: Caller = READER) -> Response:
    """Say what is public about a data set."""
    served = service.datasets.visible(caller, dataset)
    accepted = request.headers.get("accept", "")
    for kind, made in ((DCAT, dcat_document), (CSVW, csvw_document)):
        if kind in accepted:
            document = made(dataset_document(served.name, served.session.catalog))
            return json_response(document, kind=kind)
    return json_response(session_document(served.name, served.session.catalog, served.session.public_tables))


@router.post(
    "/datasets/{dataset}/explain",
    responses=described_by(PreviewDocument),
    openapi_extra=may_raise(errors.QueryRefused, errors.InvalidParameter, errors.AnswerFault),
)
def explain(service: OfService, dataset: str, body: ExplainBody, caller: Caller = READER) -> Response:
    """Price a question, and say what is left for the caller: free, and no row is read."""
    served = service.datasets.visible(caller, dataset)
    with service.callers.pricing(caller):
        preview = _pricing(service, caller, served).explain(
            body.sql, body.values(), **body.prices(), assuming_count=body.assuming_count
        )
        deadline = None if preview.stored else service.executor.deadline_of(caller, served, body)
    document = preview_document(preview, served.session.catalog.budget.neighbouring)
    return json_response(document if deadline is None else {**document, "deadline": deadline})


@router.post("/datasets/{dataset}/query", responses=described_by(KeptAnswer, BY_ACCEPT, ARROW), openapi_extra=MAY_ASK)
async def query(
    service: OfService,
    dataset: str,
    body: QueryBody,
    request: Request,
    caller: Caller = ASKER,
    idempotency_key: Key = None,
) -> Response:
    """Answer a question and charge it; the same question again is free."""
    served = await _visible(service, caller, dataset)
    return await answered(service, Ask(caller=caller, served=served, body=body, key=idempotency_key), request)


@router.post("/datasets/{dataset}/batch", responses=described_by(KeptAnswers), openapi_extra=MAY_ASK)
async def batch(
    service: OfService,
    dataset: str,
    body: BatchBody,
    request: Request,
    caller: Caller = ASKER,
    idempotency_key: Key = None,
) -> Response:
    """Answer several questions at one price: all are charged, or none."""
    served = await _visible(service, caller, dataset)
    ask = Ask(caller=caller, served=served, body=body, key=idempotency_key)
    records = await service.executor.ask(ask, lambda: hung_up(request))
    return json_response({"answers": [answer_document(record) for record in records]})


@router.post(
    "/datasets/{dataset}/batch/explain",
    responses=described_by(BatchPreviewDocument),
    openapi_extra=may_raise(errors.QueryRefused, errors.InvalidParameter),
)
def explain_batch(service: OfService, dataset: str, body: BatchBody, caller: Caller = READER) -> Response:
    """Price several questions together, as a batch of them would be charged: free, and no row is read."""
    served = service.datasets.visible(caller, dataset)
    with service.callers.pricing(caller):
        document = explain_together(_pricing(service, caller, served), body)
    return json_response(document)


@router.get("/datasets/{dataset}/answers", responses=described_by(list[BoughtAnswer]))
def list_answers(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = READER) -> Response:
    """List one's own answers, the newest first."""
    served = service.datasets.visible(caller, dataset)
    answers = service.answers.of(caller.name, served.name, page.most, **page.beginning)
    return json_response(*cut(request, page.limit, answers, lambda bought: bought["id"]))


@router.get("/answers/{answer}", responses=described_by(KeptAnswer, BY_ACCEPT, ARROW), openapi_extra=MAY_REOPEN)
async def reopen(
    service: OfService,
    answer: str,
    request: Request,
    caller: Caller = READER,
    confidence: Confidence = None,
    of: Of = "data",
    sampling: SamplingText = None,
) -> Response:
    """Open an answer again, as it was shown, or with intervals of another confidence or of the population; free."""
    if sampling is not None and of == "data":
        raise errors.InvalidParameter("sampling says how a population was drawn from; give of=population with it.")
    drawn = None if of == "data" else PopulationSample(sampling=None if sampling is None else read_sampling(sampling))
    served, record = await _answer_record(service, caller, answer)
    if confidence is not None or drawn is not None:
        level = _confidence(str(record.document["confidence"]) if confidence is None else confidence)
        record = await service.executor.reopen(caller, served, record, level, lambda: hung_up(request), drawn)
    return answer_response(record, request)


@router.get("/answers/{answer}/request", responses=described_by(BoughtAnswer), openapi_extra=MAY_READ)
async def asked(service: OfService, answer: str, caller: Caller = READER) -> Response:
    """Say what request bought an answer."""
    _, record = await _answer_record(service, caller, answer)
    team = await run_in_threadpool(service.saved.team_of_answer, record.id)
    known = {"id": record.id, "created": record.created, "request": record.request}
    return json_response({**known, "person": record.person, "team": team})


@router.get(
    "/answers/{answer}/consistent",
    responses=described_by(KeptConsistentAnswer, BY_ACCEPT, ARROW),
    openapi_extra=MAY_REOPEN,
)
async def consistent(service: OfService, answer: str, request: Request, caller: Caller = READER) -> Response:
    """Return the rows of an answer with numbers that can be true together; free."""
    served, record = await _answer_record(service, caller, answer)
    view = await service.executor.made_consistent(caller, served, record, lambda: hung_up(request))
    return answer_response(view, request)


@router.get("/datasets/{dataset}/budget", responses=described_by(AccountDocument))
def budget(service: OfService, dataset: str, caller: Caller = READER) -> Response:
    """Say what is granted, spent and left, and what of it the caller may use."""
    served = service.datasets.visible(caller, dataset)
    view = served.session.budget(history=False)
    limits = service.policies.limits(served.name, caller.name, served.session.price)
    allowances = tuple(allowance_view(allowance, view) for allowance in limits.allowances)
    # Of others the caller may know the total alone.
    spending = {name: spent for name, spent in view.spending.items() if caller.may("audit") or name == caller.name}
    own = replace(view, spending=spending, allowances=allowances, own_history=not caller.may("audit"))
    document = account_document(replace(own, most=limits.most, stopped_by_curator=limits.stopped))
    reason = stop_reason(service.store, served.name) if limits.stopped else None
    return json_response({**document, "least": written(limits.least), "stop_reason": reason})


@router.get("/datasets/{dataset}/history", responses=described_by(list[ChargeDocument]))
def history(
    service: OfService,
    dataset: str,
    request: Request,
    caller: Caller = READER,
    limit: Limit = MOST,
    after: After = 0,
    newest: Newest = False,
) -> Response:
    """List one's own charges, to auditors and curators everybody's, in order: those after a `sequence`, a page."""
    served = service.datasets.visible(caller, dataset)
    whose = None if caller.may("audit") else caller.name
    if newest:
        rows = served.session.history(most=-limit, principal=whose)
        return json_response([history_document(row) for row in rows])
    rows = served.session.history(after=after, most=limit + 1, principal=whose)
    shown, headers = cut(request, limit, rows, lambda row: row.sequence)
    return json_response([history_document(row) for row in shown], headers)


async def answered(service: Service, ask: Ask, request: Request) -> Response:
    """Ask one question on behalf of somebody, and return its answer."""
    (record,) = await service.executor.ask(ask, lambda: hung_up(request))
    return answer_response(record, request)


def answer_response(record: AnswerRecord, request: Request) -> Response:
    """Return an answer in the form that is asked for: an Arrow stream, or else JSON."""
    if ARROW in request.headers.get("accept", ""):
        return Response(record.arrow, media_type=ARROW, headers={"X-Answer": record.id})
    return json_response(answer_document(record))


def answer_document(record: AnswerRecord) -> dict[str, Any]:
    """Return a `KeptAnswer` or a `KeptConsistentAnswer`."""
    return {"id": record.id, "dataset": record.dataset, "created": record.created, **record.document}


async def hung_up(request: Request) -> None:
    """Wait until the caller has closed the connection; call it once the body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def allowance_view(allowance: Allowance, view: BudgetView) -> AllowanceView:
    """Return what a share of the budget leaves to its holder."""
    cap, spent = view.total.amount, allowance.spent(view.spending)
    left = max(allowance.share * cap - spent.amount, Fraction(0))
    delta_left = max(allowance.share * view.delta_keys - spent.delta, Fraction(0))
    return AllowanceView(
        holder=allowance.holder,
        share=allowance.share,
        spent=view.total.from_amount(spent.amount),
        remaining=view.total.from_amount(left),
        delta_remaining=delta_left,
    )


def _confidence(text: str) -> Fraction:
    try:
        return probability(read(text, "confidence"), "confidence")
    except ArithmeticError:
        raise errors.InvalidParameter("confidence must be a number between 0 and 1.") from None
