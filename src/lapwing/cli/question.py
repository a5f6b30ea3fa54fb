"""The question of a command: its text, its price, and what a refusal points at."""

import re
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
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
    """Ignore further Ctrl-C: the process is about to end, and still has to say what was charged."""
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
        raise InvalidParameter("The query on standard input is not UTF-8 text; save it as UTF-8.") from None


def require_at_most_one(epsilon: Fraction | None, error: Fraction | None) -> None:
    """Refuse a question with two prices; one without may say its price itself."""
    if epsilon is not None and error is not None:
        raise InvalidParameter(
            "Give either --epsilon (a cost) or --error (a wanted half-width); both were given. "
            "`lapwing explain` shows what a cost buys, free of charge."
        )


def values_of(texts: Sequence[str]) -> Sequence[object] | Mapping[str, object]:
    """Read the values of a question's parameters: in order for `?`, or as name=value for `$name`.

    A value is a TOML value (30, 1.5, true, 2024-12-31, "text"); anything else is taken as a text.
    """
    named = [_NAMED.fullmatch(text) for text in texts]
    if all(named) and named:
        return {match["name"]: _value(match["value"]) for match in named if match is not None}
    return [_value(text) for text in texts]


_NAMED: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


def _value(text: str) -> object:
    try:
        read = tomllib.loads(f"value = {text}", parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ArithmeticError):
        return text
    return read["value"] if len(read) == 1 and isinstance(read["value"], _PLAIN) else text


_PLAIN: Final = (bool, int, Decimal, str, date)


@contextmanager
def pointing_at(sql: str) -> Iterator[None]:
    """Show, under the message of a refusal, the place in the question that it is about."""
    try:
        yield
    except QueryRefused as refused:
        if refused.position is not None:
            refused.add_note(pointer(sql, refused.position))
        raise
