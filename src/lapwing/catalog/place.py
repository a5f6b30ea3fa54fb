"""Where in a catalog something is wrong: every message starts with file, table, column and key."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from lapwing.errors import CatalogError


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put `place` before the message of every `CatalogError` that passes through."""
    try:
        yield
    except CatalogError as error:
        raise CatalogError(f"{place}{error}") from None


def refuse(place: str, reason: str) -> NoReturn:
    """Raise the error that names a place and says what is wrong there and what to do."""
    raise CatalogError(f"{place}: {reason}")
