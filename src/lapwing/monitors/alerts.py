"""Alerts: that a number of a monitor has been above a threshold for some ticks in a row, row by row.

They look at what is released anyway, so they cost nothing and reveal nothing: an alert is a function of ticks. To say
it without the numbers, by the sparse vector technique, would cost a price of its own; here the numbers are paid for.

An alert begins in a row (the same keys) at the tick at which the condition has held for so many ticks, and ends at the
first at which it does not. Noise alone makes it begin, too: with `surely`, only the end of the interval counts, so that
a row in which the condition never holds raises it at one tick with the probability of an interval's miss, at most.
"""

import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Self, final

from lapwing.answer.python_values import Cell
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.machine.one_address import opened
from lapwing.monitors.definition import require_name
from lapwing.monitors.tick import CONFIDENCE, Tick
from lapwing.privacy.figures import plain

SECONDS: Final = 10.0
"""That a webhook may take."""
MOST_TICKS: Final = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """When to say something.

    Args:
        name: As of a monitor.
        column: Of numbers that the monitor shows.
        above: Whether they are to be above the threshold, or below it.
        ticks: In a row, from 1.
        surely: Whether the whole interval is to be.
        webhook: Where to send it, None for nowhere.
    """

    name: str
    column: str
    threshold: Fraction
    above: bool = True
    ticks: int = 1
    surely: bool = False
    webhook: str | None = None

    def __post_init__(self) -> None:
        require_name(self.name)
        if isinstance(self.ticks, bool) or not 1 <= self.ticks <= MOST_TICKS:
            raise InvalidParameter(f"ticks is {self.ticks!r:.60}; it must be a whole number from 1 to {MOST_TICKS:,}.")
        if self.webhook is not None and not self.webhook.startswith(("https://", "http://")):
            raise InvalidParameter(f"webhook is {self.webhook!r:.80}; it must be an address that begins with https://.")

    def to_text(self) -> str:
        """Return it as JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields | {"threshold": str(self.threshold)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"threshold": Fraction(fields["threshold"])})

    def __str__(self) -> str:
        way = "above" if self.above else "below"
        sure = ", with its whole interval," if self.surely else ""
        return f"{self.column} {way} {float(self.threshold):g}{sure} for {self.ticks} tick{'s' * (self.ticks > 1)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """That an alert began, or ended, in one row."""

    alert: str
    tick: int
    time: str
    keys: Mapping[str, str]
    value: float
    what: Literal["begins", "ends"]

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON; a value that is not shown any more is null."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return fields | {"value": None if math.isnan(self.value) else self.value, "keys": dict(self.keys)}

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a record."""
        fields = json.loads(text)
        return cls(**fields | {"value": math.nan if fields["value"] is None else fields["value"]})

    def __str__(self) -> str:
        where = ", ".join(f"{name} {value}" for name, value in self.keys.items()) or "all"
        return f"{self.alert} {self.what} in {where} at tick {self.tick:,}, {self.time}: {self.value:,.6g}"


@final
class AlertWatcher:
    """Follows one alert from the first tick on.

    Args:
        alert: What is watched.
        state: As `to_text` wrote it, to go on.
    """

    def __init__(self, alert: Alert, state: str = "{}") -> None:
        known = json.loads(state)
        self.alert = alert
        self.tick: int = known.get("tick", 0)
        self.told: int = known.get("told", 0)
        self._held: dict[tuple[str, ...], int] = {tuple(keys): held for keys, held in known.get("held", ())}
        self.begun: set[tuple[str, ...]] = {tuple(keys) for keys in known.get("begun", ())}

    def to_text(self) -> str:
        """Return how far it has come."""
        held = [[list(keys), ticks] for keys, ticks in self._held.items() if ticks]
        begun = sorted(map(list, self.begun))
        return json.dumps({"tick": self.tick, "told": self.told, "held": held, "begun": begun})

    def see(self, tick: Tick) -> list[Alarm]:
        """Take the next tick, and return what begins and ends."""
        self.tick = tick.number
        alert, rows, intervals = self.alert, tick.rows(), tick.interval(CONFIDENCE)
        if alert.column not in intervals:
            return []
        names = [name for name in tick.answer.columns if name not in intervals]
        low, high = intervals[alert.column]
        alarms, seen = list[Alarm](), set[tuple[str, ...]]()
        for place, row in enumerate(rows):
            keys = tuple(plain(row[name]) for name in names)
            seen.add(keys)
            end = float((low if alert.above else high)[place])
            value = end if alert.surely else _number(row[alert.column])
            holds = value > alert.threshold if alert.above else value < alert.threshold  # NaN holds for neither
            self._held[keys] = self._held.get(keys, 0) + 1 if holds else 0
            alarms += self._changed(keys, names, tick, _number(row[alert.column]), over=not holds)
        for keys in sorted(self.begun - seen):  # HAVING or LIMIT shows the row no more
            self._held[keys] = 0
            alarms += self._changed(keys, names, tick, math.nan, over=True)
        return alarms

    def _changed(
        self, keys: tuple[str, ...], names: list[str], tick: Tick, value: float, *, over: bool
    ) -> Iterator[Alarm]:
        begins = keys not in self.begun and self._held[keys] >= self.alert.ticks
        if not begins and not (over and keys in self.begun):
            return
        self.begun ^= {keys}
        yield Alarm(
            alert=self.alert.name,
            tick=tick.number,
            time=tick.time.isoformat(),
            keys=dict(zip(names, keys, strict=True)),
            value=value,
            what="begins" if begins else "ends",
        )


def require_column(alert: Alert, columns: Iterable[str]) -> None:
    """Refuse an alert about a column that is no noisy number.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
    """
    known = list(columns)
    if alert.column not in known:
        remedy = f"Name one of {', '.join(known) or 'them; there are none'}."
        raise QueryRefused(
            f"{alert.column!r:.60} is no column of noisy numbers of the monitor",
            cause=RefusalCause.UNKNOWN_COLUMN,
            remedy=remedy,
        )


def send(alarm: Alarm, webhook: str) -> str | None:
    """Send an alarm as JSON, and return what went wrong, if anything did: nothing waits for it. Follows no redirect."""
    body = json.dumps(alarm.to_record()).encode()
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})  # noqa: S310 - http(s) alone
    try:
        with opened(request, SECONDS):
            return None
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except (OSError, ValueError) as error:
        return type(error).__name__


def _number(value: Cell) -> float:
    return (
        float(value) if value is not None and not isinstance(value, str) and hasattr(value, "__float__") else math.nan
    )
