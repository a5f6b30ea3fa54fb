"""The filter's decisions, and twins of it with the mistakes that real ledgers have made."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.privacy.filters import Account, Granted, Refused, charge, fits
from lapwing.privacy.measures import GRID, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests import zoo

Charge = Callable[[Account, Loss], Granted | Refused]


def spend(decide: Charge, budget: Loss, *losses: Loss) -> list[bool]:
    account, decisions = Account.opened(budget), []
    for loss in losses:
        decision = decide(account, loss)
        decisions.append(isinstance(decision, Granted))
        account = decision.account if isinstance(decision, Granted) else account
    return decisions


def check_decisions(decide: Charge) -> None:
    """Ten tenths fit one and nothing more does; a hair over the budget is over."""
    assert spend(decide, PureDP(1), *[PureDP(0.1)] * 11) == [True] * 10 + [False]
    assert spend(decide, PureDP(1), PureDP(1), PureDP(1e-17)) == [True, False]
    assert spend(decide, PureDP(1), PureDP(1 + Fraction(1, 10**17))) == [False]
    assert spend(decide, PureDP(3), *[PureDP(0.3)] * 10, PureDP(Fraction(1, 10**30))) == [True] * 10 + [False]
    assert spend(decide, GaussianDP(1), *[GaussianDP(0.1)] * 101) == [True] * 100 + [False]
    assert spend(decide, ZeroConcentratedDP(0.7), ZeroConcentratedDP(0.6), ZeroConcentratedDP(0.1)) == [True, True]
    assert spend(decide, PureDP(1), PureDP(0.6), PureDP(0.6), PureDP(0.4)) == [True, False, True]


def test_the_decisions() -> None:
    check_decisions(charge)


def charge_in_floats(account: Account, loss: Loss) -> Granted | Refused:
    spent = float(account.spent.amount) + float(loss.amount)
    if spent > float(account.budget.amount):
        return Refused(shortfall=loss)
    return Granted(account=replace(account, spent=loss.from_amount(spent)))


def charge_below_the_budget_only(account: Account, loss: Loss) -> Granted | Refused:
    spent = account.spent + loss
    return Refused(shortfall=loss) if spent >= account.budget else Granted(account=replace(account, spent=spent))


def charge_with_the_old_balance(account: Account, loss: Loss) -> Granted | Refused:
    if account.spent > account.budget:
        return Refused(shortfall=loss)
    spent = min(account.spent.amount + loss.amount, account.budget.amount)
    return Granted(account=replace(account, spent=loss.from_amount(spent)))


def charge_rounded_down(account: Account, loss: Loss) -> Granted | Refused:
    return charge(account, loss.from_amount(loss.amount // GRID * GRID))


@pytest.mark.parametrize(
    "twin", [charge_in_floats, charge_below_the_budget_only, charge_with_the_old_balance, charge_rounded_down]
)
def test_twins_are_caught(twin: Charge) -> None:
    with pytest.raises(AssertionError):
        check_decisions(twin)


def test_a_refusal_changes_nothing_and_says_what_lacks() -> None:
    account = Account(budget=PureDP(1), spent=PureDP(0.8))
    assert charge(account, PureDP(0.5)) == Refused(shortfall=PureDP(0.3))
    assert account.remaining == PureDP(0.2)


def test_thirds_are_charged_on_the_grid() -> None:
    third = PureDP(Fraction(1, 3))
    assert spend(charge, PureDP(1), third, third, third) == [True, True, False]
    assert fits(Account.opened(PureDP(1)), third) == 2


@given(
    st.sampled_from(zoo.MEASURES),
    st.fractions(min_value=0, max_value=10, max_denominator=10**9),
    st.lists(st.fractions(min_value=0, max_value=3, max_denominator=10**9), max_size=12),
)
def test_spending_is_the_sum_of_what_was_granted_and_never_over(
    measure: type[PureDP], budget: Fraction, amounts: list[Fraction]
) -> None:
    account, granted = Account.opened(measure.from_amount(budget)), Fraction(0)
    for loss in map(measure.from_amount, amounts):
        decision = charge(account, loss)
        if isinstance(decision, Granted):
            account, granted = decision.account, granted + loss.rounded_up().amount
        else:
            assert decision.shortfall.amount == account.spent.amount + loss.rounded_up().amount - budget > 0
    assert account.spent.amount == granted <= budget
    assert account.remaining.amount == budget - granted


@given(
    st.fractions(min_value=0, max_value=2, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 20), max_value=3, max_denominator=1000),
)
def test_fits_counts_the_charges_that_are_granted(budget: Fraction, amount: Fraction) -> None:
    account, loss = Account.opened(ZeroConcentratedDP(budget)), ZeroConcentratedDP(amount)
    decisions = spend(charge, account.budget, *[loss] * 45)
    assert fits(account, loss) == sum(decisions)


def test_any_number_of_nothing_fits() -> None:
    account = Account.opened(PureDP(1))
    assert charge(account, PureDP(0)) == Granted(account=account)
    with pytest.raises(InvalidParameter, match="any number"):
        fits(account, PureDP(0))


def test_one_account_holds_one_measure_and_is_never_overspent() -> None:
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        charge(Account.opened(PureDP(1)), GaussianDP(0.1))
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        fits(Account.opened(PureDP(1)), GaussianDP(0.1))
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        Account(budget=PureDP(1), spent=GaussianDP(0.1))
    with pytest.raises(InvalidParameter, match="overspent"):
        Account(budget=PureDP(1), spent=PureDP(1 + GRID))
