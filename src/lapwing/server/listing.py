"""Lists in pages, and the query parameters that a request takes: those of its description, each once, and no others.

A page has at most `limit` items. What comes next begins after an item, which is named by `after`: so a list in which
something is added or removed meanwhile loses nothing and repeats nothing. The answer names the next page in its `Link`
header (RFC 8288), and only if there is one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar, final
from urllib.parse import quote, urlencode

from fastapi import Depends, HTTPException, Query, Request

from lapwing.errors import InvalidParameter

MOST: Final = 1_000
T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pagination:
    """Which part of a list is wanted: at most so many items, after one that is named."""

    limit: int = MOST
    after: str | None = None

    @property
    def most(self) -> int:
        """How many items are to be looked up: one more than are shown, so that it is known whether more follow."""
        return self.limit + 1

    @property
    def beginning(self) -> dict[str, str]:
        """Where the page begins, as an argument; none if that is where the list does."""
        return {} if self.after is None else {"after": self.after}

    def start(self, items: Sequence[T], name: Callable[[T], object]) -> Sequence[T]:
        """Return a whole list from where the page begins.

        Raises:
            InvalidParameter: If nothing in the list has the name.
        """
        if self.after is None:
            return items
        places = [place for place, item in enumerate(items) if str(name(item)) == self.after]
        if not places:
            raise no_such_item()
        return items[places[0] + 1 :]


def page(
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items at most.")] = MOST,
    after: Annotated[
        str | None, Query(min_length=1, max_length=200, description="The item after which the page begins.")
    ] = None,
) -> Pagination:
    """Return which part of its list a request asks for."""
    return Pagination(limit=limit, after=after)


PageOf = Annotated[Pagination, Depends(page)]


def no_such_item() -> InvalidParameter:
    """Return the error of a page that begins after nothing."""
    return InvalidParameter("after names an item that is not, or no longer, in this list. Start again without it.")


def cut(
    request: Request, limit: int, items: Sequence[T], name: Callable[[T], object]
) -> tuple[Sequence[T], dict[str, str]]:
    """Return the items of a page, and the header that names the next one, if there are more than it shows."""
    if len(items) <= limit:
        return items, {}
    asked = {**request.query_params, "limit": limit, "after": name(items[limit - 1])}
    return items[:limit], {"Link": f'<{quote(request.url.path)}?{urlencode(asked)}>; rel="next"'}


def require_known_parameters(request: Request) -> None:
    """Refuse query parameters that the request does not take: what is misspelt would be thought to hold.

    Raises:
        HTTPException: If it fails.
    """
    if not request.scope["query_string"]:
        return
    names = [name for name, _ in request.query_params.multi_items()]
    known = sorted(_query_names(request.scope["route"].dependant))
    if len(set(names)) == len(names) and set(names) <= set(known):
        return
    takes = f"the query parameters {', '.join(known)}, each once, and no others" if known else "no query parameters"
    raise HTTPException(HTTPStatus.BAD_REQUEST, f"This request takes {takes}")


def _query_names(dependant: Any) -> set[str]:
    """Return the names of the query parameters of a route and of all that it depends on."""
    names = {parameter.alias for parameter in dependant.query_params}
    return names.union(*map(_query_names, dependant.dependencies))
