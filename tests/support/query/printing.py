"""Bugs in the SQL of relations: each relation is printed as a changed text of what is right."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from lapwing.engines.duckdb import relations

ACROSS_UNITS: Final = (r"ON ours\.unit IS NOT DISTINCT FROM (theirs\.\S+)", r"ON \1 IS NOT NULL")
"""Rows of one unit meet those of others, for `re.sub`."""
OVER_ALL_UNITS: Final = ("OVER (PARTITION BY unit", "OVER (PARTITION BY TRUE")
"""A window is over the rows of everybody, for `str.replace`."""


def print_otherwise(change: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, printers: Any = relations) -> None:
    """Plant a bug: every relation that another one reads, and that a question reads, is printed changed.

    Args:
        change: Changes a text, and a changed one no further.
        printers: The module of an engine that prints relations.
    """
    right = printers.relation
    monkeypatch.setattr(printers, "relation", lambda node: change(right(node)))
