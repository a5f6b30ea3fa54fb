"""The rows of a linked table: each is joined to the row of the parent that its key leads to, and takes its unit.

In a linked table a row's unit is that of the row that its key leads to. So its cleaned rows are joined to the kept rows
of the parent by equality of the cleaned key columns, which NULL never equals; a row without a match is dropped. Then
rows are kept unit by unit, up to the limit, as in any table. What is kept of a unit is a function of its own kept rows
in the parent and of the rows of the linked table whose keys lead to those; by induction along the links, of what
belongs to the unit (`catalog.table`). That keys are unique in the parent is a premise, which the engine checks for the
curator when data are accepted. If it is broken all the same, a row exists once for every row of the parent that it
matches, each time with the unit of that row. Even then the rows of a unit follow from its own rows in the parent and
from the linked table, which is held fixed, and they are bounded like any others: no unit affects what is kept of
another.

Guarantee:
    What exists is E(D) = ⋃ E(D_u) over the units u, where D_u is what belongs to u: its rows in the root, and in linked
    tables those whose keys lead to them. Premise, for the curator to vouch for: keys are unique among the parent's
    rows. Proof, by induction along the links: it holds in the root, where each unit is bounded by itself. A row of the
    child meets at most one row of the parent, hence one of at most one E(D_u), and whether it does depends on the row
    and that E(D_u); which K are kept depends on those of u. ∎ So to remove a unit from the root is to remove it
    everywhere, whether its rows in linked tables are removed with it or are left there. If the premise is broken, a row
    exists once for every row of the parent that it meets. Then E(D) still falls into units when the linked tables are
    held fixed: what such a row says is hidden less well, of several units.
"""

from lapwing.catalog.model import Table
from lapwing.catalog.table import Link
from lapwing.engines.duckdb.literals import identifier, kept_name, unit_name
from lapwing.query.expressions.as_read import names_read


def linked(table: Table, link: Link, rows: str, reads: bool) -> str:
    """Join the rows of a linked table to those of its parent that are kept, and take over their units.

    Args:
        rows: The query for the table's own rows, cleaned.
        reads: Whether they have bounded numbers as they are read.
    """
    names = [*(column.name for column in table.columns), *(names_read(table).values() if reads else ())]
    shown = [f"theirs.{unit_name(link.parent)} AS {unit_name(table)}", *(f"ours.{identifier(name)}" for name in names)]
    on = " AND ".join(f"ours.{identifier(here)} = theirs.{identifier(there)}" for here, there in link.on)
    return f"SELECT {', '.join(shown)} FROM ({rows}) AS ours JOIN {kept_name(link.parent)} AS theirs ON {on}"
