"""Dashboards: saved answers and monitors on one page, brought up to date as monitors release; free to open.

Updates are server-sent events: while the page is open, the service looks every other second whether a monitor has
released more, and sends the tiles that changed as they are to be shown. Without scripts, loading the page again does
the same.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from lapwing.answer.charts.answer_chart import columns_of
from lapwing.answer.charts.chart_options import ORDERS
from lapwing.server.console.acting import act, renamed
from lapwing.server.console.ask.question import single
from lapwing.server.console.dashboards import refreshing
from lapwing.server.console.dashboards.changing import WIDTHS, DashboardChange, added, change_in, tile_in
from lapwing.server.console.dashboards.filtering import FILTERS, filters_of, wanted_in
from lapwing.server.console.dashboards.monitors import all_monitors_of, monitors_of
from lapwing.server.console.dashboards.tiles import newest_of, tile_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.saved import shared_toast
from lapwing.server.console.saved.charts import KIND_WORDS, with_kept_chart
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.templates import segment
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/dashboards/{dashboard}"
LIST: Final = "/console/data/{dataset}/dashboards"
EVENTS: Final = "text/event-stream"
POLL: Final = 2.0
"""Seconds between two looks whether a monitor has released more."""
SECONDS: Final = 300.0
"""After which a stream ends, and the page asks for another."""
LISTED: Final = 50
"""Dashboards on one page of the list."""
ANSWERS: Final = 100
"""The latest of one's own, which a dashboard proposes to put on it."""
STREAMS: Final = 100
"""At once, of all people: each looks into the files of its monitors."""
_open: Final = [0]


async def show_all(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List dashboards, one's own and the team's."""
    dataset = visit.part("dataset")
    belongs, path = (lambda one: "tiles" in one), ("datasets", dataset, "saved")
    found = await listed(visit, *path, texts=_texts, most=LISTED, belongs=belongs)
    everyone = await all_monitors_of(visit, dataset)
    monitors, dismissed = ([one for one in everyone if one.dismissed is out] for out in (False, True))
    status = refused["status"] if refused else 200
    facts = {"dataset": dataset, "items": found.items, "found": found, "monitors": monitors, "refused": refused}
    return visit.show("dashboards/list.html", status, dismissed=dismissed, **facts)


async def dismiss(visit: PageRequest) -> Response:
    """Put a finished monitor out of sight, or bring it back."""
    dataset, monitor = visit.part("dataset"), visit.form.get("monitor", "")
    back = visit.form.get("what") == "restore"
    here = f"/console/data/{segment(dataset)}/dashboards"
    path = ("datasets", dataset, "monitors", monitor, "dismissal")
    change = visit.api.send("DELETE" if back else "PUT", *path)
    undo = {"monitor": monitor, "what": "dismiss" if back else "restore"}
    text = f"{'Brought back' if back else 'Dismissed'} the monitor {named(monitor)}."
    return await act(visit, change, Toast(at=here, text=text, action=f"{here}/dismissal", fields=undo), show_all)


def _texts(item: Any) -> tuple[object, ...]:
    """Return the texts of a dashboard in which words are looked for."""
    return item["title"], item["person"], item["team"], *(tile.get("title") for tile in item["tiles"])


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show a dashboard."""
    item, facts = await _opened(visit)
    dataset = item["dataset"]
    there = {tile.get("answer") for tile in item["tiles"]}
    answers = await visit.api.get("datasets", dataset, "answers", limit=ANSWERS)
    return visit.show(
        "dashboards/page.html",
        refused["status"] if refused else 200,
        **facts,
        monitors=await monitors_of(visit, dataset),
        answers=[{**answer, "request": single(answer["request"])} for answer in answers if answer["id"] not in there],
        widths=WIDTHS,
        kinds=KIND_WORDS,
        orders=ORDERS,
        refused=refused,
    )


async def read(visit: PageRequest) -> Response:
    """Show a dashboard to be read: on all of the screen, without navigation and forms that change it."""
    _, facts = await _opened(visit)
    return visit.show("dashboards/read.html", **facts, reading=True)


async def price_refresh(visit: PageRequest) -> Response:
    """Show what a refresh of all tiles would cost."""
    item = await _dashboard(visit)
    refreshing.require_own(visit, item)
    return await refreshing.show(visit, item)


async def refresh(visit: PageRequest) -> Response:
    """Ask the queries of all tiles again."""
    item = await _dashboard(visit)
    refreshing.require_own(visit, item)
    return await refreshing.buy(visit, item)


async def _opened(visit: PageRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a dashboard, and the facts that both of its pages show."""
    item = await _dashboard(visit)
    fields = {name: visit.asked(name) for name in FILTERS}
    wanted = wanted_in(fields)
    tiles = [await tile_of(visit, item["dataset"], place, tile, wanted) for place, tile in enumerate(item["tiles"])]
    return item, {
        "dataset": item["dataset"],
        "item": item,
        "tiles": tiles,
        "filters": filters_of((tile.choices for tile in tiles), wanted),
        "wanted": wanted,
        "chosen": urlencode({name: value for name, value in fields.items() if value}),
        "live": any("monitor" in tile for tile in item["tiles"]),
    }


async def events(visit: PageRequest) -> Response:
    """Send the tiles that change, as they do."""
    item = await _dashboard(visit)
    if _open[0] >= STREAMS:
        raise ApiRefusal(
            problem(
                "too_many_requests",
                429,
                f"{STREAMS} dashboards already update for you. Close one and reload this page.",
            )
        )
    headers = {"Content-Type": EVENTS, "X-Accel-Buffering": "no"}
    return StreamingResponse(_changes(visit, item), headers=headers)


async def _changes(visit: PageRequest, item: dict[str, Any]) -> AsyncIterator[str]:
    clock, reading = asyncio.get_running_loop().time, visit.asked("reading") == "1"
    wanted = wanted_in({name: visit.asked(name) for name in FILTERS})
    until, dataset = clock() + SECONDS, item["dataset"]
    seen = dict.fromkeys(range(len(item["tiles"])), -2)  # so that the first look sends what was missed
    _open[0] += 1
    try:
        while clock() < until:
            for place, tile in enumerate(item["tiles"]):
                newest = await newest_of(visit, dataset, tile)
                if "monitor" in tile and newest != seen[place]:
                    seen[place] = newest
                    shown = await tile_of(visit, dataset, place, tile, wanted)
                    html = visit.render("dashboards/tile.html", tile=shown, wanted=wanted, reading=reading)
                    yield f"event: tile\ndata: {json.dumps({'place': place, 'html': html})}\n\n"
            yield ": nothing more\n\n"
            await asyncio.sleep(POLL)
            if (await _dashboard(visit))["tiles"] != item["tiles"]:
                yield "event: reload\ndata: {}\n\n"
                return
    except ApiRefusal:  # it is shared no more, or its reader may not see it any longer
        return
    finally:
        _open[0] -= 1


async def add(visit: PageRequest) -> Response:
    """Put an answer, a monitor or a text on a dashboard, or make a new one."""
    dataset, form = visit.part("dataset"), visit.form
    tile = await with_kept_chart(visit, dataset, tile_in(form))
    if form.get("elsewhere", "").strip():
        id_ = form["elsewhere"].strip().partition("?")[0].rstrip("/").rpartition("/")[2]
        found = await visit.api.get("answers", id_)  # which refuses what this person may not open
        tile = await with_kept_chart(visit, found["dataset"], {"answer": found["id"]})
    tiles = [tile] if any(name in tile for name in ("answer", "monitor", "text")) else []
    if form.get("dashboard"):
        item = await visit.api.get("saved", form["dashboard"])
        if not tiles:
            return await _changed(visit, DashboardChange(item=item, said="Nothing was added."))
        numbers = await _first_numbers(visit, tile) if any(_is_of(one, tile) for one in item.get("tiles", ())) else ""
        return await _changed(visit, added(item, tile, numbers))
    name = form.get("name", "").strip() or "Dashboard"
    body = {"title": name, "tiles": tiles, "shared": "shared" in form}
    try:
        made = (await visit.api.send("POST", "datasets", dataset, "saved", body=body)).document
    except ApiRefusal as refusal:
        return await show_all(visit, renamed(refusal.document, {"title": "name"}))
    return redirect(f"/console/dashboards/{segment(made['id'])}")


def _is_of(one: Mapping[str, Any], tile: Mapping[str, Any]) -> bool:
    return "answer" in tile and one.get("answer") == tile["answer"]


async def _first_numbers(visit: PageRequest, tile: Mapping[str, Any]) -> str:
    """Return the column that a tile of a result shows if it names none."""
    return next(iter(columns_of(await visit.api.get("answers", tile["answer"]))), "")


async def change(visit: PageRequest) -> Response:
    """Move, remove or set a tile, give the dashboard another name, share it or not."""
    item = await _dashboard(visit)
    try:
        changed = change_in(item, visit.form)
    except ApiRefusal as refusal:  # a number that is none
        return await show(visit, refusal.document)
    return await _changed(visit, changed)


async def _changed(visit: PageRequest, change: DashboardChange) -> Response:
    """DashboardChange a dashboard, and show it with what was done."""
    item, undo = change.item, change.undo
    body = {"title": item["title"], "tiles": item["tiles"], "shared": bool(item["team"])}
    here = f"/console/dashboards/{segment(item['id'])}"
    try:
        changed = (await visit.api.send("PUT", "saved", item["id"], body=body)).document
    except ApiRefusal as refusal:
        refused = renamed(refusal.document, {"title": "name"})
        return await (show if "dashboard" in visit.request.path_params else show_all)(visit, refused)
    if not change.said:
        return visit.tell(shared_toast(here, named(item["title"]), changed["team"], f"{here}/change"))
    toast = Toast(at=here, text=change.said, action=f"{here}/change" if undo else "", fields=undo)
    return visit.tell(toast, change.button)


async def _dashboard(visit: PageRequest) -> dict[str, Any]:
    item: dict[str, Any] = await visit.api.get("saved", visit.part("dashboard"))
    if "tiles" not in item:
        raise ApiRefusal(problem("not_found", 404, "This dashboard does not exist, or you have no access to it."))
    return item


PAGES: Final = (
    ConsolePage(method="GET", path=LIST, handle=show_all, query=("after", SEARCH)),
    ConsolePage(method="POST", path=f"{LIST}/add", handle=add),
    ConsolePage(method="POST", path=f"{LIST}/dismissal", handle=dismiss),
    ConsolePage(method="GET", path=HERE, handle=show, query=FILTERS),
    ConsolePage(method="GET", path=f"{HERE}/read", handle=read, query=FILTERS),
    ConsolePage(method="POST", path=f"{HERE}/change", handle=change),
    ConsolePage(method="GET", path=f"{HERE}/refresh", handle=price_refresh),
    ConsolePage(method="POST", path=f"{HERE}/refresh", handle=refresh),
    ConsolePage(method="GET", path=f"{HERE}/events", handle=events, query=(*FILTERS, "reading")),
)
