"""What is said of a file that cannot be read."""

from lapwing.catalog.model import PublicTable, Table
from lapwing.errors import DataFault


def unreadable(table: Table | PublicTable, why: str | None = None) -> DataFault:
    """Return the fault of a file that cannot be read to its end, with the reason if a curator may be told it."""
    usual = (
        "is it complete, and Parquet, CSV or JSON lines? CSV needs UTF-8 (or the catalog's encoding), every quote "
        "closed, and as many fields in every line. JSON lines need an object in every line."
    )
    return DataFault(f"The file {table.source} of table {table.name} cannot be read to its end; {why or usual}")
