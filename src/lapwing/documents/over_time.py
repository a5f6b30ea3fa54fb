"""The releases of a monitor over time, as one document that charts and tables take."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TIME: Final = "time"
LINES: Final = {"kind": "lines", "x": TIME}
"""The chart of a monitor that has no choices."""
TICKS: Final = 60
"""The latest of a monitor, in a chart over time."""


def over_time(ticks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a monitor released: a row for each tick and group, with its interval, the earliest tick first.

    >>> def tick(hour, n):
    ...     answer = {"columns": ["n"], "rows": [{"n": n}], "intervals": {"n": {"low": [n - 1], "high": [n + 1]}}}
    ...     return {"time": f"2026-03-02T0{hour}:00:00", "answer": answer}
    >>> over_time([tick(1, 4), tick(2, 6)])["intervals"]
    {'n': {'low': [3, 5], 'high': [5, 7]}}
    """
    last = ticks[-1]["answer"]
    numbers = list(last["intervals"])
    keys = [name for name in last["columns"] if name not in numbers]
    ends = {
        name: {end: [value for tick in ticks for value in tick["answer"]["intervals"][name][end]] for end in ENDS}
        for name in numbers
    }
    return {
        "columns": [TIME, *keys, *numbers],
        "rows": [{TIME: _moment(tick), **row} for tick in ticks for row in tick["answer"]["rows"]],
        "types": {**{name: _type(last, name) for name in last["columns"]}, TIME: "timestamp"},
        "keys": [TIME, *keys],
        "intervals": ends,
        "confidence": last.get("confidence"),
    }


ENDS: Final = ("low", "high")


def _moment(tick: Mapping[str, Any]) -> str:
    """Return the time of a tick, as people read it."""
    return str(tick["time"][:19].replace("T", " "))


def _type(document: Mapping[str, Any], name: str) -> str:
    """Return the type of a column by its values, which ticks do not say."""
    values = [row[name] for row in document["rows"] if row[name] is not None]
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if values and whole:
        return "integer"
    return "real" if values and all(isinstance(value, int | float) for value in values) else "text"
