"""Tiles of a dashboard: an answer or a monitor, as a chart or as figures, each with its intervals; or a text.

Results of a tile were bought before. An answer is opened as it was given, and of a monitor what it has released
is read: both are requests that cannot charge anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from lapwing.answer.answer_table import CellText, cells_of
from lapwing.answer.charts.answer_chart import USUAL, chart_of, columns_of
from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.chart_options import ChartOptions
from lapwing.documents.over_time import LINES, TICKS, over_time
from lapwing.documents.tile_text import TextBlock, blocks_of
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import level
from lapwing.server.console.ask.question import single
from lapwing.server.console.dashboards.filtering import Choices, Wanted, choices_of, only
from lapwing.server.console.dashboards.monitors import MonitorShown, monitor_shown
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.labels import with_labels
from lapwing.server.console.visits import PageRequest
from lapwing.server.saved_routes import USUAL_WIDTH

NO_FILTER: Final[Wanted] = {}


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
        dated: When its latest numbers were released.
        choices: The values of its keys before a filter.
        filtered: The key and the value of each filter that it follows.
        options: The choices of its chart, among the columns `charted` and the `keys` of its result.
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
    dated: str = ""
    choices: Choices = field(default_factory=dict)
    filtered: Sequence[tuple[str, str]] = ()
    options: ChartOptions = USUAL
    charted: Sequence[str] = ()
    keys: Sequence[str] = ()


async def tile_of(
    visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any], wanted: Wanted = NO_FILTER
) -> TileShown:
    """Return a tile with its rows that a filter wants; of what cannot be opened, why."""
    return replace(await _shown(visit, dataset, place, tile, wanted), width=tile.get("width", USUAL_WIDTH))


async def _shown(visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any], wanted: Wanted) -> TileShown:
    try:
        if "answer" in tile:
            return await _answer(visit, place, tile, wanted)
        if "text" in tile:
            return _text(place, tile)
        return await _monitor(visit, dataset, place, tile, wanted)
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


async def _answer(visit: PageRequest, place: int, tile: Mapping[str, Any], wanted: Wanted) -> TileShown:
    bought = await with_labels(visit, await visit.api.get("answers", tile["answer"]))
    request = single((await visit.api.get("answers", tile["answer"], "request"))["request"])
    document = only(bought, wanted)
    when = bought["created"][:16].replace("T", " ")
    return TileShown(
        place=place,
        title=tile.get("title") or request.get("label") or " ".join(request.get("sql", "Result").split()),
        link=f"/console/answers/{tile['answer']}",
        about=f"Result of {when} UTC; ± at {level(bought['confidence'])}",
        newest=0,
        chart=chart_of(document, options=_options(tile, bought, document)),
        figures=_figures(document),
        problem="" if document["rows"] else _NO_ROWS if bought["rows"] else "This result has no rows.",
        dated=f"{when} UTC",
        choices=choices_of(bought),
        filtered=_followed(bought, wanted),
        **_chosen(tile, bought),
    )


async def _monitor(visit: PageRequest, dataset: str, place: int, tile: Mapping[str, Any], wanted: Wanted) -> TileShown:
    monitor = await visit.api.get("datasets", dataset, "monitors", tile["monitor"])
    after = max(0, monitor["released"] - TICKS)
    ticks = await visit.api.get("datasets", dataset, "monitors", tile["monitor"], "ticks", after=after, limit=TICKS)
    released = over_time(ticks) if ticks else None
    document = None if released is None else only(released, wanted)
    last = ticks[-1]["time"][:16].replace("T", " ") if ticks else ""
    return TileShown(
        place=place,
        title=tile.get("title") or tile["monitor"],
        link="",
        about=f"Monitor, {monitor['released']:,} of {monitor['ticks']:,} ticks; the last at {last} UTC"
        if ticks
        else "",
        newest=monitor["released"],
        chart=None
        if released is None or document is None
        else chart_of(document, options=_options({**LINES, **tile}, released, document)),
        figures=(),
        problem=_NO_ROWS if document and not document["rows"] else "" if ticks else _NOTHING_YET,
        monitor=monitor_shown(monitor, curates=visit.caller.at(dataset).may("admin")),
        dated=f"{last} UTC" if last else "",
        choices={} if released is None else choices_of(released),
        filtered=() if released is None else _followed(released, wanted),
        **({} if released is None else _chosen({**LINES, **tile}, released)),
    )


_NO_ROWS: Final = "This result has no row for the filter."
_NOTHING_YET: Final = "This monitor has released no result yet."


def _options(tile: Mapping[str, Any], whole: Mapping[str, Any], document: Mapping[str, Any]) -> ChartOptions:
    """Return the choices of a chart without axes whose keys a filter has made constant; a key that never was stays."""
    constant = set(whole["keys"]) - set(document["keys"])
    kept = {name: value for name, value in tile.items() if name not in ("x", "colour") or value not in constant}
    return ChartOptions.from_texts(kept)


def _chosen(tile: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choices of a chart for the form that changes them; of a result without keys there are none."""
    return {"options": ChartOptions.from_texts(tile), "charted": columns_of(whole) if whole["keys"] else ()} | {
        "keys": whole["keys"]
    }


def _followed(document: Mapping[str, Any], wanted: Wanted) -> tuple[tuple[str, str], ...]:
    choices = choices_of(document)
    return tuple((key, choices[key].get(value, value)) for key, value in wanted.items() if key in choices)


def _figures(document: Mapping[str, Any]) -> tuple[tuple[str, CellText], ...]:
    if len(document["rows"]) != 1 or document.get("keys"):
        return ()
    return tuple(zip(document["columns"], cells_of(document, [0])[0], strict=True))
