"""Templates that write HTML and SVG: every value is escaped, and a name that is not there is an error."""

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lapwing.privacy import figures
from lapwing.privacy.figures import NOTHING

FOLDER: Final = Path(__file__).parent
LONGEST: Final = 160


def new_environment(*folders: Path) -> Environment:
    """Return an environment for the templates of some folders and of this one, which has charts and published pages."""
    environment = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clip=clip, level=figures.level)
    return environment


def clip(value: object, longest: int = LONGEST) -> str:
    """Return a text, shortened if it is long.

    >>> clip("visits"), clip("x" * 500, 3)
    ('visits', 'xxx… (500 characters)')
    """
    text = NOTHING if value is None else str(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
