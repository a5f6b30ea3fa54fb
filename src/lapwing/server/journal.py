"""The log and the metrics: lines of JSON on standard error, and counts; of public facts alone.

A line says when, who (a name), what (the route with its placeholders, never the path as sent), and how it ended. Left
out on purpose: questions and answers (the ledger has the one, their owner the other), headers and bodies, messages of
exceptions, and how long a question took, which can depend on the data.

If a service has several workers, each line says which one wrote it; and each keeps what it counted in a file of its
own, so that whoever is asked can add up the counts of all, those of dead ones too.
"""

import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from lapwing.server.credentials import new_name

LOGGER: Final = logging.getLogger("lapwing.server")
LIBRARIES: Final = ("uvicorn", "psycopg", "asyncio", "concurrent.futures")
_FACTS: Final[dict[str, object]] = {}
"""Facts of this process, which every line bears."""


def log(event: str, **facts: object) -> None:
    """Write a line of facts, all of them public."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    LOGGER.info(json.dumps({"time": time, "event": event, **_FACTS, **facts}))


def open_log(worker: int | None = None) -> None:
    """Send the log to standard error, and of what other libraries log, only what kind it is."""
    _FACTS.clear()
    if worker is not None:
        _FACTS["worker"] = worker
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.INFO)
    for name in LIBRARIES:
        others = logging.getLogger(name)
        others.handlers, others.propagate = [_Kinds()], False
        others.setLevel(logging.WARNING)


@final
class _Kinds(logging.Handler):
    """Logs that another library logged something, and the kind of the exception, but not what it says."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log("library", logger=record.name, level=record.levelname, kind=kind)


Counts = Counter[tuple[str, ...]]
"""How often something was, by the name of the count and what tells the things apart."""
COUNTED: Final = {
    "lapwing_requests_total": ("Requests by route and status.", ("method", "route", "status")),
    "lapwing_questions_total": ("Questions by outcome.", ("dataset", "outcome")),
}


@final
class Metrics:
    """Counts, in the text form of Prometheus.

    Args: folder: where the processes of a service keep their counts; None if there is one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._counts: Counts = Counter()
        self._file = None if folder is None else folder / f"{new_name()}.counts"

    def requested(self, method: str, route: str, status: int) -> None:
        """Count a request."""
        self._count("lapwing_requests_total", method, route, str(status))

    def asked(self, dataset: str, outcome: str) -> None:
        """Count a question by what came of it: charged, stored, or the code of an error."""
        self._count("lapwing_questions_total", dataset, outcome)

    def text(self) -> str:
        """Return all counts."""
        with self._lock:
            counts = Counter(self._counts)
        for other in _others(self._file):
            counts.update(other)
        return "".join(f"{line}\n" for line in _lines(counts))

    def _count(self, *what: str) -> None:
        with self._lock:
            self._counts[what] += 1
            if self._file is not None:
                draft = self._file.with_suffix(".draft")
                draft.write_text(json.dumps([[*known, count] for known, count in self._counts.items()]))
                draft.replace(self._file)


def _others(own: Path | None) -> Iterator[Counts]:
    """Yield the counts of the other processes."""
    if own is not None:
        for path in own.parent.glob("*.counts"):
            if path != own:
                found: list[list[Any]] = json.loads(path.read_text())
                yield Counter({tuple(known): count for *known, count in found})


def _lines(counts: Counts) -> Iterator[str]:
    for name, (meaning, labels) in COUNTED.items():
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} counter"
        for (kind, *values), count in sorted(counts.items()):
            if kind == name:
                said = ",".join(f'{label}="{value}"' for label, value in zip(labels, values, strict=True))
                yield f"{name}{{{said}}} {count}"
