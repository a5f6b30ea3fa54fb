"""Sums over time with Gaussian noise: what is released, how far rounding takes it, and that it can go on elsewhere."""

from fractions import Fraction

import numpy as np
import pytest

import lapwing as lw
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import ContinualGaussian, Events, RoundedGaussian, Stays, continual_mechanism
from lapwing.mechanisms.continual.fitting import fitted
from lapwing.mechanisms.continual.gaussian import ContinualSums
from tests.mechanisms.continual.matrices import column, counting, streams_of_stays, toeplitz
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, to see what it is added to."""
    monkeypatch.setattr(RoundedGaussian, "release", lambda _, values, entropy=SYSTEM: values)


def released(sums: ContinualSums, stream: IntArray) -> list[list[int]]:
    return [sums.advance(row).tolist() for row in stream]


def mechanism_for(ticks: int, window: int | None = None, sigma: Fraction = Fraction(2)) -> ContinualGaussian:
    return ContinualGaussian(
        matrix=fitted(ticks, window, Events(1), 3), participation=Stays(2), norm=Fraction(1), sigma=sigma
    )


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("window", one_in(2, [None, 1, 4]))
def test_without_noise_the_estimates_are_the_counts(window: int | None) -> None:
    stream = np.random.default_rng(5).integers(-9, 30, (30, 8))
    mechanism = mechanism_for(30, window)
    sums, estimates = mechanism.start(8), mechanism.estimates(8)
    found = np.array([estimates.advance(sums.advance(row)) for row in stream])
    assert np.abs(found - counting(30, window) @ stream).max() < 1e-3


@pytest.mark.usefixtures("silent")
def test_neighbours_are_no_farther_apart_than_stated_with_rounding() -> None:
    """A coarse grid, so that rounding is felt: still no pair of streams passes the stated sensitivity."""
    matrix = fitted(7, None, Events(1), 2)
    mechanism = ContinualGaussian(matrix=matrix, participation=Stays(2), norm=Fraction(1), sigma=Fraction(1))
    mechanism.__dict__["fraction_bits"] = 3
    background = np.random.default_rng(7).integers(0, 1000, (7, 2))
    base, exact = released(mechanism.start(2), background), float(matrix.sensitivity_squared(Stays(2))) ** 0.5
    farthest, beyond = 0.0, False
    c = toeplitz([float(entry) for entry in column(matrix)])
    for stream in streams_of_stays(Stays(2), 7):
        other = released(mechanism.start(2), background + stream.astype(np.int64))
        moved = (np.array(other) - np.array(base)) / 8
        farthest = max(farthest, float(np.linalg.norm(moved)))
        beyond = beyond or float(np.linalg.norm(moved)) > float(np.linalg.norm(c @ stream)) + 0.05
        assert np.abs(moved - c @ stream).max() <= float(mechanism.drift) / 8
    assert farthest**2 <= float(mechanism.sensitivity_squared)
    assert beyond, "rounding moves nothing here, so this shows nothing"
    assert exact < float(mechanism.sensitivity_squared) ** 0.5


@pytest.mark.parametrize("ticks", [96, pytest.param(1 << 20, marks=pytest.mark.long)])
def test_the_grid_is_so_fine_that_rounding_costs_next_to_nothing(ticks: int) -> None:
    mechanism = mechanism_for(ticks)
    exact = mechanism.matrix.sensitivity_squared(Stays(2))
    assert 1 < mechanism.sensitivity_squared / exact < 1 + Fraction(1, 10**4)


@pytest.mark.parametrize("window", only((1,), [None, 5]))
def test_the_error_is_what_is_stated(window: int | None) -> None:
    mechanism = mechanism_for(40, window)
    sums, estimates = mechanism.start(4000), mechanism.estimates(4000)
    entropy, nothing = StreamEntropy("11"), np.zeros(4000, dtype=np.int64)
    found = [estimates.advance(sums.advance(nothing, entropy)) for _ in range(40)]
    for tick in (1, 2, 7, 40):
        assert np.std(found[tick - 1]) == pytest.approx(mechanism.standard_deviation(tick), rel=0.05)
        covered = np.mean(np.abs(found[tick - 1]) <= mechanism.half_width(tick, Fraction(1, 10)))
        assert covered == pytest.approx(0.9, abs=0.02)


def test_the_noise_is_fresh_at_each_tick_and_has_the_law_that_the_loss_is_for() -> None:
    """Cx + z less Cx: independent, of standard deviation σ. Twin: a tenth less is noticed."""
    mechanism, cells = mechanism_for(6), 8_000
    entropy, sums = StreamEntropy("12"), mechanism.start(cells)
    noise = np.array([sums.advance(np.zeros(cells, dtype=np.int64), entropy) for _ in range(6)], dtype=float)
    noise /= float(mechanism.sigma) * 2**mechanism.fraction_bits
    assert np.abs(np.cov(noise) - np.eye(6)).max() < 0.07
    assert np.abs(np.cov(noise * 0.9) - np.eye(6)).max() > 0.1


def test_it_goes_on_from_what_was_written_down() -> None:
    stream = np.random.default_rng(3).integers(-5, 9, (12, 3)) * 10**12
    mechanism = mechanism_for(12)
    whole, entropy, other = mechanism.start(3), StreamEntropy("1"), StreamEntropy("1")
    sums = mechanism.start(3)
    for row in stream:
        expected = whole.advance(row, entropy)
        assert sums.advance(row, other).tolist() == expected.tolist()
        sums = mechanism.restored(sums.to_bytes())
    assert sums.tick == 12
    with pytest.raises(lw.InvalidParameter, match="All 12 ticks"):
        sums.advance(stream[0])


def test_what_is_no_tick_changes_nothing() -> None:
    sums = mechanism_for(30).start(3)
    before = sums.to_bytes()
    with pytest.raises(lw.InvalidParameter, match="3 cells"):
        sums.advance([1, 2])
    assert sums.to_bytes() == before


def test_the_plan_keeps_the_loss_and_picks_by_measure() -> None:
    names = {}
    for loss in (lw.PureDP(1), lw.GaussianDP(1), lw.ZeroConcentratedDP(0.5)):
        mechanism = continual_mechanism(loss, 96, Events(8), norm=3, buffers=2)
        assert mechanism.loss(loss.kind).amount <= loss.amount
        names[loss.kind] = mechanism.name
    assert names == {"pure": "tree of discrete Laplace", "gdp": "correlated Gaussian", "zcdp": "correlated Gaussian"}


def test_parameters_that_are_none_are_refused() -> None:
    matrix = fitted(5, None, Events(1), 1)
    with pytest.raises(lw.InvalidParameter, match="pure loss"):
        ContinualGaussian.for_loss(lw.PureDP(1), matrix, Events(1))
    with pytest.raises(lw.InvalidParameter, match="whole steps"):
        ContinualGaussian.for_loss(lw.GaussianDP(1), matrix, Events(1), 0.5)
    for name in ("most", "per_tick", "spacing"):
        with pytest.raises(lw.InvalidParameter, match=f"{name} is 0"):
            Events(**{"most": 1, name: 0})
    with pytest.raises(lw.InvalidParameter, match=r"most is 1\.5"):
        Stays(1.5)  # type: ignore[arg-type]
