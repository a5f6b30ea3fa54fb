"""The filter's decisions, and twins of it with the mistakes that real ledgers have made."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.privacy.filters import Account, Granted, Refused, charge, fits
from lapwing.privacy.measures import (
    GRID,
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateZeroConcentratedDP,
    GaussianDP,
    Loss,
    PureDP,
    ZeroConcentratedDP,
)
from lapwing.privacy.renyi import RenyiDP
from tests.support import mechanism_cases

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


@pytest.mark.parametrize(
    ("budget", "loss", "said"),
    [
        (PureDP(1), 0.1, r"is a float, .* give a PureDP, such as lapwing\.PureDP\(0\.1\)"),
        (GaussianDP(1), 1, r"is an int, .* give a GaussianDP, such as lapwing\.GaussianDP"),
        (ZeroConcentratedDP(1), "0.1", r"is a str, .* lapwing\.ZeroConcentratedDP\(0\.01\)"),
        (ApproxDP(1, 1e-6), None, r"is a NoneType, .* lapwing\.ApproxDP\(0\.1, 1e-9\)"),
        (RenyiDP({2: 1}), Fraction(1, 10), r"is a Fraction, .* lapwing\.RenyiDP\.gaussian\(sigma=10\)"),
    ],
)
def test_a_bare_number_is_told_what_to_give(budget: Loss, loss: object, said: str) -> None:
    account = Account.opened(budget)
    for ask in (charge, fits):
        with pytest.raises(InvalidParameter, match=said):
            ask(account, loss)  # type: ignore[type-var]
    with pytest.raises(InvalidParameter, match=r"give a PureDP"):
        Account.opened(loss)  # type: ignore[type-var]


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
    st.sampled_from(mechanism_cases.MEASURES),
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


@pytest.mark.long
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


Several = ApproxDP | ApproximateGaussianDP | ApproximateZeroConcentratedDP | RenyiDP
Decide = Callable[[Account[Several], Several], Granted[Several] | Refused[Several]]


def pay(decide: Decide, budget: Several, *losses: Several) -> list[bool]:
    account, decisions = Account.opened(budget), []
    for loss in losses:
        decision = decide(account, loss)
        decisions.append(isinstance(decision, Granted))
        account = decision.account if isinstance(decision, Granted) else account
    return decisions


def check_several(decide: Decide) -> None:
    """Each number of a loss has its own cap, and every one has to hold."""
    tenth = Fraction(1, 10)
    assert pay(decide, ApproxDP(1, 1e-6), *[ApproxDP(0.1, 1e-7)] * 11) == [True] * 10 + [False]
    assert pay(decide, ApproxDP(1, 1e-6), *[ApproxDP(0.1, 0)] * 11) == [True] * 10 + [False]
    assert pay(decide, ApproxDP(1, 1e-6), *[ApproxDP(0, 1e-7)] * 11) == [True] * 10 + [False]
    assert pay(decide, ApproxDP(1, 0), ApproxDP(0.1, 1e-30), ApproxDP(1, 0)) == [False, True]
    assert pay(decide, ApproximateGaussianDP(1, 0.1), *[ApproximateGaussianDP(0.1, 0.001)] * 101) == [True] * 100 + [
        False
    ]
    assert pay(decide, ApproximateZeroConcentratedDP(1, 0.1), *[ApproximateZeroConcentratedDP(tenth, 0.05)] * 3) == [
        True,
        True,
        False,
    ]
    assert pay(decide, RenyiDP({2: 1, 8: 1}), *[RenyiDP({2: 0.1, 8: 0.5, 9: 7})] * 3) == [True, True, False]
    assert pay(decide, RenyiDP({2: 1, 8: 9}), *[RenyiDP({2: 0.5, 8: 0.5})] * 3) == [True, True, False]


def test_losses_of_several_numbers() -> None:
    check_several(charge)


def charge_in_some_number(account: Account[Several], loss: Several) -> Granted[Several] | Refused[Several]:
    """Grant what keeps the first cap, or one of the orders' caps."""
    spent = account.spent + loss  # type: ignore[operator]
    if isinstance(spent, RenyiDP) and isinstance(account.budget, RenyiDP):
        within = any(spent.at(order) <= limit for order, limit in account.budget.points)
    else:
        within = spent.exact_part <= account.budget.exact_part  # type: ignore[union-attr]
    return Granted(account=_unchecked(account.budget, spent)) if within else Refused(shortfall=loss)


def charge_without_delta(account: Account[Several], loss: Several) -> Granted[Several] | Refused[Several]:
    if isinstance(loss, RenyiDP):
        return charge(account, loss)
    return charge(account, loss.of(loss.exact_part, 0))  # type: ignore[arg-type]


def charge_nearest(account: Account[Several], loss: Several) -> Granted[Several] | Refused[Several]:
    if isinstance(loss, ApproxDP):
        return charge(account, ApproxDP(round(loss.epsilon, 24), round(loss.delta, 24)))
    return charge(account, loss)


def _unchecked(budget: Several, spent: Several) -> Account[Several]:
    account: Account[Several] = object.__new__(Account)
    object.__setattr__(account, "budget", budget)
    object.__setattr__(account, "spent", spent)
    return account


@pytest.mark.parametrize("twin", [charge_in_some_number, charge_without_delta, charge_nearest])
def test_twins_of_several_numbers_are_caught(twin: Decide) -> None:
    with pytest.raises(AssertionError):
        check_several(twin)


def test_what_remains_and_what_lacks_of_several_numbers() -> None:
    account = Account(budget=ApproximateGaussianDP(1, 0.1), spent=ApproximateGaussianDP(0.6, 0.05))
    assert account.remaining == ApproximateGaussianDP(0.8, 0.05)
    decision = charge(account, ApproximateGaussianDP(0.5, 0.06))
    assert isinstance(decision, Refused)
    assert decision.shortfall == ApproximateGaussianDP(0, 0.01)
    assert fits(account, ApproximateGaussianDP(0.4, 0.02)) == 2
    assert fits(account, ApproximateGaussianDP(0, 0.02)) == 2
    curve = Account.opened(RenyiDP({2: 1, 8: 3}))
    assert fits(curve, RenyiDP({2: 0.25, 8: 1})) == 3
    with pytest.raises(InvalidParameter, match="any number"):
        fits(account, ApproximateGaussianDP(0, 0))


def test_a_curve_that_lacks_an_order_of_the_budget_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="different orders"):
        charge(Account.opened(RenyiDP({2: 1, 8: 1})), RenyiDP({2: 0.1}))


@pytest.mark.long
@given(
    st.sampled_from([ApproxDP, ApproximateGaussianDP, ApproximateZeroConcentratedDP]),
    st.lists(
        st.tuples(st.fractions(0, 2, max_denominator=10**6), st.fractions(0, 1, max_denominator=10**6)), max_size=8
    ),
)
def test_several_numbers_are_never_overspent(build: type[ApproxDP], numbers: list[tuple[Fraction, Fraction]]) -> None:
    account = Account.opened(build(3, Fraction(1, 2)))
    for size, delta in numbers:
        before, decision = account, charge(account, build(size, delta))
        if isinstance(decision, Granted):
            account = decision.account
            assert account.spent == before.spent + build(size, delta).rounded_up()
        else:
            assert not before.spent + build(size, delta).rounded_up() <= before.budget
    assert account.spent <= account.budget
