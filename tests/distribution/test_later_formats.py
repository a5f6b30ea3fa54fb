"""Files of a later release are refused by the number of their format, and stay as they are."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.audit.report import FORM, AuditReport
from lapwing.documents.published.page import page_of
from lapwing.errors import Fault, InvalidParameter, LapwingError, LedgerFault
from lapwing.server.sqlite_store import SqliteStore
from lapwing.tabulation.signing import faults_of

LATER = 99


def ledger(folder: Path) -> tuple[Path, Callable[[], object]]:
    data = folder / "t.csv"
    data.write_text("id\n1\n2\n")

    def opened() -> lw.Session:
        return lw.protect(data, privacy_unit="id", max_rows_per_unit=1, epsilon=1, types={"id": "integer"})

    with opened() as session:
        session.sql("SELECT COUNT(*) AS n FROM t", epsilon=0.1)
    (file,) = folder.glob("*.lapwing.db")
    numbered(file)
    return file, lambda: opened().budget()


def people(folder: Path) -> tuple[Path, Callable[[], object]]:
    file = folder / "people.db"
    SqliteStore(file).close()
    numbered(file)
    return file, lambda: SqliteStore(file)


def manifest(folder: Path) -> tuple[Path, Callable[[], object]]:
    file = folder / "manifest.json"
    file.write_text(json.dumps({"format": LATER, "tables": []}))
    return file, lambda: faults_of(file)


def report(folder: Path) -> tuple[Path, Callable[[], object]]:
    file = folder / "audit.json"
    file.write_text(json.dumps({"form": FORM.replace("1", str(LATER))}))
    return file, lambda: AuditReport.from_file(file)


def published_page(folder: Path) -> tuple[Path, Callable[[], object]]:
    file = folder / "page.json"
    file.write_text(json.dumps({"format": LATER, "results": [], "datasets": []}))
    return file, lambda: page_of(file.read_text())


def numbered(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {LATER}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (ledger, LedgerFault),
        (people, InvalidParameter),
        (manifest, InvalidParameter),
        (report, InvalidParameter),
        (published_page, Fault),
    ],
)
def test_a_later_format_is_refused_by_its_number_and_stays_as_it_is(
    make: Callable[[Path], tuple[Path, Callable[[], object]]], error: type[LapwingError], tmp_path: Path
) -> None:
    file, read = make(tmp_path)
    before = file.read_bytes()
    with pytest.raises(error, match=rf"\b{LATER}\b"):
        read()
    assert file.read_bytes() == before


def test_a_manifest_without_a_number_has_the_first_format(tmp_path: Path) -> None:
    """Those that earlier releases wrote say none."""
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({"tables": []}))
    assert faults_of(file) == []
