"""The key `unreadable`: a table or a column accepts values that are not of its type, or refuses them.

    [tables.visits]
    unreadable = "null"
    [tables.visits.columns]
    age = { type = "integer", unreadable = "refuse" }

No query reads these keys. A value that cannot be read is NULL for every query, and a fraction of an integer is rounded.
So reading stays total: no row decides whether a query raises.

Guarantee:
    queries do not depend on the keys. Lapwing reads them only when a curator accepts or checks data, and tells
    only the curator. `digests.column_facts` does not hold them, so stored answers and prices stay the same.
"""

from typing import TYPE_CHECKING

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse

if TYPE_CHECKING:  # a column calls the check when it is made
    from lapwing.catalog.table import Column, Table


def is_accepted(table: "Table", name: str, unreadable: str | None = None) -> bool:
    """Return whether a version may have values in a column that are not of its type.

    Args:
        name: Of a column that is declared, or of the privacy unit that need not be.
        unreadable: As the table is to say, where the table has no key.
    """
    column = table.column(name)
    own = None if column is None else column.unreadable
    return (own or table.unreadable or unreadable) == "null"


def check_unreadable(column: "Column") -> None:
    """Refuse what is not a choice."""
    if column.unreadable not in (None, "null", "refuse"):
        refuse(
            f"columns.{spelling.key(column.name)}.unreadable",
            f'{spelling.value(column.unreadable)} is not allowed; write "null" to count such values as NULL, or '
            '"refuse", or remove it to do as the table says',
        )
