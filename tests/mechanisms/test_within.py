"""How much a mechanism may spend within a loss: it keeps the loss, and hardly more would not."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.scores import pure_within, range_within
from lapwing.privacy.bounded_range import bounded_range_amount
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases

LOSSES = mechanism_cases.losses(Fraction(1, 10**6), Fraction("0.0153"), Fraction(1, 3), Fraction(1), Fraction(20))
MORE = 1 + Fraction(1, 2**40)


def check_pure(within: Callable[[Loss], Fraction]) -> None:
    for loss in LOSSES:
        epsilon = within(loss)
        assert PureDP(epsilon).to_kind(loss.kind) <= loss
        assert PureDP(epsilon * MORE).to_kind(loss.kind) > loss


def check_range(within: Callable[[Loss], Fraction]) -> None:
    for loss in LOSSES:
        eta = within(loss)
        assert bounded_range_amount(loss.kind, eta) <= loss.amount
        assert bounded_range_amount(loss.kind, eta * MORE) > loss.amount


def test_pure_within() -> None:
    check_pure(pure_within)
    assert pure_within(PureDP(0.3)) == Fraction(3, 10)


def test_range_within() -> None:
    check_range(range_within)
    assert range_within(PureDP(0.3)) == Fraction(3, 10)
    assert range_within(ZeroConcentratedDP(0.5)) == 2


@pytest.mark.parametrize("factor", [MORE, 1 / MORE])
def test_twins_are_caught(factor: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_pure(lambda loss: factor * pure_within(loss))
    with pytest.raises(AssertionError):
        check_range(lambda loss: factor * range_within(loss))


def test_no_loss_leaves_nothing() -> None:
    for within in (pure_within, range_within):
        with pytest.raises(InvalidParameter, match="no finite noise"):
            within(GaussianDP(0))
