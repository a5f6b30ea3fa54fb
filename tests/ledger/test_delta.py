"""The delta of private keys: charged beside the loss, from a part of the budget of its own, on every path."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import CatalogMismatch, InvalidParameter, LedgerFault
from lapwing.ledger import ledger as ledgers
from lapwing.ledger import transitions
from lapwing.ledger.curating import accepting, opening
from lapwing.ledger.entries import Charge, Charged, Entry, subject_of
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import charging, fold
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import PureDP
from tests.support.effort import examples
from tests.support.ledger.ledgers import charge, registration
from tests.support.ledger.places import Place

TIME = "2026-01-01T00:00:00.000000+00:00"
KEPT = Fraction(1, 10**6)
REGISTERED = registration(1, delta=KEPT, delta_keys=KEPT)


def ready(kept: Fraction = KEPT) -> LedgerState:
    state = fold(None, opening(registration(1, delta=kept, delta_keys=kept), TIME))
    entry = accepting(state, {"visits": "a" * 64}, "curator", TIME)
    assert entry is not None
    return fold(state, entry)


def request(loss: Fraction | int, delta: Fraction | int, key: str = "k") -> Charge:
    return Charge(
        key=key, question="q", loss=PureDP(loss), catalog_digest="c", principal="p", version=1, delta=Fraction(delta)
    )


def spend(state: LedgerState, loss: Fraction | int, delta: Fraction | int) -> LedgerState | Refused:
    entry = charging(state, request(loss, delta), TIME)
    return entry if isinstance(entry, Refused) else fold(state, entry)


def sealed(state: LedgerState, wanted: Charge, **changes: object) -> Entry:
    """An entry as a hand might write it: its hash is right, what it says need not be."""
    body = wanted.to_record() | changes
    return Entry.seal(
        sequence=state.sequence + 1,
        time=TIME,
        kind="charge",
        subject=subject_of(wanted.key),
        body=body,
        previous=state.hash,
    )


# ---- values ----------------------------------------------------------------------------------------------------------


def test_ten_tenths_of_delta_fill_what_is_kept_and_nothing_more_fits() -> None:
    state = ready()
    for _ in range(10):
        after = spend(state, 0, KEPT / 10)
        assert isinstance(after, LedgerState)
        state = after
    assert state.delta_spent == KEPT
    assert state.delta_remaining == 0
    assert isinstance(spend(state, 0, Fraction(1, 10**30)), Refused), "however little, it is rounded up"
    assert isinstance(spend(state, Fraction(1, 2), 0), LedgerState), "the loss has a part of its own"


@examples(20, 600)
@given(st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, KEPT)), max_size=10))
def test_both_parts_are_kept_and_a_refusal_charges_neither(charges: list[tuple[Fraction, Fraction]]) -> None:
    state, spent, taken = ready(), Fraction(0), Fraction(0)
    for loss, delta in charges:
        after = spend(state, loss, delta)
        granted = spent + grid_up(loss) <= 1 and taken + grid_up(delta) <= KEPT
        assert isinstance(after, LedgerState) == granted
        if isinstance(after, LedgerState):
            state, spent, taken = after, spent + grid_up(loss), taken + grid_up(delta)
        assert state.account.spent.amount == spent
        assert state.delta_spent == taken
        assert state.delta_remaining == KEPT - taken


def test_a_budget_that_keeps_none_grants_none() -> None:
    assert isinstance(spend(ready(Fraction(0)), 0, Fraction(1, 10**9)), Refused)
    assert isinstance(spend(ready(Fraction(0)), Fraction(1, 2), 0), LedgerState)


def test_a_delta_below_zero_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="must not be negative"):
        charging(ready(), request(0, -KEPT), TIME)


def test_charges_without_delta_are_written_as_they_always_were() -> None:
    """A ledger from before there were private keys reads the same: no field, no delta."""
    record = request(Fraction(1, 4), 0).to_record()
    assert set(record) == {"key", "question", "loss", "catalog", "principal", "version"}
    assert Charge.from_record(record).delta == 0
    state = fold(ready(), sealed(ready(), request(Fraction(1, 4), 0)))
    assert state.delta_spent == 0
    with_delta = request(0, KEPT / 3)
    assert Charge.from_record(with_delta.to_record()).delta == grid_up(KEPT / 3)


# ---- chains that no ledger wrote -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written", ["0.000002", "-0.000001", "1", "1e-7", "nan", "", "0.0000010000000000000000000001", 0, None, []]
)
def test_a_chain_that_overspends_delta_is_a_fault(written: object) -> None:
    state = ready()
    with pytest.raises(LedgerFault, match=r"spends more|says what no ledger says"):
        fold(state, sealed(state, request(0, 0), delta=written))


def test_a_chain_that_overspends_together_is_a_fault() -> None:
    state = fold(ready(), sealed(ready(), request(0, KEPT / 2)))
    state = fold(state, sealed(state, request(0, KEPT / 2)))
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        fold(state, sealed(state, request(0, Fraction(1, 10**24))))


def test_a_ledger_that_forgets_delta_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what it grants is no chain."""
    with monkeypatch.context() as forgetful:
        paid = transitions.paid
        forgetful.setattr(transitions, "paid", lambda state, wanted: paid(state, replace(wanted, delta=Fraction(0))))
        state = ready()
        written = []
        for _ in range(2):
            entry = charging(state, request(0, KEPT), TIME)
            assert isinstance(entry, Entry)
            state = fold(state, entry)
            written.append(entry)
    state = fold(ready(), written[0])
    with pytest.raises(LedgerFault, match="spends more"):
        fold(state, written[1])


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    with closing(place.open(REGISTERED)) as opened:
        opened.accept({"visits": "a" * 64}, "curator")
        yield opened


def test_delta_survives_the_file(ledger: Ledger, place: Place) -> None:
    outcome = charge(ledger, PureDP(0), delta=KEPT / 4)
    assert isinstance(outcome, Charged)
    with closing(place.open(REGISTERED)) as again:
        assert again.state().delta_remaining == 3 * KEPT / 4
        assert [row.delta for row in again.history()] == [KEPT / 4]
        assert again.verify() == outcome.sequence


def test_all_or_none_of_several(ledger: Ledger) -> None:
    before = ledger.state()
    refused = ledger.charge_all(
        [request(0, KEPT / 2, "one"), request(0, KEPT / 2, "two"), request(0, KEPT / 2, "three")]
    )
    assert isinstance(refused, Refused)
    assert ledger.state() == before
    assert ledger.history() == ()
    granted = ledger.charge_all([request(Fraction(1, 4), KEPT / 2, "one"), request(Fraction(1, 4), KEPT / 2, "two")])
    assert isinstance(granted, tuple)
    assert [outcome.sequence for outcome in granted] == [3, 4]
    assert ledger.state().delta_remaining == 0
    assert ledger.verify() == 4
    assert ledger.charge_all([]) == ()


def test_a_batch_that_is_checked_against_the_first_state_only_is_found(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: each of the charges fits by itself, and the chain does not take them together."""
    first = ledger.state()

    def unmoved(state: LedgerState, wanted: Charge, time: str) -> Entry | Refused:
        entry = charging(first, wanted, time)
        if isinstance(entry, Refused):
            return entry
        return sealed(state, wanted)

    monkeypatch.setattr(ledgers, "charging", unmoved)
    with pytest.raises(LedgerFault, match="spends more"):
        ledger.charge_all([request(0, KEPT, "one"), request(0, KEPT, "two")])
    assert ledger.history() == (), "the transaction was rolled back"


def test_users_at_once_do_not_overspend_delta(ledger: Ledger, place: Place) -> None:
    def spender(number: int) -> int:
        with closing(place.open(REGISTERED)) as own:
            spent = 0
            for turn in range(4):
                outcome = own.charge_all([request(0, KEPT / 7, f"{number} {turn}")])
                if isinstance(outcome, tuple):
                    spent += 1  # and ended, or closing the ledger would look like a death
                    own.record_unanswered([charge.sequence for charge in outcome], "interrupt")
            return spent

    with ThreadPoolExecutor(4) as threads:
        granted = sum(threads.map(spender, range(4)))
    assert granted == 6, "a seventh is rounded up, so that seven of them are more than what is kept"
    ledger.verify()
    assert ledger.state().delta_spent == 6 * grid_up(KEPT / 7)


def test_another_delta_for_keys_is_another_registration(ledger: Ledger, place: Place) -> None:
    with pytest.raises(CatalogMismatch, match="delta_keys"):
        place.open(replace(REGISTERED, delta_keys=KEPT / 2))


def test_the_record_is_plain_text(ledger: Ledger) -> None:
    assert json.loads(json.dumps(request(0, KEPT).to_record()))["delta"] == "0.000001"
