"""Example conditions, for people, that list values of a key."""

from typing import Final

from lapwing.query.expressions.expression import written_in
from lapwing.query.expressions.types import describe
from lapwing.query.measures.measures import Key

EXAMPLES: Final = {
    "date": "DATE '2024-01-01', …",
    "timestamp": "TIMESTAMP '2024-01-01 08:00:00', …",
    "number": "1, 2, …",
    "boolean": "TRUE",
}


def listed(key: Key) -> str:
    """Return the condition, with the key's name if it is a single column."""
    if len(written_in(key.expression)) != 1:
        return "x IN ('a', 'b', …)"
    values = EXAMPLES.get(describe(key.expression.type), "'a', 'b', …")
    return f"{key.name} IN ({values})"
