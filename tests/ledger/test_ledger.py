"""The durable ledger where nothing goes wrong."""

from contextlib import closing
from fractions import Fraction

import pytest

from lapwing.errors import CatalogMismatch, DataChanged, InvalidParameter, LapwingError
from lapwing.ledger import ledger as ledgers
from lapwing.ledger.entries import Charged
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, PureDP
from tests.support.ledger.ledgers import charge, charged, opened, registration, spend
from tests.support.ledger.places import Place


def test_a_ledger_remembers_what_was_charged_and_answered(place: Place) -> None:
    with opened(place) as ledger:
        outcome = spend(ledger, 0.25, "count")
        assert isinstance(outcome, Charged)
        assert outcome.account.remaining == PureDP(0.75)
        ledger.record_answer(outcome.sequence, '{"n": 42}')
    with opened(place) as ledger:
        state = ledger.state()
        assert (state.account.spent, state.version, dict(state.digests)) == (PureDP(0.25), 1, {"visits": "a" * 64})
        assert state.registration == registration()
        (answer,) = ledger.answers("count")
        assert (answer.sequence, answer.loss, answer.payload) == (outcome.sequence, PureDP(0.25), '{"n": 42}')
        assert ledger.verify() == 4


def test_ten_tenths_fit_and_a_crumb_more_does_not(place: Place) -> None:
    with opened(place) as ledger:
        for _ in range(10):
            charged(ledger, 0.1)
        before = ledger.state()
        outcome = spend(ledger, 1e-17)
        assert isinstance(outcome, Refused)
        assert outcome.shortfall == PureDP(1e-17)
        assert ledger.state() == before, "a refusal writes nothing"


def test_the_record_says_what_was_charged_which_is_rounded_up(place: Place) -> None:
    with opened(place) as ledger:
        ledger.record_answer(charged(ledger, Fraction(1, 3)), "42")
        (row,) = ledger.history()
        assert row.loss == ledger.state().account.spent == PureDP(Fraction(1, 3)).rounded_up()
        (answer,) = ledger.answers("count")
        assert answer.loss == row.loss


def test_the_dearest_answer_comes_first_and_the_first_of_equals(place: Place) -> None:
    with opened(place) as ledger:
        for loss, payload in ((0.1, "rough"), (0.2, "fine"), (0.2, "fine again")):
            ledger.record_answer(charged(ledger, loss), payload)
        charged(ledger, 0.3)  # never answered
        assert [answer.payload for answer in ledger.answers("count")] == ["fine", "fine again", "rough"]
        assert ledger.answers("sum") == ()


def test_an_answer_belongs_to_one_charge_and_never_changes(place: Place) -> None:
    with opened(place) as ledger:
        sequence = charged(ledger, 0.1)
        ledger.record_answer(sequence, "42")
        entries = ledger.verify()
        ledger.record_answer(sequence, "42")
        for wrong, payload in ((sequence, "43"), (1, "42"), (sequence + 1, "42"), (99, "42"), (0, "42")):
            with pytest.raises(InvalidParameter):
                ledger.record_answer(wrong, payload)
        assert ledger.verify() == entries


def test_answers_about_older_data_are_not_served(place: Place) -> None:
    with opened(place) as ledger:
        first = charged(ledger, 0.1)
        ledger.record_answer(first, "old")
        late = charged(ledger, 0.2)
        assert ledger.accept({"visits": "b" * 64}, "curator") == 2
        assert ledger.accept({"visits": "b" * 64}, "curator") == 2, "the same data are no new version"
        assert ledger.answers("count") == ()
        ledger.record_answer(late, "computed from the old data")
        assert ledger.answers("count") == ()
        assert ledger.state().account.spent == PureDP(0.3), "spending stays with the people"
        ledger.record_answer(charged(ledger, 0.1), "new")
        assert [answer.payload for answer in ledger.answers("count")] == ["new"]
        assert ledger.accept({"visits": "a" * 64}, "curator") == 3
        assert ledger.answers("count") == ()
        assert [row.version for row in ledger.history()] == [1, 1, 2]


def test_a_charge_for_data_that_changed_meanwhile_costs_nothing(place: Place) -> None:
    with opened(place) as ledger:
        ledger.accept({"visits": "b" * 64}, "curator")
        with pytest.raises(DataChanged):
            spend(ledger, 0.1, version=1)
        assert ledger.state().account.spent == PureDP(0)
        assert isinstance(spend(ledger, 0.1, version=2), Charged)


def test_history_is_in_order_even_if_the_clock_is_not(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    years = iter(range(2030, 2000, -1))
    monkeypatch.setattr(ledgers, "now", lambda: f"{next(years)}-01-01T00:00:00.000000+00:00")
    with opened(place) as ledger:
        sequences = [charged(ledger, 0.1, key) for key in ("a", "b", "c")]
        ledger.record_answer(sequences[1], "42")
        history = ledger.history()
        ledger.verify()
    assert [row.sequence for row in history] == sequences
    assert [row.question for row in history] == ["SELECT a", "SELECT b", "SELECT c"]
    assert [row.answered for row in history] == [False, True, False]
    assert [row.time for row in history] == sorted((row.time for row in history), reverse=True)
    assert {(row.principal, row.loss) for row in history} == {("analyst", PureDP(0.1))}


def test_two_open_ledgers_see_each_other(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        charged(one, 0.5)
        assert other.state() == one.state()
        charged(other, 0.5)
        assert isinstance(spend(one, 0.1), Refused)


def test_another_registration_is_refused_and_changes_nothing(place: Place) -> None:
    with opened(place) as ledger:
        charged(ledger, 0.5)
        before = ledger.state()
        with pytest.raises(CatalogMismatch) as caught:
            place.open(registration(2, privacy_unit="row"))
        for words in ("privacy_unit is 'person_id' (given: 'row')", "epsilon is 1 (given: 2)"):
            assert words in str(caught.value)
        assert "delta" not in str(caught.value), "only what differs is named"
        changes: tuple[dict[str, object], ...] = (
            {"neighbouring": "replace_one"},
            {"delta": Fraction(1, 10**6)},
            {"delta_keys": Fraction(1, 10**7)},
        )
        for change in changes:
            with pytest.raises(CatalogMismatch, match=next(iter(change))):
                place.open(registration(1, **change))
        with pytest.raises(CatalogMismatch, match="measure"):
            place.open(registration(GaussianDP(1)))
        assert ledger.state() == before


def test_a_renamed_data_set_keeps_its_spending(place: Place) -> None:
    with opened(place) as ledger:
        charged(ledger, 0.5)
        with closing(place.open(registration(1, dataset="renamed"))) as renamed:
            assert renamed.state() == ledger.state()


def test_catalogs_that_share_a_ledger_keep_each_others_tables(place: Place) -> None:
    with opened(place) as ledger:
        version = ledger.accept({"others": "cd" * 32}, "curator")
        assert {"others"} < set(ledger.state().digests)
        assert ledger.accept({"others": "cd" * 32}, "curator") == version


def test_a_closed_ledger_opens_again_when_used(place: Place) -> None:
    with closing(place.open(registration())) as ledger:
        ledger.close()
        ledger.close()
        assert ledger.accept({"visits": "a"}, "curator") == 1


def test_bad_requests_leave_the_ledger_usable(place: Place) -> None:
    with opened(place) as ledger:
        for attempt in (
            lambda: charge(ledger, GaussianDP(1)),
            lambda: ledger.accept({}, "curator"),
            lambda: ledger.record_answer(77, "42"),
        ):
            with pytest.raises(LapwingError):
                attempt()
            assert ledger.verify() == 2
        charged(ledger, 1)


def test_the_newest_charges_are_read_without_the_others(place: Place) -> None:
    with opened(place, 100) as ledger:
        for i in range(7):
            charge(ledger, PureDP(1), f"q{i}", principal="ann" if i % 2 else "bob")
            if i == 5:
                ledger.record_answer(ledger.state().sequence, "{}")
        everything = ledger.history()
        for number in (1, 3, 7, 100):
            assert ledger.history(most=-number) == everything[-number:]
        assert [row.question for row in ledger.history(most=-2, principal="ann")] == ["SELECT q3", "SELECT q5"]
