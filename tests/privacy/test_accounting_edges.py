"""What any accountant has to keep: no negative ε, no effect of order, round trips, and truth at the ends of ranges."""

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.listing import listed
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import BoundedRangePair, GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from lapwing.privacy.renyi import RenyiDP
from lapwing.privacy.statements import statements_of
from tests.support import mechanism_cases
from tests.support.effort import one_in, only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.intervals import check_epsilon
from tests.support.privacy.oracle import real

TENTH = Fraction(1, 10)
MILLIONTH = Fraction(1, 10**6)
WIDTH = Fraction(1, 100)
LARGE = [Fraction(text) for text in ("0.3", "0.5", "0.9", "0.999999")]
Parts = list[tuple[Pair, int]]


@pytest.mark.parametrize("delta", LARGE, ids=str)
def test_no_measure_states_a_negative_epsilon(delta: Fraction) -> None:
    for amount in (Fraction(1, 10**9), TENTH, Fraction(3)):
        for loss in mechanism_cases.losses(amount):
            assert loss.to_epsilon(delta=delta) >= 0
    order, curve = Fraction(1000), RenyiDP({1000: Fraction(1, 1000)})
    plain = curve.at(order) - math.log(delta * order) / (order - 1) + math.log1p(-1 / order)
    assert plain < 0 == curve.to_epsilon(delta=delta)


@pytest.mark.parametrize("delta", only([0, 3], LARGE), ids=str)
def test_no_distribution_or_statement_has_a_negative_epsilon(delta: Fraction) -> None:
    pairs: list[Pair] = [
        LaplacePair(TENTH),
        RandomizedResponsePair(TENTH),
        GaussianPair(TENTH**2),
        BoundedRangePair(TENTH),
        DiscreteLaplacePair(Fraction(10), 1),
        DiscreteGaussianPair(Fraction(100), 1),
        SubsampledPair(GaussianPair(TENTH), TENTH),
    ]
    for pair in pairs:
        assert compose([(pair, 3)], width=WIDTH).to_epsilon(delta) == (0, 0)
    rows = [listed("laplace", 3, epsilon=0.1), listed("gaussian", mu=0.1), listed("approx", epsilon=0.1, delta=1e-9)]
    stated = [one.epsilon for one in statements_of(rows, delta=delta) if not one.refused]
    assert all(epsilon is not None and epsilon >= 0 for epsilon in stated)
    assert 0 in stated


def test_a_sampled_gaussian_has_no_mu_or_rho() -> None:
    for kind in ("gdp", "zcdp"):
        with pytest.raises(InvalidParameter, match=f"Poisson sample has no smaller {kind} loss"):
            listed("gaussian", sigma=1, rate=0.1).mechanism.loss(kind)


def laplace(size: Fraction) -> tuple[Pair, Callable[[Fraction], mpf]]:
    return LaplacePair(size), lambda e: exact.laplace_delta(real(e), real(size))


def response(size: Fraction) -> tuple[Pair, Callable[[Fraction], mpf]]:
    chance = 1 / (1 + mp.exp(-real(size)))
    return RandomizedResponsePair(size), lambda e: max(mpf(0), chance - mp.exp(real(e)) * (1 - chance))


def gaussian(size: Fraction) -> tuple[Pair, Callable[[Fraction], mpf]]:
    return GaussianPair(size**2), lambda e: oracle.gdp_delta(size**2, e)


@pytest.mark.parametrize("delta", ["1e-15", "1e-9", "1e-3", "0.1", "0.5"])
@pytest.mark.parametrize("size", one_in(2, ["1e-6", "1e-3", "0.7", "8", "50"]))
@pytest.mark.parametrize("make", [laplace, response, gaussian])
def test_one_use_from_a_millionth_to_fifty(
    make: Callable[[Fraction], tuple[Pair, Callable[[Fraction], mpf]]], size: str, delta: str
) -> None:
    pair, delta_at = make(Fraction(size))
    check_epsilon(compose([(pair, 1)]).to_epsilon(Fraction(delta)), delta_at, Fraction(delta))


@pytest.mark.parametrize("size", [Fraction(text) for text in ("1e-6", "1e-3", "0.7", "8", "50")], ids=str)
@pytest.mark.parametrize("make", [laplace, response, gaussian])
def test_twin_a_tenth_less_noise_is_caught(
    make: Callable[[Fraction], tuple[Pair, Callable[[Fraction], mpf]]], size: Fraction
) -> None:
    """The width has to be less than what a tenth is."""
    target, (pair, _), (_, delta_at) = min(Fraction(1, 1000), size / 100), make(size), make(size / 9 * 10)
    found = compose([(pair, 1)], width=min(Fraction(1, 10**4), size / 1000)).to_epsilon(target)
    with pytest.raises(AssertionError):
        check_epsilon(found, delta_at, target)


@pytest.mark.parametrize("delta", ["1e-15", "1e-6", "0.1"])
def test_a_million_small_losses_are_nearly_a_gaussian(delta: str) -> None:
    """Losses of mean about x²/2 and variance about x²: μ² = 10⁶·x² = 1, within a few thousandths."""
    thousandth, target = Fraction(1, 1000), Fraction(delta)
    limit = float(oracle.bisect(lambda e: real(target) - oracle.gdp_delta(Fraction(1), e), mpf(0), mpf(100)))
    pairs: list[Pair] = [LaplacePair(thousandth), RandomizedResponsePair(thousandth)]
    for pair in pairs:
        found = compose([(pair, 10**6)], width=Fraction(1, 1000)).to_epsilon(target)
        assert found.upper - found.lower <= 2e-3
        assert found.upper == pytest.approx(limit, abs=5e-3)


@pytest.mark.long
def test_a_million_samples_at_rate_one_are_no_samples() -> None:
    plain = compose([(SubsampledPair(GaussianPair(MILLIONTH), Fraction(1)), 10**6)], width=WIDTH).to_epsilon(MILLIONTH)
    check_epsilon(plain, lambda e: oracle.gdp_delta(Fraction(1), e), MILLIONTH, width=float(WIDTH))


def test_a_million_samples() -> None:
    """By the central limit, μ² = 10⁶·q²·(e^(1/σ²) − 1) or a little more."""
    rare = compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 1000)), 10**6)], width=WIDTH)
    limit = Fraction(math.expm1(1))
    assert oracle.gdp_delta(limit, Fraction(rare.to_epsilon(MILLIONTH).upper)) < real(MILLIONTH)
    assert oracle.gdp_delta(limit, Fraction(rare.to_epsilon(MILLIONTH).lower) - TENTH) > real(MILLIONTH)


def random_lists(count: int) -> list[Parts]:
    source = Random("lists in any order")

    def pair(kind: int) -> Pair:
        size = Fraction(source.randrange(20, 400), 1000)
        made: list[Callable[[], Pair]] = [
            lambda: LaplacePair(size),
            lambda: GaussianPair(size**2),
            lambda: RandomizedResponsePair(size, source.choice((2, 5))),
            lambda: BoundedRangePair(size),
            lambda: SubsampledPair(GaussianPair(9 * size**2), Fraction(source.randrange(5, 200), 1000)),
        ]
        return made[kind]()

    return [
        [(pair(kind), source.randrange(1, 40)) for kind in source.sample(range(4 + (n % 4 == 0)), 3)]
        for n in range(count)
    ]


LISTS = random_lists(12)
SOME_LISTS = only([0, 2], LISTS)
"""Every kind of pair."""


def met(one: LossDistribution, other: LossDistribution, delta: Fraction) -> bool:
    found, again = one.to_epsilon(delta), other.to_epsilon(delta)
    return found.lower <= again.upper and again.lower <= found.upper


@pytest.mark.parametrize("parts", SOME_LISTS, ids=str)
def test_order_and_grouping_do_not_matter(parts: Parts) -> None:
    source = Random(str(parts))
    single = [(pair, 1) for pair, count in parts for _ in range(count)]
    source.shuffle(single)
    first, *rest = [compose([part], width=WIDTH) for part in reversed(parts)]
    for other in (compose(single, width=WIDTH), first.compose(*rest)):
        assert met(compose(parts, width=WIDTH), other, MILLIONTH)


def check_round_trip(parts: Parts, delta: Fraction, stated: Fraction = Fraction(1)) -> None:
    """δ at the lower end of ε may be δ or more, and at the upper end δ or less."""
    loss = compose(parts, width=WIDTH)
    found = loss.to_epsilon(delta)
    assert loss.to_delta(stated * Fraction(found.lower)).upper >= delta
    assert loss.to_delta(stated * Fraction(found.upper)).lower <= delta


@pytest.mark.parametrize("parts", SOME_LISTS, ids=str)
@pytest.mark.parametrize("delta", one_in(3, ["1e-12", "1e-5", "0.05"]))
def test_round_trips(parts: Parts, delta: str) -> None:
    check_round_trip(parts, Fraction(delta))


@pytest.mark.parametrize("parts", only([1], LISTS[::3]), ids=str)
@pytest.mark.parametrize("stated", ["0.9", "1.1"])
def test_twin_another_epsilon_does_not_come_back(stated: str, parts: Parts) -> None:
    with pytest.raises(AssertionError):
        check_round_trip(parts, Fraction(1, 10**5), Fraction(stated))


@pytest.mark.parametrize("parts", SOME_LISTS, ids=str)
def test_more_never_loses_less(parts: Parts) -> None:
    """One mechanism more, or a smaller δ: the lower end stays below the other's upper end."""
    whole = compose(parts, width=WIDTH).to_epsilon(MILLIONTH)
    for index in range(len(parts)):
        assert compose(parts[:index] + parts[index + 1 :], width=WIDTH).to_epsilon(MILLIONTH).lower <= whole.upper
    assert compose(parts, width=WIDTH).to_epsilon(MILLIONTH / 10).upper >= whole.lower
    assert whole.upper <= compose([*parts, (LaplacePair(TENTH), 5)], width=WIDTH).to_epsilon(MILLIONTH).upper + 0.01


@pytest.mark.long
@pytest.mark.parametrize(
    "texts",
    [
        ("0.999", "1"),
        pytest.param(("1e-5", "0.01", "0.03", "0.3", "0.999", "1"), marks=pytest.mark.long),
    ],
    ids=len,
)
def test_a_larger_sample_never_loses_less(texts: tuple[str, ...]) -> None:
    rates = [Fraction(text) for text in texts]
    losses = [compose([(SubsampledPair(GaussianPair(Fraction(1)), rate), 10)], width=WIDTH) for rate in rates]
    for delta in (MILLIONTH, Fraction(1, 2)):
        found = [loss.to_epsilon(delta) for loss in losses]
        for index, one in enumerate(found):
            assert all(one.lower <= more.upper for more in found[index:])
        assert found[-2].upper == pytest.approx(found[-1].upper, abs=0.03)
