"""Expect a refusal by its code: what it says may be worded better at any time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lapwing.errors import QueryRefused


@contextmanager
def refused_as(*codes: str, saying: str | None = None) -> Iterator[pytest.ExceptionInfo[QueryRefused]]:
    """Expect a refusal with one of some codes.

    Args:
        saying: A pattern of the names and numbers that the message has to tell, without the words around them.
    """
    with pytest.raises(QueryRefused, match=saying) as caught:
        yield caught
    assert caught.value.cause.value in codes, f"{caught.value.cause.value}: {caught.value}"


def code_of(error: BaseException) -> str:
    """Return the code of an error; of a refusal, that of its kind."""
    return error.cause.value if isinstance(error, QueryRefused) else str(getattr(error, "code", type(error).__name__))
