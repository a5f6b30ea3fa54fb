"""Lists of pages: the items that have all words of a search, in parts. They work by address, without scripts.

Words are looked for here, in what the service lists for the caller. So no search finds what the list does not show.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest
from lapwing.server.problems import problem

SEARCH: Final = "q"
"""The query parameter with the words."""
LONGEST: Final = 200
BATCH: Final = 1000
MOST_BATCHES: Final = 10
"""Looked through for one page. If there is more, the page has a button that goes on."""
SHORT: Final = 5
"""Lists with no more items have no search box."""
Item = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """A part of a list.

    Args:
        words: The words of the search; empty for the whole list.
        following: The item after which the next part begins; None if there is no more.
        later: Whether this is not the first part.
    """

    words: str
    items: tuple[Any, ...]
    following: str | None
    later: bool

    @property
    def searchable(self) -> bool:
        """Tell whether the page has a search box."""
        return bool(self.words) or self.later or self.following is not None or len(self.items) > SHORT


def words_of(visit: PageRequest) -> str:
    """Return what a page is searched for."""
    return " ".join(visit.asked(SEARCH)[:LONGEST].split())


def matches(words: str, texts: Iterable[object]) -> bool:
    """Tell whether some texts have all words, in upper or lower case.

    >>> matches("PLAN visits", ["Visits by plan", None]), matches("plan ward", ["Visits by plan"]), matches("", [])
    (True, False, True)
    """
    text = "\n".join(str(one) for one in texts if one).casefold()
    return all(word in text for word in words.casefold().split())


async def listed(
    visit: PageRequest,
    *path: str,
    texts: Callable[[Any], Iterable[object]],
    most: int,
    key: str = "id",
    start: str = "after",
    query: Mapping[str, Any] | None = None,
    belongs: Callable[[Any], bool] | None = None,
) -> FoundItems:
    """Return a part of a list of the service, which lists it in parts itself.

    Args:
        texts: The texts of an item in which words are looked for.
        most: Items of a part.
        key: The field by which the service's list goes on after an item.
        start: The query parameter of the page which says where the part begins.
        belongs: Tells which items of the service's list this list has; None for all.
    """
    words, after = words_of(visit), visit.asked(start) or None
    found: list[Any] = []
    later, batch = after is not None, BATCH if words or belongs is not None else most
    for _ in range(MOST_BATCHES):
        reply = await visit.api.send("GET", *path, query={**(query or {}), "limit": batch, "after": after})
        for item in reply.document:
            if (belongs is None or belongs(item)) and matches(words, texts(item)):
                if len(found) == most:
                    return FoundItems(words=words, items=tuple(found), following=str(found[-1][key]), later=later)
                found.append(item)
        if not reply.following:
            return FoundItems(words=words, items=tuple(found), following=None, later=later)
        after = str(reply.document[-1][key])
        if batch == most:
            break
    return FoundItems(words=words, items=tuple(found), following=after, later=later)


def part_of(
    visit: PageRequest, items: Iterable[Any], texts: Callable[[Any], Iterable[object]], most: int, key: str = "name"
) -> FoundItems:
    """Return a part of a list that is there as a whole.

    Raises:
        ApiRefusal: If the part begins after an item that is not in the list.
    """
    words, after = words_of(visit), visit.asked("after")
    chosen = [item for item in items if matches(words, texts(item))]
    names = [str(item[key]) for item in chosen]
    if after and after not in names:
        raise ApiRefusal(
            problem("not_found", 404, "This part of the list does not exist any more. Open the list again.")
        )
    first = names.index(after) + 1 if after else 0
    shown = tuple(chosen[first : first + most])
    more = len(chosen) > first + most
    return FoundItems(words=words, items=shown, following=names[first + most - 1] if more else None, later=bool(after))
