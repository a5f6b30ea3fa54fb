"""Installations to audit, and hands that plant a fault in their records."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from lapwing.audit.chain import FIRST, seal_of
from lapwing.audit.findings import AuditCheck
from lapwing.audit.subject import Subject
from lapwing.ledger.entries import Entry
from lapwing.ledger.mark import Mark, path_of, text_of


def codes(checks: Iterable[AuditCheck]) -> list[str]:
    """Return the codes of all findings that are violations."""
    return [finding.code for check in checks for finding in check.findings if finding.severity.value == "violated"]


def edit(ledger: Path, statement: str, *values: Any) -> None:
    """Change the file of a ledger behind Lapwing's back."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        assert connection.execute(statement, values).rowcount >= 1


def resealed(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries with new numbers, links and seals: what somebody who knows the format would write."""
    chain: list[Entry] = []
    for place, entry in enumerate(entries, 1):
        linked = replace(entry, sequence=place, previous=chain[-1].hash if chain else FIRST)
        chain.append(replace(linked, hash=seal_of(linked)))
    return tuple(chain)


def rewrite(subject: Subject, entries: Iterable[Entry]) -> None:
    """Write another history into the ledger of a catalog, resealed, with a mark that fits."""
    chain, path = resealed(entries), subject.catalog.ledger_path
    rows = [(one.sequence, one.time, one.kind, one.subject, one.body, one.previous, one.hash) for one in chain]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries")
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    path_of(path).write_bytes(text_of(Mark(chain[-1].sequence, chain[-1].hash)))
