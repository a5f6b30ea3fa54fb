"""In which order tables that are linked by name can be made: each after the table that its link leads to."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse
from lapwing.catalog.table import MOST_LINKS


def parents_first(links: Mapping[str, str | None], public: Collection[str]) -> tuple[str, ...]:
    """Return the names of tables, each after its parent.

    Args: links: every protected table, and the name of its parent or None. public: the names of public tables.
    Raises: CatalogError, starting with `tables.<name>.link.table`, if a link leads nowhere, or round in a circle.
    """
    for name, parent in links.items():
        if parent is not None:
            _check_parent(name, parent, links, public)
    depths = {name: _depth(name, links) for name in links}
    return tuple(sorted(links, key=lambda name: depths[name]))


def _check_parent(name: str, parent: str, links: Mapping[str, str | None], public: Collection[str]) -> None:
    place, given = _place(name), spelling.text(parent)
    if parent == name:
        refuse(place, f"{given} is this table itself; name the table that its rows belong to")
    if parent in public:
        reason = f"{given} is a public table, to whose rows nobody belongs"
        refuse(place, f"{reason}; name a protected one, and join the public one in questions")
    if parent in links:
        return
    for other in (*links, *public):
        if other.casefold() == parent.casefold():
            refuse(place, f"{given} differs only by case from the table {spelling.text(other)}; write both alike")
    close = get_close_matches(parent, links, n=1)
    meant = f" (did you mean {spelling.text(close[0])}?)" if close else ""
    refuse(place, f"there is no table {given}{meant}; name a protected table of this catalog")


def _depth(name: str, links: Mapping[str, str | None]) -> int:
    """Return how many links there are from a table to the end."""
    path, parent = [name], links[name]
    while parent is not None:
        if parent in path:
            circle = " to ".join(map(spelling.text, (*path[path.index(parent) :], parent)))
            refuse(_place(path[-1]), f"links go round in a circle, {circle}; give one of these tables a privacy_unit")
        if len(path) > MOST_LINKS:
            refuse(_place(name), f"more than {MOST_LINKS} links up to the privacy unit; link to a table nearer to it")
        path.append(parent)
        parent = links[parent]
    return len(path) - 1


def _place(name: str) -> str:
    return f"tables.{spelling.key(name)}.link.table"
