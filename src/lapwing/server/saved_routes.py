"""Routes of what people keep: saved questions and dashboards, and answers that a team shares. All of it is free."""

from typing import Annotated, Any, Final, Literal, NotRequired

from fastapi import Request, Response
from pydantic import Field, StrictBool, StrictFloat, StrictInt
from typing_extensions import TypedDict

from lapwing.answer.charts.chart_options import LONGEST_LINE_TITLE, ChartOptions
from lapwing.documents.tile_text import lines_of
from lapwing.errors import InvalidParameter
from lapwing.server.bodies import MOST_SQL, Amount, Body, Name, Text
from lapwing.server.listing import PageOf, cut
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.question_routes import BoughtAnswer
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import ASKER, READER, OfService, new_router
from lapwing.server.saved import SavedItem
from lapwing.server.service import Service

MOST_TILES: Final = 40
LONGEST_TITLE: Final = 120
LONGEST_TEXT: Final = 4_000
USUAL_WIDTH: Final = "half"
"""The width of a tile that states none."""


ColumnName = Annotated[Text, Field(min_length=1, max_length=1000)]
ChartTitle = Annotated[Text, Field(min_length=1, max_length=LONGEST_TITLE)]
ChartKind = Literal["auto", "bars", "points", "lines", "table"]
ChartOrder = Literal["released", "label", "largest", "smallest"]


class SavedQuestion(Body):
    """A question in SQL, and by what it is priced."""

    sql: Annotated[Text, Field(min_length=1, max_length=MOST_SQL)]
    epsilon: Amount | None = None
    error: Amount | None = None
    delta: Amount | None = None
    assuming_count: Annotated[StrictInt, Field(ge=1, le=10**15)] | None = None


class SavedChart(Body):
    """The choices of the chart of a saved question, with the names that a tile has for them."""

    column: ColumnName | None = None
    title: ChartTitle | None = None
    kind: ChartKind | None = None
    x: ColumnName | None = None
    colour: ColumnName | None = None
    arrange: ChartOrder | None = None
    log: StrictBool | None = None
    line: StrictInt | StrictFloat | None = None
    line_title: Annotated[Text, Field(min_length=1, max_length=LONGEST_LINE_TITLE)] | None = None
    x_title: ChartTitle | None = None
    y_title: ChartTitle | None = None


class Tile(SavedChart):
    """A part of a dashboard, in a width: a text, or an answer or a monitor. The other fields are about its chart.

    A text is shown as it is, with its paragraphs and lists; it is no HTML.
    """

    text: Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT)] | None = None
    width: Literal["third", "half", "full"] | None = None
    answer: Annotated[Text, Field(min_length=1, max_length=64)] | None = None
    monitor: Name | None = None


class SavedBody(Body):
    """A saved question with the choices of its chart, or a dashboard of `tiles`; `shared` with one's team or not."""

    title: Annotated[Text, Field(min_length=1, max_length=LONGEST_TITLE)]
    question: SavedQuestion | None = None
    chart: SavedChart | None = None
    tiles: Annotated[list[Tile], Field(max_length=MOST_TILES)] | None = None
    shared: StrictBool = False

    def content(self) -> dict[str, Any]:
        """Return what is kept.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        if (self.question is None) == (self.tiles is None):
            raise InvalidParameter("Give either a question or tiles.")
        if self.question is not None:
            content = {"question": self.question.model_dump(mode="json", exclude_none=True)}
            chart = {} if self.chart is None else self.chart.model_dump(mode="json", exclude_none=True)
            ChartOptions.from_texts(chart)  # which refuses what no chart can have
            return content | ({"chart": chart} if chart else {})
        if self.chart is not None:
            raise InvalidParameter("A chart belongs to a question. On a dashboard each tile has its own choices.")
        tiles = self.tiles or []
        if any([tile.answer, tile.monitor, tile.text].count(None) != 2 for tile in tiles):
            raise InvalidParameter("A tile is of one thing: an answer, a monitor or a text.")
        if any(tile.text is not None and not lines_of(tile.text) for tile in tiles):
            raise InvalidParameter("A text on a dashboard has some words.")
        for tile in tiles:
            ChartOptions.from_texts(tile.model_dump(mode="json"))  # which refuses what no chart can have
        return {"tiles": [tile.model_dump(mode="json", exclude_none=True) for tile in tiles]}


class SharedBody(Body):
    """Whether one's team may open an answer."""

    shared: StrictBool


class SavedDocument(TypedDict):
    """A saved question or a dashboard; `team` is the one with which it is shared."""

    id: str
    person: str
    dataset: str
    created: str
    title: str
    team: str | None
    question: NotRequired[dict[str, Any]]
    chart: NotRequired[dict[str, Any]]
    tiles: NotRequired[list[dict[str, Any]]]


class SharedDocument(TypedDict):
    """With which team an answer is shared; null for none."""

    answer: str
    team: str | None


router: Final = new_router(prefix="/v1", tags=["saved"])


def _visible(service: Service, caller: Caller, id_: str) -> SavedItem:
    item = service.saved.find(id_, caller.name)
    service.datasets.visible(caller, item.dataset)
    return item


def _share_tiles(service: Service, caller: Caller, content: dict[str, Any], *, shared: bool) -> None:
    """Share one's own answers that a shared dashboard shows, as nobody else could see them there."""
    for tile in content.get("tiles", []) if shared else []:
        record = service.answers.find(tile["answer"]) if "answer" in tile else None
        if record is not None and record.person == caller.name:
            service.saved.share_answer(record.id, caller.name, shared=True)


@router.post(
    "/datasets/{dataset}/saved",
    status_code=201,
    responses=described_by(SavedDocument, status=201),
    openapi_extra=may_raise(InvalidParameter),
)
def add(service: OfService, dataset: str, body: SavedBody, caller: Caller = ASKER) -> Response:
    """Save a question or a dashboard; with `shared`, for one's team, which may open the dashboard's answers too."""
    served, content = service.datasets.visible(caller, dataset), body.content()
    item = service.saved.add(caller.name, served.name, body.title, content, shared=body.shared)
    _share_tiles(service, caller, content, shared=body.shared)
    return json_response(_document(item), {"Location": f"/v1/saved/{item.id}"}, status=201)


@router.get("/datasets/{dataset}/saved", responses=described_by(list[SavedDocument]))
def list_saved(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = READER) -> Response:
    """List what one has saved of a data set, and what one's team shares, by title."""
    served = service.datasets.visible(caller, dataset)
    items = page.start(service.saved.of(caller.name, served.name), lambda item: item.id)
    shown, headers = cut(request, page.limit, items, lambda item: item.id)
    return json_response([_document(item) for item in shown], headers)


@router.get("/saved/{saved_id}", responses=described_by(SavedDocument))
def show(service: OfService, saved_id: str, caller: Caller = READER) -> Response:
    """Show a saved question or a dashboard: one's own, or one that one's team shares."""
    return json_response(_document(_visible(service, caller, saved_id)))


@router.put("/saved/{saved_id}", responses=described_by(SavedDocument), openapi_extra=may_raise(InvalidParameter))
def change(service: OfService, saved_id: str, body: SavedBody, caller: Caller = ASKER) -> Response:
    """Change what one has saved."""
    _visible(service, caller, saved_id)
    content = body.content()
    item = service.saved.change(saved_id, caller.name, body.title, content, shared=body.shared)
    _share_tiles(service, caller, content, shared=body.shared)
    return json_response(_document(item))


@router.delete("/saved/{saved_id}", status_code=204)
def remove(service: OfService, saved_id: str, caller: Caller = ASKER) -> None:
    """Remove what one has saved, which can be restored within an hour; answers stay, and stay shared."""
    _visible(service, caller, saved_id)
    service.saved.remove(saved_id, caller.name)


@router.post(
    "/saved/{saved_id}/restore", responses=described_by(SavedDocument), openapi_extra=may_raise(InvalidParameter)
)
def restore(service: OfService, saved_id: str, caller: Caller = ASKER) -> Response:
    """Restore what one has removed within the last hour, under its old address."""
    item = service.saved.removed(saved_id, caller.name)
    service.datasets.visible(caller, item.dataset)
    return json_response(_document(service.saved.restore(item)))


@router.get("/datasets/{dataset}/shared", responses=described_by(list[BoughtAnswer]))
def list_shared(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = READER) -> Response:
    """List the answers that one's team shares, the newest first."""
    served = service.datasets.visible(caller, dataset)
    answers = service.saved.answers_of_team(caller.name, served.name, service.answers.kept_since)
    found = page.start(answers, lambda bought: bought["id"])
    return json_response(*cut(request, page.limit, found, lambda bought: bought["id"]))


@router.put("/answers/{answer}/team", responses=described_by(SharedDocument), openapi_extra=may_raise(InvalidParameter))
def share(service: OfService, answer: str, body: SharedBody, caller: Caller = ASKER) -> Response:
    """Let one's team open an answer of one's own, or no longer."""
    record = service.answers.find(answer)
    if record is None or record.person != caller.name:
        raise missing("answer of yours")
    service.datasets.visible(caller, record.dataset)
    team = service.saved.share_answer(answer, caller.name, shared=body.shared)
    document: SharedDocument = {"answer": answer, "team": team}
    return json_response(document)


def _document(item: SavedItem) -> SavedDocument:
    document: SavedDocument = {
        "id": item.id,
        "person": item.person,
        "dataset": item.dataset,
        "created": item.created,
        "title": item.title,
        "team": item.team,
    }
    return {**document, **item.content}  # type: ignore[typeddict-item]
