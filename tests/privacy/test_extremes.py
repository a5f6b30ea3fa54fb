"""Numbers of any size are answered within bounds or refused with what is allowed; nothing else comes out."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from random import Random

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import discretisation
from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import (
    MOST_LOSS,
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from lapwing.privacy.running import nothing_yet
from tests.support.effort import one_in
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.intervals import check_delta, forget
from tests.support.privacy.oracle import real

HUGE = Fraction(10) ** 90
TINY = 1 / HUGE
SIZES = [TINY / 10, TINY, Fraction(1, 10**40), Fraction(1, 10**9), Fraction(1, 3), Fraction(5), MOST_LOSS, HUGE]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplacePair(HUGE),
        lambda: RandomizedResponsePair(HUGE),
        lambda: RandomizedResponsePair(Fraction(1), 10**60),
        lambda: ApproximatePair(HUGE, Fraction(0)),
        lambda: BoundedRangePair(HUGE),
        lambda: GaussianPair(HUGE),
        lambda: DiscreteLaplacePair(TINY),
        lambda: DiscreteLaplacePair(Fraction(1), 10**40),
        lambda: DiscreteGaussianPair(HUGE),
        lambda: SubsampledPair(LaplacePair(Fraction(1)), TINY / 10),
        lambda: MixturePair(((TINY / 10, LaplacePair(Fraction(1))), (1 - TINY / 10, LaplacePair(Fraction(1))))),
        lambda: LaplacePair(TINY / 10),
        lambda: compose([(LaplacePair(Fraction(1)), 10**13)]),
        lambda: compose([(GaussianPair(Fraction(10**8)), 2)]),
        lambda: nothing_yet(0.1).charge(LaplacePair(Fraction(1)), 10**13),
    ],
)
def test_what_is_beyond_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def some_pair(random: Random) -> Pair:
    size, delta = random.choice(SIZES), random.choice([Fraction(0), TINY, Fraction(1, 2), 1 - TINY])
    rate = random.choice([TINY, Fraction(1, 10**5), Fraction(1, 2), 1 - Fraction(1, 10**50)])
    makers: list[Callable[[], Pair]] = [
        lambda: GaussianPair(size),
        lambda: LaplacePair(size),
        lambda: DiscreteLaplacePair(1 / size),
        lambda: RandomizedResponsePair(size, random.choice([2, 1000])),
        lambda: ApproximatePair(size, delta),
        lambda: BoundedRangePair(size),
        lambda: SubsampledPair(RandomizedResponsePair(size), rate),
        lambda: MixturePair(((rate, LaplacePair(size)), (1 - rate, RandomizedResponsePair(size)))),
    ]
    return random.choice(makers)()


@pytest.mark.parametrize("seed", one_in(2, range(40)))
def test_whatever_is_answered_is_an_interval(seed: int) -> None:
    random = Random(seed)
    parts: list[tuple[Pair, int]] = []
    with suppress(InvalidParameter):
        parts = [(some_pair(random), random.choice([1, 1000, 10**9])) for _ in range(random.choice([1, 1, 2]))]
    law = compose(parts, width=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [
            law.to_epsilon(random.choice([Fraction(0), TINY, Fraction(1, 10**6), 1 - Fraction(1, 10**20)])),
            law.to_delta(random.choice([Fraction(0), TINY, Fraction(1), HUGE])),
            *law.survival([random.choice([-HUGE, -TINY, Fraction(0), Fraction(1), HUGE])]),
        ]
    assert all(0 <= lower <= upper for lower, upper in found)


def test_the_largest_and_the_smallest_are_right() -> None:
    for size in (Fraction(1, 10**30), MOST_LOSS):
        true = exact.laplace_delta(mpf(0), real(size))
        check_delta(compose([(LaplacePair(size), 1)]).to_delta(0), true)
        check_delta(compose([(GaussianPair(size), 1)]).to_delta(0), oracle.gdp_delta(size, Fraction(0)))
    told = 1 - (1 - real(1 - TINY)) ** 3
    law = compose([(ApproximatePair(Fraction(1), 1 - TINY), 3)])
    found = law.to_delta(10)
    assert found.lower <= told <= found.upper
    assert found.upper - found.lower < 1e-12


def many(at_rate: Fraction) -> LossDistribution:
    return compose([(SubsampledPair(LaplacePair(Fraction(1)), at_rate), 1)], width=0.01)


def check_many(epsilons: list[Fraction]) -> None:
    """One use of a sample at a rate r: the remove curve at x is r·δ(1 + (x − 1)/r), and the larger of both."""
    rate = Fraction(1, 10)
    for epsilon, found in zip(epsilons, many(rate).to_deltas(epsilons), strict=True):
        inner = mp.log(1 + mp.expm1(real(epsilon)) / real(rate))
        check_delta(found, real(rate) * exact.laplace_delta(inner, mpf(1)))
        assert found.upper - found.lower <= 0.01 * found.upper + 1e-15


@pytest.mark.long
def test_many_points_share_their_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilons = [Fraction(n, 200) for n in range(30)]
    check_many(epsilons)
    thinned = discretisation.thinned
    monkeypatch.setattr(discretisation, "thinned", lambda pieces, rate: thinned(pieces, rate * 9 / 10))
    forget()
    with pytest.raises(AssertionError):
        check_many(epsilons)
    forget()
