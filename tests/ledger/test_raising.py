"""A larger budget: what may be raised, that it is compared and set, and what it promises."""

import threading
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.budget import budget_view
from lapwing.errors import CatalogMismatch, DataStopped, InvalidParameter, LedgerFault
from lapwing.ledger import curating, raising, transitions
from lapwing.ledger.entries import Charged, Entry
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.parts import Parts
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import fold
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.filters import Refused
from lapwing.privacy.raises import RAISED
from tests.support.ledger.ledgers import NAME, charge, charged, opened, registration, spend
from tests.support.ledger.places import Place

ONE, TWO, ZERO = Fraction(1), Fraction(2), Fraction(0)
DELTA = Fraction(1, 10**6)


def raise_to(ledger: Ledger, epsilon: object, was: object = 1, delta: Fraction = ZERO) -> Registration:
    return ledger.raise_budget(
        was=(Fraction(str(was)), delta), epsilon=Fraction(str(epsilon)), delta=delta, principal="carol"
    )


def gaussian(epsilon: int = 3, delta_keys: Fraction = ZERO) -> Registration:
    budget = loss_for("gdp", Fraction(epsilon), DELTA - delta_keys)
    return registration(budget, epsilon=Fraction(epsilon), delta=DELTA, delta_keys=delta_keys)


def gaussian_ledger(path: Path, delta_keys: Fraction = ZERO) -> Ledger:
    ledger = Place.of_file(path).open(gaussian(delta_keys=delta_keys))
    ledger.accept({"visits": "a" * 64}, "curator")
    return ledger


def test_what_is_left_grows_and_what_is_spent_stays(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        charged(ledger, 0.75)
        assert isinstance(spend(ledger, 0.5, "more"), Refused)
        raise_to(ledger, 2)
        state = ledger.state()
        assert state.account.spent.amount == Fraction("0.75")
        assert state.account.budget.amount == 2
        assert [was.epsilon for was in (state.registration, *state.earlier)] == [2, 1]
        charged(ledger, 1.25, "more")
        assert isinstance(spend(ledger, Fraction(1, 10**20), "most"), Refused)
        ledger.verify()
    with opened(tmp_path / NAME, 2) as again:
        assert again.state().account.remaining.amount == 0
        assert again.state().earlier == state.earlier


def test_others_see_it_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as first, opened(tmp_path / NAME) as second:
        charged(second, 1)
        raise_to(first, 2)
        charged(second, 1, "more")


def test_the_catalog_must_say_it_from_then_on(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        raise_to(ledger, 2)
    with pytest.raises(CatalogMismatch, match="lapwing budget raise --epsilon 2 --delta 0"), opened(tmp_path / NAME):
        pass
    with pytest.raises(CatalogMismatch, match="registered otherwise"), opened(tmp_path / NAME, 3):
        pass


@pytest.mark.parametrize("epsilon", ["0.5", "0", "-1", "0.999999999999999999999999999999"])
def test_it_is_never_lowered(tmp_path: Path, epsilon: str) -> None:
    with opened(tmp_path / NAME) as ledger:
        with pytest.raises(InvalidParameter, match=r"smaller|is not valid"):
            raise_to(ledger, epsilon)
        assert ledger.state().sequence == 2


def test_delta_may_grow_and_not_shrink_and_keys_keep_theirs(tmp_path: Path) -> None:
    keys = DELTA / 10
    with closing(gaussian_ledger(tmp_path / NAME, keys)) as ledger:
        with pytest.raises(InvalidParameter, match="delta is"):
            ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(4), delta=DELTA / 2, principal="c")
        with pytest.raises(InvalidParameter, match="reserved for private keys"):
            ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(4), delta=keys / 2, principal="c")
        with pytest.raises(InvalidParameter, match="is not valid"):
            ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(4), delta=Fraction(1), principal="c")
        now = ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(3), delta=2 * DELTA, principal="c")
        assert now.delta_keys == keys
        assert now.budget == loss_for("gdp", Fraction(3), 2 * DELTA - keys)
        assert now.budget.to_delta(epsilon=3) <= float(2 * DELTA - keys)


def test_a_pure_ledger_has_no_use_for_delta(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger, pytest.raises(CatalogMismatch, match="no delta"):
        ledger.raise_budget(was=(ONE, ZERO), epsilon=TWO, delta=DELTA, principal="carol")


def raised_twice(path: Path) -> Fraction:
    """Let two curators, who both saw a budget of 1, raise it to 2 and to 3; return what it is then."""
    with opened(path) as first, opened(path) as second:
        raise_to(first, 2)
        with pytest.raises(CatalogMismatch, match="somebody raised it in the meantime"):
            raise_to(second, 3)
        return first.state().registration.epsilon


def test_who_saw_another_budget_raises_nothing(tmp_path: Path) -> None:
    assert raised_twice(tmp_path / NAME) == 2


def test_a_raise_without_comparison_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what the curator saw is not compared."""
    monkeypatch.setattr("lapwing.ledger.administration.require_expected", lambda *_: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        raised_twice(tmp_path / NAME)


def test_of_many_at_once_one_raises(tmp_path: Path) -> None:
    outcomes: list[Fraction] = []
    with opened(tmp_path / NAME) as ledger:
        barrier = threading.Barrier(4)
        ledgers = [Place.of_file(tmp_path / NAME).open(registration()) for _ in range(4)]

        def one(number: int) -> None:
            barrier.wait(60)
            try:
                outcomes.append(raise_to(ledgers[number], 2 + number).epsilon)
            except CatalogMismatch:
                outcomes.append(ZERO)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in ledgers:
            other.close()
        assert sorted(outcomes)[:3] == [0, 0, 0]
        assert ledger.state().registration.epsilon == max(outcomes) > 1


def test_what_was_done_is_not_done_twice(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        raise_to(ledger, 2)
        assert raise_to(ledger, 2).epsilon == 2
        assert ledger.state().sequence == 3


def test_parts_are_raised_together(tmp_path: Path) -> None:
    parts = Parts(table="visits", column="site", values=("1", "2"), meaning="m")
    with closing(Place.of_file(tmp_path / NAME).open(registration(), parts=parts)) as ledger:
        ledger.accept({"visits": "a" * 64}, "curator")
        assert isinstance(spend(ledger, 1, parts=("1",)), Charged)
        raise_to(ledger, 2)
        assert ledger.state().room(("1",)).amount == 1
        assert ledger.state().room(("2",)).amount == 2
        assert isinstance(spend(ledger, 1, "more", parts=("1",)), Charged)
        assert isinstance(spend(ledger, 1, "most", parts=("1",)), Refused)
        ledger.verify()


def entry(state: LedgerState, was: Registration, now: Registration) -> Entry:
    body = raising.record_of(was, now, "carol")
    return Entry.seal(sequence=state.sequence + 1, time="t", kind="raise", subject="", body=body, previous=state.hash)


def forged() -> list[tuple[Registration, Registration]]:
    """Return raises that no ledger has after an opening with epsilon 1: of what, to what."""
    one, two, three = registration(1), registration(2), registration(3)
    return [
        (two, three),  # of another budget
        (one, replace(two, budget=one.budget, epsilon=Fraction(1, 2))),
        (one, replace(two, budget=registration(Fraction(1, 2)).budget)),  # a larger figure, a smaller cap
        (one, one),
        (one, replace(gaussian(), delta=ZERO)),  # another measure
    ]


def accepted() -> list[int]:
    """Return which of the forged raises are folded."""
    state = fold(None, curating.opening(registration(1), "t"))
    found = []
    for number, (was, now) in enumerate(forged()):
        try:
            fold(state, entry(state, was, now))
        except LedgerFault:
            continue
        found.append(number)
    return found


def test_no_other_raise_is_read() -> None:
    assert accepted() == []
    state = fold(None, curating.opening(registration(1), "t"))
    assert fold(state, entry(state, registration(1), registration(2))).account.budget.amount == 2


def test_a_reader_that_trusts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the reader does not check that the budget grows."""
    monkeypatch.setattr(raising, "require_raise", lambda *_: None)
    assert 2 in accepted()


def test_nothing_is_raised_after_the_end(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        ledger.close_for_ever("carol")
        with pytest.raises(DataStopped):
            raise_to(ledger, 2)


# ---- What is promised ------------------------------------------------------------------------------------------------


def test_the_odometer_stays_as_it_was(tmp_path: Path) -> None:
    """A raise changes no figure of what was spent before it: its scale was fixed before the first answer."""
    with closing(gaussian_ledger(tmp_path / NAME)) as ledger:
        part = ledger.state().account.budget
        half = part.from_amount(part.amount / 2)
        charge(ledger, half, "a")
        before = budget_view(ledger.state(), ledger.history())
        ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(6), delta=DELTA, principal="carol")
        after = budget_view(ledger.state(), ledger.history())
        assert after.whenever == before.whenever
        assert (before.raised, before.earlier) == (None, ())
        assert after.epsilon == 6
        assert after.earlier == ((Fraction(3), DELTA),)
        assert after.raised is not None
        assert (after.raised.epsilon > 6, after.raised.delta) == (True, 2 * DELTA)
        charge(ledger, part, "b")
        beyond = budget_view(ledger.state(), ledger.history())
        assert beyond.whenever.delta == 2 * DELTA
        assert after.whenever.epsilon < beyond.whenever.epsilon <= after.raised.epsilon


def test_keys_are_counted_once(tmp_path: Path) -> None:
    keys = DELTA / 10
    with closing(gaussian_ledger(tmp_path / NAME, keys)) as ledger:
        ledger.raise_budget(was=(Fraction(3), DELTA), epsilon=Fraction(4), delta=DELTA, principal="carol")
        view = budget_view(ledger.state(), ledger.history())
        assert view.raised is not None
        assert view.raised.delta == 2 * (DELTA - keys) + keys


def test_in_a_pure_ledger_the_figure_holds_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        raise_to(ledger, 2)
        view = budget_view(ledger.state(), ledger.history())
        assert view.raised is not None
        assert view.raised.epsilon == 2
        assert view.raised.delta == 0
        assert view.raised.holds == RAISED


def test_folding_again_gives_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / NAME) as ledger:
        charged(ledger, 0.5)
        raise_to(ledger, 2)
        raise_to(ledger, 5, was=2)
        state: LedgerState | None = None
        for line in ledger.entries():
            state = transitions.fold(state, line)
        assert state == ledger.state()
