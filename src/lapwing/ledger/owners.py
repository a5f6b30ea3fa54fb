"""Whose rows each table of a data set holds, as its ledger records it: its privacy unit, or where its link leads.

Losses are charged for units. If the rows of a table belonged to customers at first and then, by another link, to
suppliers, then questions before and after would have protected different people, and neither would have the whole
promise. So with every version of the data the ledger records whose rows each table holds. A catalog that says otherwise
of a known table is refused, like one with another privacy unit.

Names may change, as spending belongs to people: a parent that is gone may be the one that appears under a new name, or
may get its old name back. And a table may replace its own privacy unit by a link that says the same, or the other way
round: if the linked column equals the parent's privacy unit, the rows belong to the same people.
"""

from collections.abc import Mapping
from typing import Any, cast

from lapwing.catalog.digests import owner_facts
from lapwing.catalog.graph import NODE
from lapwing.catalog.model import Catalog
from lapwing.errors import CatalogMismatch

Owner = Mapping[str, Any]
"""Either `privacy_unit`, a column, or `link`: the parent's name under `table`, and pairs of columns under `on`."""
Owners = Mapping[str, Owner]
"""The owner of each table's rows, by the table's name."""


def owners_of(catalog: Catalog) -> Owners:
    """Return whose rows the tables of a catalog have."""
    owners: dict[str, Owner] = {table.name: owner_facts(table) for table in catalog.tables}
    for graph in catalog.graphs:
        if graph.privacy == NODE:  # an edge is the two nodes' that it has
            owners[graph.edges.name] = {"privacy_unit": f"{' and '.join(graph.ends)} of {graph.name}"}
    return owners


def owners_from(record: object) -> Owners:
    """Read what a ledger's entry says of tables.

    Raises:
        TypeError: If it says something else.
    """
    if not isinstance(record, dict) or not all(isinstance(owner, dict) for owner in record.values()):
        raise TypeError("not the owners of tables")
    return cast(Owners, record)


def require_same_owners(given: Owners, known: Owners, ledger: str) -> None:
    """Refuse tables whose rows would belong to other units than the ledger has recorded.

    Raises:
        CatalogMismatch: Naming the first of them.
    """
    for name in others_than(given, known):
        raise CatalogMismatch(
            f"The ledger {ledger} knows whose the rows of {name} are: {_shown(known[name])} (given: "
            f"{_shown(given[name])}). Earlier queries would have protected other people than new ones. "
            "Nothing was changed. Write it as it was; only data about other people may use another ledger."
        )


def others_than(given: Owners, known: Owners) -> list[str]:
    """Return the tables whose rows would belong to other units than is known of them, by name."""
    changed = []
    for name in sorted(given.keys() & known.keys()):
        was, now = known[name], given[name]
        if was == now or _is_renamed(was, now, given, known):
            continue
        if _is_by_link(was, now, given) or _is_by_link(now, was, known):
            continue
        changed.append(name)
    return changed


def _is_renamed(was: Owner, now: Owner, given: Owners, known: Owners) -> bool:
    """Tell whether a parent that is gone may have become one that was not there, or whose rows are told alike."""
    before, after = was.get("link"), now.get("link")
    if before is None or after is None or before["on"] != after["on"]:
        return False
    name = after["table"]
    return before["table"] not in given and known.get(name) in (None, known.get(before["table"]))


def _is_by_link(own: Owner, linked: Owner, tables: Owners) -> bool:
    """Tell whether a link equates a table's own privacy unit with that of its parent."""
    link = linked.get("link")
    if link is None or "privacy_unit" not in own:
        return False
    unit = tables.get(link["table"], {}).get("privacy_unit")
    return unit is not None and link["on"] == {own["privacy_unit"]: unit}


def _shown(owner: Owner) -> str:
    link = owner.get("link")
    if link is None:
        return f"privacy_unit is {owner.get('privacy_unit')}"
    pairs = " and ".join(f"{here} = {there}" for here, there in sorted(link["on"].items()))
    return f"linked to {link['table']} by {pairs}"
