"""A first draft of a public table: everybody knows its rows, so that they may say the types of its columns."""

from pathlib import Path

from lapwing.catalog.draft import source_from, table_name
from lapwing.catalog.file_columns import found_text, guessed_types, read_columns
from lapwing.catalog.place import within
from lapwing.catalog.public import PublicTable
from lapwing.catalog.several_files import named
from lapwing.catalog.table import Column


def public_draft(source: Path, folder: Path) -> PublicTable:
    """Draft a public table from a file, a folder or a pattern, with all columns that a catalog has a type for.

    The curator's call: what is in the file must be known to everybody.

    Args: folder: where the catalog will be written.
    Raises: CatalogError; DataFault if the file is missing or unreadable.
    """
    source = named(source)
    with within(f"{source.name}: "):
        written = found_text(source)
        columns = read_columns(source, guessed_types(source, written), written)
        described = [Column(name=c.name, type=c.type, step=c.step) for c in columns if c.type is not None]
        return PublicTable(
            name=table_name(source), source=source_from(folder, source), columns=tuple(described), text=written
        )
