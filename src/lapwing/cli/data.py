"""`lapwing data`: the data that the questions are about. For the curator."""

from typing import Final

import typer

import lapwing as lw
from lapwing.cli.console import print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile

EXAMPLE: Final = """\b
Example:
  lapwing data accept"""

app = typer.Typer(help="The data behind the catalog (for the curator).", epilog=EXAMPLE, rich_markup_mode=None)


@app.callback()
def data() -> None:
    """Look after the data behind the catalog (for the curator)."""


@app.command(epilog=EXAMPLE, short_help="Make the data as they are now the current version.")
def accept(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Make the data as they are now the current version: changed data are refused until then.

    What was spent stays spent: it belongs to the people in the data, not to a version of them.
    """
    with lw.connect(catalog) as session:
        before = session.budget().version
        version = session.accept_data()
    if version == before:
        print_text(f"The data are those of version {version}; nothing was changed.\n")
    else:
        print_text(
            f"Version {version} is current from now on. What was spent stays spent; old answers are not mixed in.\n"
        )
