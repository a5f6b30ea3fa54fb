"""Routes of releases of tables: plan them for free, run them for one charge, list them and download their files.

Guarantee:
    A run is one batch within the limits of the caller (`tabulation.running`). The files are a function of released
    numbers. The time of a run follows from the data. So a service that sends answers at deadlines runs a release only
    for people who are trusted with time.

If a run breaks off, the caller sends it again. That is free, because the ledger has the numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, NotRequired

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field
from typing_extensions import TypedDict

from lapwing import errors
from lapwing.catalog.place import within
from lapwing.server.bodies import Amount, Body, Text, number
from lapwing.server.datasets import ServedDataset
from lapwing.server.faulty_field import at_field
from lapwing.server.listing import PageOf, Pagination, cut
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.question_routes import hung_up
from lapwing.server.release_store import KeptRelease
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import ASKER, READER, OfService, new_router
from lapwing.server.service import Service
from lapwing.tabulation import PublishedRelease, ReleasePlan, TableRelease, changes_between, comparison_document
from lapwing.tabulation.comparison_document import ComparisonDocument
from lapwing.tabulation.plan_document import ReleasePlanDocument, plan_for_caller

ZIP: Final = "application/zip"
MOST_TEXT: Final = 200_000
MOST_TABLES: Final = 200
MOST_CELLS: Final = 250_000
"""Of all tables together: a service has memory for others, too."""


class ReleaseBody(Body):
    """A release file in TOML; `epsilon`, if it is there, replaces the cost in the file."""

    release: Annotated[Text, Field(min_length=1, max_length=MOST_TEXT)]
    epsilon: Amount | None = None

    def declared(self) -> TableRelease:
        """Return the release.

        Raises:
            LapwingError: With the key, what was given, and what is allowed.
        """
        try:
            with within("the release file: "):
                release = TableRelease.from_text(self.release)
        except errors.CatalogError as refused:
            raise at_field("release", errors.InvalidParameter(str(refused))) from None
        if len(release.tables) > MOST_TABLES:
            text = f"A release on a service has at most {MOST_TABLES} tables, and this one has {len(release.tables):,}."
            raise at_field("release", errors.InvalidParameter(f"{text} Nothing was charged."))
        return release if self.epsilon is None else replace(release, epsilon=number(self.epsilon, "epsilon"))


class RunBody(ReleaseBody):
    """A release to run; with `previous`, its method report compares it with that release of the same data set."""

    previous: Annotated[Text, Field(min_length=1, max_length=64)] | None = None


class ReleasedFile(TypedDict):
    """A file of a release, with its size in bytes."""

    file: str
    bytes: int


class ReleaseDocument(TypedDict):
    """A release: its cost and its files. The manifest has all other facts; lists do not have it."""

    id: str
    dataset: str
    person: str
    created: str
    title: str
    epsilon: str
    delta: float
    tables: int
    files: list[ReleasedFile]
    request: dict[str, Any]
    manifest: NotRequired[dict[str, Any]]


router: Final = new_router(prefix="/v1", tags=["releases"])
MAY_RUN: Final = may_raise(
    errors.QueryRefused,
    errors.InvalidParameter,
    errors.BudgetExhausted,
    errors.AllowanceExhausted,
    errors.DataChanged,
    errors.DataStopped,
    errors.DataFault,
    errors.AnswerFault,
    errors.EngineFault,
    errors.EntropyFault,
    errors.Interrupted,
    errors.ServiceFault,
    errors.TooManyRequests,
)


@router.post(
    "/datasets/{dataset}/releases/plan",
    responses=described_by(ReleasePlanDocument),
    openapi_extra=may_raise(errors.QueryRefused, errors.InvalidParameter, errors.DataFault, errors.TooManyRequests),
)
def plan(service: OfService, dataset: str, body: ReleaseBody, caller: Caller = READER) -> Response:
    """Plan a release: its cost, and the error of each table. Free, and no row is read."""
    served = service.datasets.visible(caller, dataset)
    with service.callers.pricing(caller):
        session = served.for_caller(caller, service.policies, timed=service.executor.holds_answers)
        return json_response(plan_for_caller(session, body.declared()))


@router.post("/datasets/{dataset}/releases", responses=described_by(ReleaseDocument), openapi_extra=MAY_RUN)
async def run(service: OfService, dataset: str, body: RunBody, request: Request, caller: Caller = ASKER) -> Response:
    """Buy all tables of a release at one charge, and store its files; the same release again is free."""
    served = await run_in_threadpool(service.datasets.visible, caller, dataset)

    def work() -> Response:
        return json_response(_document(_bought(service, caller, served, body), manifest=True))

    return await service.executor.carry_out(caller, work, lambda: hung_up(request))


@router.get("/datasets/{dataset}/releases", responses=described_by(list[ReleaseDocument]))
def list_releases(
    service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = READER
) -> Response:
    """List your releases of a data set, the newest first; auditors and curators see the releases of everybody."""
    name = service.datasets.visible(caller, dataset).name
    return _page_of(service, request, page, _listed(service, caller, name))


@router.get("/releases", responses=described_by(list[ReleaseDocument]))
def list_all(service: OfService, request: Request, page: PageOf, caller: Caller = READER) -> Response:
    """List your releases of all data sets, the newest first; auditors and curators see the releases of everybody."""
    visible = service.datasets.all_visible(caller)
    every = [one for served in visible for one in _listed(service, caller, served.name)]
    every.sort(key=lambda one: one[0], reverse=True)
    return _page_of(service, request, page, every)


def _listed(service: Service, caller: Caller, dataset: str) -> list[tuple[str, str]]:
    """Return the moments and ids of the releases of a data set that somebody may list."""
    return service.releases.listed(dataset, None if caller.at(dataset).may("audit") else caller.name)


def _page_of(service: Service, request: Request, page: Pagination, every: Sequence[tuple[str, str]]) -> Response:
    """Return the part of a list that a request asks for; the manifests of no others are read."""
    shown, headers = cut(request, page.limit, page.start(every, lambda one: one[1]), lambda one: one[1])
    return json_response([_document(one) for one in service.releases.those([id_ for _, id_ in shown])], headers)


@router.get("/releases/{release_id}", responses=described_by(ReleaseDocument))
def show(service: OfService, release_id: str, caller: Caller = READER) -> Response:
    """Show a release, with its manifest."""
    return json_response(_document(may_open(service, caller, release_id), manifest=True))


@router.get(
    "/releases/{release_id}/changes",
    responses=described_by(ComparisonDocument),
    openapi_extra=may_raise(errors.InvalidParameter, errors.TooManyRequests),
)
def changes(
    service: OfService,
    release_id: str,
    before: Annotated[str, Query(min_length=1, max_length=64, description="The earlier release.")],
    caller: Caller = READER,
) -> Response:
    """Compare a release with an earlier one of the same tables: the change of each cell, with its ±. Free.

    Both may be of different data sets, such as of two months.
    """
    with service.callers.pricing(caller):
        earlier, now = (_published(service, may_open(service, caller, id_)) for id_ in (before, release_id))
        found = changes_between(earlier, now)
        if not found:
            raise errors.InvalidParameter("The releases have no table with the same name, number and keys.")
        return json_response(comparison_document(earlier, now, found))


@router.get("/releases/{release_id}/files", responses=described_by(bytes, "All files in one ZIP file.", ZIP))
def download(service: OfService, release_id: str, caller: Caller = READER) -> Response:
    """Download all files of a release."""
    found = may_open(service, caller, release_id)
    return Response(service.releases.archive(found.id), media_type=ZIP, headers=_as(f"release-{found.id[:8]}.zip"))


@router.get("/releases/{release_id}/files/{name}", responses=described_by(bytes, "The file.", "text/html", "text/csv"))
def download_one(service: OfService, release_id: str, name: str, caller: Caller = READER) -> Response:
    """Download one file of a release."""
    from lapwing.tabulation.archive import file_in  # here: few services release

    found = may_open(service, caller, release_id)
    content = file_in(service.releases.archive(found.id), name)
    if content is None:
        raise missing("file of this release")
    return Response(content, media_type="application/octet-stream", headers=_as(name))


def may_open(service: Service, caller: Caller, id_: str) -> KeptRelease:
    """Return a release of the caller, or of a data set that the caller audits.

    Raises:
        NotFound: The same for a hidden release and for none.
    """
    found = service.releases.find(id_)
    if found.person != caller.name and not caller.at(found.dataset).may("audit"):
        raise missing("release")
    service.datasets.visible(caller, found.dataset)
    return found


def _published(service: Service, kept: KeptRelease) -> PublishedRelease:
    """Return the numbers of a release."""
    from lapwing.tabulation.archive import published_in  # here: few services release

    return published_in(service.releases.archive(kept.id))


def _previous(service: Service, caller: Caller, served: ServedDataset, id_: str | None) -> PublishedRelease | None:
    """Return the release that a method report compares with.

    Where results of this data set may be published, all numbers of the report may be. So it is of the same data set.
    """
    if id_ is None:
        return None
    try:
        kept = may_open(service, caller, id_)
        if kept.dataset != served.name:
            raise missing("release of this data set")
        return _published(service, kept)
    except errors.LapwingError as refused:
        raise at_field("previous", refused) from None


def _bought(service: Service, caller: Caller, served: ServedDataset, body: RunBody) -> KeptRelease:
    """Buy a release and keep it; in a thread."""
    from lapwing.tabulation.archive import ReleaseArchive  # here: few services release
    from lapwing.tabulation.planning import prepared
    from lapwing.tabulation.running import run_prepared

    if service.executor.holds_answers and not served.trusts_with_time(caller, service.policies):
        raise errors.QueryRefused(
            "The time that a release takes depends on the data, and this service shows it only to people whom the "
            "curator trusts with time",
            cause=errors.RefusalCause.TIME_DEPENDS_ON_DATA,
            curator_remedy="give you a grant that trusts you with time",
        )
    release, session = body.declared(), served.for_caller(caller, service.policies)
    previous = _previous(service, caller, served, body.previous)
    ready = prepared(session, release)
    _require_small(ready.described)
    made = ReleaseArchive.of(run_prepared(session, release, ready), previous)
    declared = body.model_dump(mode="json", exclude_none=True)
    return service.releases.keep(caller.name, served.name, declared, made.manifest, made.content)


def _require_small(planned: ReleasePlan) -> None:
    cells = sum(table.cells or 0 for table in planned.tables)
    if cells > MOST_CELLS:
        raise errors.InvalidParameter(
            f"The tables have {cells:,} cells, and a service releases at most {MOST_CELLS:,}. Leave out the finest "
            "tables, or run `lapwing release run` where the data are. Nothing was charged."
        )


def _document(one: KeptRelease, *, manifest: bool = False) -> ReleaseDocument:
    listed = [*(file for table in one.manifest["tables"] for file in table["files"]), *one.manifest["files"]]
    document: ReleaseDocument = {
        "id": one.id,
        "dataset": one.dataset,
        "person": one.person,
        "created": one.created,
        "title": one.title,
        "epsilon": one.manifest["epsilon"],
        "delta": float(one.manifest["delta"]) + float(one.manifest.get("delta_keys", 0)),
        "tables": len(one.manifest["tables"]),
        "files": [{"file": file["file"], "bytes": file["bytes"]} for file in listed],
        "request": dict(one.declaration),
    }
    return {**document, "manifest": dict(one.manifest)} if manifest else document


def _as(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
