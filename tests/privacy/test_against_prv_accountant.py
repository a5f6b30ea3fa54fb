"""Certified intervals beside those of prv-accountant (Gopi, Lee and Wutschitz 2021), which has both ends too.

It puts each loss on a grid and bounds what that moves, in ε and in δ; so two certified intervals have to meet. Of a
sampled pair it has the direction from the sample's mixture alone, where Lapwing states the greater of both.
"""

import math
from fractions import Fraction
from functools import cache
from random import Random
from typing import NamedTuple

import prv_accountant as peer
import pytest

from lapwing.privacy.certified_curve import Interval
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from tests.support.effort import one_in, only

WIDTH = Fraction(1, 100)
ERROR = 0.01
"""What the peer is allowed to err by in ε; in δ it is a thousandth of δ."""

MILLIONTH = Fraction(1, 10**6)
DELTAS = tuple(Fraction(text) for text in ("1e-3", "1e-5", "1e-6", "1e-8", "1e-10"))


class Part(NamedTuple):
    """So many of a kind: noise of this scale on a number that moves by 1; for a response, one over its ε."""

    kind: str
    scale: Fraction
    times: int
    rate: Fraction = Fraction(1)

    def ours(self) -> Pair:
        if self.kind == "laplace":
            return LaplacePair(1 / self.scale)
        if self.kind == "response":
            return RandomizedResponsePair(1 / self.scale)
        noise = GaussianPair(1 / self.scale**2)
        return SubsampledPair(noise, self.rate) if self.kind == "sampled" else noise

    def theirs(self) -> peer.PrivacyRandomVariable:
        if self.kind == "laplace":
            return peer.LaplaceMechanism(float(1 / self.scale))
        if self.kind == "response":
            return peer.PureDPMechanism(float(1 / self.scale))
        if self.kind == "sampled":
            return peer.PoissonSubsampledGaussianMechanism(float(self.rate), float(self.scale))
        return peer.GaussianMechanism(float(self.scale))


Parts = tuple[Part, ...]


def random_lists(kinds: tuple[str, ...], count: int) -> list[tuple[Parts, Fraction]]:
    """Lists of an ε between about 0.5 and 12: noise of n answers that together weigh about as much as one.

    No loss has its largest value just above 0.1: the peer's integral for a mean goes from there in long steps, and
    where it misses the jump the peer refuses.
    """
    source = Random(f"lists of {' and '.join(kinds)} for two accountants")

    def part(kind: str) -> Part:
        size, times = source.uniform(0.5, 1.6) / math.sqrt(len(kinds)), round(10 ** source.uniform(0, 2.8))
        if kind != "sampled":
            scale = math.sqrt(times) / size
            return Part(kind, Fraction(round(100 * (max(scale, 10.5) if scale > 5 else scale)), 100), times)
        scale, rate = source.uniform(0.8, 2.5), 10 ** source.uniform(-2.2, -0.3)
        times = max(1, min(1000, round((size / rate) ** 2 / math.expm1(scale**-2))))
        return Part(kind, Fraction(round(100 * scale), 100), times, Fraction(round(1000 * rate), 1000))

    return [(tuple(part(kind) for kind in kinds), source.choice(DELTAS)) for _ in range(count)]


LISTS = [
    *random_lists(("gaussian",), 6),
    *random_lists(("laplace",), 6),
    *random_lists(("response",), 4),
    *random_lists(("gaussian", "laplace"), 3),
    *random_lists(("laplace", "response"), 3),
    *random_lists(("sampled",), 4),
    *random_lists(("gaussian", "laplace", "sampled"), 2),
]
EDGES = [
    ((Part("sampled", Fraction(1), 1, Fraction(1)),), MILLIONTH),  # no sample at all
    ((Part("sampled", Fraction(3, 2), 20, Fraction(99, 100)),), Fraction(1, 10**9)),
    ((Part("sampled", Fraction(1, 2), 1, Fraction(1, 1000)),), Fraction(1, 10**8)),
    ((Part("gaussian", Fraction(100), 10**4),), MILLIONTH),
    ((Part("gaussian", Fraction(1, 8), 1),), MILLIONTH),  # ε is near 70
    ((Part("response", 1 / Fraction("0.01235"), 1000),), MILLIONTH),
]


def ours(parts: Parts, *, width: Fraction = WIDTH, noise: Fraction = Fraction(1)) -> LossDistribution:
    """What Lapwing says, of so many times the noise."""
    noisy = [part._replace(scale=part.scale * noise) for part in parts]
    return compose([(part.ours(), part.times) for part in noisy], width=width)


class Theirs(NamedTuple):
    epsilon: Interval
    middle: float
    delta: Interval


@cache
def theirs(parts: Parts, delta: Fraction, error: float = ERROR) -> Theirs:
    """The peer's bounds on ε at δ, its guess between them, and its bounds on δ there."""
    counts = [part.times for part in parts]
    account = peer.PRVAccountant(
        [part.theirs() for part in parts],
        max_self_compositions=counts,
        eps_error=error,
        delta_error=float(delta) / 1000,
    )
    lower, middle, upper = account.compute_epsilon(float(delta), counts)
    least, _, most = account.compute_delta(middle, counts)
    return Theirs(Interval(lower, upper), middle, Interval(least, most))


def check(found: Interval, other: Interval, width: float) -> None:
    """Both hold the same number; and ours is not so wide as to hold any."""
    assert found.lower <= other.upper
    assert other.lower <= found.upper
    assert found.upper <= other.upper + width


@pytest.mark.parametrize(("parts", "delta"), only([0, 19], [*LISTS, *EDGES], many=True), ids=str)
def test_the_intervals_meet(parts: Parts, delta: Fraction) -> None:
    other = theirs(parts, delta).epsilon
    assert other.upper - other.lower < 3 * ERROR
    check(ours(parts).to_epsilon(delta), other, float(WIDTH))


@pytest.mark.parametrize(("parts", "delta"), only([9], [*LISTS[:-6], LISTS[-1]], many=True), ids=str)
def test_the_intervals_of_delta_meet(parts: Parts, delta: Fraction) -> None:
    other = theirs(parts, delta)
    check(ours(parts).to_delta(Fraction(other.middle)), other.delta, float(delta) / 20)


@pytest.mark.parametrize("noise", one_in(4, [Fraction(9, 10), Fraction(11, 10)]), ids=str)
@pytest.mark.parametrize(("parts", "delta"), one_in(4, LISTS[::3], many=True), ids=str)
def test_twin_another_noise_is_caught(parts: Parts, delta: Fraction, noise: Fraction) -> None:
    """A tenth less noise than was stated has too large an ε; a tenth more, too small a one."""
    found, other = ours(parts, noise=noise).to_epsilon(delta), theirs(parts, delta).epsilon
    with pytest.raises(AssertionError):
        check(found, other, float(WIDTH))


@pytest.mark.long
def test_a_thousand_steps_of_training() -> None:
    """Rate 0.01, σ = 1: both within about a hundredth."""
    parts, delta = (Part("sampled", Fraction(1), 1000, Fraction(1, 100)),), Fraction(1, 10**5)
    width = Fraction(1, 500)
    found, other = ours(parts, width=width).to_epsilon(delta), theirs(parts, delta, 0.005).epsilon
    assert found.upper - found.lower <= width
    check(found, other, float(width))


@pytest.mark.parametrize("noise", only([], [Fraction(99, 100), Fraction(101, 100)]), ids=str)
def test_twin_a_thousand_steps_of_a_hundredth_more_or_less_noise(noise: Fraction) -> None:
    parts, delta, width = (Part("sampled", Fraction(1), 1000, Fraction(1, 100)),), Fraction(1, 10**5), Fraction(1, 500)
    with pytest.raises(AssertionError):
        check(ours(parts, width=width, noise=noise).to_epsilon(delta), theirs(parts, delta, 0.005).epsilon, 0.002)


@pytest.mark.parametrize("delta", ["0.2", "0.4"])
def test_where_it_states_a_negative_epsilon_ours_is_none(delta: str) -> None:
    """The curve reaches this δ at an ε below 0, which as a promise is (0, δ)-DP."""
    parts = (Part("laplace", Fraction(10), 3),)
    assert theirs(parts, Fraction(delta)).epsilon.upper < -0.1
    assert ours(parts).to_epsilon(Fraction(delta)) == (0, 0)
