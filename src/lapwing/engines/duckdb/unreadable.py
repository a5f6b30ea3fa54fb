"""What is said of a file that cannot be read."""

from lapwing.catalog.model import PublicTable, Table
from lapwing.errors import DataFault


def unreadable(table: Table | PublicTable, why: str | None = None) -> DataFault:
    """Return the fault of a file that cannot be read to its end, with the reason if a curator may be told it."""
    usual = (
        "is it complete, and Parquet, or CSV in UTF-8 (or the encoding that the catalog says) with every quote closed "
        "and as many fields in every line, or an object in every line?"
    )
    return DataFault(f"The file {table.source} of table {table.name} cannot be read to its end; {why or usual}")
