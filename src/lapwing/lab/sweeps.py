"""One experiment at several ε: all of its rows, and one chart of predicted and observed figures by ε."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from lapwing.errors import InvalidParameter
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Cell, Finding, Row
from lapwing.lab.registry import run
from lapwing.plots import Plot
from lapwing.privacy.amounts import Number, exact

MOST: Final = 20
"""Values of ε in one sweep."""
AT: Final = "at ε"
_PAIR: Final = re.compile(r"(?:(.*), )?predicted")
_SEEN: Final = ("observed", "true", "Lapwing")
"""What the column beside a prediction is called."""
_EPSILON: Final = re.compile(r",? ?(at )?ε = [0-9.e+-]+")


def sweep(name: str, epsilons: Sequence[Number], **settings: Any) -> Finding:
    """Run one experiment at several ε, and draw what it predicted and observed by ε.

    Args:
        epsilons: Two to twenty, all different.
        **settings: The other arguments of `run`.

    Raises:
        InvalidParameter: As `run` does, and for another number of ε.
    """
    amounts = [exact(epsilon, "epsilon") for epsilon in epsilons]
    if not 2 <= len(amounts) <= MOST or len(set(amounts)) != len(amounts):
        raise InvalidParameter(f"epsilon has {len(amounts)} values; a sweep takes 2 to {MOST}, all different.")
    findings = {float(epsilon): run(name, epsilon=epsilon, **settings) for epsilon in amounts}
    last = findings[float(amounts[-1])]
    return Finding(
        rows=tuple({AT: epsilon, **row} for epsilon, finding in findings.items() for row in finding.rows),
        checks=tuple(
            replace(check, what=f"ε = {epsilon:g}: {check.what}")
            for epsilon, finding in findings.items()
            for check in finding.checks
        ),
        plot=_plot(name, findings),
        conclusion="\n".join(f"ε = {epsilon:g}. {finding.conclusion}" for epsilon, finding in findings.items()),
        sample=last.sample,
    )


def _plot(name: str, findings: Mapping[float, Finding]) -> Plot:
    """Draw a panel for each figure: predictions as lines, observations as points, a colour for each kind of row."""
    points = [point for epsilon, finding in findings.items() for row in finding.rows for point in _points(epsilon, row)]
    x, series = (
        numeric("epsilon", scale={**LOG, "nice": False}),
        nominal("row", sort=None, title=None, legend={"labelLimit": 320}),
    )
    layers = [
        layer("line", x=x, y=numeric("predicted", "predicted (line), observed (points)"), color=series),
        layer({"type": "point", "filled": True, "size": 50}, x=x, y=numeric("observed"), color=series),
    ]
    return chart(
        f"{name}, by epsilon",
        **data(points),
        facet={
            "column": nominal("figure", sort=list(dict.fromkeys(str(point["figure"]) for point in points)), title=None)
        },
        spec={"width": 260, "height": 240, "layer": layers},
        resolve={"scale": {"y": "independent"}},
    )


def _points(epsilon: float, row: Row) -> list[dict[str, Cell]]:
    """Return what a row predicted and observed, by figure; what names the row are its words and whole numbers."""
    pairs = {
        column: seen
        for column in row
        if (found := _PAIR.fullmatch(column))
        for seen in [next((each for each in _beside(found[1]) if each in row), None)]
        if seen is not None
    }
    ours = {*pairs, *pairs.values()}
    words = [cell for column, cell in row.items() if column not in ours and isinstance(cell, str | int)]
    label = " · ".join(_EPSILON.sub("", str(cell)) for cell in words)
    return [
        {
            "epsilon": epsilon,
            "row": label,
            "figure": column.removesuffix(", predicted"),
            "predicted": row[column],
            "observed": row[seen],
        }
        for column, seen in pairs.items()
        if row[column] is not None
    ]


def _beside(figure: str | None) -> list[str]:
    return [f"{figure}, {seen}" if figure else seen for seen in _SEEN]
