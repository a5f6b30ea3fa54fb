"""Attacks on what was trained: who was in it is not told beyond the price, and audits find noise that is too small."""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from statistics import NormalDist
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.tree import DecisionTreeClassifier

import lapwing as lw
from lapwing.learn.binning import Bins
from lapwing.learn.columns import Feature
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.tree import grow, places_in
from lapwing.learn.unit_rows import GRID, UnitRows
from lapwing.mechanisms import RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from tests.support.effort import only
from tests.support.learn.audit import FAILURE, guessed, least_epsilon

DELTA = 1e-10


# ---- one-run audit ---------------------------------------------------------------------------------------------------


def test_the_bound_is_that_of_the_theorem() -> None:
    """Against the binomial law: at the bound the chance is FAILURE, and with no guess right there is none."""
    bound = least_epsilon(190, 200, 250, 0.0)
    assert float(binom.sf(189, 200, 1 / (1 + exp(-bound)))) == pytest.approx(FAILURE, rel=1e-6)
    assert least_epsilon(100, 200, 250, 0.0) == 0
    assert least_epsilon(200, 200, 250, DELTA) < least_epsilon(200, 200, 250, 0.0) < 3


@pytest.mark.long
@pytest.mark.parametrize("mu", only((2,), [0.25, 1.0, 4.0]))
def test_an_audit_finds_no_more_than_was_charged(mu: float) -> None:
    right, inside = guessed(mu, 250, 200, seed=int(10 * mu))
    charged = GaussianDP(Fraction(str(mu))).to_epsilon(delta=DELTA)
    assert 80 < inside < 170
    assert least_epsilon(right, 200, 250, DELTA) <= charged
    if mu == 4:  # it does see what is there: the attack is a real one
        assert least_epsilon(right, 200, 250, DELTA) > 0.3


@pytest.mark.long
def test_an_audit_finds_noise_that_is_too_small() -> None:
    """The planted bug: a twentieth of the noise that the price asks for."""
    noise = Releases.noise

    def less(self: Releases, name: str, bound: int, entries: int) -> Any:
        return RoundedGaussian(sigma=noise(self, name, bound, entries).sigma / 20)

    with patch.object(Releases, "noise", less):
        right, _ = guessed(0.25, 250, 200, seed=3)
    assert least_epsilon(right, 200, 250, DELTA) > GaussianDP(Fraction(1, 4)).to_epsilon(delta=DELTA)


# ---- membership inference --------------------------------------------------------------------------------------------

FEATURE = Feature(column="age")
BINS = (Bins(column="age", features=(FEATURE,), place=0, count=8),)
Confidence = Callable[[np.ndarray, np.ndarray], float]
"""Trains on rows (features, classes) and returns how sure the model is of the class of the one who is looked for."""
LOOKED_FOR = (GRID // 2, 1)


def without_privacy(features: np.ndarray, classes: np.ndarray) -> float:
    model = DecisionTreeClassifier(random_state=0).fit(features, classes)
    return float(model.predict_proba([[LOOKED_FOR[0]]])[0][-1]) if len(model.classes_) == 2 else 0.0


def ours(features: np.ndarray, classes: np.ndarray) -> float:
    units = UnitRows(features=features, target=classes, starts=np.arange(len(classes)))
    parts = {"level": (1, Fraction(1, 2)), "leaves": (1, Fraction(1, 2))}
    drawn = Releases(lw.GaussianDP(Fraction(1, 2)), parts, replaced=False)
    splits, counts = grow(units, BINS, 2, drawn, depth=1, most=1, places=1)
    leaf = counts[places_in(splits, BINS[0].of(np.array([[LOOKED_FOR[0]]]))[:, None])[0]]
    return float(leaf[1] - leaf[0])


def told_apart(train: Confidence, runs: int) -> tuple[float, float]:
    """Return how often somebody is taken for a member who is one, and who is not, by shadow models.

    Others are drawn afresh each time; half of the runs set the threshold that tells best, and the other half are
    judged.
    """
    rng = np.random.default_rng(7)
    scores: dict[bool, list[float]] = {True: [], False: []}
    for run in range(runs):
        features = rng.integers(-GRID, GRID + 1, (60, 1))
        features = features[features[:, 0] != LOOKED_FOR[0]]
        classes = np.zeros(len(features), dtype=np.int64)  # whoever is looked for is the only one of their class
        classes[0] = 1
        member = run % 2 == 0
        if member:
            features = np.concatenate([features, [[LOOKED_FOR[0]]]])
            classes = np.concatenate([classes, [1]])
        scores[member].append(train(features, classes))
    shadow = {member: found[: len(found) // 2] for member, found in scores.items()}
    judged = {member: np.array(found[len(found) // 2 :]) for member, found in scores.items()}
    thresholds = sorted({*shadow[True], *shadow[False]})
    best = max(
        thresholds, key=lambda t: float(np.mean(np.array(shadow[True]) >= t) - np.mean(np.array(shadow[False]) >= t))
    )
    return float((judged[True] >= best).mean()), float((judged[False] >= best).mean())


def most(false: float, mu: float, slack: float) -> float:
    """Return how often members are found at most: Φ(Φ⁻¹(false positives) + μ)."""
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(min(max(false + slack, 1e-9), 1 - 1e-9)) + mu)


@pytest.mark.long
def test_a_tree_without_privacy_tells_who_is_in_it() -> None:
    true, false = told_apart(without_privacy, 80)
    assert true == 1
    assert most(false, 0.5, 0.1) < 0.8  # what the price of ours would allow


@pytest.mark.long
@pytest.mark.parametrize("runs", [480, pytest.param(1600, marks=pytest.mark.long)])
def test_ours_tells_no_more_than_its_price(runs: int) -> None:
    true, false = told_apart(ours, runs)
    slack = 4 * np.sqrt(0.25 / (runs / 4))
    assert true <= most(false, 0.5, slack) + slack
