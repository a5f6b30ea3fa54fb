"""The pure part: what a chain means, and which entry may follow."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import DataChanged, InvalidParameter, LedgerFault
from lapwing.ledger import entries, transitions
from lapwing.ledger.curating import accepting, opening
from lapwing.ledger.entries import Charge, Entry, subject_of
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import answering, charging, fold
from lapwing.privacy.filters import Granted, Refused
from lapwing.privacy.measures import GaussianDP, Loss, Number, PureDP, ZeroConcentratedDP
from tests.support.effort import examples
from tests.support.ledger.ledgers import opened, registration

TIME = "2026-01-01T00:00:00.000000+00:00"


def ready(budget: Number | Loss = 1) -> LedgerState:
    """Return the state of a ledger with one version of the data."""
    state = fold(None, opening(registration(budget), TIME))
    entry = accepting(state, {"visits": "a" * 64}, "curator", TIME)
    assert entry is not None
    return fold(state, entry)


def request(loss: Loss, **changes: object) -> Charge:
    charge = Charge(key="k", question="q", loss=loss, catalog_digest="c", principal="p", version=1)
    return replace(charge, **changes)  # type: ignore[arg-type]


def spend(state: LedgerState, loss: Number | Loss) -> LedgerState | Refused:
    loss = loss if isinstance(loss, PureDP | GaussianDP | ZeroConcentratedDP) else PureDP(loss)
    outcome = charging(state, request(loss), TIME)
    return outcome if isinstance(outcome, Refused) else fold(state, outcome)


def spend_each(state: LedgerState, losses: list[Number]) -> LedgerState:
    for loss in losses:
        after = spend(state, loss)
        assert isinstance(after, LedgerState)
        state = after
    return state


def test_ten_tenths_fill_a_budget_of_one_and_nothing_more_fits() -> None:
    full = spend_each(ready(1), [0.1] * 10)
    assert full.account.remaining == PureDP(0)
    for little in (1e-17, 5e-324, Decimal("1e-24"), Fraction(1, 10**30)):
        assert isinstance(spend(full, little), Refused)


def test_a_ledger_of_floats_would_be_caught() -> None:
    """The twin: as floats, ten tenths and 1e-17 more pass the same check, again and again."""
    assert sum([0.1] * 10) + 1e-17 <= 1.0
    assert isinstance(spend(spend_each(ready(1), [0.1] * 10), 1e-17), Refused)


@pytest.mark.parametrize("measure", [PureDP, GaussianDP, ZeroConcentratedDP])
def test_every_measure_is_kept_exactly(measure: type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]) -> None:
    third = measure.from_amount(Fraction(1, 3))
    state = ready(measure.from_amount(1))
    for _ in range(2):
        after = spend(state, third)
        assert isinstance(after, LedgerState)
        state = after
    assert state.account.spent == third.rounded_up() + third.rounded_up()
    assert isinstance(spend(state, third), Refused), "thirds are rounded up, so three of them are more than one"


def test_a_loss_of_another_measure_is_not_charged() -> None:
    with pytest.raises(InvalidParameter):
        charging(ready(1), request(GaussianDP(0.1)), TIME)


@examples(20, 600)
@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=10**6), max_size=12))
def test_the_state_is_the_exact_sum_of_what_was_granted(losses: list[Fraction]) -> None:
    state, total = ready(1), Fraction(0)
    for loss in losses:
        price = PureDP(loss).rounded_up().amount
        after = spend(state, loss)
        assert isinstance(after, Refused) == (total + price > 1)
        if isinstance(after, LedgerState):
            state, total = after, total + price
        else:
            assert after.shortfall.amount == total + price - 1
    assert state.account.spent.amount == total


def test_decisions_do_not_depend_on_answers_data_or_clocks() -> None:
    """Two ledgers see the same questions and different data, answers and times: the same is granted and refused."""
    outcomes = []
    for digest, payload, clock in (("a" * 64, "1", TIME), ("b" * 64, "other", "1970-01-01T00:00:00+00:00")):
        state = fold(None, opening(registration(1), clock))
        data = accepting(state, {"visits": digest}, "curator", clock)
        assert data is not None
        state = fold(state, data)
        granted = []
        for loss in (0.5, 0.4, 0.2, 0.1, 0.01):
            entry = charging(state, request(PureDP(loss)), clock)
            if isinstance(entry, Entry):
                state = fold(state, entry)
                state = fold(state, answering(state, entry.sequence, payload, clock))
            granted.append(entry if isinstance(entry, Refused) else entry.body)
        outcomes.append((granted, state.account, state.sequence))
    assert outcomes[0] == outcomes[1]


def test_an_entry_that_overspends_is_tampering(monkeypatch: pytest.MonkeyPatch) -> None:
    state = spend_each(ready(1), [1])
    with monkeypatch.context() as patch:
        patch.setattr(transitions, "pay", lambda account, loss: Granted(account=account))
        overspending = charging(state, request(PureDP(Fraction(1, 10**24))), TIME)
        assert isinstance(overspending, Entry)
        fold(state, overspending)  # the planted bug passes
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        fold(state, overspending)


def resealed(entry: Entry, **changes: object) -> Entry:
    """Return a changed entry with a matching hash, as a forger who knows the format would."""
    changed = replace(entry, **changes)  # type: ignore[arg-type]
    texts = (changed.time, changed.kind, changed.subject, changed.body, changed.previous)
    return replace(changed, hash=entries.digest_of(str(changed.sequence), *texts))


def test_each_field_is_sealed() -> None:
    state = ready(1)
    entry = charging(state, request(PureDP(0.1)), TIME)
    assert isinstance(entry, Entry)
    fold(state, entry)
    changes: dict[str, list[object]] = {
        "sequence": [1, 2, 4, 0, -3],
        "time": [TIME.replace("2026", "2027"), ""],
        "kind": ["answer", "data", "open", "refund"],
        "subject": ["", subject_of("another")],
        "body": [entry.body.replace('"0.1"', '"0.01"'), "", "{}", entry.body + " "],
        "previous": [entries.GENESIS, entry.hash],
        "hash": [entries.GENESIS, entry.previous],
    }
    for field, values in changes.items():
        for value in values:
            with pytest.raises(LedgerFault):
                fold(state, replace(entry, **{field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "open"},
        {"kind": "refund"},
        {"kind": "data"},
        {"kind": "answer"},
        {"kind": "answer", "subject": "9", "body": '{"payload":"42"}'},
        {"kind": "data", "subject": "", "body": '{"digests":{"visits":"b"},"principal":"p","version":3}'},
        {"subject": subject_of("another")},
        {"body": "{}"},
        {"body": "[]"},
        {"body": "null"},
        {"body": "{"},
        {"body": "[" * 100_000},
        {"body": '{"loss":{"measure":"pure","amount":"-1"}}'},
        {"time": None},
        {"body": b"{}"},
    ],
)
def test_a_sealed_entry_that_makes_no_sense_is_a_fault(changes: dict[str, object]) -> None:
    state = ready(1)
    entry = charging(state, request(PureDP(0.1)), TIME)
    assert isinstance(entry, Entry)
    sealed = resealed(entry, **changes) if all(isinstance(value, str) for value in changes.values()) else None
    with pytest.raises(LedgerFault):
        fold(state, sealed or replace(entry, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", ["-0.1", "0.1e0", "1/0", "nan", "0.1 ", ""])
def test_a_sealed_loss_that_is_no_amount_is_a_fault(amount: str) -> None:
    state = ready(1)
    entry = charging(state, request(PureDP(0.1)), TIME)
    assert isinstance(entry, Entry)
    with pytest.raises(LedgerFault):
        fold(state, resealed(entry, body=entry.body.replace('"0.1"', f'"{amount}"')))


def test_a_chain_starts_with_its_opening() -> None:
    entry = accepting(ready(1), {"visits": "b"}, "curator", TIME)
    assert entry is not None
    with pytest.raises(LedgerFault, match="before the ledger is opened"):
        fold(None, resealed(entry, sequence=1, previous=entries.GENESIS))


def test_the_hash_tells_where_a_field_ends() -> None:
    assert entries.digest_of("ab", "c") != entries.digest_of("a", "bc")
    assert entries.digest_of("ab", "") != entries.digest_of("ab")


def test_any_text_can_be_a_key_or_a_question() -> None:
    state = ready(1)
    for text in ("", "\x00", "\ud800", "é 🪶", '"}', "x" * 100_000):
        entry = charging(state, request(PureDP(0), key=text, question=text), TIME)
        assert isinstance(entry, Entry)
        assert entry.body.isascii()
        assert Charge.from_record(entry.contents()).question == text
        state = fold(state, entry)


def test_a_charge_needs_the_current_version_of_the_data() -> None:
    unready = fold(None, opening(registration(1), TIME))
    with pytest.raises(DataChanged, match="No version of the data was accepted"):
        charging(unready, request(PureDP(0.1), version=0), TIME)
    with pytest.raises(DataChanged, match="about version 2 of the data, and the current version is 1"):
        charging(ready(1), request(PureDP(0.1), version=2), TIME)


def test_data_without_digest_are_no_version() -> None:
    with pytest.raises(InvalidParameter):
        accepting(ready(1), {}, "curator", TIME)


def test_only_a_charge_has_an_answer(tmp_path: Path) -> None:
    with opened(tmp_path / "ledger.db") as ledger, pytest.raises(InvalidParameter, match="not a charge"):
        ledger.record_answer(1, "42")
