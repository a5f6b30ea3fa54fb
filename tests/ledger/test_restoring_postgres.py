"""A copy restored into PostgreSQL: whole or not at all, into an empty place alone, and never rolling spending back."""

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from lapwing.errors import CatalogMismatch, LedgerFault
from lapwing.ledger import exporting, mark, reading, restoring
from lapwing.ledger.curating import Declared
from lapwing.ledger.postgres import restoring as into
from lapwing.ledger.postgres.log import PostgresLog
from lapwing.ledger.state import LedgerState
from lapwing.privacy.filters import Refused
from tests.ledger.test_backup import COPY, altered, used
from tests.support.cli.command import Run, folder, run, visits
from tests.support.ledger.ledgers import charged, opened, registration, spend
from tests.support.ledger.places import Place, place_in

__all__ = ["folder", "run", "visits"]
TABLES: Final = ("ledgers", "entries", "askers")


@pytest.fixture
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A ledger of nine entries that was copied and is gone from its database; its mark stays."""
    place = place_in("postgres", tmp_path, request)
    with opened(place) as ledger:
        for number in range(3):
            ledger.record_answer(charged(ledger, 0.125, f"question {number}"), f"[{number}]")
        charged(ledger, 0.125, "under way")
        exporting.write(ledger.entries(), tmp_path / COPY)
    return place


def lose(place: Place, *, with_mark: bool = False) -> None:
    with place.connection() as connection:
        for table in TABLES:
            connection.execute(f"DELETE FROM lapwing.{table} WHERE ledger = 'visits'".encode())
    if with_mark:
        place.mark.unlink()


def rows(place: Place) -> list[tuple[Any, ...]]:
    with place.connection() as connection:
        return connection.execute("SELECT sequence, hash FROM lapwing.entries ORDER BY sequence").fetchall()


def restore(place: Place, declared: Declared | None = None, epsilon: int = 1) -> LedgerState:
    entries = tuple(exporting.entries_of(place.folder / COPY))
    return restoring.restore_in(place.name, place.folder, entries, registration(epsilon), declared, "carol")


def go_on(place: Place) -> None:
    with opened(place) as ledger:
        charged(ledger, 0.25, "after the copy")


def test_the_newest_copy_is_restored_as_it_was(lost: Place) -> None:
    lose(lost)
    state = restore(lost)
    assert state.account.spent.amount * 2 == 1
    assert state.sequence == 10
    with opened(lost) as ledger:
        assert ledger.state() == state
        assert [answer.payload for answer in ledger.answers("question 1")] == ["[1]"]
        charged(ledger, 0.5, "more")
        assert isinstance(spend(ledger, 0.125, "most"), Refused)
        said = next(entry for entry in ledger.entries() if entry.kind == "restored")
        assert said.contents() == {"declared": "marked", "entries": 9, "marked": 9, "principal": "carol"}
        ledger.verify()
    assert [path.name for path in lost.folder.iterdir() if path.name.startswith(".")] == []


def test_the_copy_of_a_file_moves_into_the_database(lost: Place, tmp_path: Path) -> None:
    lose(lost, with_mark=True)
    (tmp_path / "file").mkdir()
    shutil.copy(used(tmp_path / "file"), tmp_path / COPY)
    with pytest.raises(LedgerFault, match="There is no mark"):
        restore(lost)
    assert not lost.mark.exists()
    assert rows(lost) == []
    assert restore(lost, "newest").account.spent.amount * 2 == 1
    with opened(lost) as ledger:
        assert isinstance(spend(ledger, 0.75, "more"), Refused)
        ledger.verify()


def rolled_back(place: Place) -> Fraction:
    """Charge after the copy, lose the ledger, and restore the copy; return what can be charged then."""
    go_on(place)
    lose(place)
    restore(place)
    with opened(place) as ledger:
        return ledger.state().account.remaining.amount


def test_a_copy_that_is_behind_the_mark_is_refused(lost: Place) -> None:
    with pytest.raises(LedgerFault, match="and the copy ends at 9"):
        rolled_back(lost)
    with pytest.raises(LedgerFault):
        restore(lost, "newest")
    assert rows(lost) == []


def test_a_restore_that_resets_the_mark_is_found(lost: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the mark is not looked at."""
    monkeypatch.setattr(restoring, "admitted", lambda entries, known, declared: "marked")
    assert rolled_back(lost) == Fraction(1, 2)  # a quarter was given back


@pytest.mark.parametrize("with_mark", [True, False])
def test_what_is_lost_counts_as_all(lost: Place, with_mark: bool) -> None:
    go_on(lost)
    lose(lost, with_mark=with_mark)
    assert restore(lost, "lost").account.remaining.amount == 0
    with opened(lost) as ledger:
        assert isinstance(spend(ledger, Fraction(1, 10**20), "more"), Refused)
        assert [answer.payload for answer in ledger.answers("question 1")] == ["[1]"]
        ledger.verify()


def test_only_an_empty_place_is_filled(lost: Place) -> None:
    before = rows(lost)
    declarations: tuple[Declared | None, ...] = (None, "newest", "lost")
    for declared in declarations:
        with pytest.raises(LedgerFault, match="There is already a ledger visits in the database"):
            restore(lost, declared)
    assert rows(lost) == before
    with lost.connection() as connection:  # nor where only the head row is gone
        connection.execute("DELETE FROM lapwing.ledgers")
    with pytest.raises(LedgerFault, match="There is already a ledger"):
        restore(lost, "lost")
    assert rows(lost) == before
    with lost.connection() as connection:
        assert connection.execute("SELECT count(*) FROM lapwing.ledgers").fetchone() == (0,)


def test_a_database_out_of_reach_leaves_no_mark(lost: Place) -> None:
    """A mark would say that a ledger was begun, so that the next command begins one in the place of the lost one."""
    lose(lost, with_mark=True)
    away = Place(f"postgres://nobody@/none?host={lost.folder}&ledger=visits", lost.folder)
    with pytest.raises(LedgerFault, match="cannot be reached"):
        restore(away, "newest")
    assert not lost.mark.exists()
    assert restore(lost, "newest").sequence == 10


def test_others_in_the_database_stay(lost: Place) -> None:
    lose(lost)
    other = Place(lost.name.replace("ledger=visits", "ledger=other"), lost.folder)
    with opened(other) as ledger:
        charged(ledger, 0.5)
        before = ledger.state()
        restore(lost)
        assert ledger.state() == before
        ledger.verify()


def taken(place: Place) -> list[str]:
    """Return which altered copies are restored."""
    lose(place, with_mark=True)
    found = []
    for what, text in altered(place.folder / COPY).items():
        (place.folder / COPY).write_text(text)
        try:
            restore(place, "newest")
        except LedgerFault:
            assert rows(place) == []
            continue
        found.append(what)
        lose(place, with_mark=True)
    return found


def test_an_altered_copy_is_not_restored(lost: Place) -> None:
    assert taken(lost) == []


def test_a_copy_that_is_believed_is_found(lost: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: neither copy nor database is verified, only folded."""

    def believed(entries: Any) -> Any:
        monkeypatch.setattr("lapwing.ledger.entries.Entry.contents", lambda self: json.loads(self.body))
        return verified(entries)

    verified = reading.verified
    monkeypatch.setattr(reading, "verified", believed)
    assert {"a cheaper charge", "another time"} <= set(taken(lost))


def dropping(patch: pytest.MonkeyPatch) -> None:
    """Lose the last row on the way into the database."""
    whole = PostgresLog.insert

    def insert(self: PostgresLog, entry: Any) -> None:
        if entry.kind != "restored":
            whole(self, entry)

    patch.setattr(PostgresLog, "insert", insert)


def test_a_row_that_is_dropped_on_the_way_is_noticed(lost: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(lost)
    known = lost.mark.read_bytes()
    with monkeypatch.context() as planted:
        dropping(planted)
        with pytest.raises(LedgerFault, match="does not hold what was written"):
            restore(lost)
    assert rows(lost) == []
    assert lost.mark.read_bytes() == known
    assert restore(lost).sequence == 10


def test_twin_what_is_not_read_back_is_a_fault_only_later(lost: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(lost)
    with monkeypatch.context() as planted:
        dropping(planted)
        wanted = tuple(exporting.entries_of(lost.folder / COPY))
        planted.setattr(into, "_read_back", lambda *_: reading.verified(wanted))
        restore(lost)
    with pytest.raises(LedgerFault), opened(lost):
        pass


class Death(BaseException):
    pass


def die(*_: object) -> None:
    raise Death


@pytest.mark.parametrize("step", ["commit", "_read_back"])
def test_a_death_before_the_commit_leaves_nothing(lost: Place, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    lose(lost)
    known = lost.mark.read_bytes()
    with monkeypatch.context() as dying:
        dying.setattr(into, step, die)
        with pytest.raises(Death):
            restore(lost)
    assert rows(lost) == []
    assert lost.mark.read_bytes() == known
    assert restore(lost).sequence == 10


def test_a_death_before_the_mark_gives_nothing_back(lost: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on(lost)
    lose(lost)
    with monkeypatch.context() as dying:
        dying.setattr(mark.HeldMark, "advance", die)
        with pytest.raises(Death):
            restore(lost, "lost")
    with pytest.raises(LedgerFault), opened(lost):
        pass
    lose(lost)
    assert restore(lost, "lost").account.remaining.amount == 0


def test_another_host_that_has_seen_more_refuses_it(lost: Place) -> None:
    elsewhere = lost.seen_from("other")
    with opened(elsewhere) as ledger:
        charged(ledger, 0.25, "after the copy")
    lose(lost)
    restore(lost)  # this host's mark knows nothing of it
    with pytest.raises(LedgerFault, match="no longer holds"), opened(elsewhere):
        pass


def test_the_catalog_must_be_that_of_the_copy(lost: Place) -> None:
    lose(lost)
    with pytest.raises(CatalogMismatch):
        restore(lost, epsilon=2)
    assert rows(lost) == []


@pytest.mark.long
def test_on_the_command_line(visits: Path, run: Run, postgres: str) -> None:
    count = ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")
    run(*count)
    assert run("ledger", "backup", "copy.jsonl").status == 0
    (catalog,) = visits.glob("*.toml")
    text = catalog.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("ledger =")]
    catalog.write_text(text.replace(line, f'ledger = "{postgres}{"&" if "?" in postgres else "?"}ledger=visits"'))
    undeclared = run("ledger", "restore", "copy.jsonl")
    assert (undeclared.status, "--newest" in undeclared.err) == (6, True)
    restored = run("ledger", "restore", "copy.jsonl", "--newest")
    assert (restored.status, restored.err) == (0, "")
    assert "4 entries restored" in restored.out
    assert run("ledger", "verify").status == 0
    assert "free" in run(*count).err
    assert run("ledger", "restore", "copy.jsonl", "--newest").status == 6
