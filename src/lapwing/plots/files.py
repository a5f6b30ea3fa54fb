"""Charts as files: a Vega-Lite specification, or a picture or page that needs nothing else.

Vega draws charts of Vega-Lite. Charts of answers have a `Drawing`, so that they look as they do in the console.
"""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from lapwing.errors import InvalidParameter

SUFFIXES: Final = (".json", ".html", ".svg", ".png")


def require_suffix(file: Path, what: str = "The chart's file", *, drawn: bool = False) -> None:
    """Refuse a file whose name says no kind of chart, or one for which the `plots` extra is missing.

    Args:
        drawn: Whether the chart is drawn by Lapwing: then only .png needs the extra.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidParameter(f"{what} is {file.name!r:.60}; its name must end in .json, .html, .svg or .png.")
    if suffix == ".png" or (suffix != ".json" and not drawn):
        require_pictures(f"A chart as {suffix}", "; .svg needs nothing" if drawn else "; .json needs nothing")


def require_pictures(what: str, instead: str = "") -> None:
    """Refuse what takes pictures without the `plots` extra.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    if find_spec("vl_convert") is None:
        raise InvalidParameter(f"{what} needs the extra: pip install 'lapwing-dp[plots]'{instead}.")


def written(specification: Mapping[str, Any], suffix: str) -> bytes:
    """Return a Vega-Lite specification as a file of this suffix has it: itself as .json, or a picture or page of it."""
    if suffix == ".json":
        return (json.dumps(specification, indent=2, allow_nan=False) + "\n").encode()
    if suffix == ".svg":
        return as_svg(specification).encode()
    import vl_convert  # the optional extra

    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(dict(specification), scale=2))
    return str(vl_convert.vegalite_to_html(dict(specification), bundle=True)).encode()


def as_svg(specification: Mapping[str, Any]) -> str:
    """Return a chart as SVG; it takes the `plots` extra."""
    import vl_convert  # the optional extra

    return str(vl_convert.vegalite_to_svg(dict(specification)))
