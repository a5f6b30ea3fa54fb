"""Options of queries: their cost, and which intervals are shown. A connection, a cursor or one query has them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Self, final

from typing_extensions import TypedDict, Unpack

from lapwing.privacy.amounts import Number

_PRICES: Final = ("epsilon", "error")


class Options(TypedDict, total=False):
    """Options by name, as `connect`, `cursor` and `execute` take them; see `QueryOptions`."""

    epsilon: Number | None
    error: Number | None
    delta: Number | None
    label: str | None
    assuming_count: int | None
    intervals: bool
    confidence: Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """How queries are priced, and shown.

    Args:
        epsilon: The cost of a query.
        error: Instead, the half-width that the 95 % intervals of each COUNT and SUM may have.
        delta: For private keys, as of `Session.sql`.
        label: The name of a query in the history.
        assuming_count: The rows in a cell that an `error` of an AVG assumes.
        intervals: Whether each column with noise is followed by the ends of its interval, `<name>_low` and
            `<name>_high`.
        confidence: Of these intervals.
    """

    epsilon: Number | None = None
    error: Number | None = None
    delta: Number | None = None
    label: str | None = None
    assuming_count: int | None = None
    intervals: bool = False
    confidence: Number = Fraction(95, 100)

    def with_options(self, **options: Unpack[Options]) -> Self:
        """Return these options with others in their place; a price takes the place of the other kind of price."""
        if any(name in options for name in _PRICES):
            return replace(replace(self, epsilon=None, error=None), **options)
        return replace(self, **options)
