"""A bound on a local sensitivity that is bought: its margin, and the laws of neighbours, against what they may lose."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, exp, log, sqrt

import networkx as nx
import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy import special

from lapwing.errors import InvalidParameter
from lapwing.graphs.pricing import _narrowest
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.graphs.local_sensitivity import NoisyLocalSensitivity, tail_of
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support.effort import one_in, only
from tests.support.graphs import simple

Floats = NDArray[np.float64]
LOSSES: list[Loss] = [PureDP(Fraction(3, 2)), GaussianDP(Fraction(6, 5))]
DELTA = Fraction(1, 200)
CAP = 10**6


def bought(loss: Loss, delta: Fraction = DELTA, moved: int = 1, cap: int = CAP) -> NoisyLocalSensitivity:
    return NoisyLocalSensitivity.for_loss(loss, delta, moved, cap, _narrowest)


def below(noise: object, t: int) -> mpf:
    """Return P(noise < −t), by the law as it is written."""
    if isinstance(noise, DiscreteLaplace):
        q = mp.exp(-mpf(noise.scale.denominator) / noise.scale.numerator)
        return q ** (t + 1) / (1 + q)
    assert isinstance(noise, RoundedGaussian)
    sigma = mpf(noise.sigma.numerator) / noise.sigma.denominator
    return mp.erfc((t + mpf(1) / 2) / (sigma * mp.sqrt(2))) / 2


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**12)])
@pytest.mark.parametrize("loss", LOSSES, ids=["pure", "gdp"])
def test_the_margin_is_the_least_that_a_delta_allows(loss: Loss, delta: Fraction) -> None:
    for moved in (1, 2):
        found = bought(loss, delta, moved)
        share = mpf(delta.numerator) / delta.denominator
        if isinstance(loss, GaussianDP):
            share *= mp.erfc(mp.sqrt(mpf(loss.amount.numerator) / loss.amount.denominator) / (2 * mp.sqrt(2)))
        assert below(found.first, found.margin) <= share
        assert below(found.first, found.margin - 1) > share  # the twin: one less
        assert found.loss(loss.kind) <= loss
        if isinstance(found.first, DiscreteLaplace):
            assert found.margin <= ceil(float(found.first.scale) * log(1 / delta))


@lru_cache(maxsize=512)
def law(noise: object, reach: int) -> Floats:
    """Return the probabilities of −reach … reach."""
    places = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        q = exp(-1 / float(noise.scale))
        return np.asarray((1 - q) / (1 + q) * q ** np.abs(places), dtype=np.float64)
    assert isinstance(noise, RoundedGaussian)
    ends = special.erfc((np.arange(-reach, reach + 2) - 0.5) / (float(noise.sigma) * sqrt(2))) / 2
    return np.asarray(-np.diff(ends), dtype=np.float64)


REACH, FIRST_REACH = 3_000, 120


def laws(mechanism: NoisyLocalSensitivity, bound: int, value: int) -> dict[int, tuple[float, Floats]]:
    """Return by the bound that is bought its probability, and the law of the count, from −REACH to REACH."""
    found: dict[int, tuple[float, Floats]] = {}
    for x, chance in zip(range(-FIRST_REACH, FIRST_REACH + 1), law(mechanism.first, FIRST_REACH), strict=True):
        u = max(1, min(mechanism.cap, bound + x + mechanism.margin))
        if u not in found:
            found[u] = 0.0, np.roll(law(mechanism.noise(u), REACH), value)
        found[u] = found[u][0] + float(chance), found[u][1]
    return found


def profile(loss: Loss, epsilon: float) -> float:
    """Return the δ of a loss at ε."""
    if isinstance(loss, PureDP):
        return 0.0 if epsilon >= float(loss.epsilon) - 1e-12 else 1.0
    mu = sqrt(float(loss.amount))

    def phi(x: float) -> float:
        return erfc(-x / sqrt(2)) / 2

    return phi(-epsilon / mu + mu / 2) - exp(epsilon) * phi(-epsilon / mu - mu / 2)


def excess(mechanism: NoisyLocalSensitivity, loss: Loss, one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the most by which neighbours, each a bound and a count, lose more than is claimed: 0 or less if none."""
    first, second = laws(mechanism, *one), laws(mechanism, *other)
    worst, zero = -1.0, np.zeros(2 * REACH + 1)
    epsilons = [float(loss.amount)] if isinstance(loss, PureDP) else [0.0, 1.0, 2.0, 3.0]
    for p, q in ((first, second), (second, first)):
        for epsilon in epsilons:
            lost = 0.0
            for u, (chance, of_u) in p.items():
                other_chance, other_law = q.get(u, (0.0, zero))
                lost += float(np.maximum(chance * of_u - exp(epsilon) * other_chance * other_law, 0).sum())
            allowed = float(mechanism.delta) + (1 - float(mechanism.delta)) * profile(loss, epsilon)
            worst = max(worst, lost - allowed)
    return worst


PAIRS = [((4, 0), (4, 4)), ((4, 0), (5, 4)), ((1, 0), (0, 0))]
"""Bounds and counts of neighbours: counts are no farther apart than the lesser bound."""


@pytest.mark.parametrize("loss", one_in(2, LOSSES), ids=["pure", "gdp"])
def test_neighbours_lose_no_more_than_is_charged(loss: Loss) -> None:
    mechanism = bought(loss)
    assert max(excess(mechanism, loss, one, other) for one, other in PAIRS) <= 1e-9
    two = bought(loss, moved=2)
    assert excess(two, loss, (6, 0), (8, 6)) <= 1e-9
    low = bought(loss, cap=4)
    assert max(excess(low, loss, one, other) for one, other in PAIRS) <= 1e-9


def narrower(loss: Loss, sensitivity: object) -> RoundedGaussian | DiscreteLaplace:
    """Return nine tenths of the noise that a loss asks for."""
    found = _narrowest(loss, sensitivity)  # type: ignore[arg-type]
    if isinstance(found, DiscreteLaplace):
        return DiscreteLaplace(scale=found.scale * Fraction(9, 10))
    assert isinstance(found, RoundedGaussian)
    return RoundedGaussian(sigma=found.sigma * Fraction(9, 10))


@pytest.mark.parametrize("loss", only((0,), LOSSES), ids=["pure", "gdp"])
@pytest.mark.parametrize(
    ("spoil", "one", "other"),
    [
        (lambda made: replace(made, margin=-2), (4, 0), (4, 4)),  # no margin at all
        (lambda made: replace(made, narrowest=narrower), (400, 0), (401, 400)),  # of which the margin hides little
        (lambda made: made, (4, 0), (4, 12)),  # a count that moves by three times the bound
        (lambda made: made, (4, 0), (12, 4)),  # a bound that moves by eight for one
        (lambda made: replace(made, cap=1), (4, 0), (4, 4)),  # a cap that an edge exceeds
    ],
    ids=["no margin", "scale × .9", "local sensitivity", "sensitivity of the bound", "cap"],
)
def test_twins(
    loss: Loss,
    spoil: Callable[[NoisyLocalSensitivity], NoisyLocalSensitivity],
    one: tuple[int, int],
    other: tuple[int, int],
) -> None:
    assert excess(spoil(bought(loss)), loss, one, other) > 1e-4


def test_what_is_not_proven_is_refused() -> None:
    for loss, delta in ((ZeroConcentratedDP(1), DELTA), (PureDP(1), Fraction(1, 2)), (PureDP(1), Fraction(0))):
        with pytest.raises(InvalidParameter):
            bought(loss, delta)
    with pytest.raises(InvalidParameter):  # before anything is paid: at the cap the noise is out of range
        bought(PureDP(Fraction(1, 10**9)), cap=1 << 60)
    assert tail_of(PureDP(1), DELTA) == DELTA
    assert Fraction(617, 1000) * DELTA < tail_of(GaussianDP(1), DELTA) < Fraction(618, 1000) * DELTA


@pytest.mark.long
def test_the_stated_error_holds_on_a_known_graph() -> None:
    made = nx.convert_node_labels_to_integers(nx.les_miserables_graph())
    graph = simple(made.number_of_nodes(), frozenset((min(edge), max(edge)) for edge in made.edges))
    degrees = np.sort(graph.degrees())
    mechanism, value, draws = bought(PureDP(2), Fraction(1, 10**6), 2), 1_000, 400
    inside, widths = 0, []
    for _ in range(draws):
        u, noisy = mechanism.release(value, int(degrees[-2:].sum()))
        widths.append(mechanism.noise(u).half_width(Fraction(95, 100)))
        inside += abs(noisy - value) <= widths[-1]
    assert inside / draws >= 0.95 - 5.5 * sqrt(0.05 * 0.95 / draws)
    assert inside / draws <= 0.955 + 5.5 * sqrt(0.05 * 0.95 / draws)  # and it is not far too wide
