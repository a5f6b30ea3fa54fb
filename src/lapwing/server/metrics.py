"""Counts of requests and questions, and gauges, for Prometheus: of public facts alone, as the log.

If a service has several workers, each counts in a file of its own, in a folder that their parent names in the
environment variable `FOLDER` before they start. So any of them can add up the counts of all, also of those that died.
"""

import os
from collections.abc import Mapping
from typing import Final, Literal, final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"  # the name that prometheus-client looks for when it is imported
Restarted = Literal["engine", "questions"]
"""A process in which an engine runs, or the one that asks queries at deadlines."""
RESTARTED: Final[tuple[Restarted, ...]] = get_args(Restarted)
Mode = Literal["livesum", "livemin", "livemax", "livemostrecent"]
MEDIA_TYPE: Final = "text/plain; version=0.0.4"

disable_created_metrics()  # type: ignore[no-untyped-call]  # when something was first asked is nobody's business


COUNTERS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "requests": ("lapwing_requests_total", "Requests by route and status.", ("method", "route", "status")),
    "questions": ("lapwing_questions_total", "Questions by outcome.", ("dataset", "outcome")),
    "tools": (
        "lapwing_wire_queries_total",
        "Queries of PostgreSQL clients by tool and outcome.",
        ("dataset", "tool", "outcome"),
    ),
    "tool_charges": (
        "lapwing_wire_budget_charged_total",
        "Charges of PostgreSQL clients by tool, as parts of the budget: 1 is all of it.",
        ("dataset", "tool"),
    ),
    "failed_logins": ("lapwing_failed_logins_total", "Logins with a wrong name or password.", ()),
    "delayed": ("lapwing_delayed_total", "Answers that left later than they should.", ("dataset",)),
    "restarts": (
        "lapwing_restarts_total",
        "How often a process was started in the place of another, by which.",
        ("process",),
    ),
}
"""Of each count its name and what it is of, for Prometheus, and its labels."""
GAUGES: Final[Mapping[str, tuple[str, str, tuple[str, ...], Mode]]] = {
    "waiting": ("lapwing_questions_waiting", "Questions that wait.", (), "livesum"),
    "running": ("lapwing_questions_running", "Questions under way.", (), "livesum"),
    "budget": (
        "lapwing_budget_remaining",
        "The part of the budget that is left, from 0 to 1.",
        ("dataset",),
        "livemostrecent",
    ),
    "delta_keys": (
        "lapwing_delta_keys_remaining",
        "The part of the delta for private keys that is left, from 0 to 1; of budgets that have some.",
        ("dataset",),
        "livemostrecent",
    ),
    "ledger_wait": (
        "lapwing_ledger_wait_seconds",
        "Seconds that a process lately waited for the ledger's lock: the longest wait.",
        ("dataset",),
        "livemax",
    ),
    "ready": ("lapwing_dataset_ready", "Whether new queries of a data set can be charged.", ("dataset",), "livemin"),
    "stopped": (
        "lapwing_dataset_stopped",
        "Whether failed queries, or a curator, have stopped a data set.",
        ("dataset",),
        "livemax",
    ),
    "changed": (
        "lapwing_dataset_data_changed",
        "Whether the data of a data set differ from its current version.",
        ("dataset",),
        "livemax",
    ),
    "expiring": (
        "lapwing_service_accounts_expiring",
        "Active service accounts that expire within 14 days, or have expired.",
        (),
        "livemostrecent",
    ),
    "faults": (
        "lapwing_dataset_faults",
        "Charged queries that failed since the curator last looked.",
        ("dataset",),
        "livemax",
    ),
    "late": (
        "lapwing_dataset_late",
        "How often answers were late since the curator last looked.",
        ("dataset",),
        "livemax",
    ),
    "free": (
        "lapwing_ledger_free_bytes",
        "Bytes that are left on the disk of a ledger, or of its mark.",
        ("dataset",),
        "livemin",
    ),
    "service_ready": ("lapwing_ready", "Whether the service can answer, as /readyz says.", (), "livemin"),
    "tasks_failing": ("lapwing_background_tasks_failing", "Background tasks whose last round failed.", (), "livesum"),
    "build": ("lapwing_build_info", "Which build runs; always 1.", ("version", "build"), "livemax"),
    "processes": ("lapwing_processes", "Processes that answer.", (), "livesum"),
}
"""And of each gauge how those of several processes become one."""


@final
class Metrics:
    """The counts of a service.

    Args:
        answering: Whether this process answers requests.
    """

    def __init__(self, *, answering: bool = True) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            key: Counter(name, about, labels, registry=self._registry)
            for key, (name, about, labels) in COUNTERS.items()
        }
        self._gauges = {
            key: Gauge(name, about, labels, registry=self._registry, multiprocess_mode=mode)
            for key, (name, about, labels, mode) in GAUGES.items()
        }
        for process in RESTARTED:
            self._counters["restarts"].labels(process)  # shown from the start, as 0
        self._gauges["processes"].set(int(answering))

    def set_build(self, version: str, build: str) -> None:
        """Say which build runs."""
        self._gauges["build"].labels(version, build).set(1)

    def set_ready(self, *, ready: bool) -> None:
        """Say whether the service can answer."""
        self._gauges["service_ready"].set(int(ready))

    def set_standing(
        self, dataset: str, *, ready: bool, stopped: bool, changed: bool, faults: int, late: int, free: int | None
    ) -> None:
        """Say how a data set stands (`readiness.Standing`)."""
        self._gauges["ready"].labels(dataset).set(int(ready))
        self._gauges["stopped"].labels(dataset).set(int(stopped))
        self._gauges["changed"].labels(dataset).set(int(changed))
        self._gauges["faults"].labels(dataset).set(faults)
        self._gauges["late"].labels(dataset).set(late)
        if free is not None:
            self._gauges["free"].labels(dataset).set(free)

    def set_accounts_expiring(self, number: int) -> None:
        """Say how many service accounts expire soon."""
        self._gauges["expiring"].set(number)

    def set_tasks_failing(self, number: int) -> None:
        """Say how many background tasks of this process fail."""
        self._gauges["tasks_failing"].set(number)

    def set_queue(self, waiting: int, running: int) -> None:
        """Say how many questions of this process wait and are under way."""
        self._gauges["waiting"].set(waiting)
        self._gauges["running"].set(running)

    def set_budget(self, dataset: str, remaining: float) -> None:
        """Say which part of a budget is left."""
        self._gauges["budget"].labels(dataset).set(remaining)

    def set_delta_keys(self, dataset: str, remaining: float) -> None:
        """Say which part of the delta for private keys is left."""
        self._gauges["delta_keys"].labels(dataset).set(remaining)

    def set_ledger_wait(self, dataset: str, seconds: float) -> None:
        """Say how long this process has waited for a ledger."""
        self._gauges["ledger_wait"].labels(dataset).set(seconds)

    def count_failed_login(self) -> None:
        """Count a login with a wrong name or password."""
        self._counters["failed_logins"].inc()

    def count_request(self, method: str, route: str, status: int) -> None:
        """Count a request."""
        self._counters["requests"].labels(method, route, str(status)).inc()

    def count_question(self, dataset: str, outcome: str) -> None:
        """Count a question by what its asker was told: charged, stored, repeated, left or an error's code."""
        self._counters["questions"].labels(dataset, outcome).inc()

    def count_tool(self, dataset: str, tool: str, outcome: str) -> None:
        """Count a query of a PostgreSQL client by its tool: charged, stored, refused or failed."""
        self._counters["tools"].labels(dataset, tool, outcome).inc()

    def count_charge(self, dataset: str, tool: str, part: float) -> None:
        """Count which part of the budget a query of a PostgreSQL client was charged, by its tool."""
        self._counters["tool_charges"].labels(dataset, tool).inc(part)

    def count_delayed(self, dataset: str) -> None:
        """Count an answer that left later than it should."""
        self._counters["delayed"].labels(dataset).inc()

    def count_restart(self, process: Restarted) -> None:
        """Count a process that was started in the place of another."""
        self._counters["restarts"].labels(process).inc()

    def text(self) -> str:
        """Return all counts, of all workers, in the text form of Prometheus."""
        registry = self._registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry).decode()


def forget_process(process: int) -> None:
    """Leave out of the gauges what a worker said that has died; its counts stay."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]
