"""The audit log of a service, walked again: each seal, each link, and the mark beside the store.

It is written without the code that writes the log, from the reference of its format: SHA-256 over the JSON of all
fields but the seal.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from lapwing.audit.chain import FIRST, mark_path
from lapwing.audit.databases import opened_to_read
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.server.store_places import people_of

COLUMNS: Final = "sequence, time, actor, act, subject, details, previous, hash"
REMEDY: Final = "Find out who changed the store. Compare it with an export: `lapwing audit-log verify --file EXPORT`."


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of the audit log, if a service keeps one in a file."""
    place = people_of(subject.catalog)
    lines, findings, left_out = list[Sequence[Any]](), list[AuditFinding](), ""
    if "://" in place:
        left_out = "The log is in PostgreSQL: `lapwing audit-log verify` checks it."
    elif not Path(place).is_file():
        left_out = "There is no store of people beside the ledger, so no service keeps a log here."
    else:
        try:
            with opened_to_read(Path(place)) as connection:
                lines = list(connection.execute(f"SELECT {COLUMNS} FROM audit ORDER BY sequence"))
            findings += _behind(lines, Path(place))
        except sqlite3.Error as error:
            findings.append(_finding("audit_log_unreadable", "store", f"The store of people cannot be read: {error}."))
    yield of_lines(lines, findings, left_out)


def row_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a line that was exported as the store has it."""
    names = COLUMNS.split(", ")
    return tuple(json.dumps(line[name], sort_keys=True) if name == "details" else line[name] for name in names)


def of_lines(lines: Sequence[Sequence[Any]], others: Sequence[AuditFinding], left_out: str) -> AuditCheck:
    """Return the check of lines, with findings about the mark and the store."""
    return AuditCheck(
        name="audit log",
        tried=len(lines),
        what_was_tried="lines of the service's audit log: the seal of each, its link, and the mark",
        power="One changed character, one missing line, or lines missing at the end",
        not_tried=left_out,
        findings=(*others, *_breaks(lines)),
    )


def _breaks(lines: Sequence[Sequence[Any]]) -> Iterator[AuditFinding]:
    previous = FIRST
    for place, line in enumerate(lines, 1):
        sequence, *_, before, seal = line
        if sequence != place or before != previous:
            yield _finding("line_missing", f"line {sequence}", f"Line {sequence} does not continue the one before it.")
        if sha256(json.dumps(list(line[:-1])).encode()).hexdigest() != seal:
            yield _finding("line_edited", f"line {sequence}", f"Line {sequence} does not match its own seal.")
        previous = seal


def _behind(lines: Sequence[Sequence[Any]], place: Path) -> Iterator[AuditFinding]:
    try:
        words = mark_path(place).read_text(encoding="ascii").split()
        sequence, seal = int(words[3]), words[4]
    except FileNotFoundError:
        return  # the service makes it once a second; a log without one was never marked
    except (OSError, ValueError, IndexError):
        yield _finding("audit_mark_damaged", "store", "The mark of the audit log is damaged: lines may be missing.")
        return
    if sequence and not any(line[0] == sequence and line[-1] == seal for line in lines):
        yield _finding("log_behind_mark", "store", f"The mark names line {sequence}, and the log does not have it.")


def _finding(code: str, about: str, what: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.violated, about=f"audit log, {about}", what=what, remedy=REMEDY)
