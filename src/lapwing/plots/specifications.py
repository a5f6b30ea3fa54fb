"""Vega-Lite specifications of answers, privacy profiles and privacy losses, as plain dictionaries.

Nothing is needed to make one; a notebook draws it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from lapwing import privacy
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import level

if TYPE_CHECKING:
    from lapwing.privacy import Listed
    from lapwing.privacy.listed_mechanisms import Neighbouring

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

LEAST_DELTAS: Final = (1e-12, 1e-9, 1e-6, 1e-3, 0.5)
POINTS: Final = 40
PLOTTED_WIDTH: Final = 0.01
"""Of a profile's band, in epsilon: less than can be seen, and soon computed."""

CELLS: Final = 96
CELL_WIDTH, LEAST_WIDTH = 0.04, 1e-9
"""Of the law of a loss, in units of the loss: half a cell at most."""

CERTAIN: Final = 0.9999

Specification = dict[str, Any]


Drawing = Callable[[str], bytes]
"""It returns the file of a chart for a suffix: .svg, .html or .png. The console draws the same chart."""


class Plot:
    """A chart that a notebook shows by itself.

    Args:
        specification: A Vega-Lite specification with its data inside.
        drawing: It draws the pictures. Without one, Vega does.
    """

    def __init__(self, specification: Specification, drawing: Drawing | None = None) -> None:
        self.specification = specification
        self._drawing = drawing

    def to_dict(self) -> Specification:
        """Return the Vega-Lite specification."""
        return self.specification

    def save(self, file: str | Path) -> None:
        """Write the chart to a file: .json is the specification, .svg and .png are pictures, .html a page.

        Raises:
            InvalidParameter: For another suffix, or if the file needs the `plots` extra and that is missing.
        """
        from lapwing.plots.files import require_suffix, written  # here: few charts become files

        path, drawing = Path(file), self._drawing
        require_suffix(path, drawn=drawing is not None)
        suffix = path.suffix.lower()
        content = None if drawing is None or suffix == ".json" else drawing(suffix)
        path.write_bytes(written(self.specification, suffix) if content is None else content)

    def _repr_mimebundle_(self, **_options: object) -> Mapping[str, object]:
        title = f"<Plot: {_text_of(self.specification.get('title', 'chart'))}>"
        if self._drawing is not None:  # not beside Vega-Lite, which a notebook would choose if it can
            return {"image/svg+xml": self._drawing(".svg").decode(), "text/plain": title}
        return {"application/vnd.vegalite.v6+json": self.specification, "text/plain": title}


def _text_of(title: object) -> object:
    return title["text"] if isinstance(title, Mapping) else title


def _chart(title: str, data: Sequence[Mapping[str, Any]], *, height: int | None = 320, **rest: object) -> Plot:
    """Return a chart; without a height it is as large as its viewer likes."""
    size = {} if height is None else {"width": 480, "height": height}
    return Plot({"$schema": SCHEMA, "title": title, **size, "data": {"values": list(data)}, **rest})


def _amount(field: str, title: str | None = None, **more: object) -> dict[str, Any]:
    """Return an axis or end of numbers, titled by its field unless otherwise."""
    return {"field": field, "type": "quantitative", **more, "title": field if title is None else title}


def _series(field: str, **more: object) -> dict[str, Any]:
    """Return what tells series apart, in the order in which they come."""
    return {"field": field, "type": "nominal", "sort": None, "title": field, **more}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlotLook:
    """How the numbers of a chart are drawn.

    Args:
        mark: "bar", "point" or "line".
        log: Whether the axis of the numbers is logarithmic. It has no place for 0, so bars become points.
        line: A number at which there is a reference line.
        line_title: The name of the line, which is next to it.
        title: Empty: the name of the numbers.
        x_title: Of the axis of the keys; empty: their titles.
        y_title: Of the axis of the numbers; empty: their name.
    """

    mark: str = "bar"
    log: bool = False
    line: float | None = None
    line_title: str = ""
    title: str = ""
    x_title: str = ""
    y_title: str = ""


USUAL_LOOK: Final = PlotLook()


def bars_with_intervals(
    rows: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str],
    value: str,
    low: str,
    high: str,
    title: str,
    faint: str | None = None,
    confidence: Fraction | float | None = None,
    key_titles: Mapping[str, str] | None = None,
    look: PlotLook = USUAL_LOOK,
) -> Plot:
    """Draw one bar a row, with the interval of its noise as a rule across its end.

    Args:
        rows: The records.
        keys: The first is the axis, the second (if any) the colour, the others are joined to the axis.
        value: The fields of the bar's end and of the interval's ends.
        low: The fields of the bar's end and of the interval's ends.
        high: The fields of the bar's end and of the interval's ends.
        faint: The field that is true of bars that cannot be told from 0, which are pale and have a question mark.
        confidence: Of the intervals, which the caption names.
        key_titles: The title beside the values of a key, if it is not the name of the key.
        look: Other marks than bars, a logarithmic axis, a reference line.
    """
    titles = {key: key for key in keys} | dict(key_titles or {})
    joined = [*keys[:1], *keys[2:]]  # all but the one that is shown as colour
    axis, colour = " · ".join(joined), keys[1] if len(keys) > 1 else None
    data = [{**row, axis: " · ".join(str(row[key]) for key in joined)} for row in rows] if keys else list(rows)
    x: dict[str, Any] = {"field": axis, "type": "nominal", "sort": None} if keys else {"value": 20}
    if keys:
        x["title"] = look.x_title or " · ".join(titles[key] for key in joined)
    encoding: dict[str, Any] = {"x": x}
    scale = {"scale": {"type": "log"}} if look.log else {}
    below = 0
    if look.log:
        below = sum(row[low] is not None and row[low] <= 0 for row in data)
        data = _above_zero(data, value, low, high)
    if colour:
        encoding |= {"color": {"field": colour, "type": "nominal"}}
        encoding |= {} if look.mark == "line" else {"xOffset": {"field": colour}}
        if colour != titles[colour]:
            encoding["color"]["title"] = titles[colour]
    numbers = look.y_title or titles.get(value, value)
    height: dict[str, Any] = {"y": _amount(value, numbers, **scale)}
    bar = {"mark": _mark(look), "encoding": height}
    ends = {"y": _amount(low, numbers, **scale), "y2": {"field": high}, "color": {"value": "black"}}
    rule = {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends}
    layers: list[dict[str, Any]] = [bar, rule]
    if look.line is not None:
        at = {"y": {"datum": look.line, "type": "quantitative"}, "color": {"value": "black"}}
        layers.append({"data": {"values": [{}]}, "mark": {"type": "rule", "strokeDash": [6, 4]}, "encoding": at})
        if look.line_title:
            label = {"type": "text", "text": look.line_title, "align": "right", "x": "width", "dx": -4, "dy": -6}
            layers.append({"data": {"values": [{}]}, "mark": label, "encoding": at})
    caption = ["The numbers contain noise."]
    if any(row[low] is not None for row in rows):
        caption.append(f"Black lines: {'' if confidence is None else f'{level(confidence)} '}intervals")
    if faint is not None and any(row[faint] for row in rows):
        height["opacity"] = {"condition": {"test": f"datum[{faint!r}]", "value": 0.25}, "value": 0.7}
        mark = {
            "mark": {"type": "text", "text": "?", "dy": -8, "baseline": "bottom"},
            "encoding": {"y": _amount(high, value)},
        }
        layers.append({"transform": [{"filter": f"datum[{faint!r}]"}], **mark})
        caption.append("pale, with ?: not distinguishable from 0")
    if below:
        caption.append(f"{below:,} {'reaches' if below == 1 else 'reach'} below this log scale")
    titled = {"text": look.title or title, "subtitle": caption}
    return Plot({**_chart(title, data, height=None, encoding=encoding, layer=layers).to_dict(), "title": titled})


def _above_zero(rows: Sequence[Mapping[str, Any]], value: str, low: str, high: str) -> list[dict[str, Any]]:
    """Return rows for a logarithmic axis: what begins at 0 or below begins at the least end that the axis has."""
    ends = [row[end] for row in rows for end in (value, low, high) if row[end] is not None and row[end] > 0]
    least = min(ends, default=1.0)

    def shown(row: Mapping[str, Any]) -> dict[str, Any]:
        number = row[value] if row[value] is not None and row[value] > 0 else None
        if row[low] is None or row[high] is None or row[high] <= 0:
            return {**row, value: number, low: None, high: None}
        return {**row, value: number, low: max(row[low], least)}

    return [shown(row) for row in rows]


def _mark(look: PlotLook) -> dict[str, Any]:
    if look.mark == "line":
        return {"type": "line", "point": True}
    if look.mark == "point" or look.log:
        return {"type": "point", "filled": True, "size": 60}
    return {"type": "bar", "opacity": 0.7}


def curves_with_bounds(
    points: Sequence[Mapping[str, Any]], *, x: str, lower: str, upper: str, series: str, least: float, title: str
) -> Plot:
    """Draw an upper bound as a line for each series, and the band down to its lower bound where there is one.

    The vertical axis is logarithmic, from `least` to 1. A bound beyond is drawn at its end, so that a lower bound of 0
    is the axis itself.

    Args:
        points: The records.
        x: Their fields, of which `lower` may be None.
        lower: Their fields, of which `lower` may be None.
        upper: Their fields, of which `lower` may be None.
        series: Their fields, of which `lower` may be None.
    """

    def shown(value: Any) -> float:
        return min(1.0, max(least, float(value)))

    data = [
        {**point, upper: shown(point[upper]), lower: None if point[lower] is None else shown(point[lower])}
        for point in points
    ]
    scale = {"type": "log", "domain": [least, 1]}
    band = {
        "transform": [{"filter": f"isValid(datum[{lower!r}])"}],
        "mark": {"type": "area", "opacity": 0.4},
        "encoding": {"y": _amount(lower, "delta", scale=scale, stack=None), "y2": {"field": upper}},
    }
    line = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": _amount(upper, "delta", scale=scale)}}
    return _chart(title, data, encoding={"x": _amount(x), "color": _series(series)}, layer=[band, line])


def cells_with_bounds(
    cells: Sequence[Mapping[str, Any]], *, x: str, until: str, lower: str, upper: str, series: str, least: float, y: str
) -> Plot:
    """Draw a band of one rectangle a cell, inside which a curve runs; on the vertical axis of `curves_with_bounds`.

    Args:
        cells: The records, of which those below the axis are left out.
        x: Their fields.
        until: Their fields.
        lower: Their fields.
        upper: Their fields.
        series: Their fields.
        y: What the vertical axis says.
    """
    data = [
        {**cell, upper: min(1.0, float(cell[upper])), lower: max(least, float(cell[lower]))}
        for cell in cells
        if cell[upper] > least
    ]
    encoding = {
        "x": _amount(x),
        "x2": {"field": until},
        "y": _amount(lower, y, scale={"type": "log", "domain": [least, 1]}),
        "y2": {"field": upper},
        "color": _series(series),
    }
    return _chart(y, data, mark={"type": "rect", "opacity": 0.6}, encoding=encoding)


def lines(
    points: Sequence[Mapping[str, Any]], *, x: str, y: str, series: str, title: str, logarithmic: bool = False
) -> Plot:
    """Draw a line for each series, in the order in which they first come.

    Args:
        points: The records.
        x: Their fields.
        y: Their fields.
        series: Their fields.
        logarithmic: Whether the vertical axis is.
    """
    encoding = {
        "x": _amount(x),
        "y": _amount(y, scale={"type": "log"} if logarithmic else {"zero": True}),
        "color": _series(series),
        "strokeDash": _series(series),
    }
    return _chart(title, points, height=240, mark={"type": "line", "strokeWidth": 2}, encoding=encoding)


def shape(points: Sequence[Mapping[str, Any]], *, x: str, y: str, numbers: bool, title: str) -> Plot:
    """Draw what a model adds for the values of one column: steps over numbers, bars of categories.

    Args:
        points: The records, of numbers one for the beginning of each step and one for the end of the last.
        x: Their fields.
        y: Their fields.
    """
    if numbers:
        mark: dict[str, Any] = {"type": "line", "strokeWidth": 2, "interpolate": "step-after"}
        return _chart(title, points, mark=mark, encoding={"x": _amount(x), "y": _amount(y)})
    bars = {"x": {"field": x, "type": "nominal", "sort": None, "title": x}, "y": _amount(y)}
    return _chart(title, points, height=None, mark={"type": "bar", "opacity": 0.7}, encoding=bars)


def steps_over_days(
    points: Sequence[Mapping[str, Any]], *, day: str, value: str, series: str, title: str, limit: float | None = None
) -> Plot:
    """Draw for each series what has been reached by each day, as a step, and a limit as a broken line.

    Args:
        points: The records.
        day: Their fields, days as ISO 8601 writes them.
        value: Their fields, days as ISO 8601 writes them.
        series: Their fields, days as ISO 8601 writes them.
        limit: Of the value.
    """
    x = {"field": day, "type": "temporal", "timeUnit": "utcyearmonthdate", "title": day}
    reached = {
        "mark": {"type": "line", "interpolate": "step-after", "point": True},
        "encoding": {
            "x": x,
            "y": _amount(value, scale={"zero": True}),
            "color": _series(series, legend={"labelLimit": 0}),
        },
    }
    rule = {
        "data": {"values": [{value: limit, "of": "limit"}]},
        "mark": {"type": "rule", "strokeDash": [6, 4]},
        "encoding": {"y": {"field": value, "type": "quantitative"}},
    }
    return _chart(title, points, layer=[reached, *([] if limit is None else [rule])])


def below_each_other(title: str, *plots: Plot) -> Plot:
    """Return one chart of several, each with colours of its own."""
    panels = [{name: value for name, value in plot.to_dict().items() if name != "$schema"} for plot in plots]
    own = {"color": "independent", "strokeDash": "independent"}
    return Plot({"$schema": SCHEMA, "title": title, "vconcat": panels, "resolve": {"scale": own}})


def plot_of(parts: Sequence["Listed"], *, neighbouring: "Neighbouring" = "add_remove") -> Plot:
    """Return what a list of mechanisms loses: δ over ε by each method, and below it the law of the loss.

    Above, the loss distribution is a band and each measure that says something a line. Below is the chance of a larger
    loss than that on the axis, in each direction, where it is known: every value of the curve lies in the band.

    Args:
        parts: As for `lapwing.privacy.statements_of`.
        neighbouring: As for `lapwing.privacy.statements_of`.

    Raises:
        InvalidParameter: Where `statements_of` does, or if the loss distribution says nothing.
    """
    end = _end(parts, neighbouring)
    epsilons = [Fraction(end) * n / POINTS for n in range(POINTS + 1)]
    points = privacy.profiles_of(parts, epsilons, neighbouring=neighbouring, width=PLOTTED_WIDTH)
    profile = curves_with_bounds(
        [asdict(point) for point in points],
        x="epsilon",
        lower="lower",
        upper="upper",
        series="method",
        least=LEAST_DELTAS[0],
        title="delta over epsilon",
    )
    panels = [profile]
    if points[-1].lower is not None:
        cells = _loss_cells(parts, neighbouring, end)
        panels.append(
            cells_with_bounds(
                cells,
                x="loss",
                until="until",
                lower="lower",
                upper="upper",
                series="direction",
                least=LEAST_DELTAS[0],
                y="chance of a larger privacy loss",
            )
        )
    return below_each_other(", ".join(part.text for part in parts), *panels)


def _end(parts: Sequence["Listed"], neighbouring: "Neighbouring") -> float:
    """Return the epsilon at which a plot ends: where delta is as small as is drawn, or as it becomes."""
    law = privacy.distribution_of(parts, neighbouring=neighbouring, width=PLOTTED_WIDTH)
    for delta in LEAST_DELTAS:
        upper = law.to_epsilon(delta).upper
        if 0 < upper < inf:
            return upper
    raise InvalidParameter("There is no plot of this list: at every delta its epsilon is 0, or none is found.")


def _loss_cells(parts: Sequence["Listed"], neighbouring: "Neighbouring", end: float) -> list[dict[str, Any]]:
    """Return the chance of a larger loss on cells from -end to end, but for where it is nearly 1.

    It falls, so on a cell it is at most the upper bound at its start, and at least the lower bound at its end.
    """
    losses = [Fraction(end) * (2 * n - CELLS) / CELLS for n in range(CELLS + 1)]
    width = max(LEAST_WIDTH, min(CELL_WIDTH, end / CELLS / 2))
    points = privacy.losses_of(parts, losses, neighbouring=neighbouring, width=width)
    return [
        {"direction": a.direction, "loss": a.loss, "until": b.loss, "lower": b.lower, "upper": a.upper}
        for a, b in pairwise(points)
        if a.direction == b.direction and b.lower < CERTAIN
    ]
