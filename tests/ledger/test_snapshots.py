"""Budgets and histories are read without holding the ledger, and are never those of an older copy."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import LedgerFault
from lapwing.ledger import reading, snapshots
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.mark import Mark, text_of
from lapwing.ledger.snapshots import LedgerSnapshots
from lapwing.ledger.sqlite.reader import SqliteReader
from tests.support.effort import one_in
from tests.support.ledger.ledgers import charge, charged, opened
from tests.support.ledger.places import IN_A_FILE, Place

CHARGES = 12
LOOKS: dict[str, Callable[[Ledger], Any]] = {
    "seen": Ledger.seen,
    "history": Ledger.history,
    "number of charges": Ledger.number_of_charges,
}


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    """A ledger with charges of two people, every third of them answered, that was looked at before."""
    with opened(place, 100) as ledger:
        for number in range(CHARGES):
            sequence = charged(ledger, 1, f"q{number}")
            if number % 3 == 0:
                ledger.record_answer(sequence, "{}")
        ledger.record_unanswered([row.sequence for row in ledger.history()[4:6]], "interrupt")
        yield ledger


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Hold the ledger as another process does."""
    begun, end = threading.Event(), threading.Event()
    with opened(place, 100) as other:

        def hold() -> None:
            with other._chain.transaction():
                begun.set()
                end.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(60)
        try:
            yield
        finally:
            end.set()
            thread.join()


@pytest.mark.parametrize("look", one_in(3, LOOKS.values()), ids=LOOKS)
def test_a_look_waits_for_nobody(look: Callable[[Ledger], Any], ledger: Ledger, place: Place) -> None:
    before = look(ledger)
    with opened(place, 100, patience=0.05) as hasty:
        look(hasty)
        with held(place):
            assert look(ledger) == look(hasty) == before
            with pytest.raises(LedgerFault, match="held"):
                hasty.state()


@IN_A_FILE
def test_twin_a_look_that_holds_the_ledger_is_found(
    ledger: Ledger, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerSnapshots, "without_holding", lambda self, stack: None)
    with pytest.raises(LedgerFault):
        test_a_look_waits_for_nobody(Ledger.seen, ledger, place)


def test_a_look_sees_what_others_have_charged(ledger: Ledger, place: Place) -> None:
    with opened(place, 100) as other:
        for number in range(3):
            sequence = charged(other, 1, f"more {number}")
            assert ledger.seen() == other.state()
            assert ledger.history()[-1].sequence == sequence
            assert ledger.number_of_charges() == CHARGES + number + 1


@IN_A_FILE
def test_a_state_is_read_once_while_nothing_is_written(
    ledger: Ledger, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whomever: what another one charges is seen, and so is a file that another one puts there, or writes to."""
    read, taken = list[bool](), LedgerSnapshots.taken

    def noted(self: LedgerSnapshots) -> Any:
        read.append(True)
        return taken(self)

    seen = ledger.seen()
    ledger.seen()  # the first look held the ledger, and the second opened the file to read it
    monkeypatch.setattr(LedgerSnapshots, "taken", noted)
    assert [ledger.seen() for _ in range(3)] == [seen] * 3
    assert not read
    with opened(place, 100) as other:
        for number in range(3):
            charged(other, 1, f"more {number}")
            assert ledger.seen() == other.state() != seen
            seen = ledger.seen()
    assert read
    place.mark.write_bytes(text_of(Mark(seen.sequence, "f" * 64)))
    with pytest.raises(LedgerFault, match="no longer holds"):
        ledger.seen()


@IN_A_FILE
def test_twin_a_state_that_is_given_again_whatever_the_mark_says_is_found(
    ledger: Ledger, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteReader, "stamp", lambda self: "always the same")
    for name in ("head_of", "_mark_at"):
        monkeypatch.setattr(snapshots, name, lambda _: None)
    ledger.seen()
    with pytest.raises(AssertionError):
        test_a_look_sees_what_others_have_charged(ledger, place)


def test_pages_are_the_history(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ledger.history()
    assert [row.question for row in whole] == [f"SELECT q{number}" for number in range(CHARGES)]
    assert [row.answered for row in whole] == [number % 3 == 0 for number in range(CHARGES)]
    assert [row.unanswered for row in whole] == [None] * 4 + ["interrupt"] * 2 + [None] * 6
    for size in (1, 2, 5, CHARGES, CHARGES + 1):
        monkeypatch.setattr(reading, "PAGE", size)
        assert ledger.history() == whole
        assert ledger.history(most=4) == whole[:4]
        assert ledger.history(after=whole[3].sequence, most=5) == whole[4:9]
    assert ledger.history(after=whole[-1].sequence) == ()


def test_what_is_charged_while_pages_are_read_is_not_waited_for(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, taken = ledger.history(), LedgerSnapshots.taken
    monkeypatch.setattr(reading, "PAGE", 1)

    def charging(self: LedgerSnapshots) -> Any:
        charged(ledger, Fraction(1, 100), "another")
        return taken(self)

    monkeypatch.setattr(LedgerSnapshots, "taken", charging)
    rows = ledger.history()
    assert rows[: len(whole)] == whole
    assert len(rows) == len(whole) + 1  # the one before the first look


def test_the_charges_of_one_name(place: Place) -> None:
    names = ["alice", "ALICE", 'a"b', "é", "alice bob"]
    with opened(place, 100) as ledger:
        for number in range(20):
            name = names[number % len(names)]
            charged_by(ledger, name, f"alice {number}")
        for name in names:
            rows = ledger.history(principal=name)
            assert [row.principal for row in rows] == [name] * 4
        assert ledger.history(principal="nobody") == ()


def charged_by(ledger: Ledger, name: str, key: str) -> None:
    charge(ledger, ledger.seen().account.budget.from_amount(Fraction(1)), key, principal=name)


# ---- never an older copy ---------------------------------------------------------------------------------------------


def test_a_look_at_an_older_copy_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "visits.lapwing.db"
    copies = [path, path.with_name(path.name + "-wal")]
    with opened(path, 100) as ledger:
        charged(ledger, 1)
        ledger.seen()
    for copy in copies:
        if copy.exists():
            shutil.copy(copy, f"{copy}.old")
    with opened(path, 100) as ledger:
        charged(ledger, 1, "later")
        ledger.seen()
        ledger._chain.close()
        ledger._snapshots.close()
        for copy in copies:
            copy.unlink(missing_ok=True)
            if os.path.exists(f"{copy}.old"):
                shutil.copy(f"{copy}.old", copy)
        with pytest.raises(LedgerFault, match="no longer holds"):
            ledger.seen()


def test_a_mark_that_is_ahead_is_a_fault(ledger: Ledger, place: Place) -> None:
    newest = ledger.seen()
    place.mark.write_bytes(text_of(Mark(newest.sequence + 1, "f" * 64)))
    with pytest.raises(LedgerFault, match="no longer holds"):
        ledger.seen()


def test_another_chain_is_a_fault(ledger: Ledger, place: Place) -> None:
    newest = ledger.seen()
    place.mark.write_bytes(text_of(Mark(newest.sequence, "f" * 64)))
    with pytest.raises(LedgerFault, match="no longer holds"):
        ledger.seen()


def test_twin_a_look_that_passes_over_the_mark_is_found(
    ledger: Ledger, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_mark_at", lambda path: Mark(0, ""))
    monkeypatch.setattr(
        LedgerSnapshots,
        "without_holding",
        lambda self, stack: snapshots.LedgerSnapshot(state=self._seen, log=stack.enter_context(self._reader.log())),
    )
    for refused in (test_a_mark_that_is_ahead_is_a_fault, test_another_chain_is_a_fault):
        with pytest.raises(pytest.fail.Exception):
            refused(ledger, place)


@pytest.mark.parametrize("text", one_in(3, [b"", b"lapwing mark 1 00000000000", b"nonsense\n"]))
def test_a_mark_that_is_just_being_written_is_looked_at_again(
    text: bytes, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the ledger is held after all, and the mark read where nobody writes it."""
    newest = ledger.seen()
    monkeypatch.setattr(Path, "read_bytes", lambda self: text)
    assert ledger.seen() == newest


def test_a_missing_mark_is_a_fault(ledger: Ledger, place: Place) -> None:
    ledger.seen()
    place.mark.unlink()
    with pytest.raises(LedgerFault, match="missing"):
        ledger.seen()


def test_a_child_looks_for_itself(ledger: Ledger) -> None:
    newest = ledger.seen()
    child = os.fork()
    if not child:
        os._exit(0 if ledger.seen() == newest else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.seen() == newest
