"""The totals that a long ledger keeps beside itself, compared with its entries.

The totals are in a file, so that a long ledger opens quickly. The file is not signed. Somebody can write a smaller
total into it and leave the entries as they are. That gives more budget, and breaks no seal of an entry.
"""

import json
from collections.abc import Iterator

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.errors import LapwingError
from lapwing.ledger import kept_state
from lapwing.ledger.reading import verified


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of the kept totals."""
    path = kept_state.path_of(subject.catalog.ledger_path)
    found, findings = path.exists(), list[AuditFinding]()
    if found and not _agrees(subject):
        findings.append(
            AuditFinding(
                code="kept_totals_differ",
                severity=Severity.violated,
                about=f"file {path.name}",
                what="The totals in the file differ from the sums of the entries. The file may hide spending.",
                remedy=f"Stop all programs that use the ledger, remove {path.name}, and find out who changed it. "
                "Lapwing then reads the entries.",
            )
        )
    yield AuditCheck(
        name="kept totals",
        tried=int(found),
        what_was_tried="file of kept totals, compared with the entries up to its own",
        power="Any other total, in any part or for any name",
        not_tried="" if found else "A short ledger keeps no totals.",
        findings=tuple(findings),
    )


def _agrees(subject: Subject) -> bool:
    """Tell whether the file has the totals of the entries. A file that Lapwing ignores is no finding."""
    try:
        head, _, text = kept_state.path_of(subject.catalog.ledger_path).read_text(encoding="ascii").partition("\n")
        record = json.loads(text)
        entries = subject.entries[: record["sequence"]]
        if not head or not entries or entries[-1].hash != record["hash"]:
            return True  # Lapwing reads all entries then
        state = verified(entries)
    except (OSError, ValueError, KeyError, TypeError, LapwingError):
        return True  # as above; a chain that cannot be read is another finding
    return state is not None and json.loads(json.dumps(kept_state.to_record(state))) == record
