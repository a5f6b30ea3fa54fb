"""DashboardChange a dashboard by its forms: pure functions of a dashboard and of the fields that a form sent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from lapwing.answer.charts.chart_options import NAMES, ChartOptions
from lapwing.errors import InvalidParameter
from lapwing.server.console.acting import decimal_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.toasts import named
from lapwing.server.problems import problem

CHART: Final = tuple(name for name in NAMES if name != "title")
SETTINGS: Final = ("title", "text", "width", *CHART)
"""The parts of a tile that its own form states. The other parts stay."""
TILE: Final = ("answer", "monitor", "text", "width", *NAMES)
WIDTHS: Final[Mapping[str, str]] = {"third": "A third", "half": "Half", "full": "Full"}
"""The widths of a tile; a phone shows each over its full width."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardChange:
    """A dashboard as a form changes it.

    Args:
        said: Says it; empty if the dashboard was shared, or not any more.
        undo: The fields of the form that undoes it, if one does.
        button: The id of the button that has the focus on the page that follows; empty for none.
    """

    item: Mapping[str, Any]
    said: str = ""
    undo: Mapping[str, str] = field(default_factory=dict)
    button: str = ""


def tile_in(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the tile that a form states.

    Raises:
        ApiRefusal: If a number is none.
    """
    return _parts(form, TILE)


def _parts(form: Mapping[str, str], names: Sequence[str]) -> dict[str, Any]:
    tile: dict[str, Any] = {name: form[name].strip() for name in names if form.get(name, "").strip()}
    if "log" in tile:
        tile["log"] = tile["log"] == "1"
    if "line" in tile:
        try:
            tile["line"] = float(decimal_of(tile["line"], "line"))
        except ValueError:
            raise ApiRefusal(problem("invalid_parameter", 422, "A reference line is at a number.", "line")) from None
    try:
        ChartOptions.from_texts(tile)
    except InvalidParameter as wrong:
        same = "x" in tile and tile["x"] == tile.get("colour")
        field = "colour" if same else "line" if "line" in tile else None
        raise ApiRefusal(problem("invalid_parameter", 422, str(wrong), field)) from None
    return tile


def fields_of(tile: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a form that states a tile."""
    return {name: "1" if value is True else "" if value is False else str(value) for name, value in tile.items()}


def added(item: Mapping[str, Any], tile: Mapping[str, Any], numbers: str = "") -> DashboardChange:
    """Return a dashboard with one tile more; a result that shows the same numbers there gets the new chart instead.

    Args:
        numbers: The column that a tile of this result shows if it names none.
    """
    tiles = list(item.get("tiles", []))
    for at, one in enumerate(tiles):
        same = one.get("answer") == tile.get("answer") and one.get("column", numbers) == tile.get("column", numbers)
        if "answer" in tile and same:
            tiles[at] = {**{name: one[name] for name in ("title", "width") if name in one}, **tile}
            said = f"{named(item['title'])} has this result already. It shows it with this chart now."
            stated = [name for name in SETTINGS if name in one or name in tile]
            undo = {"what": "set", "place": str(at), **{name: fields_of(one).get(name, "") for name in stated}}
            return DashboardChange(item={**item, "tiles": tiles}, said=said, undo=undo, button=f"settings-{at}")
    return DashboardChange(item={**item, "tiles": [*tiles, tile]}, said=f"Added to {named(item['title'])}.")


def change_in(item: Mapping[str, Any], form: Mapping[str, str]) -> DashboardChange:
    """Return what a form changes of a dashboard; nothing if it names no tile of it."""
    what, place = form.get("what", ""), form.get("place", "")
    at = int(place) if place.isascii() and place.isdigit() and int(place) < len(item["tiles"]) else None
    if what == "put":
        return _put(item, len(item["tiles"]) if at is None else at, form)
    if what == "name":
        renamed = {**item, "title": form.get("name", "").strip() or item["title"]}
        return DashboardChange(
            item=renamed, said="Renamed the dashboard.", undo={"what": "name", "name": item["title"]}
        )
    if what in ("share", "keep"):
        undo = {"what": "keep" if what == "share" else "share"}
        return DashboardChange(item={**item, "team": what == "share"}, undo=undo)
    if what in _OF_A_TILE and at is not None:
        return _OF_A_TILE[what](item, at, form)
    return DashboardChange(item=item, said="Nothing was changed.")


def _put(item: Mapping[str, Any], at: int, form: Mapping[str, str]) -> DashboardChange:
    tiles = list(item["tiles"])
    tiles.insert(at, tile_in(form))
    return DashboardChange(item={**item, "tiles": tiles}, said="The tile is back.")


def _take(item: Mapping[str, Any], at: int, _form: Mapping[str, str]) -> DashboardChange:
    tiles = list(item["tiles"])
    undo = {"what": "put", "place": str(at), **fields_of(tiles.pop(at))}
    return DashboardChange(item={**item, "tiles": tiles}, said="Removed the tile.", undo=undo)


def _swapped(item: Mapping[str, Any], first: int) -> dict[str, Any]:
    tiles = list(item["tiles"])
    tiles[first : first + 2] = reversed(tiles[first : first + 2])
    return {**item, "tiles": tiles}


def _up(item: Mapping[str, Any], at: int, _form: Mapping[str, str]) -> DashboardChange:
    if at == 0:
        return DashboardChange(item=item, said="This tile is the first.")
    button = f"up-{at - 1}" if at > 1 else "down-0"
    undo = {"what": "back", "place": str(at - 1)}
    return DashboardChange(item=_swapped(item, at - 1), said="Moved the tile up.", undo=undo, button=button)


def _down(item: Mapping[str, Any], at: int, _form: Mapping[str, str]) -> DashboardChange:
    last = len(item["tiles"]) - 1
    if at == last:
        return DashboardChange(item=item, said="This tile is the last.")
    button = f"down-{at + 1}" if at + 1 < last else f"up-{last}"
    undo = {"what": "forward", "place": str(at + 1)}
    return DashboardChange(item=_swapped(item, at), said="Moved the tile down.", undo=undo, button=button)


def _set(item: Mapping[str, Any], at: int, form: Mapping[str, str]) -> DashboardChange:
    tiles = list(item["tiles"])
    before, fields = tiles[at], {**({"log": ""} if "arrange" in form else {}), **form}  # an empty box sends nothing
    stated = [name for name in SETTINGS if name in fields]
    tiles[at] = {name: value for name, value in before.items() if name not in stated} | _parts(fields, stated)
    undo = {"what": "set", "place": str(at), **{name: fields_of(before).get(name, "") for name in stated}}
    return DashboardChange(item={**item, "tiles": tiles}, said="Changed the tile.", undo=undo, button=f"settings-{at}")


_OF_A_TILE: Final[Mapping[str, Callable[[Mapping[str, Any], int, Mapping[str, str]], DashboardChange]]] = {
    "take": _take,
    "forward": _up,
    "back": _down,
    "set": _set,
}
