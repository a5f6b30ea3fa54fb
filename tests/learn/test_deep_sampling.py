"""Samples of networks' steps, and noise that is correlated over steps: their laws, and how far one unit reaches."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.exact.entropy import SYSTEM
from lapwing.learn.deep.correlated_noise import UNIT, CorrelatedNoise, coefficients_of, reach_of
from lapwing.learn.deep.sampling import RATE_PARTS, PoissonBatches, SubsetSample, batch_of
from lapwing.learn.unit_rows import Integers
from lapwing.mechanisms import RoundedGaussian
from tests.support.effort import only

# ---- Poisson samples -------------------------------------------------------------------------------------------------


def test_a_sample_takes_each_unit_with_its_chance() -> None:
    class Fixed:
        def read(self, size: int, /) -> bytes:
            return data[:size]

    words = [0, 1 << 12, (5 << 12) - 1, 5 << 12, (1 << 32) - 1]
    data = b"".join(word.to_bytes(4, "little") for word in words)
    assert batch_of(len(words), 5, Fixed()).tolist() == [0, 1, 2]
    assert batch_of(len(words), RATE_PARTS, Fixed()).size == len(words)


def check_poisson(batches: list[Integers], units: int, rate: float) -> None:
    """Sizes spread as those of independent draws do, and two steps in a row share as many units as chance makes."""
    inside = np.zeros((len(batches), units))
    for step, batch in enumerate(batches):
        inside[step, batch] = 1
    count = len(batches) * units
    assert abs(inside.mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / count)
    wanted = units * rate * (1 - rate)
    assert abs(inside.sum(axis=1).var() - wanted) < 5 * wanted * np.sqrt(2 / len(batches))
    shared = (inside[1:] * inside[:-1]).mean()
    assert abs(shared - rate**2) < 6 * np.sqrt(rate**2 / count)


def test_units_are_drawn_by_themselves_at_each_step() -> None:
    sample = PoissonBatches(people=40, parts=RATE_PARTS // 4)
    places = sample.places(40, SYSTEM)
    check_poisson([sample.batch(places, step, SYSTEM) for step in range(800)], 40, 0.25)
    assert sample.expected == 10


def shuffled() -> Iterator[Integers]:
    """Epochs of four batches, each unit in one of them: what loaders do that shuffle."""
    rng = np.random.default_rng(3)
    while True:
        yield from np.split(rng.permutation(40), 4)


def test_twin_batches_by_shuffling() -> None:
    """The planted bug: their steps would be accounted as Poisson's, and are not."""
    batches = shuffled()
    with pytest.raises(AssertionError):
        check_poisson([next(batches) for _ in range(800)], 40, 0.25)


def test_with_bands_a_unit_is_in_every_so_many_steps_at_most() -> None:
    sample = PoissonBatches(people=30, parts=RATE_PARTS // 2, bands=3)
    places = sample.places(3000, SYSTEM)
    assert np.bincount(places, minlength=3).min() > 850
    batches = [sample.batch(places, step, SYSTEM) for step in range(6)]
    for step, batch in enumerate(batches):
        assert (places[batch] == step % 3).all()
        assert 380 < batch.size < 620
    assert 180 < np.intersect1d(batches[0], batches[3]).size < 320  # anew in each round
    assert sample.expected == 5
    assert sample.listed(Fraction(2), 7).times == 3


# ---- fixed batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", only([0], [0, 5, 12, 40]))
def test_fixed_batches_take_places(units: int) -> None:
    """As many places as are said: empty ones where units are missing, and of more units some that chance takes."""
    sample = SubsetSample(people=12, size=4)
    seen = np.zeros(max(units, 1))
    for _ in range(300):
        places = sample.places(units, SYSTEM)
        assert places.size == 12
        kept = places[places >= 0]
        assert np.unique(kept).size == kept.size == min(units, 12)
        batch = sample.batch(places, 0, SYSTEM)
        assert set(batch.tolist()) <= set(kept.tolist())
        assert batch.size == 4 or units < 12
        seen[batch] += 1
    if units:
        chance = 4 / max(units, 12)
        assert np.abs(seen / 300 - chance).max() < 6 * np.sqrt(chance * (1 - chance) / 300)


# ---- correlated noise ------------------------------------------------------------------------------------------------


def test_coefficients_are_those_of_the_square_root() -> None:
    """C², with all its diagonals, is the matrix of prefix sums."""
    for bands in (1, 2, 5, 9):
        column = np.array(coefficients_of(bands)) / UNIT
        assert np.convolve(column, column)[:bands] == pytest.approx(np.ones(bands), abs=2 * bands / UNIT)
        assert reach_of(coefficients_of(bands)) >= np.linalg.norm(coefficients_of(bands))
    assert (reach_of((1,)), reach_of((3, 4)), reach_of((1, 1))) == (1, 5, 2)


def released_by(noise: CorrelatedNoise, sums: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[Any]]:
    """Return Cx exactly, the estimates, and the noise that was added, of all steps."""
    exact: list[Any] = []
    fresh: list[Any] = []
    release = RoundedGaussian.release

    def noisy(mechanism: RoundedGaussian, values: Any, *entropy: Any) -> Any:
        assert mechanism.sigma == noise.deviation * reach_of(noise.coefficients)
        exact.append(np.array(values))
        fresh.append(release(mechanism, np.zeros_like(values), *entropy))
        return values + fresh[-1]

    with monkeypatch.context() as patch:
        patch.setattr(RoundedGaussian, "release", noisy)
        estimates = [noise.release(one, SYSTEM) for one in sums]
    return np.array(exact), np.array(estimates), fresh


@pytest.mark.parametrize("bands", [1, 2, 4])
def test_estimates_are_sums_with_noise_that_is_taken_back(bands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """x̂ = x + C⁻¹z, for C written out."""
    sums = np.random.default_rng(bands).integers(-(1 << 20), 1 << 20, (9, 3))
    noise = CorrelatedNoise.over(bands, Fraction(1000))
    exact, estimates, fresh = released_by(noise, sums, monkeypatch)
    c = np.zeros((9, 9))
    for lag, one in enumerate(noise.coefficients):
        c += one * np.eye(9, k=-lag)
    assert (exact == c.astype(np.int64) @ sums).all()
    assert estimates == pytest.approx(sums + np.linalg.solve(c, np.array(fresh, dtype=float)), rel=1e-9, abs=1e-6)
    if bands > 1:  # and that is what it is for: less noise in the sum of all
        inverse = np.linalg.inv(c) * reach_of(noise.coefficients)
        assert np.linalg.norm(np.ones((1, 9)) @ inverse) < np.sqrt(9)


def farthest(bands: int, steps_of_unit: Callable[[int], list[int]], monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how far one unit moves y in a block of its group, over what the noise of a step is for."""
    worst = 0.0
    for group in range(bands):
        sums = np.zeros((12, 2), dtype=np.int64)
        sums[[step for step in steps_of_unit(group) if step < 12]] = [600, 800]  # a gradient of length 1000
        noise = CorrelatedNoise.over(bands, Fraction(1000))
        exact, _, _ = released_by(noise, sums, monkeypatch)
        for start in range(group, 12, bands):
            block = exact[start : start + bands].astype(float)
            worst = max(worst, float(np.sqrt(np.square(block).sum())) / (1000 * reach_of(noise.coefficients)))
    return worst


@pytest.mark.parametrize("bands", [1, 2, 4])
def test_one_unit_moves_a_block_by_what_its_noise_is_for(bands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.99 < farthest(bands, lambda group: list(range(group, 12, bands)), monkeypatch) <= 1


def test_twin_a_unit_that_is_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: correlated noise with samples as if there were no groups."""
    assert farthest(4, lambda _: list(range(12)), monkeypatch) > 1.2
