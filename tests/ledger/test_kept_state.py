"""A state that is kept beside the mark is what all entries add up to, or it is passed over."""

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LedgerFault
from lapwing.ledger import kept_state, reading
from lapwing.ledger.entries import Entry, digest_of
from lapwing.ledger.parts import Parts
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import fold
from lapwing.privacy.measures import PureDP
from tests.support.effort import one_in
from tests.support.ledger.ledgers import charge, charged, opened, registration, spend
from tests.support.ledger.places import Place


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_state, "EVERY", 4)


def file_of(place: Place) -> Path:
    return kept_state.path_of(place.folder / place.at.file)


def asked(place: Place, number: int = 10) -> LedgerState:
    """Ask in a ledger, every other question with an answer, and open it once more, so that its state is kept."""
    with opened(place, 100) as ledger:
        for i in range(number):
            sequence = charged(ledger, 1, f"q{i}")
            if i % 2:
                ledger.record_answer(sequence, "{}")
        ledger.note_late("2026-11-02T12:00:00.000+00:00", "alice")
        ledger.record_unanswered([row.sequence for row in ledger.history() if not row.answered][:2], "interrupt")
        return ledger.state()


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many entries were folded while a ledger was caught up with, since it was last asked."""
    number = 0

    def counted(state: LedgerState | None, entry: Entry) -> LedgerState:
        nonlocal number
        number += 1
        return fold(state, entry)

    monkeypatch.setattr("lapwing.ledger.transaction.fold", counted)

    def since() -> int:
        nonlocal number
        was, number = number, 0
        return was

    return since


def test_opening_folds_what_came_since_it_was_kept(place: Place, folded: Callable[[], int]) -> None:
    whole = asked(place)
    folded()
    with opened(place, 100) as ledger:
        assert ledger.state() == whole
    assert folded() < kept_state.EVERY
    file_of(place).unlink()
    with opened(place, 100) as ledger:
        assert ledger.state() == whole
    assert folded() >= whole.sequence
    assert file_of(place).stat().st_mode & 0o777 == 0o600


def test_it_is_kept_anew_as_the_ledger_grows(place: Place) -> None:
    with opened(place, 100) as ledger:
        sequences = []
        for i in range(12):
            ledger.record_answer(charged(ledger, 1, f"q{i}"), "{}")
            sequences.append(kept_sequence(place))
        assert sequences == sorted(sequences)
        assert ledger.state().sequence - sequences[-1] <= kept_state.EVERY


def kept_sequence(place: Place) -> int:
    return int(json.loads(file_of(place).read_text().partition("\n")[2])["sequence"]) if file_of(place).exists() else 0


def rewrite(place: Place, change: Callable[[dict[str, object]], object]) -> None:
    """Change what is kept, with the digest that fits."""
    record = json.loads(file_of(place).read_text().partition("\n")[2])
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    file_of(place).write_text(f"{kept_state._FORM} {digest_of(kept_state._FORM, text)}\n{text}")


DOUBTS: dict[str, Callable[[Place], object]] = {
    "empty": lambda place: file_of(place).write_bytes(b""),
    "torn": lambda place: file_of(place).write_text(file_of(place).read_text()[:-9]),
    "edited": lambda place: file_of(place).write_text(file_of(place).read_text().replace('"faults":0', '"faults":1')),
    "no text": lambda place: file_of(place).write_bytes(b"\xff\xfe"),
    "of a later form": lambda place: file_of(place).write_text("lapwing state 99 " + file_of(place).read_text()[16:]),
    "without a field": lambda place: rewrite(place, lambda record: record.pop("spending")),
    "of another chain": lambda place: rewrite(place, lambda record: record.update(hash="0" * 64)),
    "ahead of the ledger": lambda place: rewrite(place, lambda record: record.update(sequence=10**6)),
    "overspent": lambda place: rewrite(
        place,
        lambda record: record["account"].update(spent=PureDP(1000).to_record()),  # type: ignore[attr-defined]
    ),
    "a folder": lambda place: file_of(place).rename(file_of(place).with_suffix(".old")).with_suffix(".state").mkdir(),
}


@pytest.mark.parametrize("doubt", one_in(20, DOUBTS.values()), ids=DOUBTS)
def test_what_is_in_doubt_is_passed_over(doubt: Callable[[Place], object], place: Place) -> None:
    whole = asked(place)
    doubt(place)
    with opened(place, 100) as ledger:
        assert ledger.state() == whole
        assert spend(ledger, 1, "more")


def test_a_file_of_an_older_moment_costs_nothing_but_time(place: Place, tmp_path: Path) -> None:
    asked(place, 6)
    old = shutil.copy(file_of(place), tmp_path / "old")
    with opened(place, 100) as ledger:
        for i in range(20, 26):
            charged(ledger, 1, f"q{i}")
        whole = ledger.state()
    shutil.copy(old, file_of(place))
    with opened(place, 100) as ledger:
        assert ledger.state() == whole
        ledger.verify()


def test_an_older_ledger_is_found_out_by_its_mark_all_the_same(tmp_path: Path) -> None:
    place = Place.of_file(tmp_path / "visits.lapwing.db")
    asked(place, 6)
    for name in ("", "-wal"):
        if (path := tmp_path / f"visits.lapwing.db{name}").exists():
            shutil.copy(path, tmp_path / f"older{name}")
    with opened(place, 100) as ledger:
        for i in range(20, 30):
            charged(ledger, 1, f"q{i}")
    (tmp_path / "older").replace(tmp_path / "visits.lapwing.db")
    for name in ("-wal", "-shm"):
        (tmp_path / f"visits.lapwing.db{name}").unlink(missing_ok=True)
    with pytest.raises(LedgerFault, match="older copy"), opened(place, 100):
        pass


def test_verify_finds_a_state_that_was_forged(place: Place) -> None:
    """Whoever can write the file can write the ledger, too; but `verify` never rests on it."""
    whole = asked(place)
    rewrite(place, lambda record: record["account"].update(spent=PureDP(0).to_record()))  # type: ignore[attr-defined]
    with opened(place, 100) as ledger:
        assert ledger.state().account.spent < whole.account.spent
        with pytest.raises(LedgerFault, match="not the one that was read before"):
            ledger.verify()


def test_every_field_of_a_state_is_kept(place: Place) -> None:
    """A field that is added to `LedgerState` and not kept would be lost: then the form changes, too."""
    whole = asked(place)
    assert kept_state.to_record(whole).keys() == {field.name for field in fields(LedgerState)}
    assert kept_state._FORM == "lapwing state 2"
    assert kept_state.from_record(json.loads(json.dumps(kept_state.to_record(whole)))) == whole


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
def test_parts_raises_and_ends_are_kept(neighbouring: str, place: Place) -> None:
    parts = Parts(table="visits", column="site", values=("a", "b", "c"), meaning="0" * 64)
    owners = {"visits": {"privacy_unit": "person_id"}}
    opening = registration(PureDP(9), neighbouring=neighbouring)
    with closing(place.open(opening, parts=parts)) as ledger:
        ledger.accept({"visits": "a" * 64}, "curator", owners)
        for i, read in enumerate([("a",), ("a", "b"), None, ("c",)]):
            charge(ledger, PureDP(Fraction(1, 3)), f"q{i}", parts=read, asker="0" * 32 if i == 3 else None)
        ledger.accept({"visits": "b" * 64}, "curator", owners)
        charge(ledger, PureDP(Fraction(1, 7)), "more", parts=("b",))
        was, now = (opening.epsilon, opening.delta), Fraction(12)
        ledger.raise_budget(was=was, epsilon=now, delta=opening.delta, principal="curator")
        ledger.close_for_ever("curator")
        state = ledger.state()
    assert state.division is not None
    assert (len(state.earlier), state.closed) == (1, True)
    assert kept_state.from_record(json.loads(json.dumps(kept_state.to_record(state)))) == state


def test_reading_a_history_does_not_need_the_file(place: Place) -> None:
    asked(place)
    file_of(place).unlink()
    with opened(place, 100) as ledger:
        assert len(ledger.history()) == 10
        assert reading.verify(ledger._chain) == ledger.state().sequence
