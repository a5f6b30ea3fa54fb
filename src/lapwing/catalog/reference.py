"""References: columns of one protected table that name a row of another one of the same units.

A return names its sale by the receipt, and its customer by a column of its own. The column, or a link, says whose row
it is; a reference says that questions may join returns with the sales that they name. A table may refer to itself:
items of one order are of one customer, and questions may join them by the order.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog import spelling
from lapwing.catalog.checks import check_key
from lapwing.catalog.place import refuse

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog

REMEDY: Final = "name a protected table whose rows are of the same units"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Columns of a table that name a row of another one, of which a join keeps what is of the same unit.

    Guarantee:
        None is needed. The engine compares the units of the rows that it joins, so that a row which names somebody
        else's row meets nothing. Premise, checked where data are accepted: no two rows with a unit of the other table
        share the key. It bounds how many rows a join can give. Of a table that refers to itself nothing is supposed: a
        row meets at most as many as its unit has.

    Args:
        table: Whose rows name others.
        to: The table that they name.
        on: Pairs of a column here and the column there that it equals.
    """

    table: str
    to: str
    on: tuple[tuple[str, str], ...]

    @property
    def to_itself(self) -> bool:
        """Whether rows that are alike in the columns are of one unit, and no row is named."""
        return self.table == self.to

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the other table, in the order of their names."""
        return tuple(sorted(there for _, there in self.on))


def check_references(catalog: "Catalog") -> None:
    """Refuse references that lead to no row of the same unit, or compare what cannot be compared.

    Raises:
        CatalogError: Starting with `tables.<name>.references.<name>`.
    """
    tables = {table.name: table for table in catalog.tables}
    for reference in catalog.references:
        place = f"tables.{spelling.key(reference.table)}.references.{spelling.key(reference.to)}"
        table, other = tables.get(reference.table), tables.get(reference.to)
        named = spelling.text(reference.to)
        if table is None or other is None:
            missing = named if table is not None else spelling.text(reference.table)
            refuse(place, f"there is no protected table {missing}; {REMEDY}")
        if table is other and any(here != there for here, there in reference.on):
            refuse(place, f"{named} is this table itself; write the same column on both sides")
        if table.unit_is_row or table.units != other.units:
            refuse(place, f"{named} and {spelling.text(table.name)} have different units; {REMEDY}")
        if not reference.on:
            refuse(place, 'no columns; write pairs of columns here and there, like order_id = "id"')
        if any(len(set(side)) < len(reference.on) for side in zip(*reference.on, strict=True)):
            refuse(place, "a column appears more than once; write pairs of different columns")
        for here, there in reference.on:
            check_key(table, other, here, there, f"{place}.{spelling.key(here)}")
