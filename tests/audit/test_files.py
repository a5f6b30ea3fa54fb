"""Files that others can read, later formats, other tables and other copies are found."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from lapwing.audit import AuditEffort, Subject, files, service_log
from lapwing.ledger import exporting
from lapwing.ledger.mark import Mark, text_of
from lapwing.server.audit_log import note
from lapwing.server.store_places import open_store
from tests.support.audit import codes, edit, rewrite


def found(catalog: Path) -> list[str]:
    return codes(files.checks(Subject.from_file(catalog), AuditEffort()))


def ledger_of(catalog: Path) -> Path:
    return Subject.from_file(catalog).catalog.ledger_path


def test_honest_files_pass(catalog: Path) -> None:
    assert found(catalog) == []


def world_readable_ledger(catalog: Path) -> None:
    os.chmod(ledger_of(catalog), 0o644)


def world_readable_key(catalog: Path) -> None:
    key = catalog.with_name("release.key")
    key.write_text("-----BEGIN PRIVATE KEY-----\n", encoding="ascii")
    os.chmod(key, 0o640)


def writable_folder(catalog: Path) -> None:
    os.chmod(catalog.parent, 0o777)


def later_format(catalog: Path) -> None:
    with closing(sqlite3.connect(ledger_of(catalog))) as connection:
        connection.execute("PRAGMA user_version = 99")


def another_application(catalog: Path) -> None:
    with closing(sqlite3.connect(ledger_of(catalog))) as connection:
        connection.execute("PRAGMA application_id = 1")


def trigger(catalog: Path) -> None:
    with closing(sqlite3.connect(ledger_of(catalog))) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END")


def later_kind(catalog: Path) -> None:
    edit(ledger_of(catalog), "UPDATE entries SET kind = 'refund' WHERE sequence = 8")


def cut_off(catalog: Path) -> None:
    subject = Subject.from_file(catalog)
    exporting.write(subject.entries, catalog.with_name("copy.jsonl"))
    rewrite(subject, subject.entries[:6])


def rewritten(catalog: Path) -> None:
    subject = Subject.from_file(catalog)
    exporting.write(subject.entries, catalog.with_name("copy.jsonl"))
    rewrite(subject, [*subject.entries[:2], *subject.entries[4:6]])


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (world_readable_ledger, "secret_readable"),
        (world_readable_key, "secret_readable"),
        (writable_folder, "folder_writable"),
        (later_format, "format_later"),
        (another_application, "not_a_ledger"),
        (trigger, "tables_unknown"),
        (later_kind, "entry_kind_unknown"),
        (cut_off, "ledger_behind_copy"),
        (rewritten, "copy_differs"),
    ],
)
def test_a_fault_is_found(catalog: Path, plant: Callable[[Path], None], expected: str) -> None:
    plant(catalog)
    assert found(catalog) == [expected]


def test_a_snapshot_that_was_changed_is_found(catalog: Path) -> None:
    content, digests = b"rows", {"visits": "0" * 64}
    name = sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()[:40]
    folder = catalog.parent / "visits.lapwing.snapshots"
    os.makedirs(folder / name, mode=0o700)
    os.chmod(folder, 0o700)
    table = {"digest": "0" * 64, "file": "visits.arrow", "file_digest": sha256(content).hexdigest()}
    (folder / name / "manifest.json").write_text(json.dumps({"tables": {"visits": table}}), encoding="utf-8")
    (folder / name / "visits.arrow").write_bytes(content)
    assert found(catalog) == []
    (folder / name / "visits.arrow").write_bytes(b"Rows")
    assert found(catalog) == ["snapshot_changed"]


# ---- the audit log of a service --------------------------------------------------------------------------------------


def of_log(catalog: Path) -> list[str]:
    return codes(service_log.checks(Subject.from_file(catalog), AuditEffort()))


def test_faults_of_an_audit_log_are_found(catalog: Path) -> None:
    place = catalog.parent / "lapwing.people.db"
    store = open_store(place)
    with store.transaction() as connection:
        for act in ("person added", "role set", "granted"):
            note(connection, "anna", act, "ben", why="tests")
    store.close()
    assert of_log(catalog) == []
    with closing(sqlite3.connect(place)) as database:
        (seal,) = database.execute("SELECT hash FROM audit WHERE sequence = 3").fetchone()
    mark = place.with_name(place.name + ".mark")
    mark.write_bytes(text_of(Mark(3, seal)))
    assert of_log(catalog) == []
    edit(place, "DELETE FROM audit WHERE sequence = 3")
    assert of_log(catalog) == ["log_behind_mark"]
    mark.unlink()
    edit(place, "UPDATE audit SET actor = 'carl' WHERE sequence = 1")
    assert of_log(catalog) == ["line_edited"]
    edit(place, "DELETE FROM audit WHERE sequence = 1")
    assert of_log(catalog) == ["line_missing"]
