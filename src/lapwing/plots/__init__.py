"""Charts: Vega-Lite specifications as plain dictionaries (`specifications`), and files of them (`files`)."""

from lapwing.plots.specifications import (
    SCHEMA,
    Plot,
    PlotLook,
    Specification,
    bars_with_intervals,
    below_each_other,
    cells_with_bounds,
    curves_with_bounds,
    lines,
    plot_of,
    shape,
    steps_over_days,
)

__all__ = [
    "SCHEMA",
    "Plot",
    "PlotLook",
    "Specification",
    "bars_with_intervals",
    "below_each_other",
    "cells_with_bounds",
    "curves_with_bounds",
    "lines",
    "plot_of",
    "shape",
    "steps_over_days",
]
