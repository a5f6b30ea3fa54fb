"""Routes of requests for access or a larger limit, and of the data sets that people may ask for."""

from fractions import Fraction
from typing import Annotated, Final, Literal

from fastapi import Query, Request, Response
from pydantic import StrictBool

from lapwing.documents.access_request_document import (
    AccessRequestDocument,
    ListedDataset,
    ListingDocument,
    RequestKind,
    RequestState,
)
from lapwing.errors import InvalidParameter
from lapwing.server.access import DatasetAccess
from lapwing.server.access_requests import NO_LIMIT, AccessRequest
from lapwing.server.bodies import Amount, Body, number
from lapwing.server.dataset_routes import ShareBody
from lapwing.server.listing import PageOf, cut
from lapwing.server.log import log
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.reasons import Reason
from lapwing.server.routing import ASKER, CURATOR, READER, OfService, new_router
from lapwing.server.service import Service
from lapwing.server.store import time_or_none, time_text

SHOWN: Final[tuple[Literal["title", "description", "contact"], ...]] = ("title", "description", "contact")
"""The texts of a listed data set that people without access see, besides its name."""
SHARES: Final = 10_000
"""Steps of a share that is computed of an epsilon; it is rounded up."""


class AccessRequestBody(Body):
    """Why somebody asks, and the limit that they want: a share of the budget, or the epsilon of as much."""

    reason: Reason
    share: Amount | None = None
    epsilon: Amount | None = None


class DeclineBody(Body):
    """Why a request is declined, for its person."""

    reason: Reason


class ApprovalBody(ShareBody):
    """The limit that is given, or else the requested one, and a reason for the person."""

    reason: Reason | None = None


class ListingBody(Body):
    """Whether people without access see that a data set exists."""

    listed: StrictBool


router: Final = new_router(prefix="/v1")


@router.get("/listed", tags=["people"])
def listed(service: OfService, caller: Caller = READER) -> list[ListedDataset]:
    """List the data sets that one may not see and may ask for: name, title, description and contact."""
    names = service.access_requests.listed()
    if not names:
        return []
    service.datasets.look()
    known = sorted(service.datasets.everything(), key=lambda served: served.name)
    shown: list[ListedDataset] = []
    for served in known:
        if served.name in names and not service.datasets.sees(caller, served.name):
            facts = served.session.catalog.dictionary.dataset.facts
            one: ListedDataset = {"name": served.name}
            for key in SHOWN:
                if key in facts:
                    one[key] = facts[key]
            shown.append(one)
    return shown


@router.get("/datasets/{dataset}/listed", tags=["admin"])
def listing(service: OfService, dataset: str, caller: Caller = CURATOR) -> ListingDocument:
    """Tell whether people without access see that a data set exists."""
    return {"listed": service.access_requests.is_listed(service.datasets.visible(caller, dataset).name)}


@router.put("/datasets/{dataset}/listed", tags=["admin"])
def set_listed(service: OfService, dataset: str, body: ListingBody, caller: Caller = CURATOR) -> ListingDocument:
    """Show people without access that a data set exists, so that they can ask for access; or hide it from them."""
    name = service.datasets.visible(caller, dataset).name
    service.access_requests.set_listed(name, listed=body.listed, by=caller.name)
    return {"listed": body.listed}


@router.get("/requests", tags=["people"])
def requests(
    service: OfService,
    request: Request,
    response: Response,
    page: PageOf,
    caller: Caller = READER,
    state: Annotated[RequestState | None, Query(description="Only those in this state.")] = None,
) -> list[AccessRequestDocument]:
    """List one's own requests, and those for the data sets that one looks after: open ones first, then the newest."""
    curated = {served.name for served in service.datasets.everything() if caller.at(served.name).may("admin")}
    every = service.access_requests.of(caller.name, curated)
    wanted = [one for one in every if state is None or one.state == state]
    shown, headers = cut(request, page.limit, page.start(wanted, lambda one: one.id), lambda one: one.id)
    response.headers.update(headers)
    return [_document(one, curates=one.dataset in curated) for one in shown]


@router.post(
    "/datasets/{dataset}/requests",
    tags=["people"],
    status_code=201,
    openapi_extra=may_raise(InvalidParameter),
)
def make(service: OfService, dataset: str, body: AccessRequestBody, caller: Caller = ASKER) -> AccessRequestDocument:
    """Ask for access to a listed data set, or for a larger limit at one that one may query."""
    kind: RequestKind = "access" if _is_wanted(service, caller, dataset) else "budget"
    if kind == "access":
        if body.epsilon is not None:  # the share of it would show the budget
            raise InvalidParameter("A request for access takes a share of the budget. Leave out epsilon.")
        share = None if body.share is None else number(body.share, "share")
    else:
        served = service.datasets.visible(caller, dataset)
        if caller.role == "curator":
            raise InvalidParameter("You are a curator of this data set. Set limits on its page Access.")
        share = _wanted(service, served.name, body)
    made = service.access_requests.make(caller.name, dataset, kind, share, body.reason)
    log("requests waiting", waiting=service.access_requests.open_count())
    return _document(made, curates=False)


@router.delete("/datasets/{dataset}/requests/{request_id}", tags=["people"], status_code=204)
def withdraw(service: OfService, dataset: str, request_id: str, caller: Caller = READER) -> None:
    """Withdraw an open request of one's own."""
    service.access_requests.withdraw(request_id, dataset, caller.name)


@router.post(
    "/datasets/{dataset}/requests/{request_id}/approve",
    tags=["admin"],
    openapi_extra=may_raise(InvalidParameter),
)
def approve(
    service: OfService,
    dataset: str,
    request_id: str,
    body: ApprovalBody,
    caller: Caller = CURATOR,
    replace: Annotated[
        bool, Query(description="Whether it may replace a limit that was set after the request.")
    ] = False,
) -> AccessRequestDocument:
    """Approve a request: its person is granted the data set, with the limit that they want or with a `share`.

    They see the `reason`, if there is one. If a limit was set after the request, the approval is refused unless
    `replace` is true.
    """
    served = service.datasets.visible(caller, dataset)
    access = DatasetAccess(served, service.policies, service.default_costs, by=caller.name)
    stated, chosen = "share" in body.model_fields_set, body.exactly()

    def share_of(one: AccessRequest) -> Fraction | None:
        return chosen if stated else None if one.share is None else number(one.share, "share")

    decided = service.access_requests.approve(
        request_id,
        served.name,
        by=caller.name,
        replace=replace,
        answer=body.reason,
        share=share_of,
        granting=lambda one: access.approving(one.person, share_of(one), needs_grant=one.kind == "budget"),
    )
    access.settle()
    return _document(decided, curates=True)


@router.post(
    "/datasets/{dataset}/requests/{request_id}/decline",
    tags=["admin"],
    openapi_extra=may_raise(InvalidParameter),
)
def decline(
    service: OfService, dataset: str, request_id: str, body: DeclineBody, caller: Caller = CURATOR
) -> AccessRequestDocument:
    """Decline a request, with a reason for its person."""
    served = service.datasets.visible(caller, dataset)
    decided = service.access_requests.decline(request_id, served.name, body.reason, by=caller.name)
    return _document(decided, curates=True)


def _is_wanted(service: Service, caller: Caller, dataset: str) -> bool:
    """Tell whether somebody may know of a data set because it is listed, and only because of that."""
    if not service.access_requests.is_listed(dataset) or service.datasets.sees(caller, dataset):
        return False
    service.datasets.look()
    return any(served.name == dataset for served in service.datasets.everything())


def _wanted(service: Service, dataset: str, body: AccessRequestBody) -> Fraction | None:
    """Return the limit that somebody wants, as a share of the budget in the ledger's unit."""
    if body.epsilon is None:
        return None if body.share is None else number(body.share, "share")
    if body.share is not None:
        raise InvalidParameter("Give a share or epsilon, not both.")
    session = service.datasets.session_of(dataset)
    total = session.budget(history=False).total.amount
    wanted = session.price(number(body.epsilon, "epsilon")).amount / total
    return min(Fraction(1), Fraction(-(-wanted.numerator * SHARES // wanted.denominator), SHARES))


def _document(one: AccessRequest, *, curates: bool) -> AccessRequestDocument:
    document: AccessRequestDocument = {
        "id": one.id,
        "person": one.person,
        "dataset": one.dataset,
        "kind": one.kind,
        "share": one.share,
        "reason": one.reason,
        "created": time_text(one.created),
        "state": one.state,
        "decided": time_or_none(one.decided),
        "decided_by": one.decided_by if curates else None,
        "answer": one.answer,
    }
    if one.given is not None:
        document["given"] = {"share": None if one.given == NO_LIMIT else one.given}
    if curates and one.state == "open":
        document["now"] = {"granted": one.has_grant, "share": one.limit, "newer": one.overtaken}
    return document
