"""Charts of experiments, put together of channels and layers as Vega-Lite has them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lapwing.plots import SCHEMA, Plot, Specification

LOG: Final[Specification] = {"type": "log"}
BAR: Final[Specification] = {"type": "bar", "opacity": 0.6}
POINT: Final[Specification] = {"type": "point", "filled": True, "color": "black"}
LINE: Final[Specification] = {"type": "line", "color": "black"}


def numeric(field: str | None = None, title: str | None = None, **more: Any) -> Specification:
    """Return a channel of numbers; `more` is what else Vega-Lite says of one, such as scale and axis."""
    parts = {"field": field, "title": title}
    return {"type": "quantitative", **{name: value for name, value in parts.items() if value is not None}, **more}


def nominal(field: str, **more: Any) -> Specification:
    """Return a channel of names."""
    return {"field": field, "type": "nominal", **more}


def data(rows: Iterable[Mapping[str, Any]]) -> Specification:
    """Return records as the data of a chart."""
    return {"data": {"values": [dict(row) for row in rows]}}


def layer(mark: str | Specification, **encoding: Specification) -> Specification:
    """Return marks of one kind, placed and coloured by their channels."""
    return {"mark": mark, "encoding": encoding}


def guesses_with_bounds(label_width: int) -> Specification:
    """Return shares of guesses that are right as bars, a `case` each, and what is possible at most as ticks."""
    right, most = (
        numeric(f"right, {what}", "share of guesses that are right", scale={"domain": [0, 1]})
        for what in ("observed", "at most")
    )
    case = nominal("case", sort=None, title=None, axis={"labelLimit": label_width})
    tick = {"type": "tick", "thickness": 3, "color": "black"}
    return {"encoding": {"y": case}, "layer": [layer(BAR, x=right), layer(tick, x=most)]}


def chart(title: str, **specification: Any) -> Plot:
    """Return a chart."""
    return Plot({"$schema": SCHEMA, "title": title, **specification})
