"""How much work something is: how many functions it calls in its thread.

Seconds depend on what else the machine does, and processor time on what other threads of the process do. This number
does not. What loops inside one call, as a search by a pattern does, is not seen.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class _TooManyError(BaseException):
    """Raised in the middle of the work, past what catches an `Exception`."""


def within(most: int, action: Callable[[], T]) -> T:
    """Return what an action returns, or raise what it raises; fail at once when it makes more calls than this."""
    calls = 0

    def hear(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > most:
            raise _TooManyError

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        return action()
    except _TooManyError:
        raise AssertionError(f"more than {most:,} calls") from None
    finally:
        sys.setprofile(before)
