"""The files of an installation: who may read them, whether their formats are known, and whether they fit together.

Of data files only their permissions are looked at. Snapshots are hashed as bytes; only whether the hash is the one in
the manifest gets into the report.
"""

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import quote

from lapwing.audit.databases import opened_to_read
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.catalog.ledger import place_of
from lapwing.catalog.model import Catalog
from lapwing.errors import LapwingError
from lapwing.ledger.entries import Entry, Kind
from lapwing.ledger.exporting import entries_of
from lapwing.ledger.sqlite.file import APPLICATION, STEPS
from lapwing.server.store_places import people_of

OTHERS: Final = 0o077
MOST_KEY: Final = 64_000
"""Bytes of a file that may be a key."""
OWN: Final = "Run `chmod 600` on it, and change what was secret in it if other users of this machine cannot be trusted."
RESTORE: Final = "Use the release of Lapwing that wrote it, or a newer one; otherwise restore a copy."
BACKUPS: Final = "*.jsonl"
SNAPSHOTS: Final = (".lapwing.snapshots", ".lapwing.public")


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the checks of permissions, formats, backups and snapshots."""
    catalog = subject.catalog
    secrets = list(dict.fromkeys(_secrets(catalog)))
    yield AuditCheck(
        name="permissions",
        tried=len(secrets) + 1,
        what_was_tried="files and folders: ledger, mark, people, indexes, snapshots, private keys, data",
        power="One file that another user of this machine can read, or a folder where another user can replace files",
        not_tried="Access lists, backups of the machine, and users who can become this user.",
        findings=tuple(_open_to_others(catalog, secrets)),
    )
    yield from ledger_checks(subject, effort)
    yield _snapshots(catalog)


def ledger_checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the checks of one ledger's file and of its backups."""
    catalog = subject.catalog
    findings = list(_formats(catalog, subject.entries))
    yield AuditCheck(
        name="formats",
        tried=1 + len(subject.entries),
        what_was_tried="versions of the ledger's file and kinds of its entries; pages and indexes of the file",
        power="A later version, a table or trigger that Lapwing did not make, a damaged page",
        not_tried="" if place_of(catalog.ledger).store == "sqlite" else "Tables and indexes of PostgreSQL.",
        findings=tuple(findings),
    )
    copies = sorted(catalog.ledger_path.parent.glob(BACKUPS))
    yield AuditCheck(
        name="backups",
        tried=len(copies),
        what_was_tried="copies of the ledger beside it, compared entry by entry",
        power="One entry that differs between a copy and the ledger",
        not_tried="Copies elsewhere. `lapwing ledger verify --file COPY` checks one.",
        findings=tuple(_backups(copies, subject)),
    )


# ---- permissions -----------------------------------------------------------------------------------------------------


def _secrets(catalog: Catalog) -> Iterator[Path]:
    """Yield the files that only their owner may read."""
    ledger = catalog.ledger_path
    of_graphs = (catalog.of_graph(graph).ledger_path for graph in catalog.graphs)
    for one, ending in product((ledger, *of_graphs), ("", ".mark", ".state", "-wal", "-shm")):
        yield one.with_name(one.name + ending)
    people = Path(people_of(catalog))
    for ending in ("", ".mark", "-wal", "-shm"):
        yield people.with_name(people.name + ending)
    folders = {catalog.folder, ledger.parent, *(catalog.source_path(table).parent for table in catalog.tables)}
    for folder in sorted(folders):
        with suppress(OSError):
            yield from sorted(path for path in folder.iterdir() if _is_secret(path))
    for table in catalog.tables:
        yield catalog.source_path(table)


def _is_secret(path: Path) -> bool:
    if path.name.endswith((".lapwing.index", *SNAPSHOTS)):
        return True
    try:
        is_small = path.is_file() and path.stat().st_size <= MOST_KEY
        return is_small and path.suffix in (".key", ".pem", "") and b"PRIVATE KEY-----" in path.read_bytes()
    except OSError:
        return False


def _open_to_others(catalog: Catalog, secrets: Iterable[Path]) -> Iterator[AuditFinding]:
    data = {catalog.source_path(table) for table in catalog.tables}
    for path in secrets:
        mode = _mode(path)
        if mode is None or not mode & OTHERS:
            continue
        if path in data:
            what = f"Other users of this machine can read the protected data: its mode is {mode & 0o777:o}."
            yield _finding("data_readable", Severity.warning, f"file {path.name}", what, "Run `chmod 600` on it.")
        else:
            what = f"Other users of this machine can read or change it: its mode is {mode & 0o777:o}."
            yield _finding("secret_readable", Severity.violated, f"file {path.name}", what, OWN)
    for folder in sorted({catalog.folder.resolve(), catalog.ledger_path.resolve().parent}):
        mode = _mode(folder)
        if mode is not None and mode & 0o022 and not mode & stat.S_ISVTX:
            what = f"Other users can replace files in this folder: its mode is {mode & 0o7777:o}."
            remedy = "Run `chmod go-w` on the folder. Until then, another user can put back an older ledger."
            yield _finding("folder_writable", Severity.violated, f"folder {folder.name}", what, remedy)


def _mode(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None


# ---- formats ---------------------------------------------------------------------------------------------------------


def _formats(catalog: Catalog, entries: Iterable[Entry]) -> Iterator[AuditFinding]:
    name = f"ledger {catalog.ledger_path.name}"
    unknown = sorted({entry.kind for entry in entries} - set(get_args(Kind)))
    if unknown:
        what = f"It has entries of kinds that this version does not know: {', '.join(unknown)}."
        yield _finding("entry_kind_unknown", Severity.violated, name, what, RESTORE)
    if place_of(catalog.ledger).store != "sqlite" or not catalog.ledger_path.exists():
        return
    try:
        with opened_to_read(catalog.ledger_path) as connection:
            yield from _of_database(connection, name)
    except sqlite3.Error:
        yield _finding("ledger_damaged", Severity.violated, name, "The file is no database, or is damaged.", RESTORE)


def _of_database(connection: sqlite3.Connection, name: str) -> Iterator[AuditFinding]:
    application, version = (
        connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("application_id", "user_version")
    )
    if application != APPLICATION:
        what = "The file is a database, but not a ledger of Lapwing."
        yield _finding("not_a_ledger", Severity.violated, name, what, RESTORE)
    elif version > len(STEPS):
        what = f"It has format {version}. This version of Lapwing knows formats up to {len(STEPS)}."
        yield _finding("format_later", Severity.violated, name, what, RESTORE)
    made = {statement for step in STEPS for statement in step}
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if version <= len(STEPS) and found - made:
        what = "The file has tables, indexes or triggers that Lapwing did not make. They can change what is read."
        yield _finding("tables_unknown", Severity.violated, name, what, RESTORE)
    if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        yield _finding("ledger_damaged", Severity.violated, name, "Pages or indexes of the file are damaged.", RESTORE)


# ---- backups and snapshots -------------------------------------------------------------------------------------------


def _backups(copies: Iterable[Path], subject: Subject) -> Iterator[AuditFinding]:
    hashes = [entry.hash for entry in subject.entries]
    newest = -1
    for copy in copies:
        try:
            copied = [entry.hash for entry in entries_of(copy)]
        except LapwingError:
            continue  # it is another file of lines
        if copied == hashes[: len(copied)]:
            newest = max(newest, len(copied))
        elif copied[: len(hashes)] == hashes and hashes:
            what = f"The copy has {len(copied) - len(hashes):,} entries that the ledger does not have."
            remedy = "Run no query. Restore the copy with `lapwing ledger restore`: charges are missing."
            yield _finding("ledger_behind_copy", Severity.violated, f"copy {copy.name}", what, remedy)
        elif set(copied[:1]) == set(hashes[:1]):
            what = "The copy and the ledger begin alike, and then differ: one of them was rewritten."
            remedy = "Run no query. Compare both with the newest seal that you keep elsewhere."
            yield _finding("copy_differs", Severity.violated, f"copy {copy.name}", what, remedy)
    if newest < 0 and hashes:
        what = "No copy of the ledger is beside it."
        remedy = "Run `lapwing ledger backup FILE` regularly, and keep the copies on another machine."
        yield _finding("no_backup", Severity.remark, f"ledger {subject.catalog.ledger_path.name}", what, remedy)


def _snapshots(catalog: Catalog) -> AuditCheck:
    roots = [catalog.folder / f"{quote(catalog.name, safe=' ')}{ending}" for ending in SNAPSHOTS]
    manifests = sorted(path for root in roots for path in root.glob("*/manifest.json"))
    findings = [finding for manifest in manifests for finding in _of_snapshot(manifest)]
    return AuditCheck(
        name="snapshots",
        tried=len(manifests),
        what_was_tried="snapshots of sources: each file against the SHA-256 in its manifest",
        power="One changed byte",
        not_tried="Whether a source was what it said.",
        findings=tuple(findings),
    )


def _of_snapshot(manifest: Path) -> Iterator[AuditFinding]:
    about, remedy = f"snapshot {manifest.parent.name[:12]}", "Fetch it again with `lapwing data refresh --whole`."
    try:
        tables: Mapping[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))["tables"]
        named = hashlib.sha256(json.dumps(sorted((name, one["digest"]) for name, one in tables.items())).encode())
        if named.hexdigest()[:40] != manifest.parent.name:
            what = "The snapshot's name does not follow from its digests."
            yield _finding("snapshot_renamed", Severity.violated, about, what, remedy)
        for name, one in tables.items():
            with (manifest.parent / one["file"]).open("rb") as content:
                same = hashlib.file_digest(content, "sha256").hexdigest() == one["file_digest"]
            if not same:
                what = f"The file of table {name} is not the one that was fetched."
                yield _finding("snapshot_changed", Severity.violated, about, what, remedy)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        yield _finding("snapshot_unreadable", Severity.violated, about, "It cannot be read.", remedy)


def _finding(code: str, severity: Severity, about: str, what: str, remedy: str) -> AuditFinding:
    return AuditFinding(code=code, severity=severity, about=about, what=what, remedy=remedy)
