"""`lapwing index`: the rows that questions stand on, kept ready beside the data. For the curator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from lapwing.cli.characters import visible
from lapwing.cli.console import print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile

if TYPE_CHECKING:
    from lapwing.catalog.model import Table
    from lapwing.engines import IndexedEngine

EXAMPLE: Final = """\b
Examples:
  lapwing index build
  lapwing index drop"""
MEANING: Final = {
    "current": "there is an index, and queries use it",
    "unusable": "there is an index, but it is damaged, or made for other data, another catalog or another version; it "
    "is not used",
    "absent": "there is no index",
}

app = typer.Typer(
    help="Store rows so that queries run faster (for the curator).",
    epilog=EXAMPLE,
    rich_markup_mode=None,
)


@app.callback()
def index() -> None:
    """Keep rows ready for queries, in a file next to the data (for the curator)."""


@app.command(epilog=EXAMPLE, short_help="Write an index for every table without one.")
def build(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Clean and bound every table's rows once, and store them in a file next to the data, for all later queries.

    Results are the same with an index and without. The file holds private rows, and only you can read it. Nothing is
    charged.
    """
    with _tables(catalog) as (engine, tables):
        for table in tables:
            written = engine.build_index(table)
            print_text(
                f"{visible(table.name)}: {'the index is written' if written else 'there is an index already'}.\n"
            )


@app.command(epilog=EXAMPLE, short_help="Remove the indexes.")
def drop(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Remove the index of every table. Nothing else is lost: queries use the data, more slowly."""
    with _tables(catalog) as (engine, tables):
        for table in tables:
            existed = engine.drop_index(table)
            print_text(f"{visible(table.name)}: {'the index is removed' if existed else 'there was no index'}.\n")


@app.command(epilog=EXAMPLE, short_help="Show which tables have an index that queries use.")
def status(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Show for every table whether it has an index, and whether queries use it. Changes nothing."""
    with _tables(catalog) as (engine, tables):
        for table in tables:
            print_text(f"{visible(table.name)}: {MEANING[engine.index_state(table)]}.\n")


@contextmanager
def _tables(catalog: Path) -> Iterator[tuple["IndexedEngine", tuple["Table", ...]]]:
    from lapwing.catalog.toml import load  # here, so that `lapwing --help` loads no engine
    from lapwing.engines import open_indexed_engine

    described = load(catalog)
    engine = open_indexed_engine(described)
    try:
        yield engine, tuple(sorted(described.tables, key=lambda table: len(table.lineage)))  # parents first
    finally:
        engine.close()
