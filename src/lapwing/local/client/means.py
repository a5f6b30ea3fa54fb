"""The mechanisms for a number on a public grid: how a report is drawn, and the worst ratio of two points.

The grid has s + 1 points, 0 … s. `lapwing.local.means.mean_randomizer` shows why the mean of the numbers follows from
the reports.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .rules import THRESHOLDS, WHOLE, Parameters, Read, Rule, below, coin, either, response_ratio

MOST_WIDTH: Final = 1 << 40
MOST_SHIFT: Final = 1 << 20


def _draw_end(threshold: int, steps: int, true: int, read: Read) -> int:
    """Round to an end of the grid, the upper one with probability i/s; report it if the coin falls, else the other."""
    end = below(steps, read) < true
    return int(end == coin(threshold, read))


def _draw_window(parameters: Parameters, size: int, true: int, read: Read) -> int:
    """Draw among width + s·shift places: by the coin in the window of `width` from i·shift on, else outside it."""
    threshold, width, shift, steps = parameters["threshold"], parameters["width"], parameters["shift"], size - 1
    kept, start = coin(threshold, read), true * shift
    place = below(width if kept else steps * shift, read)
    return start + place if kept else place + width * (place >= start)


def _window_ratio(parameters: Parameters, size: int) -> Fraction:
    """Divide the probability (T/2^64)/width of a place in the window by (1 − T/2^64)/outside of one that is not."""
    threshold, width, outside = parameters["threshold"], parameters["width"], (size - 1) * parameters["shift"]
    return either(Fraction(threshold * outside, (WHOLE - threshold) * width))


def _draw_hybrid(parameters: Parameters, size: int, true: int, read: Read) -> list[int]:
    if coin(parameters["piecewise"], read):
        return [1, _draw_window(parameters, size, true, read)]
    return [0, _draw_end(parameters["threshold_ends"], size - 1, true, read)]


def _hybrid_ratio(parameters: Parameters, size: int) -> Fraction:
    """Take the larger: which mechanism is drawn does not depend on the answer, and the report names it."""
    return max(_window_ratio(parameters, size), response_ratio(parameters["threshold_ends"], 2))


_WINDOW: Final[Mapping[str, range]] = {
    "threshold": THRESHOLDS, "width": range(1, MOST_WIDTH + 1), "shift": range(1, MOST_SHIFT + 1)
}  # fmt: skip

MEAN_RULES: Final[Mapping[str, Rule[int]]] = {
    "duchi": Rule(
        ranges=lambda size: {"threshold": THRESHOLDS},
        ratio=lambda parameters, size: response_ratio(parameters["threshold"], 2),
        draw=lambda parameters, size, true, read: _draw_end(parameters["threshold"], size - 1, true, read),
    ),
    "piecewise": Rule(
        ranges=lambda size: _WINDOW,
        ratio=_window_ratio,
        draw=_draw_window,
    ),
    "hybrid": Rule(
        ranges=lambda size: {"piecewise": THRESHOLDS, **_WINDOW, "threshold_ends": THRESHOLDS},
        ratio=_hybrid_ratio,
        draw=_draw_hybrid,
    ),
}
