"""Templates that write HTML and SVG: every value is escaped, and a name that is not there is an error."""

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.svg import svg_of
from lapwing.answer.charts.wrapping import unbroken
from lapwing.privacy import figures

FOLDER: Final = Path(__file__).parent


def new_environment(*folders: Path) -> Environment:
    """Return an environment for the templates of some folders and of this one, which has charts and published pages."""
    environment = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clip=figures.clip, level=_level, svg=_svg, unbroken=unbroken)
    return environment


def _level(confidence: float) -> str:
    return unbroken(figures.level(confidence))


def _svg(chart: Chart, simulated: bool = False) -> Markup:
    return Markup(svg_of(chart, simulated=simulated))  # noqa: S704  # `svg_of` escapes every text
