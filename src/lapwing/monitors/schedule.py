"""When a monitor releases, and what of the past each release is about: read from the end of its text, or from options.

    SELECT cell, COUNT(*) AS people FROM moves GROUP BY cell
    EVERY '15 minutes' FOR '1 day' REPEAT 30 STARTING '2026-03-02 00:00' PRESENT WITHIN '1 hour'

A horizon may be repeated, or followed by ones that are twice as long each time, without an end: each begins with
nothing, as a monitor of its own would. All of it is public. Tick t, from 1,
is about events with start + (t − 1)·period ≤ time < start + t·period, and is released at the end of that, or `lateness`
after it. Times are UTC, in microseconds since 1970.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self, final

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause

_UNITS: Final = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800,
}  # fmt: skip
_DURATION: Final = re.compile(r"\s*([0-9]{1,9})\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)
_CLAUSES: Final = re.compile(
    r"\s+EVERY\s+'(?P<every>[^']*)'\s+FOR\s+'(?P<horizon>[^']*)'"
    r"(?:\s+REPEAT\s+(?P<repeat>[0-9]{1,6})|(?P<doubling>\s+DOUBLING))?(?:\s+STARTING\s+'(?P<starting>[^']*)')?"
    r"(?:\s+OVER\s+'(?P<over>[^']*)')?(?P<present>\s+PRESENT(?:\s+WITHIN\s+'(?P<within>[^']*)')?)?\s*;?\s*\Z",
    re.IGNORECASE,
)
_HOW: Final = (
    "SELECT … EVERY '15 minutes' FOR '1 day' [REPEAT 30 | DOUBLING] [STARTING '…'] [OVER '…'] [PRESENT [WITHIN '…']]"
)
MOST_TICKS: Final = 1 << 24
SECOND: Final = 1_000_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def duration(text: str, what: str) -> int:
    """Read a duration like `15 minutes`, in microseconds.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    found = _DURATION.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise InvalidParameter(
            f"{what} is {text!r:.60}; write it like '30 seconds', '15 minutes', '2 hours' or '1 day'."
        )
    return int(found[1]) * _UNITS[found[2].casefold()] * SECOND


def duration_text(microseconds: int) -> str:
    """Write a duration as `duration` reads it."""
    seconds = microseconds // SECOND
    name, size = next((name, size) for name, size in reversed(_UNITS.items()) if seconds % size == 0)
    return f"{seconds // size} {name}{'s' if seconds != size else ''}"


def moment(text: str, what: str) -> int:
    """Read a date or a time in ISO 8601, UTC unless it says otherwise, in microseconds since 1970."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(f"{what} is {text!r:.60}; write a time like '2026-03-02 08:00'.") from None
    return ((read if read.tzinfo else read.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def moment_text(microseconds: int) -> str:
    """Write a time in UTC."""
    return (EPOCH + timedelta(microseconds=microseconds)).isoformat(sep=" ").removesuffix("+00:00")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TickSchedule:
    """Which ticks there are, and what each is about.

    Args:
        start: In microseconds.
        period: In microseconds.
        lateness: In microseconds.
        horizon: How many ticks, from 1.
        repeat: How many horizons.
        doubling: Whether each is twice as long as the one before.
        window: The last so many ticks are counted, None for all since the start.
        present: Whether people are counted where they are and not where something happened.
        within: Ticks after which somebody of whom nothing was heard is nowhere, None for never.
        late: Whether an event that comes after its tick was released counts in the next, or nowhere.
    """

    start: int
    period: int
    horizon: int
    repeat: int = 1
    doubling: bool = False
    window: int | None = None
    present: bool = False
    within: int | None = None
    lateness: int = 0
    late: str = "next"

    def __post_init__(self) -> None:
        if self.horizon < 1 or self.repeat < 1 or self.ticks > MOST_TICKS:
            raise InvalidParameter(f"There would be {self.ticks:,} ticks; a monitor has from 1 to {MOST_TICKS:,}.")
        if self.present and self.window is not None:
            raise InvalidParameter("PRESENT counts people who are there at a tick, so OVER has no meaning next to it.")
        if self.late not in ("next", "drop"):
            raise InvalidParameter(f"late is {self.late!r:.60}; it must be 'next' or 'drop'.")

    @property
    def ticks(self) -> int:
        """How many ticks there are in all."""
        return self.before(self.repeat + 1)

    def before(self, horizon: int) -> int:
        """Return how many ticks there are before a horizon, of its number from 1."""
        return self.horizon * ((1 << (horizon - 1)) - 1 if self.doubling else horizon - 1)

    def length(self, horizon: int) -> int:
        """Return how many ticks a horizon has."""
        return self.before(horizon + 1) - self.before(horizon)

    def horizon_at(self, tick: int) -> int:
        """Return the number of a tick's horizon."""
        place = (tick - 1) // self.horizon + 1
        return place.bit_length() if self.doubling else place

    def within_horizon(self, tick: int) -> int:
        """Return which tick of its horizon a tick is, from 1."""
        return tick - self.before(self.horizon_at(tick))

    def end_of(self, tick: int) -> int:
        """Return the time up to which a tick's events happen."""
        return self.start + tick * self.period

    def due(self, tick: int) -> int:
        """Return when a tick is released."""
        return self.end_of(tick) + self.lateness

    def due_at(self, now: int) -> int:
        """Return how many ticks are due at a time."""
        return max(0, min(self.ticks, (now - self.lateness - self.start) // self.period))

    def to_record(self) -> dict[str, object]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        return cls(**record)

    def __str__(self) -> str:
        parts = [
            f"EVERY '{duration_text(self.period)}' FOR '{duration_text(self.period * self.horizon)}'",
            *(["DOUBLING"] if self.doubling else [f"REPEAT {self.repeat}"] if self.repeat > 1 else []),
            f"STARTING '{moment_text(self.start)}'",
            *([f"OVER '{duration_text(self.window * self.period)}'"] if self.window is not None else []),
            *(["PRESENT"] if self.present else []),
            *([f"WITHIN '{duration_text(self.within * self.period)}'"] if self.within is not None else []),
        ]
        return " ".join(parts)


def _agreed(clauses: re.Match[str], name: str, given: str | None, read: Callable[[str, str], int]) -> str | None:
    """Return what a clause of the text or an option says, or both, if they mean the same.

    Raises:
        InvalidParameter: If they do not.
    """
    said, clause = clauses[name], "FOR" if name == "horizon" else name.upper()
    if said is None or given is None:
        return said if given is None else given
    if read(said, clause) != read(given, name):
        raise InvalidParameter(
            f"The query has {clause} {said!r:.60}, and the option {name} is {given!r:.60}. Leave one of them out."
        )
    return said


def read_schedule(
    text: str,
    *,
    every: str | None = None,
    horizon: str | None = None,
    repeat: int = 1,
    doubling: bool = False,
    starting: str | None = None,
    over: str | None = None,
    present: bool = False,
    within: str | None = None,
    lateness: str | None = None,
    late: str = "next",
    now: int,
) -> tuple[str, TickSchedule]:
    """Return the question without its clauses, and the schedule that clauses and options say together.

    Raises:
        QueryRefused: For a text that says EVERY in another way.
        InvalidParameter: For durations that do not fit, and for a clause and an option that say two things.
    """
    found = _CLAUSES.search(text)
    if found is not None:
        every, horizon = _agreed(found, "every", every, duration), _agreed(found, "horizon", horizon, duration)
        starting, over = _agreed(found, "starting", starting, moment), _agreed(found, "over", over, duration)
        within = _agreed(found, "within", within, duration)
        repeat = int(_agreed(found, "repeat", None if repeat == 1 else str(repeat), lambda number, _: int(number)) or 1)
        doubling, present = doubling or found["doubling"] is not None, present or found["present"] is not None
        text = text[: found.start()]
    elif every is None and re.search(r"\bEVERY\s*'", text, re.IGNORECASE):
        raise QueryRefused("EVERY cannot be read", cause=RefusalCause.INVALID_SCHEDULE, remedy=f"Write {_HOW}.")
    if every is None or horizon is None:
        raise InvalidParameter(f"A monitor needs a period and a horizon. Write {_HOW}, or give them as options.")
    if within is not None and not present:
        raise InvalidParameter("WITHIN needs PRESENT; it gives the time after which somebody counts as gone.")
    if doubling and repeat != 1:
        raise InvalidParameter("Horizons either repeat or double; leave one of the two out.")
    period = duration(every, "EVERY")

    def ticks(given: str, what: str) -> int:
        length = duration(given, what)
        if length % period:
            raise InvalidParameter(f"{what} is {given!r:.60}, which is not a multiple of the period, {every!r:.60}.")
        return length // period

    length = ticks(horizon, "FOR")
    return text, TickSchedule(
        start=-(-now // period) * period if starting is None else moment(starting, "STARTING"),
        period=period,
        horizon=length,
        # So many that all of them have no more than MOST_TICKS.
        repeat=(MOST_TICKS // length + 1).bit_length() - 1 if doubling else repeat,
        doubling=doubling,
        window=None if over is None else ticks(over, "OVER"),
        present=present,
        within=None if within is None else ticks(within, "WITHIN"),
        lateness=0 if lateness is None else duration(lateness, "lateness"),
        late=late,
    )
