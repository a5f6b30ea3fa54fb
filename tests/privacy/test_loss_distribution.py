"""Certified intervals against exact compositions, closed forms and another accountant; planted bugs leave them."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from random import Random

import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from mpmath import mp, mpf
from scipy import stats

from lapwing.privacy.atoms import AtomLaw, BinomialCurve
from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
from lapwing.privacy.concentrated_profile import zcdp_delta_up
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.gaussian_profile import gdp_delta_up
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from tests.support.effort import one_in, only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.exact_composition import Lattice
from tests.support.privacy.intervals import check_delta, check_epsilon
from tests.support.privacy.oracle import real

TENTH = Fraction(1, 10)
MILLIONTH = Fraction(1, 10**6)


def gaussians() -> list[tuple[LossDistribution, Fraction]]:
    return [
        (compose([(GaussianPair(Fraction(mu) ** 2), count)]), Fraction(mu) ** 2 * count)
        for mu, count in (("0.02", 1000), ("1", 1), ("1e-3", 10**6), ("5", 1), ("1e-6", 1), ("0.3", 7))
    ]


@pytest.mark.parametrize(("loss", "mu_squared"), gaussians(), ids=str)
@pytest.mark.parametrize("delta", ["1e-15", "1e-10", "1e-6", "0.01", "0.3"])
def test_gaussian_noise(loss: LossDistribution, mu_squared: Fraction, delta: str) -> None:
    target = Fraction(delta)
    check_epsilon(loss.to_epsilon(target), lambda e: oracle.gdp_delta(mu_squared, e), target)
    for epsilon in (Fraction(0), MILLIONTH, TENTH, Fraction(1), Fraction(4)):
        true = oracle.gdp_delta(mu_squared, epsilon)
        if true > mpf(10) ** -280:
            check_delta(loss.to_delta(epsilon), true, relative=1e-3)


Both = tuple[tuple[Pair, int], tuple[Lattice, int]]


@cache
def responses() -> dict[str, tuple[list[tuple[Pair, int]], list[tuple[Lattice, int]]]]:
    def both(steps: int, count: int, choices: int = 2) -> Both:
        return (RandomizedResponsePair(steps * TENTH, choices), count), (exact.response(steps, TENTH, choices), count)

    laplace: Both = (DiscreteLaplacePair(Fraction(10), 4), 30), (exact.discrete_laplace(TENTH, 4), 30)
    rows: dict[str, list[Both]] = {
        "one": [both(10, 1)],
        "three": [both(10, 3)],
        "hundred": [both(1, 100)],
        "k-ary": [both(10, 20, 16)],
        "mixed": [both(1, 50), both(3, 10), both(7, 3, 5), laplace],
        "discrete Laplace": [laplace],
    }
    return {name: ([pair for pair, _ in row], [law for _, law in row]) for name, row in rows.items()}


@pytest.mark.parametrize("name", only([0, 4], ["one", "three", "hundred", "k-ary", "mixed", "discrete Laplace"]))
def test_integer_convolution(name: str) -> None:
    parts, laws = responses()[name]
    loss, law = compose(parts), exact.composed(laws)
    for delta in ("1e-15", "1e-6", "0.05"):
        check_epsilon(
            loss.to_epsilon(Fraction(delta)), lambda e: exact.lattice_delta(law, TENTH, e), Fraction(delta), width=2e-4
        )
    for epsilon in (Fraction(0), MILLIONTH, Fraction("0.333"), Fraction(1), Fraction("2.05")):
        check_delta(loss.to_delta(epsilon), exact.lattice_delta(law, TENTH, epsilon), relative=0.02)


@pytest.mark.parametrize("delta", only([], [MILLIONTH, Fraction(1, 2), TENTH]), ids=str)
def test_a_million_large_randomized_responses(delta: Fraction) -> None:
    """As narrow as asked, and near the quantile of the losses by normal approximation."""
    found = compose([(RandomizedResponsePair(Fraction(1)), 10**6)], width=Fraction(1, 1000)).to_epsilon(delta)
    assert found.upper - found.lower <= 1e-3
    chance = 1 / (1 + math.exp(-1))
    near = 10**6 * (2 * chance - 1 + 2 * stats.norm.isf(float(delta)) * math.sqrt(chance * (1 - chance) / 10**6))
    assert found.upper == pytest.approx(near, abs=60)


def check_binomial(epsilon: float, count: int = 100) -> None:
    law = RandomizedResponsePair(TENTH).law("remove", "upper", 1)
    assert isinstance(law, AtomLaw)
    lower, upper = BinomialCurve(law, count).bounds(epsilon)
    true = exact.lattice_delta(exact.composed([(exact.response(1, TENTH), 100)]), TENTH, Fraction(epsilon))
    assert real(lower) <= true + mpf(10) ** -100
    assert true <= real(upper) <= true * (1 + mpf(10) ** -25)


@pytest.mark.parametrize("epsilon", [-11.0, 0.0, 0.333, 1.0, 2.05, 9.9, 11.0])
def test_binomial_sums(epsilon: float) -> None:
    check_binomial(epsilon)


@pytest.mark.parametrize("count", [99, 101])
def test_twin_one_use_miscounted(count: int) -> None:
    with pytest.raises(AssertionError):
        check_binomial(0.9, count)


def test_the_largest_loss_is_where_delta_is_zero() -> None:
    loss = compose([(RandomizedResponsePair(TENTH), 7), (LaplacePair(Fraction(1, 3)), 2), (BoundedRangePair(TENTH), 1)])
    most = Fraction(7, 10) + Fraction(2, 3) + TENTH
    found = loss.to_epsilon(0)
    assert Fraction(found.lower) <= most <= Fraction(found.upper)
    assert found.upper - found.lower < 1e-15
    assert loss.to_delta(most) == (0, 0)
    assert loss.to_delta(most - MILLIONTH).upper > 0
    assert compose([(GaussianPair(TENTH), 1)]).to_epsilon(0) == (math.inf, math.inf)
    assert compose([]).to_epsilon(0) == compose([]).to_epsilon(TENTH) == (0, 0)
    assert compose([]).to_delta(0) == (0, 0)


@pytest.mark.parametrize("losses", [("1",), ("0.5", "0.5"), ("0.3", "0.8"), ("0.9", "0.4")], ids=str)
def test_laplace_noise_by_quadrature(losses: tuple[str, ...]) -> None:
    loss = compose([(LaplacePair(Fraction(x)), 1) for x in losses])
    with mp.workdps(20):
        for epsilon in (Fraction(0), Fraction("0.11"), Fraction("0.6")):
            true = exact.laplaces_delta(real(epsilon), [real(Fraction(x)) for x in losses])
            check_delta(loss.to_delta(epsilon), true, relative=1e-3)


@pytest.mark.parametrize("rate", only([2], ["1e-5", "0.01", "0.5", "1"]))
def test_one_subsampled_gaussian(rate: str) -> None:
    loss = compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(rate)), 1)], width=Fraction(1, 1000))
    for epsilon in (MILLIONTH, TENTH, Fraction(1)):
        remove, add = exact.subsampled_gaussian_deltas(mpf(1), real(Fraction(rate)), real(epsilon))
        found = loss.to_delta(epsilon)
        check_delta(found, max(remove, add))
        assert found.upper - found.lower <= 0.02 * found.upper


@pytest.mark.parametrize(
    ("rate", "count"), only([0, 4], [(r, c) for r in ("0.001", "0.1", "0.9") for c in (2, 40)], many=True)
)
def test_subsampled_randomized_responses(rate: str, count: int) -> None:
    """Two outcomes each: the composition in both directions, exactly."""
    share, high = real(Fraction(rate)), 1 / (1 + mp.exp(-mpf(1)))
    mixed = share * high + (1 - share) * (1 - high)

    def delta_at(epsilon: Fraction) -> mpf:
        remove = exact.two_outcomes_delta(mixed, 1 - high, count, real(epsilon))
        return max(remove, exact.two_outcomes_delta(1 - high, mixed, count, real(epsilon)))

    loss = compose([(SubsampledPair(RandomizedResponsePair(Fraction(1)), Fraction(rate)), count)])
    check_epsilon(loss.to_epsilon(MILLIONTH), delta_at, MILLIONTH, width=2e-4)
    for epsilon in (Fraction(0), TENTH, Fraction(1)):
        check_delta(loss.to_delta(epsilon), delta_at(epsilon))


@pytest.mark.parametrize(
    "pair",
    only([2], [LaplacePair(Fraction(1, 5)), GaussianPair(Fraction(1, 25)), RandomizedResponsePair(Fraction(1, 5))]),
    ids=str,
)
def test_subsampling_at_rate_one_is_none(pair: Pair) -> None:
    plain = compose([(pair, 20)]).to_epsilon(MILLIONTH)
    sampled = compose([(SubsampledPair(pair, Fraction(1)), 20)], width=Fraction(1, 200)).to_epsilon(MILLIONTH)
    assert sampled.lower <= plain.upper
    assert plain.lower <= sampled.upper <= plain.upper + 5e-3


def test_approximate_losses() -> None:
    loss = compose([(ApproximatePair(TENTH, Fraction(1, 10**8)), 50)])
    check_epsilon(loss.to_epsilon(MILLIONTH), lambda e: exact.kov_delta(TENTH, Fraction(1, 10**8), 50, e), MILLIONTH)
    for epsilon in (Fraction(0), Fraction(2), Fraction(4)):
        check_delta(loss.to_delta(epsilon), exact.kov_delta(TENTH, Fraction(1, 10**8), 50, epsilon), relative=1e-3)
    beyond = loss.to_delta(50)
    check_delta(beyond, 1 - (1 - mpf(10) ** -8) ** 50)
    assert loss.to_epsilon(Fraction(1, 10**7)) == (math.inf, math.inf)
    assert loss.to_epsilon(0) == (math.inf, math.inf)
    assert loss.to_epsilon(Fraction(1, 10**6) - Fraction(49, 10**8)).upper <= 5


def two_coins(eta: Fraction, t: Fraction) -> list[tuple[mpf, mpf]]:
    """Coins with log-ratios t at heads and t − η at tails."""
    high, low = mp.exp(real(t)), mp.exp(real(t - eta))
    q = (1 - low) / (high - low)
    return [(high * q, q), (low * (1 - q), 1 - q)]


@pytest.mark.parametrize("eta", only([1], [TENTH, Fraction(1), Fraction(5)]))
def test_bounded_range_is_the_envelope_of_coins(eta: Fraction) -> None:
    loss, every = compose([(BoundedRangePair(eta), 1)]), [two_coins(eta, eta * n / 2000) for n in range(1, 2000)]
    for epsilon in (Fraction(0), eta / 3, eta * Fraction(9, 10)):
        growth = mp.exp(real(epsilon))
        deltas = [mp.fsum(max(mpf(0), p - growth * q) for p, q in coins) for coins in every]
        found = loss.to_delta(epsilon)
        assert max(deltas) <= found.upper
        assert max(deltas) >= found.lower * mpf("0.999")


def test_mixtures() -> None:
    half = Fraction(1, 2)
    pair = MixturePair(((half, RandomizedResponsePair(TENTH)), (half, RandomizedResponsePair(3 * TENTH))))
    law: Lattice = {}
    for steps in (1, 3):
        for at, mass in exact.response(steps, TENTH).items():
            law[at] = mass // 2
    composed = exact.composed([(law, 20)])
    check_epsilon(
        compose([(pair, 20)]).to_epsilon(MILLIONTH), lambda e: exact.lattice_delta(composed, TENTH, e), MILLIONTH
    )


@pytest.mark.parametrize(
    ("variance", "sensitivity"),
    one_in(4, [(7, 2), (Fraction(1, 4), 2), (Fraction(1, 5), 4), (Fraction(1, 20), 1), (0.01, 1)], many=True),
)
def test_discrete_gaussian_noise(variance: Fraction, sensitivity: int) -> None:
    """Its δ from its probabilities."""
    exact_variance = Fraction(str(variance))
    twice = 2 * real(exact_variance)
    total = mp.fsum(mp.exp(-mpf(x * x) / twice) for x in range(-120, 121))
    loss = compose([(DiscreteGaussianPair(exact_variance, sensitivity), 1)])
    for epsilon in (Fraction(0), TENTH, Fraction(1), Fraction(2), Fraction(5)):
        true = oracle.discrete_delta(lambda x: mp.exp(-mpf(x * x) / twice) / total, sensitivity, epsilon, 100)
        check_delta(loss.to_delta(epsilon), true, relative=0.01)


@pytest.mark.long
def test_a_wide_discrete_gaussian_is_nearly_a_gaussian() -> None:
    wide = compose([(DiscreteGaussianPair(Fraction(2500), 1), 1000)], width=Fraction(1, 1000)).to_epsilon(MILLIONTH)
    assert wide.lower - 1e-3 <= oracle_gaussian_epsilon(Fraction(1000, 2500), MILLIONTH) <= wide.upper + 1e-3


def oracle_gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> float:
    return float(oracle.bisect(lambda e: real(delta) - oracle.gdp_delta(mu_squared, e), mpf(0), mpf(100)))


@pytest.mark.long
def test_a_wide_discrete_laplace_is_nearly_laplace() -> None:
    wide = compose([(DiscreteLaplacePair(Fraction(10**6), 10**5), 100)], width=Fraction(1, 1000)).to_epsilon(MILLIONTH)
    plain = compose([(LaplacePair(TENTH), 100)]).to_epsilon(MILLIONTH)
    assert abs(wide.upper - plain.upper) < 1e-3
    assert abs(wide.lower - plain.lower) < 1e-3


def test_a_million_randomized_responses() -> None:
    """Against binomial tails in floats: P(X ≥ m) − e^ε·Q(X ≥ m)."""
    count, step = 10**6, Fraction(1, 1000)
    found = compose([(RandomizedResponsePair(step), count)]).to_epsilon(MILLIONTH)
    truth = 1 / (1 + math.exp(-0.001))

    def delta_at(epsilon: float) -> float:
        least = math.floor((epsilon / 0.001 + count) / 2) + 1
        tail, other = stats.binom.sf(least - 1, count, truth), stats.binom.sf(least - 1, count, 1 - truth)
        return float(tail - math.exp(epsilon) * other)

    assert delta_at(found.upper) <= 1e-6 * (1 + 1e-8)
    assert delta_at(found.lower) >= 1e-6 * (1 - 1e-8)
    assert found.upper - found.lower <= 1e-4


@pytest.mark.parametrize("delta", one_in(2, ["1e-15", "1e-9", "1e-3", "0.5"]))
def test_extremes_stay_ordered(delta: str) -> None:
    rows: list[tuple[Pair, int]] = [
        (LaplacePair(MILLIONTH), 10**6),
        (LaplacePair(Fraction(50)), 1),
        (RandomizedResponsePair(Fraction(1, 100)), 10**6),
        (BoundedRangePair(Fraction(1, 1000)), 10**6),
        (RandomizedResponsePair(MILLIONTH), 1),
        (ApproximatePair(Fraction(0), Fraction(1, 10**9)), 1),
    ]
    for pair, count in rows:
        found = compose([(pair, count)]).to_epsilon(Fraction(delta))
        assert 0 <= found.lower <= found.upper
        if math.isfinite(found.upper):
            assert found.upper - found.lower <= 1e-3 + 1e-7 * found.upper
            back = compose([(pair, count)]).to_delta(Fraction(found.upper))
            assert back.lower <= float(delta)


@pytest.mark.parametrize("rate", only([1], ["1e-5", "0.02"]))
def test_subsampled_extremes(rate: str) -> None:
    loss = compose([(SubsampledPair(GaussianPair(Fraction(1, 4)), Fraction(rate)), 200)], width=Fraction(1, 100))
    found = loss.to_epsilon(Fraction(1, 10**8))
    assert 0 <= found.lower <= found.upper <= found.lower + 0.02


def random_lists(count: int) -> list[list[tuple[Pair, int]]]:
    source = Random("lists of mechanisms")

    def pair() -> Pair:
        size = Fraction(source.randrange(1, 300), 1000)
        kind = source.randrange(4)
        if kind == 0:
            return LaplacePair(size)
        if kind == 1:
            return GaussianPair(size**2)
        if kind == 2:
            return RandomizedResponsePair(size, source.choice((2, 2, 5)))
        return DiscreteLaplacePair(1 / size, 1)

    return [[(pair(), source.randrange(1, 30)) for _ in range(source.randrange(1, 6))] for _ in range(count)]


def peers(pair: Pair) -> peer.PrivacyLossDistribution:
    if isinstance(pair, LaplacePair):
        return peer.from_laplace_mechanism(float(1 / pair.epsilon), value_discretization_interval=1e-3)
    if isinstance(pair, GaussianPair):
        return peer.from_gaussian_mechanism(float(pair.mu_squared) ** -0.5, value_discretization_interval=1e-3)
    if isinstance(pair, RandomizedResponsePair):
        e, k = math.exp(pair.epsilon), pair.choices
        return peer.from_randomized_response(k / (e + k - 1), k, value_discretization_interval=1e-3)
    assert isinstance(pair, DiscreteLaplacePair)
    return peer.from_discrete_laplace_mechanism(
        float(1 / pair.scale), pair.sensitivity, value_discretization_interval=1e-3
    )


@pytest.mark.parametrize("parts", one_in(3, random_lists(12)))
def test_never_above_a_pessimistic_accountant(parts: list[tuple[Pair, int]]) -> None:
    """The peer's figure is an upper bound: at least our lower end; ours is not above it."""
    total = None
    for pair, count in parts:
        one = peers(pair).self_compose(count)
        total = one if total is None else total.compose(one)
    assert total is not None
    theirs, ours = total.get_epsilon_for_delta(1e-6), compose(parts).to_epsilon(MILLIONTH)
    assert ours.upper - ours.lower <= 1e-4
    assert ours.lower <= theirs + 1e-9
    assert ours.upper <= theirs + 1e-4


@pytest.mark.long
def test_subsampled_steps_beside_a_pessimistic_accountant() -> None:
    loss = compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 100)), 1000)], width=Fraction(1, 500))
    theirs = peer.from_gaussian_mechanism(1.0, sampling_prob=0.01, value_discretization_interval=1e-4)
    ours, upper = loss.to_epsilon(Fraction(1, 10**5)), theirs.self_compose(1000).get_epsilon_for_delta(1e-5)
    assert ours.lower <= upper
    assert ours.upper <= upper + 2e-3
    assert ours.upper - ours.lower <= 2e-3


def test_never_above_other_theorems() -> None:
    mu_squared = Fraction(3, 10)
    loss = compose([(GaussianPair(mu_squared / 30), 30)])
    for epsilon in (TENTH, Fraction(1), Fraction(3)):
        assert loss.to_delta(epsilon).lower <= gdp_delta_up(mu_squared, epsilon)
        assert loss.to_delta(epsilon).lower <= zcdp_delta_up(mu_squared / 2, epsilon)


def test_order_grouping_and_increments_do_not_matter() -> None:
    rows: list[tuple[Pair, int]] = [
        (LaplacePair(TENTH), 3),
        (GaussianPair(TENTH), 2),
        (RandomizedResponsePair(TENTH), 4),
        (LaplacePair(TENTH), 2),
    ]
    whole = compose(rows).to_epsilon(MILLIONTH)
    steps = LossDistribution()
    for row in reversed(rows):
        steps = steps + compose([row])
    for other in (compose(rows[::-1]), steps, compose([(p, 1) for p, count in rows for _ in range(count)])):
        found = other.to_epsilon(MILLIONTH)
        assert found == pytest.approx(whole, abs=1e-9)
    assert compose(rows).self_compose(3).parts == compose([(p, 3 * c) for p, c in rows]).parts


def test_monotone() -> None:
    pair = LaplacePair(TENTH)
    for less, more in pairwise(compose([(pair, count)]).to_epsilon(MILLIONTH) for count in (1, 2, 5, 20, 100)):
        assert less.lower < more.upper
    loss = compose([(pair, 30)])
    for less, more in pairwise(loss.to_epsilon(Fraction(1, 10**n)) for n in (1, 3, 6, 9, 12)):
        assert less.upper <= more.upper + 1e-4
        assert less.lower <= more.upper
    for more_delta, less_delta in pairwise(loss.to_delta(Fraction(n, 4)) for n in range(10)):
        assert more_delta.upper >= less_delta.lower
