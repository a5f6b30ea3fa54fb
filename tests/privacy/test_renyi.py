"""Rényi curves against the divergences by definition, in 60 digits, and against dp-accounting."""

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import renyi_curves
from lapwing.privacy.bounded_range import zcdp_from_bounded_range
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.renyi import DEFAULT_ORDERS, RenyiDP
from tests.support.effort import one_in, only
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

ORDERS = tuple(Fraction(x) for x in ("1.001", "1.5", "2", "3.25", "10", "64"))
SIZES = tuple(Fraction(x) for x in ("1e-6", "0.01", "0.5", "1", "4", "50"))
Curve = Callable[[Fraction, Fraction], Fraction]


def divergence(pair: list[tuple[mpf, mpf]], order: Fraction) -> mpf:
    return mp.log(mp.fsum(p ** real(order) * q ** (1 - real(order)) for p, q in pair)) / (real(order) - 1)


def response(epsilon: Fraction) -> list[tuple[mpf, mpf]]:
    high, low = 1 / (1 + mp.exp(-real(epsilon))), 1 / (1 + mp.exp(real(epsilon)))
    return [(high, low), (low, high)]


def check_tight(curve: Curve, definition: Callable[[Fraction, Fraction], mpf]) -> None:
    for size in SIZES:
        for order in ORDERS:
            with mp.workdps(90):
                true = definition(size, order)
                assert true <= real(curve(size, order)) <= true * (1 + mpf(10) ** -15)


def laplace_by_integral(distance: Fraction, order: Fraction) -> mpf:
    """The three pieces of ∫ P^α·Q^(1−α), P and Q Laplace of scale 1 at distance x, each an exponential."""
    x, a = real(distance), real(order)
    left = mp.exp((a - 1) * x) / 2
    right = mp.exp(-a * x) / 2
    middle = (mp.exp((a - 1) * x) - mp.exp(-a * x)) / (2 * (2 * a - 1))
    return mp.log(left + middle + right) / (a - 1)


def bounded_by_search(eta: Fraction, order: Fraction) -> mpf:
    """The greatest divergence of a pair of coins whose log-ratio varies by η, searched by thirds over log P/Q."""

    def at(t: mpf) -> mpf:
        q = (mp.exp(-t) - mp.exp(-real(eta))) / -mp.expm1(-real(eta))
        heads, tails = q * mp.exp(real(order) * t), (1 - q) * mp.exp(real(order) * (t - real(eta)))
        return mp.log(heads + tails) / (real(order) - 1)

    low, high = mpf(0), real(eta)
    for _ in range(130):
        third = (high - low) / 3
        low, high = (low, high - third) if at(low + third) > at(high - third) else (low + third, high)
    return at(low)


def test_pure_is_that_of_randomized_response() -> None:
    check_tight(renyi_curves.pure_up, lambda epsilon, order: divergence(response(epsilon), order))


def test_laplace() -> None:
    check_tight(renyi_curves.laplace_up, laplace_by_integral)


@pytest.mark.parametrize("size", one_in(5, SIZES[1:]), ids=str)
def test_bounded_range(size: Fraction) -> None:
    for order in ORDERS:
        with mp.workdps(50):
            true = bounded_by_search(size, order)
            stated = real(renyi_curves.bounded_range_up(size, order))
            assert true * (1 - mpf(10) ** -30) <= stated <= true * (1 + mpf(10) ** -14)


@pytest.mark.parametrize("rate", one_in(2, [Fraction(1, 20), Fraction(1), Fraction(5)]))
@pytest.mark.parametrize("shift", only([2], [1, 2, 5]))
def test_discrete_laplace(rate: Fraction, shift: int) -> None:
    q, reach = mp.exp(-real(rate)), int(150 / rate) + 10

    @cache
    def law(x: int) -> mpf:
        return (1 - q) / (1 + q) * q ** abs(x)

    for order in ORDERS[1:4]:
        true = oracle.renyi(law, shift, real(order), reach)
        stated = real(renyi_curves.discrete_laplace_up(rate, shift, order))
        assert true * (1 - mpf(10) ** -30) <= stated <= true * (1 + mpf(10) ** -14)


@pytest.mark.parametrize("epsilon", SIZES)
def test_one_curve_by_two_routes(epsilon: Fraction) -> None:
    """A discrete Laplace at distance 1 is randomized response; and none is above the worst of its kind."""
    for order in ORDERS:
        pure = renyi_curves.pure_up(epsilon, order)
        assert renyi_curves.discrete_laplace_up(epsilon, 1, order) == pytest.approx(pure, rel=1e-15)
        assert renyi_curves.laplace_up(epsilon, order) <= pure
        assert renyi_curves.bounded_range_up(epsilon, order) <= min(pure, order * zcdp_from_bounded_range(epsilon))


@pytest.mark.parametrize(
    ("twin", "definition"),
    [
        (lambda e, a: renyi_curves.laplace_up(e, a), lambda e, a: divergence(response(e), a)),
        (lambda e, a: a * e**2 / 2, lambda e, a: divergence(response(e), a)),
        (lambda e, a: renyi_curves.pure_up(e, a) * (1 - Fraction(1, 10**17)), lambda e, a: divergence(response(e), a)),
        (lambda e, a: renyi_curves.laplace_up(e, 1 + (a - 1) * Fraction(999, 1000)), laplace_by_integral),
    ],
    ids=["another law", "the classical bound, not tight", "rounded down", "a smaller order"],
)
def test_twins_are_caught(twin: Curve, definition: Callable[[Fraction, Fraction], mpf]) -> None:
    with pytest.raises(AssertionError):
        check_tight(twin, definition)


@pytest.mark.parametrize(
    ("twin", "definition"),
    [
        (
            lambda e, a: renyi_curves.discrete_laplace_up(e * Fraction(9, 10), 1, a),
            lambda e, a: divergence(response(e), a),
        ),
        (lambda e, a: renyi_curves.bounded_range_up(e * Fraction(9, 10), a), bounded_by_search),
        (lambda e, a: a * zcdp_from_bounded_range(e) * Fraction(9, 10), bounded_by_search),
    ],
    ids=["less of a rate", "less of a range", "less of rho"],
)
def test_twins_of_two_routes_are_caught(twin: Curve, definition: Callable[[Fraction, Fraction], mpf]) -> None:
    with pytest.raises(AssertionError):
        check_tight(twin, definition)


def best_delta(curve: RenyiDP, epsilon: mpf) -> mpf:
    """The least over all orders, written as it is printed in the paper."""
    return min(
        mp.exp((real(a) - 1) * (real(loss) - epsilon)) / (real(a) - 1) * (1 - 1 / real(a)) ** real(a)
        for a, loss in curve.points
    )


@pytest.mark.parametrize(
    "loss", one_in(4, [PureDP(0.3), GaussianDP(0.7), ZeroConcentratedDP(3), ZeroConcentratedDP(1e-7)])
)
def test_epsilon_and_delta_are_those_of_the_best_order(loss: Loss) -> None:
    curve = 3 * RenyiDP.from_loss(loss)
    for delta in (1e-15, 1e-6, 0.01, 0.5):
        epsilon = curve.to_epsilon(delta=delta)
        if epsilon:
            assert best_delta(curve, mpf(epsilon)) <= real(Fraction(str(delta))) * (1 + mpf(10) ** -12)
            assert best_delta(curve, mpf(epsilon) * (1 - mpf(10) ** -9)) > real(Fraction(str(delta)))
            assert curve.to_delta(epsilon=Fraction(epsilon)) == pytest.approx(delta, rel=1e-9)
    for epsilon in (0, 0.5, 4, 50):
        stated, true = mpf(curve.to_delta(epsilon=epsilon)), min(mpf(1), best_delta(curve, mpf(epsilon)))
        assert true * (1 - mpf(10) ** -30) <= stated <= true * (1 + mpf(10) ** -12) + mpf(10) ** -320


@pytest.mark.parametrize("loss", [PureDP(0.3), GaussianDP(0.7), ZeroConcentratedDP(3)])
def test_a_curve_never_says_less_than_the_loss_it_came_from(loss: Loss) -> None:
    curve = RenyiDP.from_loss(loss)
    for epsilon in (0, 0.1, 1, 7):
        exact = {
            "pure": max(mpf(0), response(Fraction(3, 10))[0][0] - mp.exp(epsilon) * response(Fraction(3, 10))[1][0])
        }
        if isinstance(loss, GaussianDP):
            exact["gdp"] = oracle.gdp_delta(loss.mu_squared, Fraction(epsilon))
        if loss.kind in exact:
            assert curve.to_delta(epsilon=epsilon) >= exact[loss.kind]


@pytest.mark.parametrize("sigma", [0.7, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_gaussian_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    orders = [float(order) for order in DEFAULT_ORDERS if order < 10**5]
    theirs, _ = rdp.compute_epsilon(orders, [order / (2 * sigma**2) for order in orders], delta)
    ours = RenyiDP.from_loss(GaussianDP.from_mu_squared(1 / Fraction(str(sigma)) ** 2), orders).to_epsilon(delta=delta)
    assert theirs <= ours * (1 + 1e-12)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from([PureDP(0.01), ZeroConcentratedDP(1e-5)]))
def test_composition_adds_up(times: int, loss: Loss) -> None:
    curve = RenyiDP.from_loss(loss, ORDERS)
    assert times * curve + curve == (times + 1) * curve == curve * (times + 1)
    assert (times * curve).to_epsilon(delta=1e-6) <= ((times + 1) * curve).to_epsilon(delta=1e-6)
    assert times * curve >= curve
    assert curve.times_in(times * curve) == times


def test_curves_add_on_common_orders() -> None:
    a, b = RenyiDP({2: 1, 3: 2}), RenyiDP({Fraction(3): 5, Fraction(7, 2): 6})
    assert a + b == b + a == RenyiDP({3: 7})
    assert a.at(3) == 2
    assert a.restricted([2]) == RenyiDP({2: 1})
    assert RenyiDP({2: 1, 3: 2}).beyond(RenyiDP({2: 3, 3: 1})) == RenyiDP({2: 0, 3: 1})
    with pytest.raises(InvalidParameter, match="no order in common"):
        a + RenyiDP({4: 1})
    with pytest.raises(InvalidParameter, match="different orders"):
        _ = a <= b
    with pytest.raises(InvalidParameter, match="no bound at order 9"):
        a.at(9)
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        a + PureDP(1)  # type: ignore[operator]


def check_groups(for_group: Callable[[RenyiDP, int], RenyiDP]) -> None:
    """A group's curve covers the Gaussian's true one, α(kμ)²/2, and that of k-fold randomized response, k·ε."""
    for size in (1, 2, 3, 4, 7):
        for loss in (GaussianDP(1), ZeroConcentratedDP(0.01)):
            group = for_group(RenyiDP.from_loss(loss), size)
            assert group >= RenyiDP.from_loss(loss.for_group(size), group.orders)


def test_groups() -> None:
    check_groups(RenyiDP.for_group)
    assert RenyiDP({8: 1, 4: 2, 3: 1}).for_group(2) == RenyiDP({4: 3, 2: 6})
    with pytest.raises(InvalidParameter, match="end below 8"):
        RenyiDP({7: 1}).for_group(3)


def test_twin_a_group_that_keeps_the_order_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_groups(lambda curve, size: size * curve)


@pytest.mark.parametrize(("kind", "said"), [("gdp", "may be infinite"), ("zcdp", "every order"), ("pure", "δ = 0")])
def test_conversions_that_do_not_exist_say_why(kind: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        RenyiDP({2: 1}).to_kind(kind)


@pytest.mark.parametrize(
    "curve",
    [
        {},
        {1: 1},
        {0.5: 1},
        {2: -1},
        {2: float("nan")},
        {float("inf"): 1},
        {"2": 1},
        {True: 1},
        {2.1: 1, Decimal("2.1"): 1},
    ],
)
def test_what_is_no_curve_is_refused(curve: dict[float, float]) -> None:
    with pytest.raises(InvalidParameter):
        RenyiDP(curve)


def test_what_else_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="must map"):
        RenyiDP([(2, 1)])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no Rényi curve"):
        RenyiDP.from_loss(ApproxDP(1, 1e-6))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="scale is 0"):
        RenyiDP.laplace(scale=0)
    for delta in (0, 1, "1e-6", True):
        with pytest.raises(InvalidParameter, match="delta"):
            RenyiDP({2: 1}).to_epsilon(delta=delta)  # type: ignore[arg-type]


def test_texts_copies_and_ends() -> None:
    curve = RenyiDP({2: Fraction(1, 10), 8: Fraction(1, 3)})
    assert eval(repr(curve), {"RenyiDP": RenyiDP, "Fraction": Fraction}) == curve
    assert pickle.loads(pickle.dumps(curve)) == copy.deepcopy(curve) == curve
    assert hash(curve) == hash(RenyiDP({8: Fraction(1, 3), 2: Fraction(1, 10)}))
    assert str(curve) == "ε(2) = 0.1 (Rényi, 2 orders)"
    assert len(DEFAULT_ORDERS) == len(set(DEFAULT_ORDERS)) > 100
    assert RenyiDP({1 + Fraction(1, 10**90): 1, Fraction(10**90): 10**90}).to_delta(epsilon=1) == 1
    assert RenyiDP({2: 0}).to_epsilon(delta=0.5) == 0
    assert RenyiDP.laplace(scale=2) == RenyiDP.from_function(
        lambda order: renyi_curves.laplace_up(Fraction(1, 2), order)
    )
    assert RenyiDP.discrete_laplace(scale=2, l1=0).to_epsilon(delta=0.5) == 0
    assert RenyiDP.bounded_range(1, [2]).at(2) == renyi_curves.bounded_range_up(Fraction(1), Fraction(2))
