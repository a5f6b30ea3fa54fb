"""A data set that is closed for ever: nothing is charged, and what was bought can be opened again."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from lapwing.errors import DataStopped, LedgerFault
from lapwing.ledger import curating, transitions
from lapwing.ledger.entries import Charge, Entry, Kind, subject_of
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import fold
from lapwing.privacy.measures import PureDP
from tests.support.ledger.ledgers import NAME, charged, opened, registration, spend
from tests.support.ledger.places import Place


def test_nothing_is_charged_and_answers_stay(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger, opened(tmp_path / NAME) as other:
        bought, under_way = charged(ledger, 0.25), charged(ledger, 0.25, "second")
        ledger.record_answer(bought, "[1]")
        assert ledger.close_for_ever("carol")
        assert not other.close_for_ever("carol")
        for each in (ledger, other):
            with pytest.raises(DataStopped, match="for ever"):
                spend(each, 0.25, "third")
        assert [answer.payload for answer in other.answers("count")] == ["[1]"]
        ledger.record_answer(under_way, "[2]")  # what was paid before is delivered
        with pytest.raises(DataStopped):
            ledger.accept({"visits": "b" * 64}, "carol")
        assert ledger.state().account.spent.amount * 2 == 1
        ledger.verify()
    with closing(Place.of_file(tmp_path / NAME).open(registration())) as again, pytest.raises(DataStopped):
        spend(again, 0.25, "fourth")


def after_the_end(kind: Kind) -> bool:
    """Tell whether a chain is folded that goes on after its end."""
    state = fold(None, curating.opening(registration(), "t"))
    for found in (curating.accepting(state, {"visits": "a" * 64}, "c", "t"), None):
        state = fold(state, found) if found is not None else state
    end = curating.closing(state, "c", "t")
    assert end is not None
    state = fold(state, end)
    try:
        fold(state, forged(state, kind))
    except LedgerFault:
        return False
    return True


def forged(state: LedgerState, kind: Kind) -> Entry:
    charge = Charge(key="k", question="q", loss=PureDP(0.1), catalog_digest="c", principal="p", version=1)
    subject = subject_of("k") if kind == "charge" else ""
    bodies: Mapping[Kind, Mapping[str, object]] = {
        "charge": charge.to_record(),
        "data": {"version": 2, "digests": {"visits": "b" * 64}, "principal": "p"},
        "close": {"principal": "p"},
    }
    return Entry.seal(
        sequence=state.sequence + 1,
        time="t",
        kind=kind,
        subject=subject,
        body=bodies[kind],
        previous=state.hash,
    )


@pytest.mark.parametrize("kind", ["charge", "data", "close"])
def test_nothing_of_this_is_read_after_the_end(kind: Kind) -> None:
    assert not after_the_end(kind)


def test_an_end_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the entry changes nothing."""
    monkeypatch.setitem(transitions.FOLDS, "close", lambda state, entry, body: state)
    assert after_the_end("charge")
