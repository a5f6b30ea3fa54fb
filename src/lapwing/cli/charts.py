"""Charts of commands, as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from lapwing.cli.console import note
from lapwing.plots.files import require_suffix

if TYPE_CHECKING:
    from lapwing.plots import Plot

HELP: Final = "Also write a chart: .json (Vega-Lite), .html, .svg or .png."


def require_chart(file: Path | None) -> None:
    """Check the name of a chart's file before any work is done for it.

    Raises:
        InvalidParameter: For an unknown suffix, or if a picture needs the `plots` extra and it is missing.
    """
    if file is not None:
        require_suffix(file, "--plot")


def write_chart(plot: "Plot", file: Path) -> None:
    """Write a chart as its suffix says, the specification as .json or a picture, and note where it is."""
    plot.save(file)
    note("written", str(file))
