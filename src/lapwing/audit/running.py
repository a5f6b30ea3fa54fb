"""Run all checks of an audit, one after another, and give one report."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lapwing import __version__
from lapwing.audit import (
    chain,
    charges,
    declared_budget,
    declared_columns,
    declared_unit,
    files,
    graph_ledgers,
    kept_totals,
    path,
    service_log,
    totals,
)
from lapwing.audit.findings import AuditCheck
from lapwing.audit.report import AuditReport
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.machine.build import build_id
from lapwing.machine.progress import work

CHECKS: Final[tuple[Callable[[Subject, AuditEffort], Iterator[AuditCheck]], ...]] = (
    declared_unit.checks,
    declared_columns.checks,
    declared_budget.checks,
    chain.checks,
    totals.checks,
    kept_totals.checks,
    charges.checks,
    service_log.checks,
    files.checks,
    graph_ledgers.checks,
    path.checks,
)
"""The sources of checks, in order. Each yields its checks one after another."""


def audit(
    catalog_path: str | Path,
    *,
    quick: bool = False,
    minutes: float | None = None,
    earlier: AuditReport | None = None,
) -> AuditReport:
    """Audit an installation: its catalog, its path from a query to its answer, and its records.

    It charges nothing and changes nothing.

    Guarantee:
        No row of the protected data is read. So the report is a function of the catalog, of the records, and of
        made-up rows.

    Args:
        catalog_path: The catalog's file.
        quick: Whether to leave out the checks that take longer than a minute in all.
        minutes: For the tests that can go on for any time; None for their default.
        earlier: A report from before, whose newest entry the ledger must still have.

    Raises:
        CatalogError: If the catalog cannot be read.
    """
    subject, effort = Subject.from_file(Path(catalog_path)), AuditEffort(quick=quick, minutes=minutes)
    with work("audit"):
        checks = [check for source in CHECKS for check in _timed(source(subject, effort))]
    if earlier is not None:
        checks.append(chain.since(subject, earlier.entries, earlier.seal))
        checks += graph_ledgers.since(subject, earlier.graphs)
    return AuditReport(
        dataset=subject.catalog.name,
        catalog=subject.catalog.digest,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        version=f"{__version__} build {build_id()}",
        quick=quick,
        entries=subject.newest[0],
        seal=subject.newest[1],
        graphs={name: own.newest for name, own in subject.graphs},
        checks=tuple(checks),
    )


def _timed(checks: Iterator[AuditCheck]) -> Iterator[AuditCheck]:
    """Yield checks, each with the time that it took."""
    begun = time.monotonic()
    for check in checks:
        yield replace(check, seconds=time.monotonic() - begun)
        begun = time.monotonic()
