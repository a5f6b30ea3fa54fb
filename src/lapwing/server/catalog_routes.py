"""Routes of curators for the catalog of a data set that is served, and its versions."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Response
from fastapi.responses import PlainTextResponse
from pydantic import Field

from lapwing import catalog_changes
from lapwing.documents.budget_document import GuaranteeDocument
from lapwing.documents.catalog_document import (
    BudgetRaiseDocument,
    CatalogChangedDocument,
    CatalogChangesDocument,
    CatalogDocument,
    CatalogPreviewDocument,
    CatalogVersionDocument,
    ChangeDocument,
    DataVersionDocument,
    NextVersionDocument,
    VersionsDocument,
)
from lapwing.documents.preparation_document import CheckDocument
from lapwing.errors import CatalogError, CatalogMismatch, DataFault, InvalidParameter, TooManyRequests
from lapwing.ledger.entries import Entry
from lapwing.monitors.monitor import monitored_tables
from lapwing.server import audit_log
from lapwing.server.bodies import MOST_SQL, Body, Text
from lapwing.server.catalog_prices import MOST, compared
from lapwing.server.catalog_versions import state_of
from lapwing.server.dataset_routes import MOST_CATALOG
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import AUDITOR, CURATOR, OfService, new_router

TOML: Final = "application/toml"
Question = Annotated[Text, Field(min_length=1, max_length=MOST_SQL)]


class CatalogBody(Body):
    """A catalog, as the text of a TOML file or as the same in JSON. Its paths start where those in force do."""

    catalog: Annotated[Text, Field(max_length=MOST_CATALOG)] | dict[str, Any]


class PreviewBody(CatalogBody):
    """A catalog, and questions that are to be priced by it, beside those that people have saved and asked."""

    questions: Annotated[list[Question], Field(default_factory=list, max_length=MOST)]


class ChangeBody(CatalogBody):
    """A catalog, and the `state` of the one that it replaces, so that nobody's change is lost."""

    was: Annotated[Text, Field(min_length=64, max_length=64)]


FAULTS: Final = may_raise(InvalidParameter, CatalogError, CatalogMismatch, DataFault)
router: Final = new_router(prefix="/v1/datasets/{dataset}", tags=["admin"])


@router.get("/catalog")
def catalog(service: OfService, dataset: str, caller: Caller = CURATOR) -> CatalogDocument:
    """Return the catalog in force, as text."""
    served = service.datasets.visible(caller, dataset)
    text, file = service.catalogs.text(served), served.session.catalog.file
    return {
        "catalog": text,
        "state": state_of(text),
        "number": served.number,
        "file": None if file is None else file.name,
    }


@router.post(
    "/catalog/preview",
    responses=described_by(CatalogPreviewDocument),
    openapi_extra=may_raise(InvalidParameter, CatalogError, TooManyRequests),
)
def preview(service: OfService, dataset: str, body: PreviewBody, caller: Caller = CURATOR) -> Response:
    """Show what another catalog would change: entries, what they mean, and prices; no private row is read."""
    served = service.datasets.visible(caller, dataset)
    catalog, _ = service.catalogs.read(served, body.catalog, more_files=caller.may_everywhere("admin"))
    before = catalog_changes.with_budget_of(served.session.catalog, served.session)
    document: CatalogPreviewDocument = {
        "allowed": True,
        "refusal": None,
        "changes": [change_document(change) for change in catalog_changes.changes(before, catalog)],
        "consequences": [
            {"kind": consequence.kind, "about": consequence.about, "said": consequence.said}
            for consequence in catalog_changes.consequences(before, catalog, monitored_tables(before))
        ],
        "prices": [],
    }
    try:
        service.catalogs.require_allowed(served, catalog)
    except (CatalogMismatch, CatalogError) as refusal:
        return json_response({**document, "allowed": False, "refusal": str(refusal)})
    with service.callers.pricing(caller):
        session, saved = served.for_caller(caller, service.policies), service.saved.of(caller.name, dataset)
        document["prices"] = compared(session, catalog, body.questions, saved)
    return json_response(document)


@router.post("/catalog/check", responses=described_by(CheckDocument), openapi_extra=FAULTS)
def check(service: OfService, dataset: str, body: CatalogBody, caller: Caller = CURATOR) -> Response:
    """Read all data that another catalog describes, and say what they are like: exact, private, kept nowhere."""
    served = service.datasets.visible(caller, dataset)
    catalog, _ = service.catalogs.read(served, body.catalog, more_files=caller.may_everywhere("admin"))
    service.catalogs.require_allowed(served, catalog)
    found: Any = service.preparation.look_at(catalog, by=caller.name)
    return json_response(found)


@router.put("/catalog", openapi_extra=FAULTS)
def change(service: OfService, dataset: str, body: ChangeBody, caller: Caller = CURATOR) -> CatalogChangedDocument:
    """Put another catalog into force: for all questions that come once this returns. The ledger stays."""
    served = service.datasets.visible(caller, dataset)
    number, unaccepted = service.catalogs.change(
        served, body.catalog, body.was, by=caller.name, more_files=caller.may_everywhere("admin")
    )
    text = service.catalogs.text(service.datasets.current(served))
    return {"number": number, "state": state_of(text), "unaccepted": list(unaccepted)}


@router.get("/versions", tags=["audit"], responses=described_by(VersionsDocument))
def list_versions(service: OfService, dataset: str, caller: Caller = AUDITOR) -> Response:
    """List the versions of the data, with their digests, and the catalogs; as secret as the ledger."""
    served = service.datasets.visible(caller, dataset)
    data: list[DataVersionDocument] = []
    raises: list[Entry] = []
    for entry in served.session.ledger_entries():
        if entry.kind == "data":
            body, person = entry.contents(), None
            if body["version"] == 1:  # the process that opened the ledger wrote the name of its own account
                person = audit_log.registered_by(service.store, dataset, entry.time)
            data.append(
                {
                    "version": body["version"],
                    "time": entry.time,
                    "person": person or body["principal"],
                    "by_service": body["version"] == 1 and person is None,
                    "digests": dict(body["digests"]),
                }
            )
        elif entry.kind == "raise":
            raises.append(entry)
    reasons = audit_log.reasons_of_raises(service.store, dataset) if raises else {}
    kept: list[CatalogVersionDocument] = [
        {"number": one.number, "created": one.created, "person": one.person, "digest": one.digest}
        for one in service.catalog_versions.all(dataset)
    ]
    newest = service.catalog_versions.newest(dataset)
    document: VersionsDocument = {
        "data": data[::-1],
        "catalogs": kept[::-1],
        "version": served.session.budget(history=False).version,
        "number": served.number,
        "catalog": served.session.catalog.digest,
        "newest_in_force": newest is None or newest.digest == served.session.catalog.digest,
        "raises": [_raise_document(entry, reasons) for entry in reversed(raises)],
    }
    return json_response(document)


def _raise_document(entry: Entry, reasons: Mapping[tuple[str, str], str]) -> BudgetRaiseDocument:
    body = entry.contents()
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "person": body["principal"],
        "was": _budget_document(body["was"]),
        "now": _budget_document(body["now"]),
        "was_total": body["was"]["budget"],
        "reason": reasons.get((body["now"]["epsilon"], body["now"]["delta"])),
    }


def _budget_document(budget: Mapping[str, str]) -> GuaranteeDocument:
    return {"epsilon": budget["epsilon"], "delta": budget["delta"]}


@router.get("/versions/{number}", tags=["audit"], response_class=Response, responses={200: {"content": {TOML: {}}}})
def text_of_version(service: OfService, dataset: str, number: int, caller: Caller = AUDITOR) -> Response:
    """Return the text of a catalog that was in force."""
    served = service.datasets.visible(caller, dataset)
    for one in service.catalog_versions.all(served.name):
        if one.number == number:
            return PlainTextResponse(one.content, media_type=TOML)
    raise missing("catalog")


@router.get("/versions/{number}/changes", tags=["audit"], responses=described_by(CatalogChangesDocument))
def changes_of_version(service: OfService, dataset: str, number: int, caller: Caller = AUDITOR) -> Response:
    """Say what a catalog that was in force has otherwise than the one before it, with old and new values."""
    served = service.datasets.visible(caller, dataset)
    earlier, changes = service.catalogs.changed_by(served, number)
    document: CatalogChangesDocument = {
        "number": number,
        "earlier": earlier,
        "changes": None if changes is None else [change_document(change) for change in changes],
    }
    return json_response(document)


def change_document(change: catalog_changes.Change) -> ChangeDocument:
    """Return one entry that a catalog has otherwise."""
    return {"place": change.place, "was": change.was, "now": change.now, "refusal": change.refusal}


@router.post("/versions/next", responses=described_by(NextVersionDocument), openapi_extra=may_raise(DataFault))
def next_version(service: OfService, dataset: str, caller: Caller = CURATOR) -> Response:
    """Read the data as they are now, and say what accepting them would do: for curators alone, kept nowhere."""
    served = service.datasets.visible(caller, dataset)
    with service.store.transaction() as connection:
        sources = [table.source for table in served.session.catalog.tables]
        audit_log.note(connection, caller.name, "data looked at", served.name, files=sources)
    same, refusal = service.catalogs.unaccepted(served)
    version = served.session.budget(history=False).version
    told = {"version": version if all(same.values()) else version + 1, "same": same, "refusal": refusal}
    return json_response(told)
