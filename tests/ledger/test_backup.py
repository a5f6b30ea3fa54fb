"""Copies of a ledger: complete, verifiable without it, consistent while it is in use, and no way to roll it back."""

import json
import shutil
import stat
import threading
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import CatalogMismatch, DataStopped, InvalidParameter, LedgerFault
from lapwing.ledger import exporting, mark, reading, restoring
from lapwing.ledger.curating import Declared
from lapwing.ledger.entries import GENESIS, Entry
from lapwing.ledger.parts import Parts
from lapwing.ledger.state import LedgerState
from lapwing.privacy.filters import Refused
from tests.support.ledger.ledgers import NAME, charged, opened, registration, spend
from tests.support.ledger.places import Place

COPY = "copy.jsonl"


def used(folder: Path) -> Path:
    """Make a ledger with charges and answers, and a copy of it; return the copy."""
    with opened(folder / NAME) as ledger:
        for number in range(3):
            ledger.record_answer(charged(ledger, 0.125, f"question {number}"), f"[{number}]")
        charged(ledger, 0.125, "under way")
        exporting.write(ledger.entries(), folder / COPY)
    return folder / COPY


def go_on(folder: Path) -> None:
    with opened(folder / NAME) as ledger:
        charged(ledger, 0.25, "after the copy")


def lose(folder: Path, *, with_mark: bool = False) -> None:
    for ending in ("", "-wal", "-shm"):
        (folder / f"{NAME}{ending}").unlink(missing_ok=True)
    if with_mark:
        mark.path_of(folder / NAME).unlink()


def restore(folder: Path, declared: Declared | None = None, epsilon: int = 1) -> LedgerState:
    entries = tuple(exporting.entries_of(folder / COPY))
    return restoring.restore(entries, folder / NAME, registration(epsilon), declared, "carol")


# ---- Copies ----------------------------------------------------------------------------------------------------------


def test_a_copy_is_complete_and_verifies_alone(tmp_path: Path) -> None:
    copy = used(tmp_path)
    with opened(tmp_path / NAME) as ledger:
        state, entries = ledger.state(), list(ledger.entries())
    shutil.move(copy, tmp_path / "elsewhere")
    assert exporting.verified(tmp_path / "elsewhere") == state
    assert list(exporting.entries_of(tmp_path / "elsewhere")) == entries
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def altered(copy: Path) -> dict[str, str]:
    """Return texts that are not what was exported, each altered in one way."""
    lines = copy.read_text().splitlines(keepends=True)

    def with_line(number: int, **changes: Any) -> str:
        return "".join([*lines[:number], json.dumps(json.loads(lines[number]) | changes) + "\n", *lines[number + 1 :]])

    charge = json.loads(lines[2])
    cheaper = charge["body"].replace("0.125", "0.0125")
    assert cheaper != charge["body"]
    return {
        "a cheaper charge": with_line(2, body=cheaper),
        "another time": with_line(2, time="2020-01-01T00:00:00+00:00"),
        "another hash": with_line(2, hash="0" * 64),
        "a line that is gone": "".join(lines[:2] + lines[3:]),
        "a line twice": "".join(lines[:3] + lines[2:]),
        "two lines swapped": "".join([*lines[:2], lines[3], lines[2], *lines[4:]]),
        "no beginning": "".join(lines[1:]),
        "half a line": "".join(lines)[:-20],
        "a sequence that is true": with_line(0, sequence=True),
        "a field more": with_line(2, note=""),
        "no JSON": "".join(lines) + "{}\n",
        "nothing": "",
        "sealed anew": "".join([*lines[:2], _sealed(charge, cheaper), *lines[3:]]),
    }


def _sealed(charge: dict[str, Any], body: str) -> str:
    fields = {name: charge[name] for name in ("sequence", "time", "kind", "subject", "previous")}
    return next(exporting.lines([Entry.seal(**fields, body=json.loads(body))]))


def undetected(copy: Path) -> list[str]:
    found = []
    for what, text in altered(copy).items():
        copy.write_text(text)
        try:
            exporting.verified(copy)
        except LedgerFault:
            continue
        found.append(what)
    return found


def test_an_altered_line_does_not_verify(tmp_path: Path) -> None:
    assert undetected(used(tmp_path)) == []


def test_hashes_that_are_not_computed_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the hash of an entry is believed."""
    copy = used(tmp_path)
    monkeypatch.setattr(Entry, "contents", lambda self: json.loads(self.body))
    assert {"a cheaper charge", "another time"} <= set(undetected(copy))


def test_a_copy_is_of_one_moment_while_others_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 1)
    used(tmp_path)
    end = threading.Event()

    def charging() -> None:
        with opened(tmp_path / NAME) as other:
            while not end.is_set():
                spend(other, Fraction(1, 10**6), "again")

    with opened(tmp_path / NAME) as ledger:
        thread = threading.Thread(target=charging)
        thread.start()
        try:
            before = ledger.state().sequence
            state = exporting.write(ledger.entries(), tmp_path / "busy.jsonl")
            assert before <= state.sequence
        finally:
            end.set()
            thread.join()
        assert ledger.state().sequence >= state.sequence
        ledger.verify()


def test_a_copy_replaces_an_older_one_of_the_same_ledger_and_nothing_else(tmp_path: Path) -> None:
    copy = used(tmp_path)
    go_on(tmp_path)
    with opened(tmp_path / NAME) as ledger:
        with pytest.raises(InvalidParameter, match="exists already"):
            exporting.write(ledger.entries(), copy)
        newer = exporting.write(ledger.entries(), copy, newer=True)
        assert newer == ledger.state()
    older = "".join(copy.read_text().splitlines(keepends=True)[:2])
    copy.write_text(copy.read_text() + "more\n")
    for text in (copy.read_text(), "my notes\n", older.replace("T", "U")):
        copy.write_text(text)
        with opened(tmp_path / NAME) as ledger, pytest.raises(InvalidParameter, match="not an older copy"):
            exporting.write(ledger.entries(), copy, newer=True)
        assert copy.read_text() == text


def test_every_store_raises_ends_and_is_copied_to_a_file(place: Place, tmp_path: Path) -> None:
    with opened(place) as ledger, opened(place) as other:
        ledger.record_answer(charged(ledger, 0.5), "[1]")
        ledger.raise_budget(was=(Fraction(1), Fraction(0)), epsilon=Fraction(2), delta=Fraction(0), principal="carol")
        with pytest.raises(CatalogMismatch, match="somebody raised it"):
            other.raise_budget(was=(Fraction(1), Fraction(0)), epsilon=Fraction(3), delta=Fraction(0), principal="c")
        charged(other, 1, "more")
        assert ledger.close_for_ever("carol")
        with pytest.raises(DataStopped):
            spend(other, 0.25, "after the end")
        state = exporting.write(ledger.entries(), tmp_path / COPY)
        assert state == ledger.state()
        assert ledger.verify() == state.sequence
    with pytest.raises(CatalogMismatch, match="lapwing budget raise"), opened(place):
        pass
    entries = tuple(exporting.entries_of(tmp_path / COPY))
    restored = restoring.restore(entries, tmp_path / "file.db", registration(2), "newest", "carol")
    assert (restored.closed, restored.account) == (True, state.account)
    with closing(Place.of_file(tmp_path / "file.db").open(registration(2))) as ledger:
        assert [answer.payload for answer in ledger.answers("count")] == ["[1]"]


# ---- Restoring -------------------------------------------------------------------------------------------------------


def test_the_newest_copy_is_restored_as_it_was(tmp_path: Path) -> None:
    used(tmp_path)
    lose(tmp_path)
    state = restore(tmp_path)
    assert state.account.spent.amount * 2 == 1
    assert state.sequence == 10
    with opened(tmp_path / NAME) as ledger:
        assert [answer.payload for answer in ledger.answers("question 1")] == ["[1]"]
        charged(ledger, 0.5, "more")
        assert isinstance(spend(ledger, 0.125, "most"), Refused)
        *_, said, _death, _charge = ledger.entries()
        assert said.kind == "restored"
        assert said.contents() == {"declared": "marked", "entries": 9, "marked": 9, "principal": "carol"}
        ledger.verify()
    names = {path.name for path in tmp_path.iterdir() if ".asker-" not in path.name}
    assert names == {NAME, f"{NAME}.mark", COPY}


def rolled_back(folder: Path) -> Fraction:
    """Charge after the copy, lose the ledger, and restore the copy; return what can be charged then."""
    used(folder)
    go_on(folder)
    lose(folder)
    restore(folder)
    with opened(folder / NAME) as ledger:
        return ledger.state().account.remaining.amount


def test_a_copy_that_is_behind_the_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerFault, match="had 11 entries, and the copy ends at 9"):
        rolled_back(tmp_path)
    assert not (tmp_path / NAME).exists()
    with pytest.raises(LedgerFault):
        restore(tmp_path, "newest")
    assert not (tmp_path / NAME).exists()


def test_a_restore_that_resets_the_mark_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the mark is not looked at, as if there were none."""
    monkeypatch.setattr(restoring, "admitted", lambda entries, known, declared: "marked")
    assert rolled_back(tmp_path) == Fraction(1, 2)  # a quarter was given back


@pytest.mark.parametrize("with_mark", [True, False])
def test_what_is_lost_counts_as_all(tmp_path: Path, with_mark: bool) -> None:
    used(tmp_path)
    go_on(tmp_path)
    lose(tmp_path, with_mark=with_mark)
    state = restore(tmp_path, "lost")
    assert state.account.remaining.amount == 0
    with opened(tmp_path / NAME) as ledger:
        assert isinstance(spend(ledger, Fraction(1, 10**20), "more"), Refused)
        assert [answer.payload for answer in ledger.answers("question 1")] == ["[1]"]
        ledger.raise_budget(was=(Fraction(1), Fraction(0)), epsilon=Fraction(2), delta=Fraction(0), principal="carol")
        charged(ledger, 1, "more")
        assert isinstance(spend(ledger, Fraction(1, 10**20), "most"), Refused)
        ledger.verify()


def test_what_is_lost_counts_in_every_part(tmp_path: Path) -> None:
    parts = Parts(table="visits", column="site", values=("1", "2"), meaning="m")
    with closing(Place.of_file(tmp_path / NAME).open(registration(), parts=parts)) as ledger:
        ledger.accept({"visits": "a" * 64}, "curator")
        exporting.write(ledger.entries(), tmp_path / COPY)
        spend(ledger, 0.5, parts=("1",))
    lose(tmp_path)
    state = restore(tmp_path, "lost")
    assert [state.room((part,)).amount for part in ("1", "2")] == [0, 0]
    assert state.delta_room() == 0


def test_a_raise_that_was_lost_counts_with_the_larger_budget(tmp_path: Path) -> None:
    """After the copy the budget was raised and spent; the catalog was written, and says so."""
    used(tmp_path)
    with opened(tmp_path / NAME) as ledger:
        ledger.raise_budget(was=(Fraction(1), Fraction(0)), epsilon=Fraction(3), delta=Fraction(0), principal="carol")
        charged(ledger, 2.5, "after the copy")
    lose(tmp_path)
    with pytest.raises(LedgerFault):
        restore(tmp_path, epsilon=3)
    state = restore(tmp_path, "lost", epsilon=3)
    assert state.account.spent.amount == state.registration.epsilon == 3
    assert len(state.earlier) == 1


def test_without_a_mark_somebody_has_to_say_what_the_copy_is(tmp_path: Path) -> None:
    used(tmp_path)
    lose(tmp_path, with_mark=True)
    with pytest.raises(LedgerFault, match="There is no mark"):
        restore(tmp_path)
    assert not (tmp_path / NAME).exists()
    assert restore(tmp_path, "newest").account.spent.amount * 2 == 1
    with opened(tmp_path / NAME) as ledger:
        said = [entry.contents() for entry in ledger.entries() if entry.kind == "restored"]
    assert [(body["declared"], body["marked"]) for body in said] == [("newest", None)]


def test_a_copy_of_another_ledger_is_refused(tmp_path: Path) -> None:
    used(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    used(other)
    lose(tmp_path)
    shutil.copy(other / COPY, tmp_path / COPY)
    declarations: tuple[Declared | None, ...] = (None, "newest", "lost")
    for declared in declarations:
        with pytest.raises(LedgerFault, match="another ledger"):
            restore(tmp_path, declared)
    assert not (tmp_path / NAME).exists()


def test_the_catalog_must_be_that_of_the_copy(tmp_path: Path) -> None:
    used(tmp_path)
    lose(tmp_path)
    with pytest.raises(CatalogMismatch):
        restore(tmp_path, epsilon=2)
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_only_an_empty_place_is_filled(tmp_path: Path, ending: str) -> None:
    used(tmp_path)
    lose(tmp_path)
    there = tmp_path / f"{NAME}{ending}"
    there.write_bytes(b"something")
    with pytest.raises(LedgerFault, match="There is a file"):
        restore(tmp_path)
    assert there.read_bytes() == b"something"


@pytest.mark.parametrize("step", ["link", "replace"])
def test_a_death_on_the_way_gives_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Whatever it dies at, the ledger is missing, or a fault, or what was restored."""
    used(tmp_path)
    go_on(tmp_path)
    lose(tmp_path)

    class Death(BaseException):
        pass

    def die(*_: object) -> None:
        raise Death

    monkeypatch.setattr(restoring, "_clear", lambda draft: None)
    with monkeypatch.context() as dying:
        dying.setattr(f"lapwing.ledger.restoring.os.{step}", die)
        with pytest.raises(Death):
            restore(tmp_path, "lost")
    with pytest.raises(LedgerFault), opened(tmp_path / NAME):
        pass
    monkeypatch.undo()
    (tmp_path / NAME).unlink(missing_ok=True)
    assert restore(tmp_path, "lost").account.remaining.amount == 0


def test_whoever_remembers_the_lost_ledger_is_at_odds_with_the_new_one(tmp_path: Path) -> None:
    used(tmp_path)
    with opened(tmp_path / NAME) as ledger:
        charged(ledger, 0.25, "after the copy")
        lose(tmp_path)
        restore(tmp_path, "lost")
        with pytest.raises(LedgerFault, match="no longer holds"):
            spend(ledger, 0.125, "more")


def admitted(sequence: int | None, known: str, declared: Declared | None, last: int = 3) -> str:
    entries: Sequence[Entry] = [
        Entry(sequence=n, time="", kind="data", subject="", body="", previous="", hash=f"{n}")
        for n in range(1, last + 1)
    ]
    found = None if sequence is None else mark.Mark(sequence, known)
    try:
        return restoring.admitted(entries, found, declared)
    except LedgerFault:
        return "refused"


@pytest.mark.parametrize(
    ("sequence", "known", "outcomes"),
    [
        (3, "3", ["marked", "marked", "lost"]),
        (2, "2", ["marked", "marked", "lost"]),
        (0, GENESIS, ["refused", "newest", "lost"]),  # of a new ledger that was begun in the place of the lost one
        (3, "x", ["refused", "refused", "refused"]),
        (4, "4", ["refused", "refused", "lost"]),
        (None, "", ["refused", "newest", "lost"]),
    ],
)
def test_what_a_mark_admits(sequence: int | None, known: str, outcomes: list[str]) -> None:
    declarations: tuple[Declared | None, ...] = (None, "newest", "lost")
    assert [admitted(sequence, known, declared) for declared in declarations] == outcomes
