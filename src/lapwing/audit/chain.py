"""The ledger's chain, walked again: each seal, each link, and the mark beside it.

It is written without the code that writes the ledger, from the reference of its format: SHA-256 over a name of the
form and the fields in order, each after its length in eight bytes.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.ledger.entries import Entry

FORM: Final = "lapwing ledger entry 1"
FIRST: Final = "0" * 64
RESTORE: Final = (
    "Run no query. Find out who changed the file, and restore the newest copy with `lapwing ledger restore COPY`."
)


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of the chain."""
    left_out = (
        "An older ledger that somebody put back together with its older mark. Compare the newest seal with a seal "
        "that you keep elsewhere."
    )
    yield of_entries(subject.entries, (*subject.unreadable, *_behind(subject)), left_out)


def of_entries(entries: Sequence[Entry], others: Sequence[AuditFinding], left_out: str) -> AuditCheck:
    """Return the check of entries.

    Args:
        others: Findings about the mark and the file.
        left_out: Things that were not tried.
    """
    return AuditCheck(
        name="ledger chain",
        tried=len(entries),
        what_was_tried="entries: the seal of each, its link to the entry before it, and the mark",
        power="one changed character in one entry, one missing entry, or entries missing at the end",
        not_tried=left_out,
        findings=(*others, *_breaks(entries)),
    )


def seal_of(entry: Entry) -> str:
    """Return the seal that an entry must have."""
    hasher = sha256()
    fields = (str(entry.sequence), entry.time, entry.kind, entry.subject, entry.body, entry.previous)
    for text in (FORM, *fields):
        data = str(text).encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()


def _breaks(entries: Sequence[Entry]) -> Iterator[AuditFinding]:
    previous = FIRST
    for place, entry in enumerate(entries, 1):
        if seal_of(entry) != entry.hash:
            yield _violation("entry_edited", entry, "does not match its own seal, so somebody changed it.")
        if entry.sequence != place and entry.sequence != entries[place - 2].sequence + 1:
            yield _violation("entry_missing", entry, "does not have the number after the entry before it.")
        elif entry.previous != previous:
            yield _violation("entry_unlinked", entry, "does not continue the entry before it.")
        previous = entry.hash


def _violation(code: str, entry: Entry, what: str) -> AuditFinding:
    return AuditFinding(
        code=code,
        severity=Severity.violated,
        about=f"entry {entry.sequence}",
        what=f"Entry {entry.sequence} of the ledger {what}",
        remedy=RESTORE,
    )


def mark_path(ledger: Path) -> Path:
    """Return where the mark of a ledger is."""
    return ledger.with_name(f"{ledger.name}.mark")


def since(subject: Subject, sequence: int, seal: str) -> AuditCheck:
    """Return the check that the ledger still has the newest entry that an earlier report saw."""
    kept = not sequence or any(entry.sequence == sequence and entry.hash == seal for entry in subject.entries)
    what = f"The earlier report saw entry {sequence}. The ledger does not have it: it was rolled back or rewritten."
    return AuditCheck(
        name="ledger since the earlier report",
        tried=1,
        what_was_tried="entry: the newest of the earlier report",
        power="Any change of the ledger before that entry, even together with its mark",
        findings=() if kept else (_of_mark("ledger_behind_report", subject.catalog.ledger_path.name, what),),
    )


def _behind(subject: Subject) -> Iterator[AuditFinding]:
    """Yield that the mark names an entry which the ledger does not have."""
    if subject.unreadable:
        return
    name, mark = subject.catalog.ledger_path.name, mark_path(subject.catalog.ledger_path)
    try:
        words = mark.read_text(encoding="ascii").split()
    except FileNotFoundError:
        if subject.entries:
            yield _of_mark("mark_missing", name, f"The mark {mark.name} is missing, so entries may be missing, too.")
        return
    except (OSError, ValueError):
        words = []
    if len(words) != 5 or words[:3] != ["lapwing", "mark", "1"] or not words[3].isdecimal():
        yield _of_mark("mark_damaged", name, f"The mark {mark.name} is damaged, so entries may be missing.")
        return
    sequence, seal = int(words[3]), words[4]
    hashes = {0: FIRST} | {entry.sequence: entry.hash for entry in subject.entries}
    if hashes.get(sequence) != seal:
        what = f"The mark names entry {sequence}, and the ledger does not have that entry: its newest part is missing."
        yield _of_mark("ledger_behind_mark", name, what)


def _of_mark(code: str, name: str, what: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.violated, about=f"ledger {name}", what=what, remedy=RESTORE)
