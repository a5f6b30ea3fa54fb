"""Routes of published pages: what a curator allows, and results that people publish, list, export and withdraw."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from pydantic import Field, StrictBool

from lapwing.answer.charts.chart_options import NAMES, ChartOptions
from lapwing.catalog.model import Catalog
from lapwing.catalog.spelling import is_seen
from lapwing.documents.published.snapshots import FULL, ResultToShow, TextToShow, snapshot_of
from lapwing.documents.published_document import PublishedDocument, PublishingDocument
from lapwing.documents.tile_text import lines_of
from lapwing.errors import AnswerDropped, CatalogMismatch, InvalidParameter, NotAuthorised, NotFound
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.authentication import require_right
from lapwing.server.bodies import Body, Name, Text
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import dropped
from lapwing.server.faulty_field import at_field
from lapwing.server.listing import PageOf, cut
from lapwing.server.monitor_routes import opened
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.published_monitors import OWN, monitor_to_show
from lapwing.server.published_pages import NOT_ALLOWED, PAGE, PublishedPage, PublishingRule
from lapwing.server.recorded_results import asked_of, label_of
from lapwing.server.release_routes import may_open
from lapwing.server.responses import HTML, described_by
from lapwing.server.result_costs import cost_in_all
from lapwing.server.routing import ASKER, CURATOR, READER, OfService, new_router
from lapwing.server.saved_routes import LONGEST_TITLE, MOST_TILES, USUAL_WIDTH, SavedChart
from lapwing.server.service import Service
from lapwing.server.store import time_or_none, time_text

Id = Annotated[Text, Field(min_length=1, max_length=64)]
Title = Annotated[Text, Field(min_length=1, max_length=LONGEST_TITLE)]
PATH: Final = "/published/"


class PublishingBody(Body):
    """Whether results may be published; `origins` are those whose pages may show them in a frame."""

    allowed: StrictBool
    origins: Annotated[list[Annotated[Text, Field(max_length=300)]], Field(max_length=100, default_factory=list)]


class PublishBody(Body):
    """Results, a dashboard or a monitor to publish, or the method report of a release.

    The page is at a public `name`, or at an address of random bits. `chart` has the choices of the chart of `answers`.
    """

    title: Title
    answers: Annotated[list[Id], Field(min_length=1, max_length=MOST_TILES)] | None = None
    chart: SavedChart | None = None
    dashboard: Id | None = None
    monitor: Name | None = None
    release: Id | None = None
    author: Annotated[Text, Field(max_length=LONGEST_TITLE)] | None = None
    name: Annotated[Text, Field(min_length=1, max_length=LONGEST_TITLE)] | None = None
    show_query: StrictBool = False


router: Final = new_router(prefix="/v1", tags=["published"])


@router.get("/datasets/{dataset}/publishing")
def publishing(service: OfService, dataset: str, caller: Caller = READER) -> PublishingDocument:
    """Tell whether results of a data set may be published."""
    return _rule(service.published.rule(service.datasets.visible(caller, dataset).name))


@router.put("/datasets/{dataset}/publishing", openapi_extra=may_raise(InvalidParameter))
def set_publishing(
    service: OfService, dataset: str, body: PublishingBody, caller: Caller = CURATOR
) -> PublishingDocument:
    """Let people publish results, or turn it off, which withdraws all published pages of the data set for ever."""
    name = service.datasets.visible(caller, dataset).name
    if body.allowed:
        return _rule(service.published.allow(name, body.origins, by=caller.name))
    if body.origins:
        raise InvalidParameter("Origins are of pages that may be published. Leave them out to turn publishing off.")
    service.published.forbid(name, by=caller.name)
    return _rule(PublishingRule(allowed=False))


@router.get("/datasets/{dataset}/published")
def list_published(
    service: OfService, dataset: str, request: Request, response: Response, page: PageOf, caller: Caller = READER
) -> list[PublishedDocument]:
    """List one's own published pages, the newest first; auditors and curators see the pages of everybody."""
    name = service.datasets.visible(caller, dataset).name
    here = caller.at(name)
    pages = service.published.of(name, None if here.may("audit") or here.may("admin") else caller.name)
    shown, headers = cut(request, page.limit, page.start(pages, lambda one: one.id), lambda one: one.id)
    response.headers.update(headers)
    return [_document(one) for one in shown]


@router.post(
    "/datasets/{dataset}/published",
    status_code=201,
    openapi_extra=may_raise(InvalidParameter, NotAuthorised, AnswerDropped),
)
def publish(service: OfService, dataset: str, body: PublishBody, caller: Caller = ASKER) -> PublishedDocument:
    """Publish results that one may open as a page for everybody. It is a snapshot: it never changes.

    One of them is of this data set. The others may be of other data sets whose results may be published.
    """
    served = service.datasets.visible(caller, dataset)
    _require_allowed(service, served.name)
    name = body.name and body.name.strip()
    if body.release is not None:
        content, title = _method_page(service, caller, served.name, body), _title(body.title)
        last, made = service.published.publish([served.name], caller.name, title, content, name=name)
        return {**_document(made, json.dumps(content)), "address": PATH + last, "left_out": 0}
    tiles = _tiles(service, caller, served.name, body)
    every = [_shown(service, caller, served.name, tile, query=body.show_query) for tile in tiles]
    shown = [one for one in every if one is not None]
    if not any(isinstance(one, ResultToShow) for one in shown):
        raise InvalidParameter("There is no result to publish yet. Add one to the dashboard, or wait for the monitor.")
    catalogs = _catalogs(service, caller, served, shown)
    content = snapshot_of(
        catalogs,
        shown,
        title=_title(body.title),
        author=_line(body.author or "") or None,
    )
    last, made = service.published.publish(list(catalogs), caller.name, content["title"], content, name=name)
    return {**_document(made, json.dumps(content)), "address": PATH + last, "left_out": len(every) - len(shown)}


@router.get("/published/{page_id}")
def show(service: OfService, page_id: str, caller: Caller = READER) -> PublishedDocument:
    """Describe a published page: one's own, or one of a data set that one looks after."""
    return _document(*_of_caller(service, caller, page_id))


@router.get("/published/{page_id}/page", responses=described_by(str, "The page.", HTML))
def export(service: OfService, page_id: str, caller: Caller = READER) -> Response:
    """Return a published page as one HTML file, which needs nothing else."""
    from lapwing.documents.published.page import page_of  # here: few services publish

    found, content = _of_caller(service, caller, page_id)
    if content is None:
        raise missing(PAGE)
    file = f'attachment; filename="{found.file_name}"'
    return HTMLResponse(page_of(content), headers={"Content-Disposition": file})


@router.delete("/published/{page_id}", status_code=204)
def withdraw(service: OfService, page_id: str, caller: Caller = READER) -> None:
    """Withdraw a published page at once and for ever: one's own, or one of a data set that one looks after."""
    _of_caller(service, caller, page_id)
    service.published.withdraw(page_id, by=caller.name)


def _of_caller(service: Service, caller: Caller, page_id: str) -> tuple[PublishedPage, str | None]:
    """Return a page of one's own, also of a data set that one may not see any more, or that one looks after.

    Who looks after one of the data sets of a page sees all of it, as everybody does who has its address.
    """
    found, content = service.published.find(page_id)
    if found.person != caller.name and not any(caller.at(dataset).may("admin") for dataset in found.datasets):
        raise missing(PAGE)
    return found, content


def _method_page(service: Service, caller: Caller, dataset: str, body: PublishBody) -> dict[str, Any]:
    """Return the snapshot of a method report, of a release that somebody may open: the bytes of its file.

    Raises:
        NotFound: If there is no such release of this data set for who asks.
        InvalidParameter: If something else is to be published, too.
    """
    from lapwing.tabulation.archive import method_page_in  # here: few services release

    if (body.answers, body.chart, body.dashboard, body.monitor, body.author) != (None,) * 5 or body.show_query:
        raise InvalidParameter(
            "The page of a release is its method report. "
            "Leave out answers, chart, dashboard, monitor, author and show_query."
        )
    found = may_open(service, caller, body.release or "")
    if found.dataset != dataset:
        raise missing("release of this data set")
    return {"title": found.title, "method_page": method_page_in(service.releases.archive(found.id))}


def _require_allowed(service: Service, dataset: str) -> None:
    """Refuse to publish results of a data set whose curator does not allow it."""
    if not service.published.rule(dataset).allowed:
        raise NotAuthorised(NOT_ALLOWED)


def _catalogs(
    service: Service, caller: Caller, served: ServedDataset, shown: Sequence[ResultToShow | TextToShow]
) -> Mapping[str, Catalog]:
    """Return the catalogs of all data sets of some results, by name, beginning with that of the page.

    Raises:
        NotAuthorised: If results of one may not be published, or who asks may not ask it.
        NotFound: If who asks may not see one, or no result is of the page's data set.
    """
    names = dict.fromkeys(one.dataset for one in shown if isinstance(one, ResultToShow))
    if served.name not in names:
        raise missing("answer")
    catalogs = {served.name: served.session.catalog}
    for name in names:
        if name != served.name:
            other = service.datasets.visible(caller, name)
            require_right(caller.at(name), "ask")
            _require_allowed(service, name)
            catalogs[name] = other.session.catalog
    return catalogs


def _tiles(service: Service, caller: Caller, dataset: str, body: PublishBody) -> Sequence[Mapping[str, Any]]:
    """Return what is to be published as tiles of a dashboard."""
    if [body.answers, body.dashboard, body.monitor].count(None) != 2:
        raise InvalidParameter("Give answers, a dashboard or a monitor: one of them.")
    if body.chart is not None and body.answers is None:
        raise at_field("chart", InvalidParameter("Give a chart with answers. A dashboard has a chart in each tile."))
    if body.answers is not None:
        chart = {} if body.chart is None else body.chart.model_dump(mode="json", exclude_none=True)
        return [{**chart, "answer": answer, "width": FULL} for answer in dict.fromkeys(body.answers)]
    if body.monitor is not None:
        with opened(service, caller, dataset, body.monitor):  # which refuses one that is not there
            return [{"monitor": body.monitor, "width": FULL}]
    item = service.saved.find(body.dashboard or "", caller.name)
    if item.dataset != dataset or "tiles" not in item.content:
        raise missing("dashboard of this data set")
    tiles: Sequence[Mapping[str, Any]] = item.content["tiles"]
    return tiles


def _shown(
    service: Service, caller: Caller, dataset: str, tile: Mapping[str, Any], *, query: bool
) -> ResultToShow | TextToShow | None:
    """Return a tile as a page shows it; None of a monitor that is gone or has released nothing."""
    if tile.get("text"):
        lines, width = lines_of(tile["text"]), tile.get("width", USUAL_WIDTH)
        return TextToShow(title=_line(tile.get("title") or ""), lines=lines, width=width)
    if tile.get("monitor"):
        with suppress(NotFound, CatalogMismatch), opened(service, caller, dataset, tile["monitor"]) as monitor:
            return monitor_to_show(dataset, monitor, {**tile, "title": _line(tile.get("title") or "")}, query=query)
        return None
    return _result(service, caller, tile, query=query)


def _result(service: Service, caller: Caller, tile: Mapping[str, Any], *, query: bool) -> ResultToShow:
    """Return a result that somebody may open: it was released, or it would not be in the store.

    Raises:
        NotFound: If there is no such object for who asks.
        AnswerDropped: If it is kept no more.
        InvalidParameter: If its cost is not known.
    """
    id_ = tile["answer"]
    record = service.answers.find(id_)
    if record is None or not _may_publish(service, caller, record):
        raise missing("answer")
    if record.dropped:
        raise dropped()
    title = _line(tile.get("title") or label_of(record) or "")
    chosen = ChartOptions.from_texts({name: tile[name] for name in NAMES if name in tile and name not in OWN})
    return ResultToShow(
        id=id_,
        dataset=record.dataset,
        document=record.document,
        released=record.created[:10],
        query=asked_of(record).get("sql") if query else None,
        cost=cost_in_all(service, record),
        title=title,
        column=tile.get("column"),
        chart=chosen.texts,
        width=tile.get("width", USUAL_WIDTH),
    )


def _may_publish(service: Service, caller: Caller, record: AnswerRecord) -> bool:
    own = record.person == caller.name or caller.at(record.dataset).may("admin")
    return own or service.saved.may_open(record.id, caller.name)


def _line(text: str) -> str:
    """Return a text without line breaks and characters that nobody sees."""
    return "".join(one for one in " ".join(text.split()) if is_seen(one)).strip()


def _title(text: str) -> str:
    title = _line(text)
    if not title:
        raise at_field("title", InvalidParameter("A page needs a title that people can see."))
    return title


def _rule(rule: PublishingRule) -> PublishingDocument:
    return {"allowed": rule.allowed, "origins": list(rule.origins)}


def _document(one: PublishedPage, content: str | None = None) -> PublishedDocument:
    """Return what the service says of a page, and with its snapshot as JSON how tall a frame has to be."""
    document: PublishedDocument = {
        "id": one.id,
        "dataset": one.dataset,
        "person": one.person,
        "title": one.title,
        "name": one.name,
        "created": time_text(one.created),
        "withdrawn": time_or_none(one.withdrawn),
        "withdrawn_by": one.withdrawn_by,
        "datasets": list(one.datasets),
    }
    if content is not None:
        from lapwing.documents.published.frame import frame_height  # here: few services publish

        document["frame_height"] = frame_height(content)
    return document if one.name is None or one.withdrawn else {**document, "address": PATH + one.name}
