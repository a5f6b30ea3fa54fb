"""What is done with a question that is refused: it is read once more, in words and with bounds that binding knows.

No question that is answered as it stands is read twice, so that none becomes another one than it was.
"""

from collections.abc import Callable
from dataclasses import replace

from lapwing.errors import QueryRefused
from lapwing.query.expressions.conversion import NEEDS_BOUNDS
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.scope import rows_of
from lapwing.query.other_spellings import respelled
from lapwing.query.plan import Plan
from lapwing.query.stated_bounds import rows_as_stated
from lapwing.query.text.parse import Parsed

Bound = Callable[[Parsed, Callable[..., RowScope]], Plan]
"""Binds a question, given what returns the names that expressions over rows may use."""


def bound_again(refused: QueryRefused, parsed: Parsed, bound: Bound) -> Plan:
    """Bind a question that was refused in other words, and with the bounds that it states itself.

    Raises: the refusal of the last reading.
    """
    spelled = respelled(parsed.select, parsed.arguments.keys())
    if spelled is not None:
        parsed = replace(parsed, select=spelled)
        try:
            return bound(parsed, rows_of)
        except QueryRefused as again:
            refused = again
    if NEEDS_BOUNDS in refused.remedy:
        try:
            return bound(parsed, rows_as_stated)
        except QueryRefused:
            pass
    raise refused
