"""Conversions against the same formulas in 60-digit arithmetic, other people's code, and the definitions."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from dp_accounting import get_epsilon_gaussian, rdp
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import dyadic_unit
from lapwing.privacy import (
    concentrated_profile,
    conversions,
    gaussian_epsilon,
    gaussian_profile,
    pure_concentrated,
    pure_profile,
)
from lapwing.privacy.groups import group_delta_up
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import one_in
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

Convert = Callable[[Fraction, Fraction], Fraction]

AMOUNTS = tuple(Fraction(x) for x in ("1/1000000", "0.0123", "1/3", "1", "7.7", "60", "1000"))
DELTAS = tuple(Fraction(x) for x in ("1e-30", "1e-9", "1e-6", "0.01", "0.3"))
EPSILONS = tuple(Fraction(x) for x in ("0", "1e-6", "0.1", "1", "2.5", "40"))

amounts = st.fractions(min_value=Fraction(1, 10**8), max_value=50, max_denominator=10**8)
deltas = st.sampled_from(DELTAS)


def check_above(stated: Fraction, true: mpf, *, relative: float = 1e-9) -> None:
    """A stated loss is never below the true one, and not above by more than the stated relative error."""
    assert real(stated) >= true * (1 - mpf(10) ** -40)
    assert real(stated) <= true * (1 + relative) + mpf(10) ** -300


def check_delta(kind: str, convert: Convert, amount: Fraction, epsilon: Fraction) -> None:
    gain = (mp.exp(real(amount)) - mp.exp(real(epsilon))) / (1 + mp.exp(real(amount)))
    true, relative = {
        "gdp": (oracle.gdp_delta(amount, epsilon), 1e-15),
        "zcdp": (oracle.zcdp_delta(amount, epsilon), 1e-12),
        "pure": (max(gain, mpf(0)), 1e-15),
    }[kind]
    check_above(convert(amount, epsilon), true, relative=relative)


DELTA_OF: dict[str, Convert] = {
    "gdp": gaussian_profile.gdp_delta_up,
    "zcdp": concentrated_profile.zcdp_delta_up,
    "pure": pure_profile.pure_delta_up,
}


@pytest.mark.parametrize("amount", one_in(2, AMOUNTS))
@pytest.mark.parametrize("epsilon", one_in(2, EPSILONS))
def test_delta_of_each_measure(amount: Fraction, epsilon: Fraction) -> None:
    for kind, convert in DELTA_OF.items():
        check_delta(kind, convert, amount, epsilon)


@pytest.mark.parametrize("kind", DELTA_OF)
def test_twins_of_deltas_are_caught(kind: str) -> None:
    """Rounded down; of a smaller loss; of a larger ε; and twice as much, which holds and is not attained."""
    convert = DELTA_OF[kind]
    twins: list[Convert] = [
        lambda amount, epsilon: convert(amount, epsilon) * (1 - Fraction(1, 10**15)),
        lambda amount, epsilon: convert(amount * Fraction(999, 1000), epsilon),
        lambda amount, epsilon: convert(amount, epsilon * Fraction(1001, 1000)),
        lambda amount, epsilon: convert(amount, epsilon) * 2,
    ]
    for twin in twins:
        with pytest.raises(AssertionError):
            check_delta(kind, twin, Fraction(1), Fraction(1, 2))


def check_epsilon(kind: str, convert: Convert, amount: Fraction, delta: Fraction) -> None:
    delta_at = {"gdp": oracle.gdp_delta, "zcdp": oracle.zcdp_delta}[kind]
    epsilon = real(convert(amount, delta))
    assert delta_at(amount, epsilon) <= real(delta) * (1 + mpf(10) ** -30)
    assert epsilon == 0 or delta_at(amount, epsilon * (1 - mpf(10) ** -12)) > real(delta)


EPSILON_OF: dict[str, Convert] = {
    "gdp": gaussian_epsilon.gdp_epsilon_up,
    "zcdp": concentrated_profile.zcdp_epsilon_up,
}


@pytest.mark.parametrize("amount", one_in(6, AMOUNTS))
@pytest.mark.parametrize("delta", one_in(2, DELTAS))
def test_epsilon_of_each_measure(amount: Fraction, delta: Fraction) -> None:
    for kind, convert in EPSILON_OF.items():
        check_epsilon(kind, convert, amount, delta)


@pytest.mark.parametrize("kind", EPSILON_OF)
def test_twins_of_epsilons_are_caught(kind: str) -> None:
    """Rounded down; of a larger δ; and the classical ρ + 2√(ρ·ln(1/δ)), which is valid and not the best bound."""
    convert = EPSILON_OF[kind]
    twins: list[Convert] = [
        lambda amount, delta: convert(amount, delta) * (1 - Fraction(1, 10**15)),
        lambda amount, delta: convert(amount, delta * Fraction(1001, 1000)),
        lambda amount, delta: amount + Fraction(float(2 * mp.sqrt(real(amount) * mp.log(1 / real(delta))))),
    ]
    for twin in twins:
        with pytest.raises(AssertionError):
            check_epsilon(kind, twin, Fraction(1, 2), DELTAS[2])


@given(amounts, deltas)
def test_epsilon_and_delta_are_inverses(amount: Fraction, delta: Fraction) -> None:
    for loss in mechanism_cases.losses(amount)[1:]:
        epsilon = loss.to_epsilon(delta=delta)
        if epsilon:
            assert loss.to_delta(epsilon=Fraction(epsilon)) == pytest.approx(float(delta), rel=1e-9)
            assert loss.to_delta(epsilon=Fraction(epsilon) * Fraction(999, 1000)) > delta


def check_epsilon_is_enough(convert: Convert) -> None:
    for amount in AMOUNTS:
        epsilon = convert(amount, DELTAS[2])
        if epsilon:
            assert oracle.gdp_delta(amount, epsilon) <= real(DELTAS[2])


def test_the_stated_epsilon_is_enough() -> None:
    check_epsilon_is_enough(gaussian_epsilon.gdp_epsilon_up)


def test_twin_a_bisection_that_returns_its_lower_end_is_caught() -> None:
    def rounded_down(amount: Fraction, delta: Fraction) -> Fraction:
        epsilon = gaussian_epsilon.gdp_epsilon_up(amount, delta)
        return epsilon - dyadic_unit(epsilon, 60) if epsilon else epsilon

    def to_nearest_float(amount: Fraction, delta: Fraction) -> Fraction:
        return Fraction(float(gaussian_epsilon.gdp_epsilon_up(amount, delta)))

    for twin in (rounded_down, to_nearest_float):
        with pytest.raises(AssertionError):
            check_epsilon_is_enough(twin)


def test_twin_a_wrong_sign_in_the_formula_is_caught() -> None:
    stated = Fraction(float(oracle.normal(mpf(-1) / 2) - mp.e * oracle.normal(mpf(-3) / 2)) / 2)
    with pytest.raises(AssertionError):
        check_above(stated, oracle.gdp_delta(Fraction(1), Fraction(1)))


# Provenance: computed with 60-digit arithmetic from the formulas named in `conversions`, and to the four decimals
# given also tabulated in the project's notes on accounting. δ = 1e-6.
@pytest.mark.parametrize(
    ("rho", "by_zcdp", "by_gdp"),
    [
        (0.005, 0.4299, 0.3969),
        (0.05, 1.4716, 1.3676),
        (0.1, 2.1419, 1.9945),
        (0.5, 5.2215, 4.8866),
        (1, 7.7662, 7.2861),
        (2, 11.6886, 10.9972),
        (10, 32.2217, 30.5789),
    ],
)
def test_table_of_epsilons(rho: float, by_zcdp: float, by_gdp: float) -> None:
    loss = ZeroConcentratedDP(rho)
    assert loss.to_epsilon(delta=1e-6) == pytest.approx(by_zcdp, abs=6e-5)
    assert GaussianDP.from_mu_squared(2 * loss.rho).to_epsilon(delta=1e-6) == pytest.approx(by_gdp, abs=6e-5)


def test_known_values() -> None:
    assert GaussianDP(1).to_epsilon(delta=1e-6) == pytest.approx(4.886554, abs=1e-6)
    assert conversions.gdp_from_pure_up(Fraction(1, 10**9)) == pytest.approx(float(mp.pi / 2) * 1e-18, rel=1e-9)
    assert PureDP(1).to_kind("zcdp") == ZeroConcentratedDP(pure_concentrated.zcdp_from_pure_up(Fraction(1)))
    assert GaussianDP(1).to_kind("zcdp") == ZeroConcentratedDP(0.5)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_gaussian_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    loss = GaussianDP.from_mu_squared(1 / Fraction(sigma) ** 2)
    assert loss.to_epsilon(delta=delta) == pytest.approx(get_epsilon_gaussian(sigma, delta), rel=1e-6, abs=1e-9)


@given(
    st.floats(min_value=-1, max_value=3).map(lambda power: 10**power),
    st.floats(min_value=-15, max_value=-0.31).map(lambda power: 10**power),
)
def test_gaussian_agrees_with_dp_accounting_over_a_wide_range(sigma: float, delta: float) -> None:
    ours = GaussianDP.from_mu_squared(1 / Fraction(str(sigma)) ** 2).to_epsilon(delta=delta)
    assert ours == pytest.approx(get_epsilon_gaussian(sigma, delta), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rho", [0.005, 0.1, 1.0])
def test_zcdp_agrees_with_dp_accounting(rho: float) -> None:
    orders = [1 + 10 ** (n / 200) for n in range(-200, 600)]
    theirs, _ = rdp.compute_epsilon(orders, [rho * order for order in orders], 1e-6)
    ours = ZeroConcentratedDP(rho).to_epsilon(delta=1e-6)
    assert theirs * (1 - 1e-4) <= ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", AMOUNTS[:-1])
def test_what_pure_implies(epsilon: Fraction) -> None:
    check_above(conversions.gdp_from_pure_up(epsilon), oracle.mu_of_pure(epsilon) ** 2, relative=1e-15)
    e = real(epsilon)
    check_above(pure_concentrated.zcdp_from_pure_up(epsilon), e * (mp.expm1(e) / (mp.exp(e) + 1)), relative=1e-15)


@pytest.mark.parametrize("epsilon", AMOUNTS[1:-2])
def test_what_pure_implies_by_definition(epsilon: Fraction) -> None:
    """Randomized response, of which every ε-DP pair is a post-processing, stays below what is stated."""
    high = 1 / (1 + mp.exp(-real(epsilon)))
    mu_squared, rho = conversions.gdp_from_pure_up(epsilon), pure_concentrated.zcdp_from_pure_up(epsilon)
    for part in range(20):
        smaller = Fraction(part, 20) * epsilon
        gain = high - mp.exp(real(smaller)) * (1 - high)
        assert gain <= oracle.gdp_delta(mu_squared, smaller) + mpf(10) ** -18
    for order in (mpf("1.0001"), mpf("1.5"), mpf(2), mpf(5), mpf(100)):
        moment = high**order * (1 - high) ** (1 - order) + (1 - high) ** order * high ** (1 - order)
        assert mp.log(moment) / (order - 1) <= real(rho) * order


@pytest.mark.parametrize("epsilon", [Fraction("0.1"), Fraction(1), Fraction(3)])
def test_twins_of_what_pure_implies_are_caught(epsilon: Fraction) -> None:
    """A μ of one tenth less, or ρ = ε²/8 (which holds for bounded range only), is too small for randomized response."""
    high = 1 / (1 + mp.exp(-real(epsilon)))
    assert 2 * high - 1 > oracle.gdp_delta(conversions.gdp_from_pure_up(epsilon) * Fraction(81, 100), Fraction(0))
    order = mpf("1.0001")
    moment = high**order * (1 - high) ** (1 - order) + (1 - high) ** order * high ** (1 - order)
    assert mp.log(moment) / (order - 1) > real(epsilon) ** 2 / 8 * order


@pytest.mark.long
@given(amounts)
def test_the_inverses_of_what_pure_implies(amount: Fraction) -> None:
    for kind in ("gdp", "zcdp"):
        epsilon = conversions.pure_epsilon_down(kind, amount)
        implied = conversions.amount_in(kind, "pure", epsilon)
        assert amount * (1 - Fraction(1, 10**15)) <= implied <= amount * (1 + Fraction(1, 10**15))


def check_inverse(inverse: Callable[[str, Fraction], Fraction]) -> None:
    for kind in ("gdp", "zcdp"):
        for amount in (Fraction(1, 100), Fraction(1, 2), Fraction(4)):
            implied = conversions.amount_in(kind, "pure", inverse(kind, amount))
            assert amount * (1 - Fraction(1, 10**15)) <= implied <= amount * (1 + Fraction(1, 10**15))


def test_an_epsilon_of_an_amount_implies_that_amount() -> None:
    check_inverse(conversions.pure_epsilon_down)


@pytest.mark.parametrize("factor", [Fraction(1001, 1000), Fraction(999, 1000)])
def test_twins_of_the_inverses_are_caught(factor: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_inverse(lambda kind, amount: conversions.pure_epsilon_down(kind, amount) * factor)


@pytest.mark.parametrize("loss", [GaussianDP(1), ZeroConcentratedDP(1)])
def test_conversions_that_do_not_exist_say_why(loss: Loss) -> None:
    with pytest.raises(InvalidParameter, match="no finite ε at δ = 0"):
        loss.to_kind("pure")
    with pytest.raises(InvalidParameter, match="measure is 'rdp'"):
        loss.to_kind("rdp")


def test_zcdp_does_not_convert_to_gdp_and_the_reason_is_true() -> None:
    """The discrete Gaussian of σ = 1 is ½-zCDP, and is not 1-GDP."""
    with pytest.raises(InvalidParameter, match="does not imply"):
        ZeroConcentratedDP(0.5).to_kind("gdp")
    total = mp.fsum(mp.exp(-mpf(x * x) / 2) for x in range(-40, 41))
    delta = oracle.discrete_delta(lambda x: mp.exp(-mpf(x * x) / 2) / total, 1, Fraction(3), 35)
    assert 1.19 < delta / oracle.gdp_delta(Fraction(1), Fraction(3)) < 1.21


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10)])
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_groups_of_approximate_losses(delta: Fraction, size: int) -> None:
    for epsilon in (Fraction(0), Fraction(1, 10**6), Fraction(1, 2), Fraction(4)):
        steps = mp.fsum(mp.exp(real(epsilon) * step) for step in range(size))
        loss = ApproxDP(epsilon, delta).for_group(size)
        assert loss.epsilon == size * epsilon
        check_above(loss.delta, min(mpf(1), real(delta) * steps), relative=1e-15)


def test_twins_of_groups_are_caught() -> None:
    """A δ that only counts the units, and one of a group that is smaller by one."""
    epsilon, delta, size = Fraction(1, 2), Fraction(1, 10**6), 5
    true = real(delta) * mp.fsum(mp.exp(real(epsilon) * step) for step in range(size))
    check_above(group_delta_up(epsilon, delta, size), true, relative=1e-15)
    for twin in (size * delta, group_delta_up(epsilon, delta, size - 1)):
        with pytest.raises(AssertionError):
            check_above(twin, true, relative=1e-15)


@pytest.mark.parametrize("amount", [Fraction(1, 10**24), Fraction(10**13), Fraction(10**60), Fraction(10**98)])
def test_the_ends_of_the_range(amount: Fraction) -> None:
    for loss in mechanism_cases.losses(amount):
        assert 0 <= loss.to_delta(epsilon=1) <= 1
        assert loss.to_epsilon(delta=1e-6) < float(amount) * 1.1 + 1e-9
        assert PureDP(amount).to_kind(loss.kind).amount > 0
    assert GaussianDP(1).to_delta(epsilon=10**50) == 5e-324
    assert GaussianDP(1).to_epsilon(delta=Fraction(1, 10**300)) == pytest.approx(37.4488, abs=1e-3)
