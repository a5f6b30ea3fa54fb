"""The two streams: results on standard output, everything said about them on standard error; texts as they are."""

import shutil
import sys
import textwrap

from lapwing.cli.characters import visible
from lapwing.errors import QueryRefused


def on_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def print_text(content: str) -> None:
    """Write a result as it is."""
    sys.stdout.write(content)


def print_bytes(content: bytes) -> None:
    """Write a binary result as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def complain(message: str) -> None:
    """Write a message as it is on standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def coded(error: Exception) -> str:
    """Return the message of an error, and after a refusal its code, by which people find it in the reference."""
    return f"{error} [{error.cause.value}]" if isinstance(error, QueryRefused) else str(error)


def complain_of(error: Exception) -> None:
    """Write what was wrong on standard error, with what was added to it; for a person, broken between words."""
    message = f"lapwing: {visible(coded(error))}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        message = textwrap.fill(message, width, break_long_words=False, break_on_hyphens=False)
    complain("\n".join([message, *getattr(error, "__notes__", ())]))
