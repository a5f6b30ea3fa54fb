"""An audit of a data set on a server, with what an auditor gets over `/v1`: the ledger, and the log of the service.

The catalog, the files and the path of a query are not to be seen from there. The report says so.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from lapwing import __version__
from lapwing.audit import chain, charges, service_log, totals
from lapwing.audit.findings import AuditCheck
from lapwing.audit.report import AuditReport
from lapwing.ledger.entries import Entry
from lapwing.machine.build import build_id


def audit_of_server(dataset: str, entries: Iterable[Entry], lines: Iterable[str] | None) -> AuditReport:
    """Audit what a server shows of a data set.

    Args:
        entries: Of its ledger.
        lines: Of the service's audit log, as JSON; None if the token may not read it.
    """
    book = tuple(entries)
    return AuditReport(
        dataset=dataset,
        catalog="",
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        version=f"{__version__} build {build_id()}",
        quick=False,
        entries=len(book),
        seal=book[-1].hash if book else "",
        checks=tuple(_checks(book, None if lines is None else list(map(json.loads, lines)))),
    )


def _checks(entries: Sequence[Entry], lines: Sequence[dict[str, object]] | None) -> Iterator[AuditCheck]:
    yield chain.of_entries(entries, (), "The mark, which is on the server. Whether these are the newest entries.")
    yield from totals.of_entries(entries, "the server's ledger")
    yield charges.of_entries(entries)
    rows = [service_log.row_of(line) for line in lines or ()]
    left_out = "The mark, which is on the server." if lines is not None else "The token may not read the audit log."
    yield service_log.of_lines(rows, (), left_out)
    yield AuditCheck(
        name="what a server does not show",
        tried=0,
        what_was_tried="things",
        power="Nothing: see below",
        not_tried="Catalog, permissions of files, copies, snapshots, and the path from a query to its result. Run "
        "`lapwing audit CATALOG` on the server for these.",
    )
