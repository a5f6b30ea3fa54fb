"""Days as options of a command."""

from collections.abc import Callable
from datetime import date

from lapwing.errors import InvalidParameter


def day(option: str) -> Callable[[str], date]:
    """Return what reads an option's day."""

    def read(text: str) -> date:
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise InvalidParameter(f"{option} is {text[:60]!r}; it must be a day, such as 2027-01-31.") from None

    return read
