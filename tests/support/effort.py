"""How much is tried: little and always the same by `make test`, much and never the same by `make test-long`.

What takes long is marked `long`. In the long run every property test counts as marked, as it draws other examples
there, and more of them. All chance of that run comes from one number, which it prints: `LAPWING_SEED=… make test-long`
draws the same again.
"""

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

SEED: Final = int(os.environ.get("LAPWING_SEED", "0"))
"""What the random questions of the long run begin with."""
SHORT, LONG = "short", "long"
SHORT_RUN: Final = "not long"
"""The marks that the short run asks for (`pyproject.toml`)."""
MORE: Final = 10
"""How many times the examples of the short run the long run tries, of a property that has a number of its own."""
EXAMPLES: Final = 30
FRESH: Final = 600
"""Examples of a property in the short run and in the long one."""
_CASE: Final = type(pytest.param())


def register() -> None:
    """Make both profiles known to Hypothesis, and choose the short one until told otherwise."""
    every = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
    settings.register_profile(SHORT, every, derandomize=True, max_examples=EXAMPLES)
    settings.register_profile(LONG, every, derandomize=False, max_examples=FRESH, print_blob=True)
    settings.load_profile(SHORT)


def is_long() -> bool:
    """Return whether this is the long run."""
    return settings.get_current_profile_name() == LONG


def one_in(every: int, rows: Iterable[Any], *, many: bool = False) -> list[Any]:
    """Return the rows of a table, of which the short run takes the first and one in so many after it.

    Args: many: a row is several arguments.
    """
    return [_case(row, many=many, short=place % every == 0) for place, row in enumerate(rows)]


def only(places: Iterable[int], rows: Iterable[Any], *, many: bool = False) -> list[Any]:
    """Return the rows of a table, of which the short run takes those at these places, counted from 0.

    Args: many: a row is several arguments.
    """
    taken = frozenset(places)
    return [_case(row, many=many, short=place in taken) for place, row in enumerate(rows)]


def _case(row: Any, *, many: bool, short: bool) -> Any:
    """Return a row as a case, one with marks of its own with these."""
    case = row if isinstance(row, _CASE) else pytest.param(*(row if many else (row,)))
    return case if short else case._replace(marks=(*case.marks, pytest.mark.long))


def is_long_case(row: object) -> bool:
    """Tell whether a row of a table is for the long run alone."""
    return isinstance(row, _CASE) and any(getattr(mark, "name", None) == LONG for mark in row.marks)


def some(every: int, things: Iterable[Any]) -> list[Any]:
    """Return all things in the long run, and in the short one the first and one in so many after it."""
    return list(things)[:: 1 if is_long() else every]


def numbers(short: int, long: int) -> list[Any]:
    """Return what to number cases by: the first always the same, and as many more in the long run, from its seed."""
    fresh = range(SEED * 1_000_000 + short, SEED * 1_000_000 + long)
    return [*range(short), *(pytest.param(number, marks=pytest.mark.long, id=f"fresh{number}") for number in fresh)]


def examples(number: int, most: int | None = None) -> settings:
    """Return how many examples a property is tried on, if not as many as usual.

    Args: number: in the short run; most: in the long one, or MORE times as many.
    """
    return settings(max_examples=(most or number * MORE) if is_long() else number)
