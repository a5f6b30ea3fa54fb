"""Charts as files: a Vega-Lite specification, or a picture or page that needs nothing else."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lapwing.cli.characters import to_json
from lapwing.cli.console import note
from lapwing.errors import InvalidParameter
from lapwing.plots import Plot

SUFFIXES: Final = (".json", ".html", ".svg", ".png")
HELP: Final = "Also write a chart: .json (Vega-Lite), .html, .svg or .png."


def require_chart(file: Path | None) -> None:
    """Check the name of a chart's file before any work is done for it.

    Raises: InvalidParameter for an unknown suffix, or if a picture needs the `plots` extra and it is missing.
    """
    if file is None:
        return
    if file.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(f"--plot is {file.name!r:.60}; its name must end in .json, .html, .svg or .png.")
    if file.suffix.lower() != ".json":
        require_pictures(f"A chart as {file.suffix}", "; .json needs nothing")


def require_pictures(what: str, instead: str = "") -> None:
    """Refuse what takes pictures without the `plots` extra.

    Raises: InvalidParameter.
    """
    if find_spec("vl_convert") is None:
        raise InvalidParameter(f"{what} needs the extra: pip install 'lapwing[plots]'{instead}.")


def write_chart(plot: Plot, file: Path) -> None:
    """Write a chart as its suffix says, the specification as .json or a picture, and note where it is."""
    file.write_bytes(_written(plot, file.suffix.lower()))
    note("written", str(file))


def _written(plot: Plot, suffix: str) -> bytes:
    if suffix == ".json":
        return to_json(plot.to_dict()).encode()
    if suffix == ".svg":
        return as_svg(plot).encode()
    import vl_convert  # the optional extra

    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(plot.to_dict(), scale=2))
    return str(vl_convert.vegalite_to_html(plot.to_dict(), bundle=True)).encode()


def as_svg(plot: Plot) -> str:
    """Return a chart as SVG; it takes the `plots` extra."""
    import vl_convert  # the optional extra

    return str(vl_convert.vegalite_to_svg(plot.to_dict()))
