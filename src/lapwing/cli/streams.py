"""The two streams: results on standard output, everything said about them on standard error; texts as they are."""

import sys

from lapwing.cli.characters import visible


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


def complain_of(error: Exception) -> None:
    """Write what was wrong on standard error, with what was added to it."""
    complain("\n".join([f"lapwing: {visible(str(error))}", *getattr(error, "__notes__", ())]))
