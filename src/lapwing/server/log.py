"""The log: lines of JSON on standard error, or of words on a terminal; of public facts alone.

A line says when, who (a name), what (the route with its placeholders, never the path as sent), and how it ended. Left
out on purpose are questions and answers, headers and bodies, messages of exceptions, and how long a question took,
which can depend on the data.

If a service has several workers, each line says which one wrote it.
"""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, final

LOGGER: Final = logging.getLogger("lapwing.server")
LIBRARIES: Final = ("uvicorn", "psycopg", "asyncio", "concurrent.futures")
LISTENERS: Final[list[Callable[[str, str], None]]] = []
"""Hear of each line, its event first; they must not wait (`server.webhook`)."""
_FACTS: Final[dict[str, object]] = {}
"""Facts of this process, which every line bears."""


def log(event: str, **facts: object) -> None:
    """Write a line of facts, all of them public."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": time, "event": event, **_FACTS, **facts})
    LOGGER.info(line)
    for listener in [*LISTENERS]:
        listener(event, line)


def open_log(worker: int | None = None) -> None:
    """Send the log to standard error, and of what other libraries log, only what kind it is."""
    _FACTS.clear()
    if worker is not None:
        _FACTS["worker"] = worker
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Words() if sys.stderr.isatty() else logging.Formatter("%(message)s"))
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.INFO)
    for name in LIBRARIES:
        others = logging.getLogger(name)
        others.handlers, others.propagate = [_Kinds()], False
        others.setLevel(logging.WARNING)


@final
class _Words(logging.Formatter):
    """Writes a line for a person at a terminal, who reads words between it and other lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time of day, the event and its facts."""
        facts = json.loads(record.getMessage())
        time, event = facts.pop("time")[11:19], facts.pop("event")
        said = ", ".join(
            f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in facts.items()
        )
        return f"{time} {event.replace('_', ' ')}{': ' if said else ''}{said}"


@final
class _Kinds(logging.Handler):
    """Logs that another library logged something, and the kind of the exception, but not what it says."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log("library", logger=record.name, level=record.levelname, kind=kind)
