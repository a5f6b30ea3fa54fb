"""Types of columns, and constructors of values, as PEP 249 names them."""

import time
from datetime import date, datetime
from datetime import time as time_of_day
from typing import Final, final

Date, Time, Timestamp, Binary = date, time_of_day, datetime, bytes
"""Values of Python as parameters; Lapwing refuses a time of day and bytes, because no column has them."""


@final
class TypeObject:
    """A group of types: `description[0][1] == NUMBER` tells whether the first column has a type of it."""

    def __init__(self, *codes: str) -> None:
        self.codes: Final = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        return self.codes == other.codes if isinstance(other, TypeObject) else other in self.codes

    def __hash__(self) -> int:
        return hash(self.codes)

    def __repr__(self) -> str:
        return f"<TypeObject: {', '.join(sorted(self.codes)) or 'no column has it'}>"


STRING: Final = TypeObject("text")
NUMBER: Final = TypeObject("integer", "decimal", "real", "boolean")
DATETIME: Final = TypeObject("date", "timestamp")
BINARY: Final = TypeObject()
ROWID: Final = TypeObject()


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - the name of PEP 249
    """Return the day of a number of seconds since 1970, in local time."""
    return date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> time_of_day:  # noqa: N802 - the name of PEP 249
    """Return the time of day of a number of seconds since 1970, in local time."""
    return time_of_day(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - the name of PEP 249
    """Return the moment of a number of seconds since 1970, in local time."""
    return datetime(*time.localtime(ticks)[:6])
