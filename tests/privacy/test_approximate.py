"""Losses that hold but for δ: what they imply, against the pair that attains it; sums, orders, conversions."""

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.approximate import approximate
from lapwing.privacy.measures import (
    GRID,
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateLoss,
    ApproximateZeroConcentratedDP,
    GaussianDP,
    PureDP,
)
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

BUILDERS: tuple[Callable[[Fraction, Fraction], ApproximateLoss], ...] = (
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateZeroConcentratedDP,
)
builders = st.sampled_from(BUILDERS)
sizes = st.fractions(min_value=0, max_value=20, max_denominator=10**4)
deltas = st.fractions(min_value=0, max_value=1, max_denominator=10**6)
losses = st.builds(lambda build, size, delta: build(size, delta), builders, sizes, deltas)


def exact_delta(loss: ApproximateLoss, epsilon: Fraction) -> mpf:
    """δ + (1 − δ)·δ₀: the event that tells the pair apart, and the best one of the exact part."""
    if isinstance(loss, ApproxDP):
        e = real(loss.epsilon)
        inner = max(mpf(0), (mp.exp(e) - mp.exp(real(epsilon))) / (1 + mp.exp(e)))
    elif isinstance(loss, ApproximateGaussianDP):
        inner = oracle.gdp_delta(loss.gaussian.mu_squared, epsilon)
    else:
        inner = oracle.zcdp_delta(loss.rho, epsilon)
    return real(loss.delta) + (1 - real(loss.delta)) * inner


def check_delta(to_delta: Callable[[ApproximateLoss, Fraction], float]) -> None:
    for build in BUILDERS:
        for size in (Fraction(1, 100), Fraction(1, 2), Fraction(3)):
            for delta in (Fraction(1, 10**15), Fraction(1, 10**6), Fraction(1, 2)):
                for epsilon in (Fraction(0), Fraction(1, 1000), Fraction(2)):
                    loss = build(size, delta)
                    true = exact_delta(loss, epsilon)
                    stated = mpf(to_delta(loss, epsilon))
                    assert true * (1 - mpf(10) ** -40) <= stated <= true * (1 + mpf(10) ** -12)


def test_delta() -> None:
    check_delta(lambda loss, epsilon: loss.to_delta(epsilon=epsilon))


@pytest.mark.parametrize(
    "twin",
    [
        lambda loss, epsilon: loss.exact_part.to_delta(epsilon=epsilon),
        lambda loss, epsilon: float(loss.delta),
        lambda loss, epsilon: loss.exact_part.to_delta(epsilon=epsilon) + float(loss.delta),
    ],
    ids=["no failure", "failures only", "not below the sum"],
)
def test_twins_are_caught(twin: Callable[[ApproximateLoss, Fraction], float]) -> None:
    with pytest.raises(AssertionError):
        check_delta(twin)


@given(builders, sizes, st.sampled_from([Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10)]))
def test_epsilon_and_delta_are_inverses(
    build: Callable[[Fraction, Fraction], ApproximateLoss], size: Fraction, delta: Fraction
) -> None:
    loss = build(size, delta)
    whole = 3 * delta
    epsilon = loss.to_epsilon(delta=whole)
    assert loss.to_delta(epsilon=Fraction(epsilon)) <= float(whole) * (1 + 1e-15)
    with pytest.raises(InvalidParameter, match="implies no ε"):
        loss.to_epsilon(delta=delta / 2)


@pytest.mark.long
@given(losses, losses, losses)
def test_sums_and_orders(x: ApproximateLoss, y: ApproximateLoss, z: ApproximateLoss) -> None:
    if not x.kind == y.kind == z.kind:
        return
    assert x + y == y + x  # type: ignore[operator]
    assert (x + y) + z == x + (y + z)  # type: ignore[operator]
    assert x + x.nothing() == x == 1 * x  # type: ignore[operator]
    assert x <= x + y  # type: ignore[operator]
    assert x + y >= y  # type: ignore[operator]
    assert x.beyond(x + y) == x.nothing()  # type: ignore[operator, arg-type]


@given(losses)
def test_copies_and_rounding(loss: ApproximateLoss) -> None:
    assert pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss) == loss
    names = {
        c.__name__: c for c in (ApproxDP, ApproximateGaussianDP, ApproximateZeroConcentratedDP, GaussianDP, Fraction)
    }
    if isinstance(loss, ApproximateGaussianDP):
        assert eval(repr(loss), names).delta == loss.delta
    else:
        assert eval(repr(loss), names) == loss
    up = loss.rounded_up()
    assert loss.exact_part <= up.exact_part
    assert 0 <= up.delta - loss.delta < GRID


def test_what_losses_imply_in_another_measure() -> None:
    loss = ApproxDP(0.5, 1e-6)
    assert loss.to_kind("approx_gdp") == ApproximateGaussianDP.of(PureDP(0.5).to_kind("gdp"), 1e-6)  # type: ignore[arg-type]
    assert loss.to_kind("approx_zcdp") == ApproximateZeroConcentratedDP(PureDP(0.5).to_kind("zcdp").amount, 1e-6)
    assert ApproximateGaussianDP(1, 0.1).to_kind("approx_zcdp") == ApproximateZeroConcentratedDP(0.5, 0.1)
    assert approximate(GaussianDP(1), 0, "approx_gdp") == ApproximateGaussianDP(1, 0)
    assert approximate(PureDP(1), 0.1, "approx") == ApproxDP(1, 0.1)
    with pytest.raises(InvalidParameter, match="does not imply"):
        ApproximateZeroConcentratedDP(1, 0.1).to_kind("approx_gdp")
    with pytest.raises(InvalidParameter, match="no finite ε"):
        ApproximateGaussianDP(1, 0.1).to_kind("approx")
    with pytest.raises(InvalidParameter, match="one of approx"):
        loss.to_kind("gdp")


def test_measures_do_not_mix() -> None:
    for a in BUILDERS:
        for b in BUILDERS:
            if a is not b:
                with pytest.raises(InvalidParameter, match="do not add or compare"):
                    a(Fraction(1), Fraction(0)) + b(Fraction(1), Fraction(0))  # type: ignore[operator]
                with pytest.raises(InvalidParameter, match="do not add or compare"):
                    _ = a(Fraction(1), Fraction(0)) <= b(Fraction(1), Fraction(0))  # type: ignore[operator]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("arguments", [(-1, 0), (1, -0.1), (1, 1.5), (float("nan"), 0), (1, "0.1"), (True, 0)])
def test_what_is_no_loss_is_refused(
    build: Callable[[Fraction, Fraction], ApproximateLoss], arguments: tuple[Fraction, Fraction]
) -> None:
    with pytest.raises(InvalidParameter):
        build(*arguments)


def test_a_delta_of_one_promises_nothing() -> None:
    for build in BUILDERS:
        loss = build(Fraction(0), Fraction(1))
        assert loss.to_delta(epsilon=50) == 1
        assert (loss + loss).delta == 1  # type: ignore[operator]
        with pytest.raises(InvalidParameter, match="implies no ε"):
            loss.to_epsilon(delta=0.5)


def test_what_people_read() -> None:
    assert str(ApproximateZeroConcentratedDP(0.5, 1e-6)) == "(ρ = 0.5, δ = 1e-6)"
    assert repr(ApproximateZeroConcentratedDP(0.5, 1e-6)) == "ApproximateZeroConcentratedDP(0.5, 1e-06)"
