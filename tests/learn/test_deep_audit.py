"""One-run audits of networks' training: what its noisy gradients give away is below what is charged for them."""

from fractions import Fraction
from typing import Any, cast

import jax
import numpy as np
import optax
import pytest

from lapwing.learn.deep import dense
from lapwing.learn.deep.classifier import _Course
from lapwing.learn.deep.sampling import RATE_PARTS, CyclicSample, GradientNoise, PoissonBatches, Sampling
from lapwing.learn.deep.unit_gradients import BOUND
from lapwing.learn.unit_rows import GRID, UnitRows
from lapwing.privacy.statements import composed, uses_of
from tests.support.learn.audit import least_epsilon

CANARIES, GUESSES, DELTA = 250, 200, 1e-10


class Slots:
    """Steps that nobody pays for."""

    def use(self) -> None: ...


class Noted:
    """Noise of which all that it releases is kept."""

    def __init__(self, noise: GradientNoise) -> None:
        self.noise = noise
        self.released: list[Any] = []

    def release(self, *of: Any) -> Any:
        self.released.append(self.noise.release(*of))
        return self.released[-1]


def right_guesses(sample: Sampling, sigma: Fraction, steps: int, *, seed: int) -> int:
    """Train on canaries that are in by coins; guess the coins from all noisy sums; return how many guesses are right.

    Each canary has a feature of its own, so that nobody else has a gradient at its weights. Guessed are those that
    stand out most to either side.
    """
    inside = np.random.default_rng(seed).integers(0, 2, CANARIES).astype(bool)
    rows = (GRID * np.eye(CANARIES, dtype=np.int64))[inside]
    units = UnitRows(features=rows, target=np.ones(len(rows), dtype=np.int64), starts=np.arange(len(rows)))
    network, slots = dense(()), Slots()
    course = _Course(network=network, optimizer=optax.sgd(1e-3), sample=sample, steps=steps, clip=0.1)
    weights, paid = network.start(jax.random.key(1), CANARIES, 2), cast(Any, slots)
    noted = Noted(sample.noise(sigma, BOUND, 2 * CANARIES + 2))
    assert course.followed(weights, units, 1, paid, noted) is not None
    released = noted.released
    own = sum(one[: 2 * CANARIES].reshape(CANARIES, 2) for one in released)
    scores = own[:, 0] - own[:, 1]  # who is in pulls the wrong class down and the right one up
    order, half = np.argsort(scores), GUESSES // 2
    return int((~inside[order[:half]]).sum() + inside[order[-half:]].sum())


def charged(sample: Sampling, sigma: Fraction, steps: int) -> float:
    law = composed(uses_of((sample.listed(sigma, steps),), "add_remove"), None)
    return law.to_epsilon(DELTA).upper


SETTINGS: dict[str, tuple[Sampling, Fraction, int]] = {
    "all at every step": (PoissonBatches(people=CANARIES, parts=RATE_PARTS), Fraction(1, 2), 4),
    "samples": (PoissonBatches(people=CANARIES, parts=RATE_PARTS // 2), Fraction(1), 12),
    "groups and correlated noise": (PoissonBatches(people=CANARIES, parts=RATE_PARTS, bands=2), Fraction(1, 2), 6),
    "steps in turn and buffers": (
        CyclicSample(people=CANARIES, spacing=5, steps=20, buffers=2, replaced=False),
        Fraction(1, 2),
        20,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_an_audit_finds_no_more_than_was_charged(name: str) -> None:
    sample, sigma, steps = SETTINGS[name]
    right = right_guesses(sample, sigma, steps, seed=5)
    found = least_epsilon(right, GUESSES, CANARIES, DELTA)
    assert found <= charged(sample, sigma, steps)
    if name == "all at every step":  # it does see what is there: the attack is a real one
        assert found > 0.5


@pytest.mark.long
@pytest.mark.parametrize(("name", "steps"), [("all at every step", 4), ("steps in turn and buffers", 20)])
def test_an_audit_finds_noise_that_is_too_small(name: str, steps: int) -> None:
    """The planted bug: a fortieth of the noise that is charged for."""
    sample = SETTINGS[name][0]
    right = right_guesses(sample, Fraction(8, 40), steps, seed=6)
    assert least_epsilon(right, GUESSES, CANARIES, DELTA) > charged(sample, Fraction(8), steps)


@pytest.mark.long
def test_an_audit_finds_noise_for_one_step_where_there_are_many() -> None:
    """The planted bug: σ for one step of 400, so that each loses as much as all are charged."""
    sample = PoissonBatches(people=CANARIES, parts=RATE_PARTS)
    right = right_guesses(sample, Fraction(4), 400, seed=7)
    assert least_epsilon(right, GUESSES, CANARIES, DELTA) > charged(sample, Fraction(4) * 20, 400)
