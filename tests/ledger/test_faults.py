"""A ledger that cannot be trusted or written: it says so, and nothing is charged."""

import fcntl
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import LedgerFault
from lapwing.ledger.mark import HeldMark, path_of
from lapwing.ledger.sqlite import chain, file
from lapwing.privacy.measures import PureDP
from tests.support.effort import one_in, only
from tests.support.ledger.ledgers import NAME, charged, opened, registration, spend
from tests.support.ledger.places import Place
from tests.support.processes import ended

COLUMNS = ("sequence", "time", "kind", "subject", "body", "previous", "hash")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with two charges, the first answered: entries 1 to 5."""
    path = tmp_path / NAME
    with opened(path) as ledger:
        ledger.record_answer(charged(ledger, 0.1), "42")
        charged(ledger, 0.2, "sum")
    return path


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def edit(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def refuses(path: Path, words: str, patience: float = 0.2) -> None:
    """Insist that the ledger does not open, for the reason given."""
    with pytest.raises(LedgerFault, match=words) as caught:
        Place.of_file(path).open(registration(), patience=patience)
    assert str(path.parent) not in str(caught.value), "a message is public: it names the file, not where it lies"


# Tampering.


@pytest.mark.parametrize("sequence", one_in(2, [1, 2, 3, 4, 5]))
@pytest.mark.parametrize("column", COLUMNS)
def test_a_changed_field_is_seen(path: Path, column: str, sequence: int) -> None:
    change = "sequence + 100" if column == "sequence" else f"{column} || 'x'"
    edit(path, f"UPDATE entries SET {column} = {change} WHERE sequence = ?", sequence)
    refuses(path, "entry|Entry")


@pytest.mark.parametrize("value", one_in(2, [None, 7, 0.5, b"bytes"]))
@pytest.mark.parametrize("column", COLUMNS[1:])
def test_a_field_of_another_type_is_seen(path: Path, column: str, value: object) -> None:
    edit(path, "PRAGMA ignore_check_constraints = 1")
    try:
        edit(path, f"UPDATE entries SET {column} = ? WHERE sequence = 3", value)
    except sqlite3.IntegrityError:
        assert value is None, "NULL is kept out by the schema"
        return
    refuses(path, "Entry 3")


@pytest.mark.parametrize("sequence", [1, 2, 3, 4, 5])
def test_a_removed_entry_is_seen(path: Path, sequence: int) -> None:
    edit(path, "DELETE FROM entries WHERE sequence = ?", sequence)
    refuses(path, "entry")


def test_a_cheaper_charge_is_seen(path: Path) -> None:
    edit(path, "UPDATE entries SET body = replace(body, '\"0.2\"', '\"0.1\"') WHERE sequence = 5")
    refuses(path, "Entry 5 of the ledger does not match its own seal")


def test_every_byte_of_a_row_counts(path: Path) -> None:
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT * FROM entries WHERE sequence = 3").fetchone()
    start = whole.index(row[1].encode() + b"charge")
    stop = whole.index(row[6].encode(), start) + 64
    unseen = []
    with open(path, "r+b", buffering=0) as file:
        for place in range(start - 10, stop):  # the ten bytes before say how long each field is
            file.seek(place)
            file.write(bytes([whole[place] ^ 1]))
            try:
                Place.of_file(path).open(registration()).close()
                unseen.append(place - start)
            except LedgerFault:
                pass
            file.seek(place)
            file.write(whole[place : place + 1])
    assert unseen == []
    with opened(path) as ledger:
        assert ledger.verify() == 5


def test_an_open_ledger_does_not_serve_an_edited_answer(path: Path) -> None:
    with opened(path) as ledger:
        edit(path, "UPDATE entries SET body = replace(body, '42', '43') WHERE sequence = 4")
        with pytest.raises(LedgerFault, match="Entry 4"):
            ledger.answers("count")
        with pytest.raises(LedgerFault, match="Entry 4"):
            ledger.verify()


def test_an_open_ledger_sees_that_its_newest_entry_changed(path: Path) -> None:
    with opened(path) as ledger:
        edit(path, "DELETE FROM entries WHERE sequence = 5")
        with pytest.raises(LedgerFault, match="no longer holds its entry 5"):
            spend(ledger, 0.1)


def test_an_index_that_misses_an_entry_is_seen(path: Path) -> None:
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'charges'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    path.write_bytes(whole[: page * size - 20] + b"x" + whole[page * size - 19 :])
    refuses(path, "damaged")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER refund AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE sequence = 5; END",
        "CREATE TABLE more (x)",
        "DROP INDEX answers",
        "ALTER TABLE entries ADD COLUMN note TEXT",
    ],
)
def test_tables_that_were_changed_are_refused(path: Path, statement: str) -> None:
    edit(path, statement)
    refuses(path, "other tables than Lapwing made")


# Rolling back.


def copy_of(path: Path, to: str) -> Path:
    target = path.parent / to
    shutil.copy(path, target)
    return target


def test_an_older_ledger_under_a_newer_mark_is_refused(path: Path) -> None:
    older = copy_of(path, "older")
    with opened(path) as ledger:
        charged(ledger, 0.1)
    shutil.copy(older, path)
    refuses(path, "no longer holds its entry 7")


def test_an_older_ledger_is_refused_by_a_process_that_has_it_open(path: Path) -> None:
    older = copy_of(path, "older")
    with opened(path) as ledger:
        charged(ledger, 0.1)
        os.replace(older, path)
        for suffix in ("-wal", "-shm"):
            path.with_name(NAME + suffix).unlink(missing_ok=True)
        with pytest.raises(LedgerFault, match="no longer holds its entry 7"):
            spend(ledger, 0.1)


def test_a_lost_log_is_refused(path: Path) -> None:
    with opened(path) as ledger:
        charged(ledger, 0.1)
        target = path.parent / "moved"
        target.mkdir()
        shutil.copy(path, target / NAME)  # without its -wal
        shutil.copy(path_of(path), path_of(target / NAME))
        refuses(target / NAME, "no longer holds its entry 7")


def test_another_ledger_in_its_place_is_refused(path: Path) -> None:
    other = path.parent / "other.db"
    with opened(other) as ledger:
        for _ in range(5):
            charged(ledger, 0.01)
    shutil.copy(other, path)
    refuses(path, "no longer holds its entry 5")


def test_a_mark_that_is_behind_is_caught_up(path: Path) -> None:
    mark = path_of(path)
    older = mark.read_bytes()
    with opened(path) as ledger:
        charged(ledger, 0.1)
    newer = mark.read_bytes()
    mark.write_bytes(older)
    with opened(path) as ledger:
        assert mark.read_bytes() == newer
        assert ledger.state().account.spent == PureDP(0.4)


def test_a_missing_mark_is_a_fault_even_for_an_open_ledger(path: Path) -> None:
    with opened(path) as ledger:
        path_of(path).unlink()
        with pytest.raises(LedgerFault, match=r"mark .* is missing"):
            spend(ledger, 0.1)
    refuses(path, "mark .* is missing")
    assert not path_of(path).exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda mark: b"",
        lambda mark: mark[:-1],
        lambda mark: mark + b"\n",
        lambda mark: mark.replace(b"mark 1", b"mark 2"),
        lambda mark: mark[:-10] + b"\0" * 10,
        lambda mark: b"\xff" * len(mark),
    ],
)
def test_a_damaged_mark_is_a_fault(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path_of(path).write_bytes(spoil(path_of(path).read_bytes()))
    refuses(path, "mark .* is damaged")


@pytest.mark.long
def test_every_byte_of_the_mark_counts(path: Path) -> None:
    mark = path_of(path)
    whole = mark.read_bytes()
    for place in range(len(whole)):
        mark.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refuses(path, "rolled back|no longer holds")
    mark.write_bytes(whole)
    with opened(path) as ledger:
        charged(ledger, 0.1)


def test_a_missing_ledger_under_a_mark_is_refused_and_not_made_anew(path: Path) -> None:
    path.unlink()
    refuses(path, "is missing and its mark says that it had 5 entries")
    assert not path.exists()


# Files that are something else.


def test_an_emptied_ledger_is_refused(path: Path) -> None:
    path.write_bytes(b"")
    refuses(path, "is empty and its mark says")
    assert path.read_bytes() == b""


def test_a_truncated_ledger_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in (1, 50, 99, 100, 1000, 4096, 5000, 8192, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        refuses(path, "not a database|damaged|truncated|no longer holds")


@pytest.mark.parametrize("mark_too", [False, True])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, path: Path, mark_too: bool) -> None:
    for name, content in (("table.parquet", b"PAR1" * 1000), ("notes.txt", b"hello"), ("empty", b"")):
        other = tmp_path / name
        other.write_bytes(content)
        if mark_too:
            shutil.copy(path_of(path), path_of(other))
        refuses(other, "not a database|is empty" if mark_too else "mark .* is missing")
        assert other.read_bytes() == content


def test_another_database_is_left_alone(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.sqlite"
    edit(other, "CREATE TABLE entries (sequence)")
    content = other.read_bytes()
    shutil.copy(path_of(path), path_of(other))
    refuses(other, "is a database but not a Lapwing ledger")
    assert other.read_bytes() == content


def test_a_newer_schema_is_refused(path: Path) -> None:
    edit(path, "PRAGMA user_version = 2")
    refuses(path, "schema version 2 and this Lapwing knows version 1")


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    refuses(tmp_path, "mark .* is missing")


def test_links_in_a_circle_are_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "one.db").symlink_to("other.db")
    (tmp_path / "other.db").symlink_to("one.db")
    refuses(tmp_path / "one.db", "ledger one.db")
    refuses(tmp_path / "a\0b.db", "circle of links")


def test_a_ledger_needs_an_existing_folder(tmp_path: Path) -> None:
    refuses(tmp_path / "none" / NAME, "no such file or directory")


# Files that cannot be written.


def test_a_lock_that_another_program_holds_is_a_fault(path: Path) -> None:
    with opened(path, patience=0.1) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFault, match="locked by another program"):
            spend(ledger, 0.1)
        other.execute("ROLLBACK")
        assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, 0.1)


def test_a_held_mark_is_a_fault(path: Path) -> None:
    with opened(path, patience=0.1) as ledger:
        descriptor = os.open(path_of(path), os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(LedgerFault, match="Another process held"):
            spend(ledger, 0.1)
        os.close(descriptor)
        assert ledger.state().account.spent == PureDP(0.3)


def test_a_full_disk_is_a_fault_and_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(path: Path, seconds: float, *, virgin: bool) -> sqlite3.Connection:
        connection = whole(path, seconds, virgin=virgin)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        return connection

    whole = file.connect
    with monkeypatch.context() as patch:
        patch.setattr(file, "connect", connect)
        with opened(path) as ledger:
            with pytest.raises(LedgerFault, match="disk or its quota is full"):
                spend(ledger, 0.1, "x" * 20_000)
            assert ledger.state().account.spent == PureDP(0.3)
    with opened(path) as ledger:
        assert ledger.verify() == 6  # closing, it noted that whoever made the charge before this has died
        assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, 0.1, "x" * 20_000)


def test_a_mark_that_cannot_move_is_a_fault_and_the_charge_stands(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with opened(path) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(HeldMark, "advance", full)
            with pytest.raises(LedgerFault, match="no space left on device"):
                spend(ledger, 0.1)
        assert ledger.state().account.spent == PureDP(0.4), "wasted, and counted"
        charged(ledger, 0.1)
        assert ledger.verify() == 9, "with two that say that nobody waits for the answers to entries 5 and 7"


def test_an_interruption_leaves_the_ledger_usable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(path) as ledger:
        for step in ("begin", "insert", "commit"):
            with monkeypatch.context() as patch:
                patch.setattr(chain, step, interrupt)
                with pytest.raises(KeyboardInterrupt):
                    spend(ledger, 0.1)
            assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, Fraction(7, 10))


class TakenThenInterrupted:
    """A lock under which Ctrl-C comes right after it was taken."""

    def __init__(self, lock: Any) -> None:
        self.release = lock.release
        self.lock = lock

    def acquire(self, timeout: float) -> bool:
        self.lock.acquire(timeout=timeout)
        raise KeyboardInterrupt


def test_an_interruption_leaves_no_thread_locked_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path, patience=0.2) as ledger:
        chain: Any = ledger._chain
        with monkeypatch.context() as patch:
            patch.setattr(chain.turn, "_lock", TakenThenInterrupted(chain.turn._lock))
            with pytest.raises(KeyboardInterrupt):
                ledger.state()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(ledger.state).result().account.spent == PureDP(0.3)


def test_a_thread_that_waits_too_long_is_told_and_releases_nothing(path: Path) -> None:
    with opened(path, patience=0.2) as ledger, ThreadPoolExecutor(1) as pool:
        chain: Any = ledger._chain
        with chain.turn.taken():
            for _ in range(2):
                with pytest.raises(LedgerFault, match=r"Other threads held .* Nothing was charged"):
                    pool.submit(spend, ledger, 0.1).result()
        assert pool.submit(ledger.state).result().account.spent == PureDP(0.3)


@pytest.mark.parametrize(
    "suffixes", only([0, 3], [("",), (".mark",), ("", ".mark"), ("folder",), ("", ".mark", "folder")])
)
def test_a_read_only_ledger_is_a_fault(suffixes: tuple[str, ...]) -> None:
    """Root may write anything, so the attempt is another user's; the folder must then be reachable for that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / NAME
        with opened(path) as ledger:
            charged(ledger, 0.1)
        for target in (folder, *folder.iterdir()):
            target.chmod(0o777 if target == folder else 0o666)
        for suffix in suffixes:
            target = folder if suffix == "folder" else path.with_name(NAME + suffix)
            target.chmod(0o555 if suffix == "folder" else 0o444)
        before = files(path)
        _, output, _ = ended("tests.support.ledger.worker", "unprivileged", str(Place.of_file(path)))
        folder.chmod(0o777)
        assert output.startswith("ledger_fault: "), output
        assert "writable" in output
        assert files(path) == before
