"""A first draft of a public table: everybody knows its rows, so that they may say the types of its columns."""

from collections.abc import Sequence
from pathlib import Path

from lapwing.catalog.draft import source_from, table_name
from lapwing.catalog.file_columns import FileColumn, found_text, guessed_types, read_columns
from lapwing.catalog.place import within
from lapwing.catalog.public import PublicTable
from lapwing.catalog.several_files import named
from lapwing.catalog.source_address import name_of
from lapwing.catalog.table import Column


def public_draft(source: str | Path, folder: Path, offered: Sequence[FileColumn] | None = None) -> PublicTable:
    """Draft a public table from a file, a folder, a pattern or an address, with all columns a catalog has a type for.

    The curator's call: what is in the file must be known to everybody.

    Args:
        folder: Where the catalog will be written.
        offered: The columns that an address leads to.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
        DataFault: If the file is missing or unreadable.
    """
    if offered is not None:
        address = str(source)
        with within(f"{name_of(address)}: "):
            return PublicTable(
                name=table_name(Path(name_of(address))), source=address, columns=_columns(offered, address)
            )
    source = named(Path(source))
    with within(f"{source.name}: "):
        written = found_text(source)
        columns = read_columns(source, guessed_types(source, written), written)
        return PublicTable(
            name=table_name(source), source=source_from(folder, source), columns=_columns(columns), text=written
        )


def _columns(columns: Sequence[FileColumn], address: str = "") -> tuple[Column, ...]:
    """Return columns that have a type; a decimal whose step a source does not say is left to the curator."""
    typed = [c for c in columns if c.type is not None and not (address and c.type == "decimal" and c.step is None)]
    return tuple(Column(name=c.name, type=c.type or "", step=c.step) for c in typed)
