"""The command line with a question that hangs at a chosen place, to be stopped there with Ctrl-C.

python -m tests.support.cli.stopped PLACE ARGUMENT...
"""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lapwing.opening
import lapwing.release.answering
import lapwing.release.release
import lapwing.session
from lapwing.cli import main
from lapwing.cli import query as query_command
from lapwing.engines import DuckDB


def hang(*_arguments: object, **_options: object) -> Any:
    """Say that the place is reached, and stay there."""
    Path("reached").touch()
    time.sleep(600)


def slowly(action: Callable[..., Any]) -> Callable[..., Any]:
    """Say that something has begun, and do it once Ctrl-C was pressed again."""

    def acting(*arguments: object) -> Any:
        Path("closing").touch()
        while not Path("pressed").exists():
            time.sleep(0.01)
        return action(*arguments)

    return acting


def then_hang(action: Callable[..., Any]) -> Callable[..., Any]:
    """Do something, and hang before anybody learns of it."""

    def acting(*arguments: object, **options: object) -> Any:
        action(*arguments, **options)
        return hang()

    return acting


PLACES: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "opening": (lapwing.opening, "load", hang),
    "planning": (lapwing.session, "bind", hang),
    "comparing": (lapwing.release.release, "current_digests", hang),
    "between": (lapwing.release.answering, "release_all", then_hang(lapwing.release.release.release_all)),
    "running": (DuckDB, "run", hang),
    "noise": (lapwing.release.release, "add_noise", hang),
    "writing": (query_command, "write", hang),
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells start their children deaf to it
    setattr(*PLACES[sys.argv[1]])
    setattr(lapwing.session.Session, "close", slowly(lapwing.session.Session.close))  # noqa: B010 - mypy minds the other
    sys.exit(main(sys.argv[2:]))
