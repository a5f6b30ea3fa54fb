"""Routes of what becomes of a data set: registered, its guarantee, a larger budget, its ledger's export, its end."""

from itertools import chain
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from lapwing.catalog.amending import write_budget
from lapwing.errors import CatalogError
from lapwing.guarantee import as_document, as_html
from lapwing.guarantee.raise_documents import raise_document
from lapwing.ledger import exporting
from lapwing.privacy.amounts import short, written
from lapwing.server import auditing
from lapwing.server.bodies import Amount, Text, number
from lapwing.server.datasets import Served, schema_document
from lapwing.server.policies import Policies
from lapwing.server.rights import Caller
from lapwing.server.service import Service
from lapwing.session import Session

LINES: Final = "application/x-ndjson"
HTML: Final = "text/html"
MOST_CATALOG: Final = 1_000_000
_FORBID: Final = ConfigDict(extra="forbid", allow_inf_nan=False)
PAGE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The page, as JSON or as HTML, by the Accept header.", "content": {HTML: {}}}
}
EXPORT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "An entry a line, as JSON.", "content": {LINES: {}}}
}


class NewDataset(BaseModel):
    """A catalog, as the text of a TOML file or as the same in JSON, and the folder from which its paths start."""

    model_config = _FORBID
    catalog: Annotated[Text, Field(max_length=MOST_CATALOG)] | dict[str, Any]
    folder: Annotated[Text, Field(max_length=4096)] | None = None


class Figures(BaseModel):
    """A budget."""

    model_config = _FORBID
    epsilon: Amount
    delta: Amount


class NewCap(BaseModel):
    """A larger budget, and the one that it replaces; nothing is changed until it is confirmed."""

    model_config = _FORBID
    was: Figures
    epsilon: Amount
    delta: Amount
    confirmed: StrictBool = False


class Closed(BaseModel):
    """That the data set is closed, for ever."""

    model_config = _FORBID
    closed: Literal[True]


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1/datasets")
    reader, auditor, curator = (Depends(service.callers.demand(right)) for right in ("read", "audit", "admin"))

    @router.post("", tags=["admin"], status_code=201)
    def register(body: NewDataset, caller: Caller = curator) -> dict[str, Any]:
        """Register a data set whose files lie in a folder of the service; it stays registered."""
        served = service.registering.register(body.catalog, body.folder, by=caller.name)
        return schema_document(served.name, served.session.catalog)

    @router.get("/{dataset}/guarantee", tags=["questions"], responses=PAGE)
    def guarantee(dataset: str, request: Request, caller: Caller = reader) -> Response:
        """Show what is promised to the people in the data, as a page to be printed or as JSON."""
        served = service.datasets.visible(caller, dataset)
        inside = caller.may("audit")
        page = served.session.guarantee(_asking(served, service.policies, inside=inside), sealed=inside)
        headers = {"Vary": "Accept"}
        if HTML in request.headers.get("accept", ""):
            return HTMLResponse(as_html(page), headers=headers)
        return JSONResponse(as_document(page), headers=headers)

    @router.put("/{dataset}/cap", tags=["admin"])
    def raise_cap(dataset: str, body: NewCap, caller: Caller = curator) -> dict[str, Any]:
        """Show what a larger budget would promise; and if that is confirmed, make it the budget, for ever."""
        served = service.datasets.visible(caller, dataset)
        session = served.session.acting_for(caller.name)
        epsilon, delta = number(body.epsilon, "epsilon"), number(body.delta, "delta")
        was = number(body.was.epsilon, "was.epsilon"), number(body.was.delta, "was.delta")
        seen = session.raised(was=was, epsilon=epsilon, delta=delta)
        if not body.confirmed:
            return raise_document(seen) | {"raised": False}
        # The catalogs of two raises are written in their order, whichever processes they come to.
        with service.datasets.changing, service.store.turn(f"cap {served.name}"):
            session.raise_budget(was=was, epsilon=epsilon, delta=delta)
            served.settle()
            told = _catalog_written(session)
        with service.store.transaction() as connection:
            figures = {"epsilon": written(epsilon), "delta": written(delta)}
            auditing.note(connection, caller.name, "budget raised", served.name, **figures)
        return raise_document(seen) | {"raised": True, "catalog": told}

    @router.put("/{dataset}/closed", tags=["admin"])
    def close(dataset: str, body: Closed, caller: Caller = curator) -> dict[str, Any]:
        """Close a data set for ever: nothing is charged once this returns; what was bought stays free."""
        served = service.datasets.visible(caller, dataset)
        was_open = served.session.acting_for(caller.name).close_for_ever()
        if was_open:
            with service.store.transaction() as connection:
                auditing.note(connection, caller.name, "closed for ever", served.name)
        return {"closed": body.closed, "was_open": was_open}

    @router.get("/{dataset}/ledger", tags=["audit"], response_class=Response, responses=EXPORT)
    def ledger(dataset: str, caller: Caller = auditor) -> StreamingResponse:
        """Export the ledger, an entry a line, each sealed over the one before; as secret as the ledger itself."""
        served = service.datasets.visible(caller, dataset)
        lines = exporting.lines(served.session.ledger_entries())
        first = next(lines)  # a ledger that cannot be read is told as that, and not as a short one
        return StreamingResponse(chain([first], lines), media_type=LINES)

    return router


def _asking(served: Served, policies: Policies, *, inside: bool) -> list[str]:
    """Say who may ask; by name to those who may see that."""
    sentences = ["Whoever the curator lets ask, by a token of their own; all together are held by this one promise."]
    if inside:
        for grant in policies.grants(served.name):
            share = "" if grant.share is None else f", up to {short(100 * grant.share)} % of the budget"
            sentences.append(f"{grant.person}{share}.")
    return sentences


def _catalog_written(session: Session) -> str:
    """Write the budget into the catalog's file, and say what came of it: the ledger has it in any case."""
    try:
        write_budget(session.catalog, session.catalog.budget)
    except CatalogError as error:
        return (
            f"The ledger has the new budget, and the service uses it. Before it is started again, mend this: {error}."
        )
    return "written"
