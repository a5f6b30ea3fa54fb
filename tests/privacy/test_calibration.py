from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import GRID, PRIVACY_MEASURES, Loss, PureDP
from tests.support.effort import one_in
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

MILLIONTH = Fraction(1, 10**6)
PROMISES = tuple(
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("0.01", "0.5", "1", "3", "30")
    for delta in ("1e-10", "1e-6", "0.05")
)


def check_keeps_the_promise(calibrate: Callable[[str, Fraction, Fraction], Loss]) -> None:
    for epsilon, delta in PROMISES:
        loss = calibrate("gdp", epsilon, delta)
        assert oracle.gdp_delta(loss.amount, epsilon) <= real(delta)
        loss = calibrate("zcdp", epsilon, delta)
        assert oracle.zcdp_delta(loss.amount, epsilon) <= real(delta) * (1 + real(Fraction(1, 10**30)))


@pytest.mark.long
def test_a_calibrated_loss_keeps_its_promise() -> None:
    check_keeps_the_promise(loss_for)


def test_twin_one_grid_step_more_is_caught() -> None:
    def careless(kind: str, epsilon: Fraction, delta: Fraction) -> Loss:
        loss = loss_for(kind, epsilon, delta)
        return loss.from_amount(loss.amount + GRID)

    with pytest.raises(AssertionError):
        check_keeps_the_promise(careless)


@pytest.mark.parametrize(("epsilon", "delta"), one_in(2, PROMISES, many=True))
def test_a_calibrated_loss_is_the_largest_on_the_grid(epsilon: Fraction, delta: Fraction) -> None:
    loss = loss_for("gdp", epsilon, delta)
    assert (loss.amount / GRID).denominator == 1
    assert oracle.gdp_delta(loss.amount + GRID, epsilon) > real(delta)
    loss = loss_for("zcdp", epsilon, delta)
    assert (loss.amount / GRID).denominator == 1
    slightly_more = loss.amount * (1 + Fraction(1, 10**20)) + 2 * GRID
    assert oracle.zcdp_delta(slightly_more, epsilon) > real(delta)


@given(
    st.sampled_from(sorted(PRIVACY_MEASURES)),
    st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**4),
    st.sampled_from([Fraction(1, 10**9), MILLIONTH]),
)
def test_round_trip(kind: str, epsilon: Fraction, delta: Fraction) -> None:
    loss = loss_for(kind, epsilon, delta)
    assert loss.to_epsilon(delta=delta) == pytest.approx(float(epsilon), rel=1e-9)
    assert loss.to_delta(epsilon=epsilon) <= float_up(delta)
    assert loss_for(kind, epsilon * 2, delta) > loss


def test_pure_is_epsilon_whatever_delta() -> None:
    assert loss_for("pure", Fraction(1, 3), Fraction(0)) == loss_for("pure", Fraction(1, 3), MILLIONTH)
    assert loss_for("pure", Fraction(1, 3), Fraction(0)) == PureDP(Fraction(1, 3))


@pytest.mark.parametrize(("kind", "count"), [("pure", 6), ("gdp", 27), ("zcdp", 27)])
def test_how_many_queries_of_one_half_fit_three(kind: str, count: int) -> None:
    budget, query = (loss_for(kind, Fraction(epsilon), MILLIONTH) for epsilon in ("3", "0.5"))
    assert fits(Account.opened(budget), query) == count


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (0, MILLIONTH, "epsilon is 0"),
        (-1, MILLIONTH, "epsilon is -1"),
        (float("nan"), MILLIONTH, "epsilon is nan"),
        (1, 0, "use the pure measure"),
        (1, 1, "delta is 1"),
        (1, -MILLIONTH, "delta is -"),
        (1, float("inf"), "delta is inf"),
        (Fraction(1, 10**14), Fraction(1, 10**25), "finer than a"),
    ],
)
def test_promises_that_cannot_be_kept(kind: str, epsilon: Fraction, delta: Fraction, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        loss_for(kind, epsilon, delta)


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="one of pure, gdp, zcdp"):
        loss_for("rdp", Fraction(1), MILLIONTH)
