"""The chart of `lapwing local simulate`: error against ε and against respondents, on logarithmic axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lapwing.plots import SCHEMA, Plot

if TYPE_CHECKING:
    from lapwing.local import Simulated


def chart_of(found: Sequence["Simulated"], title: str) -> Plot:
    """Return lines of predicted errors and points of observed ones: over ε for all respondents, and over respondents.

    An error of 0, that of all people without noise, has no place on a logarithmic axis and is left out.
    """
    rows = [_row(one) for one in found if one.predicted > 0]
    names = list(dict.fromkeys(row["collected"] for row in rows))
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    sizes = sorted({row["respondents"] for row in rows})
    middle = epsilons[len(epsilons) // 2]
    panels = []
    if len(epsilons) > 1 or len(sizes) == 1:
        chosen = [row for row in rows if row["respondents"] == sizes[-1] and row["epsilon"] is not None]
        panels.append(_panel(chosen, names, "epsilon", f"{sizes[-1]:,} respondents"))
    if len(sizes) > 1:
        chosen = [row for row in rows if row["epsilon"] in (middle, None)]
        panels.append(_panel(chosen, names, "respondents", f"epsilon {middle:g}"))
    return Plot({"$schema": SCHEMA, "title": title, "hconcat": panels})


def _row(one: "Simulated") -> dict[str, Any]:
    """Return the record with the name of its line: shuffled ones are one line, by whichever mechanism."""
    name = one.road if one.road in ("plain", "shuffled") else f"{one.road}: {one.mechanism}"
    return {**one.row(), "collected": name}


def _panel(rows: Sequence[dict[str, Any]], names: Sequence[str], x: str, title: str) -> dict[str, Any]:
    """Return one panel; of both the colours are the same, in the order of the records."""

    def y(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "scale": {"type": "log"}, "title": "error of a share"}

    colour = {"field": "collected", "type": "nominal", "sort": list(names), "title": "collected"}
    return {
        "title": title,
        "width": 360,
        "height": 320,
        "data": {"values": list(rows)},
        "encoding": {
            "x": {
                "field": x,
                "type": "quantitative",
                "scale": {"type": "log", "nice": False, "padding": 10},
                "title": x,
                "axis": {"format": "~g" if x == "epsilon" else "~s"},
            },
            "color": colour,
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": y("predicted")}},
            {
                "transform": [{"filter": "datum.observed > 0"}],
                "mark": {"type": "point", "filled": True, "size": 40},
                "encoding": {"y": y("observed")},
            },
        ],
    }
