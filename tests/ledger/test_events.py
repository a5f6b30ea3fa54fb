"""Late answers: noted durably, counted together with faults, and set back by the curator alone."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import DataStopped, LedgerFault
from lapwing.ledger.allowances import Limits
from lapwing.ledger.entries import Charge, Entry
from lapwing.ledger.events import ALLOWED_OF_ONE, EVENTS_ALLOWED
from lapwing.ledger.faults import FAULTS_ALLOWED, LateAnswers
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.reading import verified
from lapwing.privacy.measures import PureDP
from tests.support.ledger.ledgers import NAME, charged, opened, registration
from tests.support.ledger.places import Place

TICK = "2026-11-02T12:00:00.000+00:00"


def timed(ledger: Ledger, principal: str = "alice", *, key: str = "k", may_see: bool = False) -> object:
    charge = Charge(
        key=key, question="q", loss=PureDP(Fraction(1, 1000)), catalog_digest="c" * 64, principal=principal, version=1
    )
    return ledger.charge_all([charge], lambda: Limits(timed=not may_see))


def test_late_answers_are_noted_and_stand_until_somebody_has_looked(place: Place) -> None:
    with closing(place.open(registration())) as ledger:
        assert ledger.note_late(TICK, "alice") == (TICK,)
        ledger.note_late(TICK, "bob")
    with closing(place.open(registration())) as again:
        assert again.state().late == (LateAnswers(TICK, "alice"), LateAnswers(TICK, "bob"))
        assert again.resume("carol") == 2
        assert again.state().late == ()
        assert again.resume("carol") == 0
        assert again.verify()


def test_so_many_events_refuse_whoever_is_not_trusted_with_time(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        for number in range(EVENTS_ALLOWED):
            assert isinstance(timed(ledger, key=f"k{number}"), tuple)
            ledger.note_late(TICK, f"p{number}")
        with pytest.raises(DataStopped):
            timed(ledger)
        assert isinstance(timed(ledger, "carol", may_see=True), tuple)
        assert charged(ledger, 0.001)
        ledger.resume("carol")
        assert isinstance(timed(ledger, key="again"), tuple)


def test_faults_and_late_answers_count_together(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        for number in range(FAULTS_ALLOWED - 1):
            ledger.record_unanswered([charged(ledger, 0.001, f"q{number}")], "fault")
        for number in range(EVENTS_ALLOWED - FAULTS_ALLOWED + 1):
            assert isinstance(timed(ledger, key=f"k{number}"), tuple)
            ledger.note_late(TICK, f"p{number}")
        with pytest.raises(DataStopped):
            timed(ledger, key="more")
        assert not ledger.state().stopped  # for those who may see all


def test_whoever_is_missed_again_and_again_is_refused_alone(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        for _ in range(ALLOWED_OF_ONE):
            ledger.note_late(TICK, "mallory")
        with pytest.raises(DataStopped):
            timed(ledger, "mallory")
        assert isinstance(timed(ledger, "alice"), tuple)


def test_faults_stop_a_data_set_for_all_as_they_did(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        for number in range(FAULTS_ALLOWED):
            ledger.record_unanswered([charged(ledger, 0.001, f"q{number}")], "fault")
        with pytest.raises(DataStopped):
            timed(ledger, "carol", may_see=True)


def entries_of(ledger: Ledger) -> list[Entry]:
    return list(ledger.entries())


@pytest.mark.parametrize("body", [{"tick": 1, "principal": "alice"}, {"tick": TICK}, {"tick": TICK, "principal": None}])
def test_what_no_service_writes_is_no_entry(tmp_path: Path, body: dict[str, object]) -> None:
    with opened(tmp_path / NAME) as ledger:
        forged = ledger.state().next_entry(TICK, "late", "", body)
        with pytest.raises(LedgerFault):
            verified([*entries_of(ledger), forged])


def test_a_look_at_fewer_events_than_there_were_is_no_entry(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        ledger.note_late(TICK, "alice")
        for body in ({"faults": 0, "principal": "carol"}, {"faults": 0, "late": 2, "principal": "carol"}):
            forged = ledger.state().next_entry(TICK, "resume", "", body)
            with pytest.raises(LedgerFault):
                verified([*entries_of(ledger), forged])


def test_the_check_finds_a_charge_that_does_not_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody is taken for one who may not see time."""
    from lapwing.ledger import allowances as module

    monkeypatch.setattr(module, "require_few", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        test_so_many_events_refuse_whoever_is_not_trusted_with_time(tmp_path)
