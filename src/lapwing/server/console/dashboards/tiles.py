"""Tiles of a dashboard: an answer or a monitor, as a chart or as figures, each with its intervals; or a text.

Results of a tile were bought before. An answer is opened as it was given, and of a monitor what it has released
is read: both are requests that cannot charge anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from lapwing.documents.chart_options import ChartOptions
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import level
from lapwing.server.console.answer_table import CellText, cells_of
from lapwing.server.console.ask.question import single
from lapwing.server.console.charts.answer_chart import chart_of
from lapwing.server.console.charts.chart import Chart
from lapwing.server.console.dashboards.changing import USUAL_WIDTH
from lapwing.server.console.dashboards.monitors import MonitorShown, monitor_shown
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.labels import with_labels
from lapwing.server.console.visits import PageRequest
from lapwing.server.tile_text import TextBlock, blocks_of

TICKS: Final = 60
"""Of a monitor, in a line over time: the latest."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileShown:
    """What a tile shows.

    Args:
        place: Among the tiles.
        newest: What is told apart by when it changes.
        figures: Of an answer of one row, each with its name.
        problem: Why there is nothing to see.
        monitor: How it stands, of a monitor.
        text: Of a text, its paragraphs and lists.
        width: One of `changing.WIDTHS`.
    """

    place: int
    title: str
    link: str
    about: str
    newest: int
    chart: Chart | None
    figures: tuple[tuple[str, CellText], ...]
    problem: str
    monitor: MonitorShown | None = None
    text: Sequence[TextBlock] = ()
    width: str = USUAL_WIDTH


async def tile_of(visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any]) -> TileShown:
    """Return a tile; of what cannot be opened, why."""
    return replace(await _shown(visit, dataset, place, tile), width=tile.get("width", USUAL_WIDTH))


async def _shown(visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any]) -> TileShown:
    try:
        if "answer" in tile:
            return await _answer(visit, place, tile)
        if "text" in tile:
            return _text(place, tile)
        return await _monitor(visit, dataset, place, tile)
    except (ApiRefusal, InvalidParameter) as refusal:
        title = tile.get("title") or tile.get("monitor") or "Result"
        return TileShown(
            place=place,
            title=title,
            link="",
            about="",
            newest=-1,
            chart=None,
            figures=(),
            problem=refusal.document["detail"] if isinstance(refusal, ApiRefusal) else str(refusal),
        )


def _text(place: int, tile: Mapping[str, Any]) -> TileShown:
    text, title = blocks_of(tile["text"]), tile.get("title", "")
    return TileShown(
        place=place, title=title, link="", about="", newest=0, chart=None, figures=(), problem="", text=text
    )


async def newest_of(visit: PageRequest, dataset: str, tile: Mapping[str, Any]) -> int:
    """Return what is told apart by when a tile changes: how much its monitor has released."""
    if "monitor" not in tile:
        return 0
    try:
        return int((await visit.api.get("datasets", dataset, "monitors", tile["monitor"]))["released"])
    except ApiRefusal:
        return -1


async def _answer(visit: PageRequest, place: int, tile: Mapping[str, Any]) -> TileShown:
    document = await with_labels(visit, await visit.api.get("answers", tile["answer"]))
    request = single((await visit.api.get("answers", tile["answer"], "request"))["request"])
    return TileShown(
        place=place,
        title=tile.get("title") or request.get("label") or " ".join(request.get("sql", "Result").split()),
        link=f"/console/answers/{tile['answer']}",
        about=f"Charged {document['created'][:16].replace('T', ' ')} UTC; ± at {level(document['confidence'])}",
        newest=0,
        chart=chart_of(document, options=ChartOptions.from_texts(tile)),
        figures=_figures(document),
        problem="" if document["rows"] else "This result has no rows.",
    )


async def _monitor(visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any]) -> TileShown:
    monitor = await visit.api.get("datasets", dataset, "monitors", tile["monitor"])
    after = max(0, monitor["released"] - TICKS)
    ticks = await visit.api.get("datasets", dataset, "monitors", tile["monitor"], "ticks", after=after, limit=TICKS)
    document = over_time(ticks) if ticks else None
    last = ticks[-1]["time"][:16].replace("T", " ") if ticks else ""
    return TileShown(
        place=place,
        title=tile.get("title") or tile["monitor"],
        link="",
        about=f"Monitor, {monitor['released']:,} of {monitor['ticks']:,} ticks; the last at {last} UTC"
        if ticks
        else "",
        newest=monitor["released"],
        chart=None if document is None else chart_of(document, options=ChartOptions.from_texts(tile)),
        figures=() if document is None or document["keys"] else _figures(document),
        problem="" if ticks else "This monitor has released no result yet.",
        monitor=monitor_shown(monitor, curates=visit.caller.at(dataset).may("admin")),
    )


def over_time(ticks: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a monitor released as one document: of one row a tick, over time; of several, the last tick."""
    last = ticks[-1]["answer"]
    keys = [name for name in last["columns"] if name not in last["intervals"]]
    types = {name: _type(last, name) for name in last["columns"]}
    if keys or len(last["rows"]) != 1:
        return {**last, "types": types, "keys": keys}
    numbers = list(last["intervals"])
    rows = [{"time": tick["time"][:19], **tick["answer"]["rows"][0]} for tick in ticks if tick["answer"]["rows"]]
    ends = {
        name: {
            end: [tick["answer"]["intervals"][name][end][0] for tick in ticks if tick["answer"]["rows"]]
            for end in ("low", "high")
        }
        for name in numbers
    }
    return {
        "columns": ["time", *numbers],
        "rows": rows,
        "types": {**types, "time": "timestamp"},
        "keys": ["time"],
        "intervals": ends,
        "confidence": last.get("confidence"),
    }


def _type(document: Mapping[str, Any], name: str) -> str:
    """Return the type of a column by its values, which ticks do not say."""
    values = [row[name] for row in document["rows"] if row[name] is not None]
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if values and whole:
        return "integer"
    return "real" if values and all(isinstance(value, int | float) for value in values) else "text"


def _figures(document: Mapping[str, Any]) -> tuple[tuple[str, CellText], ...]:
    if len(document["rows"]) != 1 or document.get("keys"):
        return ()
    return tuple(zip(document["columns"], cells_of(document, [0])[0], strict=True))
