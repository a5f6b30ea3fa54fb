"""Where things stand in the text of a question."""

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from lapwing.errors import QueryRefused, RefusalCause

Position = tuple[int, int]
"""A (line, column), both from 1."""
WRITTEN = "written"
"""Under which a function of the tree keeps the name that the question gives it."""


def position_at(text: str, offset: int) -> Position:
    """Return the position of a character offset."""
    before = text[:offset]
    return (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def position_of(node: exp.Expression, text: str) -> Position | None:
    """Return where a node, or the first part of it that knows, stands in the text."""
    for part in node.walk(bfs=False):
        start = part.meta.get("start")
        if isinstance(start, int):
            return position_at(text, start)
    return None


def refused_at(
    token: Token, text: str, cause: RefusalCause, reason: str, remedy: str, command: str = ""
) -> QueryRefused:
    """Return a refusal that points at a token."""
    position = position_at(text, token.start)
    return QueryRefused(reason, cause=cause, remedy=remedy, command=command, position=position)
