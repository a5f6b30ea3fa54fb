"""Ids as people read and type them: the shortest start that no other id has."""

from collections.abc import Collection, Sequence
from typing import Final

from lapwing.catalog.suggestions import shown
from lapwing.errors import InvalidParameter

SHORTEST: Final = 8
"""Characters of an id that are shown and typed at least; an id has 32."""
_MOST_LISTED: Final = 10


def short_id(id_: str, ids: Collection[str]) -> str:
    """Return the shortest start of an id, of 8 characters or more, that no other of the ids has.

    >>> short_id("3f9a2c41aa", {"3f9a2c41aa", "3f9a2c41ab"}), short_id("3f9a2c41aa", ["3f9a2c41aa"])
    ('3f9a2c41aa', '3f9a2c41')
    """
    lengths = range(SHORTEST, len(id_))
    others = [other for other in ids if other != id_]
    return next((id_[:n] for n in lengths if not any(one.startswith(id_[:n]) for one in others)), id_)


def id_meant(start: str, ids: Sequence[str], what: str, listing: str) -> str:
    """Return the id that begins so, if exactly one does.

    Args:
        what: The thing that has the ids.
        listing: The command that lists them.

    Raises:
        InvalidParameter: If no id begins so, or several do; the message names these.
    """
    meant = [one for one in ids if one == start] or [one for one in ids if one.startswith(start)]
    if len(start) < SHORTEST or not meant:
        raise InvalidParameter(
            f"There is no {what} {shown(start)}; give an id that `{listing}` shows, {SHORTEST} characters or more."
        )
    if len(meant) > 1:
        named = ", ".join(short_id(one, ids) for one in meant[:_MOST_LISTED])
        more = f" and {len(meant) - _MOST_LISTED} more" if len(meant) > _MOST_LISTED else ""
        raise InvalidParameter(f"The ids of {len(meant)} {what}s begin with {shown(start)}: {named}{more}. Give one.")
    return meant[0]
