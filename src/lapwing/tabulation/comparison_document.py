"""The comparison of two releases in JSON."""

from collections.abc import Sequence
from math import isfinite

from typing_extensions import TypedDict

from lapwing.tabulation.period_comparison import CellChange, NumberChanges, combined_promise
from lapwing.tabulation.published import Cell, PublishedRelease

JsonKey = str | float | bool | None
"""A key; dates are texts, such as `2026-12-01`."""


class CellChangeDocument(TypedDict):
    """The change of one cell; it is clear if its interval excludes zero."""

    keys: list[JsonKey]
    before: float
    now: float
    half_width: float
    is_clear: bool


class NumberChangesDocument(TypedDict):
    """The changes of one number, with the names of `NumberChanges` in Python."""

    table: str
    name: str
    keys: list[str]
    is_same: bool
    confidence: float
    by_noise: float
    changes: list[CellChangeDocument]


class CombinedPromiseDocument(TypedDict):
    """The (ε, δ) of both releases together, for people in the data of both."""

    epsilon: float
    delta: float


class ComparisonDocument(TypedDict):
    """Two releases, by their titles, and the changes of all numbers that both have."""

    before: str
    now: str
    together: CombinedPromiseDocument | None
    numbers: list[NumberChangesDocument]


def comparison_document(
    before: PublishedRelease, now: PublishedRelease, changes: Sequence[NumberChanges]
) -> ComparisonDocument:
    """Return a comparison of two releases in JSON, with all cells.

    Guarantee:
        Post-processing of published numbers.
    """
    promise = combined_promise(before, now)
    return {
        "before": before.manifest["title"],
        "now": now.manifest["title"],
        "together": None if promise is None else {"epsilon": promise.epsilon, "delta": promise.delta},
        "numbers": [
            {
                "table": each.number.table,
                "name": each.number.name,
                "keys": list(each.number.key_names),
                "is_same": each.is_same,
                "confidence": each.confidence,
                "by_noise": each.by_noise,
                "changes": [_document(change) for change in each.changes],
            }
            for each in changes
        ],
    }


def _document(change: CellChange) -> CellChangeDocument:
    return {
        "keys": [_json_key(key) for key in change.keys],
        "before": change.before,
        "now": change.now,
        "half_width": change.half_width,
        "is_clear": change.is_clear,
    }


def _json_key(key: Cell) -> JsonKey:
    """Return a key as JSON has it: a date, or a number that JSON lacks, as a text."""
    if key is None or isinstance(key, str | bool | int) or (isinstance(key, float) and isfinite(key)):
        return key
    return str(key)
