"""Lists by day: the first and the last day, in UTC, of what a page shows. They are in the address, without scripts."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, final

from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest
from lapwing.server.problems import problem

FIRST, LAST = "from", "to"
DAYS: Final = (FIRST, LAST)
"""The query parameters with the days."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpan:
    """The days from the first to the last, both included; an empty text is no bound.

    Both are texts like 2026-11-30, whose order is that of the days.
    """

    first: str = ""
    last: str = ""

    @property
    def chosen(self) -> dict[str, str]:
        """Return the query parameters of these days."""
        return {name: day for name, day in ((FIRST, self.first), (LAST, self.last)) if day}

    def holds(self, time: str) -> bool:
        """Tell whether a time in UTC is in these days.

        >>> span = DaySpan(first="2026-11-29", last="2026-11-30")
        >>> span.holds("2026-11-30T23:59:59Z"), span.holds("2026-12-01T00:00:00Z"), DaySpan().holds("2026-12-01T00:00Z")
        (True, False, True)
        """
        day = time[:10]
        return self.first <= day and (not self.last or day <= self.last)


def days_of(visit: PageRequest) -> DaySpan:
    """Return the days that a page is asked for.

    Raises:
        ApiRefusal: If a day is not one. It is not left out: the list would look as if the bound held.
    """
    return DaySpan(first=_day(visit.asked(FIRST)), last=_day(visit.asked(LAST)))


def yesterday() -> str:
    """Return the day before today, in UTC."""
    return (datetime.now(UTC).date() - timedelta(days=1)).isoformat()


def _day(text: str) -> str:
    if not text:
        return ""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        detail = "This is no day. Write a day like 2026-11-30."
        raise ApiRefusal(problem("invalid_request", 422, detail)) from None
