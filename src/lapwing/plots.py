"""Vega-Lite specifications of answers and privacy profiles, as plain dictionaries.

Nothing is needed to make one; a notebook draws it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

Specification = dict[str, Any]


class Plot:
    """A chart that a notebook shows by itself.

    Args: specification: a Vega-Lite specification with its data inside.
    """

    def __init__(self, specification: Specification) -> None:
        self.specification = specification

    def to_dict(self) -> Specification:
        """Return the Vega-Lite specification."""
        return self.specification

    def _repr_mimebundle_(self, **_options: object) -> Mapping[str, object]:
        return {
            "application/vnd.vegalite.v6+json": self.specification,
            "text/plain": f"<Plot: {self.specification.get('title', 'chart')}>",
        }


def bars_with_intervals(
    rows: Sequence[Mapping[str, Any]], *, keys: Sequence[str], value: str, low: str, high: str, title: str
) -> Plot:
    """Draw one bar a row, with the interval of its noise as a rule across its end.

    Args: rows: the records; keys: the first is the axis, the second (if any) the colour, the others are joined to the
        axis; value, low, high: the fields of the bar's end and of the interval's ends.
    """
    axis, colour = _axis(keys)
    data = [{**row, axis: " · ".join(str(row[key]) for key in _joined(keys))} for row in rows] if keys else list(rows)
    x: dict[str, Any] = {"field": axis, "type": "nominal", "sort": None, "title": axis} if keys else {"value": 20}
    encoding: dict[str, Any] = {"x": x}
    if colour:
        encoding |= {"color": {"field": colour, "type": "nominal"}, "xOffset": {"field": colour}}
    return Plot(
        {
            "$schema": SCHEMA,
            "title": title,
            "data": {"values": data},
            "encoding": encoding,
            "layer": [
                {"mark": {"type": "bar", "opacity": 0.7}, "encoding": {"y": {"field": value, "type": "quantitative"}}},
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {
                        "y": {"field": low, "type": "quantitative", "title": value},
                        "y2": {"field": high},
                        "color": {"value": "black"},
                    },
                },
            ],
        }
    )


def curves_with_bounds(
    points: Sequence[Mapping[str, Any]], *, x: str, lower: str, upper: str, series: str, least: float, title: str
) -> Plot:
    """Draw an upper bound as a line for each series, and the band down to its lower bound where there is one.

    The vertical axis is logarithmic, from `least` to 1. A bound beyond is drawn at its end, so that a lower bound of 0
    is the axis itself.

    Args: points: the records; x, lower, upper, series: their fields, of which `lower` may be None.
    """

    def shown(value: Any) -> float:
        return min(1.0, max(least, float(value)))

    data = [
        {**point, upper: shown(point[upper]), lower: None if point[lower] is None else shown(point[lower])}
        for point in points
    ]
    scale = {"type": "log", "domain": [least, 1]}
    return Plot(
        {
            "$schema": SCHEMA,
            "title": title,
            "width": 480,
            "height": 320,
            "data": {"values": data},
            "encoding": {
                "x": {"field": x, "type": "quantitative", "title": x},
                "color": {"field": series, "type": "nominal", "sort": None, "title": series},
            },
            "layer": [
                {
                    "transform": [{"filter": f"isValid(datum[{lower!r}])"}],
                    "mark": {"type": "area", "opacity": 0.4},
                    "encoding": {
                        "y": {"field": lower, "type": "quantitative", "scale": scale, "stack": None, "title": "delta"},
                        "y2": {"field": upper},
                    },
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"y": {"field": upper, "type": "quantitative", "scale": scale, "title": "delta"}},
                },
            ],
        }
    )


def _joined(keys: Sequence[str]) -> list[str]:
    """Return the keys that share the axis: all but the one that is shown as colour."""
    return [keys[0], *keys[2:]]


def _axis(keys: Sequence[str]) -> tuple[str, str | None]:
    if not keys:
        return "", None
    return " · ".join(_joined(keys)), keys[1] if len(keys) > 1 else None
