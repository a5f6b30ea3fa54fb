"""Rényi divergences on a Poisson sample: against sums, quadrature, other accountants' figures, and planted bugs."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import sampled_divergence
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.filters import Account
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.pairs import ApproximatePair, BoundedRangePair, GaussianPair, LaplacePair, Pair
from lapwing.privacy.renyi import DEFAULT_ORDERS, RenyiDP
from tests.support.effort import one_in, only
from tests.support.privacy.oracle import real

HUNDREDTH = Fraction(1, 100)


def at_whole_order(mu_squared: Fraction, rate: Fraction, order: int) -> mpf:
    """log Σ binomial(α, k)·(1 − q)^(α − k)·q^k·e^(k(k − 1)μ²/2)/(α − 1) (Mironov, Talwar and Zhang 2019)."""
    with mp.workdps(60):
        m, q = real(mu_squared), real(rate)
        terms = (
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(m * k * (k - 1) / 2)
            for k in range(order + 1)
        )
        return mp.log(mp.fsum(terms)) / (order - 1)


def by_quadrature(mu_squared: Fraction, rate: Fraction, order: Fraction, power: Fraction) -> mpf:
    with mp.workdps(40):
        mu, q, k = mp.sqrt(real(mu_squared)), real(rate), real(power)
        far = int(abs(k) * mu) + 14
        excess = mp.quad(
            lambda x: mp.npdf(x) * (mp.exp(k * mp.log(1 - q + q * mp.exp(mu * x - mu**2 / 2))) - 1),
            range(-far, far + 1),
        )
        return mp.log1p(excess) / (real(order) - 1)


CASES = {
    "training": (Fraction("0.826"), HUNDREDTH),
    "rare": (Fraction(1), Fraction(1, 10**6)),
    "half": (HUNDREDTH, Fraction(1, 2)),
    "little noise": (Fraction(4), Fraction(1, 10)),
    "nearly all": (Fraction(1), 1 - Fraction(1, 1000)),
    "large": (Fraction(1, 900), Fraction(1, 10**4)),
}


def curve(name: str, orders: list[Fraction]) -> RenyiDP:
    mu_squared, rate = CASES[name]
    return RenyiDP({order: order * mu_squared / 2 for order in orders}).subsampled(rate, pair=GaussianPair(mu_squared))


def check_whole_orders(name: str) -> None:
    """Never below the sum, and within a hundred-millionth of it, or that which is convex in the rate."""
    mu_squared, rate = CASES[name]
    orders = [Fraction(order) for order in (2, 3, 5, 16, 64, 256, 512)]
    for order, loss in curve(name, orders).points:
        true = at_whole_order(mu_squared, rate, int(order))
        assert true <= real(loss)
        most = mp.log(1 - real(rate) + real(rate) * mp.exp((order - 1) * order * real(mu_squared) / 2)) / (order - 1)
        assert real(loss) <= min(true * (1 + mpf(10) ** -8), most) or abs(real(loss) / most - 1) < mpf(10) ** -15


@pytest.mark.parametrize("name", one_in(6, CASES))
def test_whole_orders(name: str) -> None:
    check_whole_orders(name)


@pytest.mark.parametrize("order", only([2], [Fraction("1.02"), Fraction("1.5"), Fraction("7.3")]), ids=str)
@pytest.mark.parametrize("name", only([0], CASES))
def test_orders_between(name: str, order: Fraction) -> None:
    """Of both directions the larger."""
    mu_squared, rate = CASES[name]
    ((_, loss),) = curve(name, [order]).points
    true = max(by_quadrature(mu_squared, rate, order, power) for power in (order, 1 - order))
    assert true <= real(loss) <= true * (1 + mpf(10) ** -8)


@pytest.mark.parametrize(
    ("case", "name", "fault"),
    [
        ("rare", "losses_on", lambda f: lambda m, rate, *of: f(m, rate * 99 / 100, *of)),
        ("rare", "_short_excess", lambda f: lambda *of: (f(*of)[0] * (1 - 1e-6), f(*of)[1])),
        ("half", "expm1", lambda f: lambda x: f(x) * (1 - 1e-6)),
        ("rare", "step_for", lambda f: lambda *of: f(*of)._replace(h=4 * f(*of).h)),
        ("rare", "ends", lambda f: lambda *of: (-1.0, 1.0)),
    ],
    ids=["a smaller rate", "rounding inwards", "the same", "a fourth of the points", "no tails"],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, case: str, name: str, fault: Callable[..., object]) -> None:
    monkeypatch.setattr(sampled_divergence, name, fault(getattr(sampled_divergence, name)))
    with pytest.raises((AssertionError, ArithmeticError)):
        check_whole_orders(case)


def test_what_other_accountants_state() -> None:
    """Ten thousand steps at q = 0.01 and σ = 1.1: at δ = 10⁻⁵ dp-accounting 0.6 says 5.6320 over these, its orders."""
    orders = [1 + Fraction(n, 10) for n in range(1, 100)] + [Fraction(n) for n in (*range(11, 64), 128, 256, 512, 1024)]
    steps = 10_000 * RenyiDP.gaussian(sigma=Fraction("1.1"), rate=HUNDREDTH, orders=orders)
    assert steps.to_epsilon(delta=Fraction(1, 10**5)) == pytest.approx(5.631992, abs=2e-6)
    usual = 10_000 * RenyiDP.gaussian(sigma=Fraction("1.1"), rate=HUNDREDTH)
    assert 5.6319 <= usual.to_epsilon(delta=Fraction(1, 10**5)) <= 5.65


def test_an_exact_accountant_states_less() -> None:
    pair = SubsampledPair(GaussianPair(1 / Fraction("1.1") ** 2), HUNDREDTH)
    exact = compose([(pair, 10_000)]).to_epsilon(Fraction(1, 10**5))
    renyi = (10_000 * RenyiDP.gaussian(sigma=Fraction("1.1"), rate=HUNDREDTH)).to_epsilon(delta=Fraction(1, 10**5))
    assert exact.upper < renyi < 1.1 * exact.upper


@pytest.mark.parametrize(
    ("pair", "whole"),
    one_in(
        6,
        [
            (LaplacePair(Fraction(1, 2)), RenyiDP.laplace(scale=2)),
            (BoundedRangePair(Fraction(1, 2)), RenyiDP.bounded_range(Fraction(1, 2))),
            (DiscreteLaplacePair(Fraction(2), 1), RenyiDP.discrete_laplace(scale=2)),
            (DiscreteGaussianPair(Fraction(4), 1), RenyiDP({2: Fraction(1, 4), 8: Fraction(1)})),
        ],
        many=True,
    ),
    ids=["laplace", "bounded range", "discrete laplace", "discrete gaussian"],
)
def test_other_mechanisms_lose_less_on_a_sample(pair: Pair, whole: RenyiDP) -> None:
    """About the square of the rate of it at low orders, never above it, and rising with the rate."""
    found = [whole.subsampled(rate, pair=pair) for rate in (Fraction(1, 1000), HUNDREDTH, Fraction(1, 10), Fraction(1))]
    assert found[-1] == whole
    for smaller, larger in pairwise(found):
        assert all(one <= other for (_, one), (_, other) in zip(smaller.points, larger.points, strict=True))
    assert found[1].at(2) <= whole.at(2) / 2000


def test_at_laplace_noise_by_its_own_sum() -> None:
    """Two atoms and a density, at an order of 3 and a rate of a tenth."""
    e, q = mpf(1) / 2, mpf(1) / 10

    def cube(loss: mpf) -> mpf:
        return (1 - q + q * mp.exp(loss)) ** 3

    inner = mp.quad(lambda x: mp.exp(-(x + e) / 2) / 4 * cube(x), [-e, 0, e])
    true = mp.log(inner + mp.exp(-e) / 2 * cube(e) + cube(-e) / 2) / 2
    found = RenyiDP.laplace(scale=2, orders=[3]).subsampled(Fraction(1, 10), pair=LaplacePair(Fraction(1, 2))).at(3)
    assert true <= real(found) <= true * (1 + mpf(10) ** -7)


def test_beyond_what_is_computed_the_sample_counts_as_the_whole() -> None:
    loss = RenyiDP.gaussian(sigma=1, rate=HUNDREDTH, orders=[10**6])
    assert 5 * 10**5 - Fraction(6, 10**6) < loss.at(10**6) < 5 * 10**5 - Fraction(4, 10**6)
    huge = RenyiDP.gaussian(sigma=Fraction(1, 100), rate=HUNDREDTH, orders=[2, 50])
    assert huge.at(2) <= 10**4
    assert RenyiDP.gaussian(sigma=1, l2=0, rate=HUNDREDTH, orders=[2]).at(2) == 0


def test_an_account_of_training() -> None:
    """What adds up whatever is asked: steps with other noise and other samples fit until the cap is reached."""
    from lapwing.privacy.filters import Granted, charge

    cap = 1000 * RenyiDP.gaussian(sigma=1, rate=HUNDREDTH)
    account = Account.opened(cap)
    for sigma, rate in ((1, HUNDREDTH), (2, Fraction(1, 50))):
        granted = charge(account, 400 * RenyiDP.gaussian(sigma=sigma, rate=rate))
        assert isinstance(granted, Granted)
        account = granted.account
    assert not isinstance(charge(account, cap), Granted)


def test_a_rate_that_is_none_and_a_pair_that_fits_none_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="sampling rate"):
        RenyiDP.gaussian(sigma=1, rate=2)
    with pytest.raises(InvalidParameter, match="δ = 0"):
        RenyiDP({2: 1}).subsampled(HUNDREDTH, pair=ApproximatePair(Fraction(1), Fraction(1, 10)))


def test_the_usual_orders() -> None:
    assert {Fraction(5, 4), 16, 64, 512} <= set(DEFAULT_ORDERS)
    assert list(DEFAULT_ORDERS) == sorted(set(DEFAULT_ORDERS))
