"""The question of a command: its text, its price, and what a refusal points at."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Final, final

from lapwing.cli.console import pointer
from lapwing.errors import Interrupted, InvalidParameter, LapwingError, QueryRefused

MOST_BYTES: Final = 1 << 20
"""More than any question may have; the parser refuses what is too long, and says so."""


@final
class Stopped(LapwingError):
    """The user stopped a command after something was charged; the message says what."""

    code = Interrupted.code
    exit_status = Interrupted.exit_status


def ignore_interrupts() -> None:
    """Be deaf to further Ctrl-C: the process is about to end, and has yet to say truly what was charged."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def text_of(argument: str) -> str:
    """Return the SQL that was given, or read it from standard input if that was `-`."""
    if argument != "-":
        return argument
    content = sys.stdin.buffer.read(MOST_BYTES)
    try:
        return content.decode("utf-8", "strict" if len(content) < MOST_BYTES else "replace")
    except UnicodeDecodeError:
        raise InvalidParameter("The question on standard input is not UTF-8 text; save it as UTF-8.") from None


def require_one(epsilon: Fraction | None, error: Fraction | None) -> None:
    """Refuse a question without a price, or with two."""
    if (epsilon is None) == (error is None):
        given = "neither was" if epsilon is None else "both were"
        raise InvalidParameter(
            f"Give either --epsilon (a price) or --error (a wanted half-width); {given} given. "
            "`lapwing explain` shows what a price buys, free of charge."
        )


@contextmanager
def pointing_at(sql: str) -> Iterator[None]:
    """Show, under the message of a refusal, the place in the question that it is about."""
    try:
        yield
    except QueryRefused as refused:
        if refused.position is not None:
            refused.add_note(pointer(sql, refused.position))
        raise
