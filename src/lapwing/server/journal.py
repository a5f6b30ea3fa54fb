"""The log and the metrics: lines of JSON on standard error, and counts; of public facts alone.

A line says when, who (a name), what (the route with its placeholders, never the path as sent), and how it ended. Left
out on purpose: questions and answers (the ledger has the one, their owner the other), headers and bodies, messages of
exceptions, and how long a question took, which can depend on the data.
"""

import json
import logging
import sys
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Final, final

LOGGER: Final = logging.getLogger("lapwing.server")


def log(event: str, **facts: object) -> None:
    """Write a line of facts, all of them public."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    LOGGER.info(json.dumps({"time": time, "event": event, **facts}))


def open_log() -> None:
    """Send the log to standard error, and of what other libraries log, only what kind it is."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.INFO)
    others = logging.getLogger("uvicorn")
    others.handlers, others.propagate = [_Kinds()], False
    others.setLevel(logging.WARNING)


@final
class _Kinds(logging.Handler):
    """Logs that another library logged something, and the kind of the exception, but not what it says."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log("library", logger=record.name, level=record.levelname, kind=kind)


@final
class Metrics:
    """Counts, in the text form of Prometheus."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._answers: Counter[tuple[str, str]] = Counter()

    def requested(self, method: str, route: str, status: int) -> None:
        """Count a request."""
        with self._lock:
            self._requests[method, route, status] += 1

    def asked(self, dataset: str, outcome: str) -> None:
        """Count a question by what came of it: charged, stored, or the code of an error."""
        with self._lock:
            self._answers[dataset, outcome] += 1

    def text(self) -> str:
        """Return all counts."""
        with self._lock:
            requests, answers = sorted(self._requests.items()), sorted(self._answers.items())
        lines = ["# HELP lapwing_requests_total Requests by route and status.", "# TYPE lapwing_requests_total counter"]
        for (method, route, status), count in requests:
            lines.append(f'lapwing_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines += ["# HELP lapwing_questions_total Questions by outcome.", "# TYPE lapwing_questions_total counter"]
        for (dataset, outcome), count in answers:
            lines.append(f'lapwing_questions_total{{dataset="{dataset}",outcome="{outcome}"}} {count}')
        return "\n".join(lines) + "\n"
