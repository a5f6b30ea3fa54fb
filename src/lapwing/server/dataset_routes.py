"""Routes of curators and auditors: data sets from their registration to their end, grants, policies, and the logs."""

import json
from fractions import Fraction
from itertools import chain
from typing import Annotated, Any, Final, Literal, NotRequired

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field, StrictBool

from lapwing.catalog.amending import write_budget
from lapwing.documents.budget_document import FaultDocument, fault_document
from lapwing.documents.dataset_document import DatasetDocument, dataset_document
from lapwing.documents.people_document import Division, Grants, PolicyDocument, StopDocument
from lapwing.errors import CatalogError, CatalogMismatch, DataFault, DataStopped, InvalidParameter, LedgerFault
from lapwing.guarantee import as_document, as_html
from lapwing.guarantee.raise_preview import RaiseDocument, raise_document
from lapwing.guarantee.rendering import PageDocument
from lapwing.languages import Figure, Phrase, say, say_count
from lapwing.ledger import exporting
from lapwing.privacy.amounts import written
from lapwing.privacy.figures import share as share_text
from lapwing.server import audit_log, metrics, refreshing
from lapwing.server.access import DatasetAccess
from lapwing.server.access_overview import overview
from lapwing.server.accounts import Accounts
from lapwing.server.bodies import Amount, Body, Text, number
from lapwing.server.datasets import ServedDataset
from lapwing.server.listing import PageOf, cut
from lapwing.server.people import Caller
from lapwing.server.policies import Policies
from lapwing.server.problems import may_raise
from lapwing.server.reasons import Reason
from lapwing.server.responses import HTML, LINES, described_by, json_response
from lapwing.server.routing import AUDITOR, CURATOR, OVERSEER, READER, OfService, new_router
from lapwing.server.service import Service
from lapwing.server.store import ServiceStore
from lapwing.session import Session

MOST_CATALOG: Final = 1_000_000
BY_ACCEPT: Final = "The page, as JSON or as HTML, by the Accept header."
LANGUAGE: Final = "A language tag such as de. JSON is English without it; HTML follows the header Accept-Language."
EXPORT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "An entry a line, as JSON.", "content": {LINES: {}}}
}


MostLines = Annotated[int | None, Query(ge=1, le=10**6, description="Lines at most.")]
After = Annotated[int, Query(ge=0, le=10**12, description="The `sequence` after which the lines begin.")]


class DatasetBody(Body):
    """A catalog, as the text of a TOML file or as the same in JSON, and the folder from which its paths start."""

    catalog: Annotated[Text, Field(max_length=MOST_CATALOG)] | dict[str, Any]
    folder: Annotated[Text, Field(max_length=4096)] | None = None


class Figures(Body):
    """A budget."""

    epsilon: Amount
    delta: Amount


class CapBody(Body):
    """A larger budget, and the one that it replaces; nothing is changed until it is confirmed.

    The audit log keeps the `reason`.
    """

    was: Figures
    epsilon: Amount
    delta: Amount
    confirmed: StrictBool = False
    # Not `reasons.Reason`: that refuses an empty reason and characters that nobody sees. Both stay accepted here.
    reason: Annotated[Text, Field(max_length=500)] | None = None


class CloseBody(Body):
    """That the data set is closed, for ever."""

    closed: Literal[True]


class ShareBody(Body):
    """A share of the budget, from 0 to 1; null for none of its own."""

    share: Amount | None = None

    def exactly(self) -> Fraction | None:
        """Return the share."""
        return None if self.share is None else number(self.share, "share")


class GrantBody(ShareBody):
    """A share of the budget, and whether this person may see how long any answer takes: false if it is not said."""

    trusted_with_time: StrictBool = False


class PolicyBody(Body):
    """How the budget is shared out."""

    division: Division
    most_epsilon: Amount | None = None
    least_share: Amount | None = None


class StopBody(Body):
    """Whether the data set is stopped, and why: everybody with access sees the reason."""

    stopped: StrictBool
    reason: Reason | None = None


class CapDocument(RaiseDocument):
    """What a budget promises before and after a raise.

    `raised` says whether it was done by this request, and `catalog` then what came of writing it into its file.
    """

    raised: bool
    catalog: NotRequired[str]


class Closed(BaseModel):
    """Whether the data set was open before."""

    closed: bool
    was_open: bool


class RefreshBody(Body):
    """How data are fetched: only what came since, where a source knows, or the whole."""

    whole: StrictBool = False


class Version(BaseModel):
    """The current version of the data."""

    version: int


class SeenFaults(BaseModel):
    """How many faults were looked at."""

    faults: int


router: Final = new_router()


@router.post(
    "/v1/datasets",
    tags=["admin"],
    status_code=201,
    responses=described_by(DatasetDocument, status=201),
    openapi_extra=may_raise(CatalogError, InvalidParameter, CatalogMismatch, DataFault, LedgerFault),
)
def register(service: OfService, body: DatasetBody, caller: Caller = CURATOR) -> Response:
    """Register a data set whose files lie in a folder of the service; it stays registered."""
    served = service.registry.register(body.catalog, body.folder, by=caller.name)
    return json_response(dataset_document(served.name, served.session.catalog), status=201)


@router.get(
    "/v1/datasets/{dataset}/guarantee", tags=["questions"], responses=described_by(PageDocument, BY_ACCEPT, HTML)
)
def guarantee(
    service: OfService,
    dataset: str,
    request: Request,
    caller: Caller = READER,
    language: Annotated[str | None, Query(max_length=1000, description=LANGUAGE)] = None,
    seal: Annotated[bool, Query(description="Whether auditors see the seal; the page to publish has none.")] = True,
) -> Response:
    """Show what is promised to the people in the data, as a page to be printed or as JSON."""
    served = service.datasets.visible(caller, dataset)
    inside = caller.may("audit")
    shown = HTML in request.headers.get("accept", "")
    wanted = request.headers.get("accept-language") if shown and language is None else language
    askers = _askers(served, service.policies, inside=inside, named=seal)
    page = served.session.guarantee(askers, sealed=inside and seal, language=wanted)
    headers = {"Vary": "Accept, Accept-Language"}
    if shown:
        return HTMLResponse(as_html(page), headers=headers)
    return json_response(as_document(page), headers)


@router.put(
    "/v1/datasets/{dataset}/cap",
    tags=["admin"],
    responses=described_by(CapDocument),
    openapi_extra=may_raise(InvalidParameter, CatalogError, CatalogMismatch, DataStopped),
)
def raise_cap(service: OfService, dataset: str, body: CapBody, caller: Caller = CURATOR) -> Response:
    """Show what a larger budget would promise; and if that is confirmed, make it the budget, for ever."""
    served = service.datasets.visible(caller, dataset)
    session = served.session.acting_for(caller.name)
    epsilon, delta = number(body.epsilon, "epsilon"), number(body.delta, "delta")
    was = number(body.was.epsilon, "was.epsilon"), number(body.was.delta, "was.delta")
    before_and_after = raise_document(session.raised(was=was, epsilon=epsilon, delta=delta))
    if not body.confirmed:
        return json_response({**before_and_after, "raised": False})
    figures = {"epsilon": written(epsilon), "delta": written(delta)}
    if not before_and_after["done"]:
        figures |= {"was_epsilon": written(was[0]), "was_delta": written(was[1])}
    figures |= {"reason": body.reason} if body.reason else {}
    _note_begun(service.store, caller, "budget raise begun", served.name, **figures)
    # The catalogs of two raises are written in their order, whichever processes they come to.
    with service.registry.exclusive(), service.datasets.changing:
        session = service.datasets.current(served).session.acting_for(caller.name)
        session.raise_budget(was=was, epsilon=epsilon, delta=delta)
        served.settle()
        written_or_not = _write_catalog(session)
    with service.store.transaction() as connection:
        audit_log.note(connection, caller.name, "budget raised", served.name, **figures)
    return json_response({**before_and_after, "raised": True, "catalog": written_or_not})


@router.put("/v1/datasets/{dataset}/closed", tags=["admin"])
def close(service: OfService, dataset: str, body: CloseBody, caller: Caller = CURATOR) -> Closed:
    """Close a data set for ever: nothing is charged once this returns; what was bought stays free."""
    served = service.datasets.visible(caller, dataset)
    _note_begun(service.store, caller, "closing for ever begun", served.name)
    was_open = served.session.acting_for(caller.name).close_for_ever()
    if was_open:
        with service.store.transaction() as connection:
            audit_log.note(connection, caller.name, "closed for ever", served.name)
    return Closed(closed=body.closed, was_open=was_open)


@router.get("/v1/datasets/{dataset}/ledger", tags=["audit"], response_class=Response, responses=EXPORT)
def ledger(service: OfService, dataset: str, caller: Caller = AUDITOR) -> StreamingResponse:
    """Export the ledger, an entry a line, each sealed over the one before; as secret as the ledger itself."""
    served = service.datasets.visible(caller, dataset)
    lines = exporting.lines(served.session.ledger_entries())
    first = next(lines)  # a ledger that cannot be read is told as that, and not as a short one
    return StreamingResponse(chain([first], lines), media_type=LINES)


def _access(service: Service, caller: Caller, dataset: str) -> DatasetAccess:
    """Return what a curator says of a data set, in their name."""
    return DatasetAccess(
        service.datasets.visible(caller, dataset), service.policies, service.default_costs, by=caller.name
    )


@router.get("/v1/datasets/{dataset}/grants", tags=["audit"])
def grants(service: OfService, dataset: str, caller: Caller = OVERSEER) -> Grants:
    """List who may query, the limits of people and teams, and who has rights without a grant."""
    granted = _access(service, caller, dataset).grants()
    accounts = Accounts(service.store, service.people).all()
    return overview(granted, service.people.all(), accounts, dataset)


@router.put(
    "/v1/datasets/{dataset}/grants/{name}",
    tags=["admin"],
    status_code=204,
    openapi_extra=may_raise(InvalidParameter),
)
def grant(service: OfService, dataset: str, name: str, body: GrantBody, caller: Caller = CURATOR) -> None:
    """Let somebody ask, with a share of the budget or without one of their own."""
    _access(service, caller, dataset).grant(name, body.exactly(), trusted_with_time=body.trusted_with_time)


@router.delete("/v1/datasets/{dataset}/grants/{name}", tags=["admin"], status_code=204)
def withdraw(service: OfService, dataset: str, name: str, caller: Caller = CURATOR) -> None:
    """Let somebody ask no more."""
    _access(service, caller, dataset).withdraw(name)


@router.put(
    "/v1/datasets/{dataset}/teams/{team}",
    tags=["admin"],
    status_code=204,
    openapi_extra=may_raise(InvalidParameter),
)
def give_team(service: OfService, dataset: str, team: str, body: ShareBody, caller: Caller = CURATOR) -> None:
    """Give a team a share of the budget, or with null take it away."""
    _access(service, caller, dataset).give_team(team, body.exactly())


@router.get("/v1/datasets/{dataset}/policy", tags=["audit"])
def policy(service: OfService, dataset: str, caller: Caller = OVERSEER) -> PolicyDocument:
    """Say how the budget is shared out."""
    return _access(service, caller, dataset).policy()


@router.put("/v1/datasets/{dataset}/policy", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
def set_policy(service: OfService, dataset: str, body: PolicyBody, caller: Caller = CURATOR) -> PolicyDocument:
    """Say whether allowances share or split the budget, and the most that one question may cost."""
    changed = _access(service, caller, dataset)
    most = None if body.most_epsilon is None else number(body.most_epsilon, "most_epsilon")
    least = None if body.least_share is None else number(body.least_share, "least_share")
    return changed.set_policy(body.division, most, least)


@router.put("/v1/datasets/{dataset}/stop", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
def stop(service: OfService, dataset: str, body: StopBody, caller: Caller = CURATOR) -> PolicyDocument:
    """Stop the data set: nothing is charged once this returns; or let it go on."""
    return _access(service, caller, dataset).stop(stopped=body.stopped, reason=body.reason)


@router.post(
    "/v1/datasets/{dataset}/accept",
    tags=["admin"],
    openapi_extra=may_raise(DataFault, DataStopped, CatalogMismatch),
)
def accept(service: OfService, dataset: str, caller: Caller = CURATOR) -> Version:
    """Make the data as they are now the current version; spending stays."""
    served = service.datasets.visible(caller, dataset)
    _note_begun(service.store, caller, "acceptance of data begun", served.name)
    version = served.session.acting_for(caller.name).accept_data()
    service.readiness.look_again()
    with service.store.transaction() as connection:
        audit_log.note(connection, caller.name, "data accepted", served.name, version=version)
    return Version(version=version)


@router.post(
    "/v1/datasets/{dataset}/refresh",
    tags=["admin"],
    openapi_extra=may_raise(DataFault, DataStopped, CatalogMismatch, InvalidParameter),
)
def refresh(service: OfService, dataset: str, body: RefreshBody, caller: Caller = CURATOR) -> Version:
    """Fetch what the sources hold now, and make it the current version; spending stays."""
    served = service.datasets.visible(caller, dataset)
    _note_begun(service.store, caller, "refresh of data begun", served.name, whole=body.whole)
    version = refreshing.refresh(served.session.acting_for(caller.name), whole=body.whole)
    service.readiness.look_again()
    with service.store.transaction() as connection:
        audit_log.note(connection, caller.name, "data refreshed", served.name, version=version)
    return Version(version=version)


@router.get("/v1/datasets/{dataset}/faults", tags=["audit"], responses=described_by(list[FaultDocument]))
def faults(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = OVERSEER) -> Response:
    """List the questions that failed after their charge, since the curator last looked."""
    served = service.datasets.visible(caller, dataset)
    faults = page.start(served.session.faults(), lambda fault: fault.sequence)
    shown, headers = cut(request, page.limit, faults, lambda fault: fault.sequence)
    return json_response([fault_document(fault) for fault in shown], headers)


@router.get("/v1/datasets/{dataset}/stops", tags=["audit"], responses=described_by(list[StopDocument]))
def stops(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = OVERSEER) -> Response:
    """List who stopped or resumed the data set, closed it, or reviewed its failures, and why; the newest first."""
    served = service.datasets.visible(caller, dataset)
    lines = page.start(audit_log.stops(service.store, served.name), lambda line: line["sequence"])
    shown, headers = cut(request, page.limit, lines, lambda line: line["sequence"])
    return json_response(shown, headers)


@router.post("/v1/datasets/{dataset}/resume", tags=["admin"])
def resume(service: OfService, dataset: str, caller: Caller = CURATOR) -> SeenFaults:
    """Say that the faults were looked at; nothing is refunded."""
    served = service.datasets.visible(caller, dataset)
    _note_begun(service.store, caller, "resume begun", served.name)
    count = served.session.acting_for(caller.name).resume()
    with service.store.transaction() as connection:
        audit_log.note(connection, caller.name, "faults looked at", served.name, faults=count)
    return SeenFaults(faults=count)


@router.get("/v1/audit", tags=["audit"], response_class=Response, responses={200: {"content": {LINES: {}}}})
def audit(
    service: OfService, request: Request, caller: Caller = AUDITOR, limit: MostLines = None, after: After = 0
) -> Response:
    """Export the audit log: a JSON document a line, each sealed over the one before; all of it unless limited."""
    with service.store.reading() as connection:  # which others wait for: no longer than it takes to read
        lines = list(audit_log.lines(connection, after, None if limit is None else limit + 1))
    shown, headers = cut(request, limit or len(lines), lines, lambda line: line["sequence"])
    return Response("".join(json.dumps(line) + "\n" for line in shown), media_type=LINES, headers=headers)


@router.get("/metrics", tags=["audit"], response_class=PlainTextResponse)
def show_metrics(service: OfService, caller: Caller = AUDITOR) -> PlainTextResponse:
    """Show counts of requests and questions, budgets, queue and processes, in the text form of Prometheus."""
    service.gauges.look()
    return PlainTextResponse(service.metrics.text(), media_type=metrics.MEDIA_TYPE)


def _note_begun(store: ServiceStore, caller: Caller, act: str, dataset: str, **details: object) -> None:
    """Write down that something is about to be done in a ledger, which is in no transaction with the store."""
    with store.transaction() as connection:
        audit_log.note(connection, caller.name, act, dataset, **details)


def _askers(served: ServedDataset, policies: Policies, *, inside: bool, named: bool) -> list[Phrase]:
    """Say who may ask: to those who may see that, by name, or on the page to publish by how many they are."""
    sentences = [
        say(
            "By this service: everybody to whom the curator gives access, with a token of their own. On the server's "
            "machine: everybody who can read the files of data and catalog. This one promise covers all together.",
            code="access_by_service",
        )
    ]
    grants = policies.grants(served.name) if inside else ()
    if grants and not named:
        sentences.append(
            say_count(
                len(grants),
                "The curator gave access to {count} account.",
                "The curator gave access to {count} accounts.",
                code="accounts_with_access",
            )
        )
    elif grants:
        for grant in grants:
            if grant.share is None:
                sentences.append(say("{person}.", person=grant.person, code="account"))
            else:
                share = Figure(share_text(grant.share))
                sentences.append(
                    say(
                        "{person}, up to {share} of the budget.",
                        person=grant.person,
                        share=share,
                        code="account_with_limit",
                    )
                )
    return sentences


def _write_catalog(session: Session) -> str:
    """Write the budget into the catalog's file, and say what came of it: the ledger has it in any case."""
    try:
        write_budget(session.catalog, session.catalog.budget)
    except CatalogError as error:
        return f"The ledger has the new budget, and the service uses it. Before you restart it, correct this: {error}."
    return "written"
