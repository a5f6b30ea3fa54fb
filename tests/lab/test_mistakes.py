"""*mistakes* shows what is true of printed formulas, by integrals; and a run that is off is noticed."""

from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf, ncdf, quad

from lapwing.lab import Settings, mistakes
from lapwing.lab.sparse_vectors import SparseVector, published
from lapwing.mechanisms import AboveThreshold, ScoreSensitivity
from lapwing.privacy.measures import PureDP
from tests.support.effort import one_in


def failed(found: Any) -> list[str]:
    return [check.what for check in found.checks if not check.holds]


@pytest.mark.long
def test_it_holds_and_what_is_printed_is_wrong() -> None:
    found = mistakes.run(Settings(short=True, repetitions=20_000))
    assert not failed(found)
    for row in found.rows:
        assert row["as printed"] != row["predicted"]
    deltas = {str(row["printed"])[-7:]: row["predicted"] for row in found.rows if row["figure"] == "δ"}
    assert deltas["ε = 0.5"] == pytest.approx(1.68e-5, abs=5e-8)
    assert deltas[", ε = 1"] == pytest.approx(4.28e-5, abs=5e-8)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.5, 6.8), (1.0, 3.39), (10.0, 0.4845), (20.0, 0.17), (0.01, 339.0)])
def test_the_delta_of_gaussian_noise_is_that_of_its_definition(epsilon: float, sigma: float) -> None:
    """The integral of what the one density is above e^ε times the other."""
    with mp.workdps(40):
        start = mpf(sigma) ** 2 * mpf(epsilon) + mpf("0.5")
        one = 1 - ncdf((start - 1) / mpf(sigma))
        other = 1 - ncdf(start / mpf(sigma))
        assert mistakes.gaussian_delta(epsilon, sigma) == pytest.approx(float(one - mp.exp(epsilon) * other), rel=1e-9)


def test_the_printed_gaussian_noise_is_enough_below_a_third_only() -> None:
    deltas = {epsilon: mistakes.gaussian_delta(epsilon, sqrt(log(1e5)) / epsilon) for epsilon in (0.1, 0.3, 0.4, 0.9)}
    assert [delta > 1e-5 for delta in deltas.values()] == [False, False, True, True]


def test_advanced_composition_is_better_from_35_answers_on() -> None:
    better = [k for k in range(1, 100) if mistakes.advanced(0.1, k, 1e-6) < 0.1 * k]
    assert better[0] == 35


@pytest.mark.long
@pytest.mark.parametrize("variant", one_in(6, published(1.0)), ids=lambda variant: variant.name)
def test_outcomes_have_the_chances_of_an_integral(variant: SparseVector) -> None:
    def law(x: Any) -> Any:
        if not variant.answer:
            return mpf(x > 0)
        tail = mp.exp(-abs(x) / variant.answer) / 2
        return tail if x < 0 else 1 - tail

    def at(answers: tuple[int, ...]) -> float:
        def density(z: Any) -> Any:
            chance = mp.exp(-abs(z) / variant.threshold) / (2 * variant.threshold)
            for place, q in enumerate(answers):
                if place < variant.below:
                    chance *= law(z - q)
                elif variant.told is None:
                    chance *= 1 - law(z - q)
                else:
                    chance *= max(mpf(0), law(variant.told - q) - law(max(z, -variant.told) - q))
            return chance

        return float(quad(density, [-80, -1, 0, 1, 80]))

    for answers in (variant.one, variant.other):
        assert variant.chance(answers) == pytest.approx(at(answers), rel=1e-5, abs=1e-12)
    other = variant.chance(variant.other)
    assert other == 0 or variant.chance(variant.one) / other > exp(1.0)


@pytest.mark.long
def test_ours_keeps_the_outcome_that_gives_the_published_ones_away() -> None:
    """The same answers and outcome, with as many answers above as the cap: e^ε covers it, by draws."""
    mechanism = AboveThreshold.for_loss(PureDP(Fraction(1)), ScoreSensitivity(), count=3)
    variant, tries = published(1.0)[0], 20_000
    expected = [False] * 3 + [True] * 3
    hits = [
        sum(mechanism.release(np.array(answers), 0).tolist() == expected for _ in range(tries))
        for answers in (variant.one, variant.other)
    ]
    assert hits[0] <= exp(1) * hits[1] + 6 * sqrt(exp(1) * hits[1] + 1) + 6 * sqrt(hits[0] + 1)


@pytest.mark.long
def test_noise_of_the_right_size_in_the_wrong_ones_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the run draws with a tenth more noise than the formula that it is to expose."""
    drawn = mistakes._drawn_delta
    monkeypatch.setattr(mistakes, "_drawn_delta", lambda epsilon, sigma, draws: drawn(epsilon, sigma * 1.1, draws))
    wrong = failed(mistakes.run(Settings(repetitions=20_000)))
    assert len(wrong) == 3
    assert all(what.startswith("δ of") for what in wrong)


@pytest.mark.long
def test_a_sparse_vector_that_draws_its_threshold_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def anew(self: SparseVector, answers: tuple[int, ...], draws: int) -> int:
        generator = np.random.default_rng()
        threshold = generator.laplace(0.0, self.threshold, (draws, len(answers)))
        noisy = np.array(answers) + (generator.laplace(0.0, self.answer, threshold.shape) if self.answer else 0)
        above = noisy >= threshold
        return int((~above[:, : self.below].any(axis=1) & above[:, self.below :].all(axis=1)).sum())

    monkeypatch.setattr(SparseVector, "hits", anew)
    wrong = failed(mistakes.run(Settings(repetitions=50_000)))
    assert any("no cap" in what for what in wrong)
