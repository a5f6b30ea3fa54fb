"""Intervals hold for the population, for analysts of six kinds; and what promises more than was proven is found out."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lapwing as lw
from lapwing.exact.entropy import SYSTEM
from lapwing.generalisation import GaussianAnswers
from lapwing.holdout import ReusableHoldout, described, splitting, thresholdout
from lapwing.holdout import gaussian as gaussian_strategy
from lapwing.mechanisms import AboveThreshold
from tests.support.holdout.analysts import ANALYSTS, agrees, covered, sample

FALSE_ALARMS = 1e-9
CONFIDENCE = 0.9
STRATEGIES = ("gaussian", "thresholdout", "guess-and-check", "rounding", "splitting")


def holds(covers: int, trials: int, confidence: float = CONFIDENCE) -> bool:
    """Tell whether so many covered trials agree with the confidence, but for a false alarm."""
    return float(stats.binom.cdf(covers, trials, confidence)) > FALSE_ALARMS


def run(trials: int, people: int, questions: int) -> dict[str, int]:
    """Return how often all intervals of an analyst held, by strategy; kinds and strategies take turns."""
    drawing = np.random.default_rng()
    covers = dict.fromkeys(STRATEGIES, 0)
    for trial in range(trials):
        strategy = STRATEGIES[trial % len(STRATEGIES)]
        analyst = ANALYSTS[trial // len(STRATEGIES) % len(ANALYSTS)]
        guessing = strategy in ("thresholdout", "guess-and-check")
        holdout = ReusableHoldout(
            sample(people, drawing),
            strategy=strategy,
            questions=questions,
            confidence=CONFIDENCE,
            training=sample(people, drawing) if guessing else None,
            failures=questions if guessing else None,
        )
        covers[strategy] += covered(analyst(holdout.query, questions, drawing))
    return covers


@pytest.mark.long
def test_a_hundred_analysts() -> None:
    assert all(holds(covers, 100 // len(STRATEGIES)) for covers in run(100, 500, 12).values())


@pytest.mark.long
def test_ten_thousand_analysts() -> None:
    trials = 10_000
    assert all(holds(covers, trials // len(STRATEGIES)) for covers in run(trials, 1_000, 40).values())


# Twins: each has a promise that is looser than its proof, and then must fail. Each starts from one where what is
# dropped matters: the bounds are for the worst analyst, and six kinds are far from it where all is as it should be.


def little_noise(trials: int) -> int:
    """Return how often three answers with hardly any noise hold: the transfer theorem is all of their promise."""
    drawing, covers = np.random.default_rng(), 0
    answers = GaussianAnswers(people=400, questions=3, sigma=Fraction(1, 1000))
    strategy = gaussian_strategy.GaussianStrategy(answers=answers, chance=Fraction(1, 10))
    for _ in range(trials):
        rows = sample(400, drawing)
        holdout = ReusableHoldout(rows, strategy="gaussian", questions=3, confidence=CONFIDENCE)
        holdout._answering = strategy.start(SYSTEM)
        covers += covered([(holdout.query(agrees(i)), 0.5) for i in range(3)])
    return covers


@pytest.mark.long
def test_a_transfer_term_that_is_dropped_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds(little_noise(60), 60)
    monkeypatch.setattr("lapwing.generalisation.gaussian_answers.posterior_gap_up", lambda loss, chance: Fraction(0))
    assert not holds(little_noise(60), 60)


def much_noise(trials: int) -> int:
    """Return how often 100 answers with much noise hold: the noise is all of what they err by."""
    rows, covers = np.tile([0.0, 1.0], 5_000), 0
    answers = GaussianAnswers(people=rows.size, questions=100, sigma=Fraction(1, 2))
    strategy = gaussian_strategy.GaussianStrategy(answers=answers, chance=Fraction(1, 10))
    for _ in range(trials):
        holdout = ReusableHoldout(rows, strategy="gaussian", questions=100, confidence=CONFIDENCE, bounds=(-20, 20))
        holdout._answering = strategy.start(SYSTEM)
        covers += covered([(holdout.query(lambda rows: rows), 0.5) for _ in range(100)])
    return covers


@pytest.mark.long
def test_a_union_over_too_few_questions_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the reach of one answer, where the transcript has 100."""
    assert holds(much_noise(20), 20)
    reach = GaussianAnswers.half_width_up

    def of_one(answers: GaussianAnswers, chance: Fraction) -> Fraction:
        return reach(GaussianAnswers(people=answers.people, questions=1, sigma=answers.sigma), chance)

    monkeypatch.setattr(GaussianAnswers, "half_width_up", of_one)
    assert not holds(much_noise(20), 20)


def attacked(strategy: str, trials: int, **more: Any) -> int:
    """Return how often the intervals of one who climbs hold."""
    drawing, covers = np.random.default_rng(), 0
    for _ in range(trials):
        holdout = ReusableHoldout(sample(120, drawing), strategy=strategy, questions=60, confidence=CONFIDENCE, **more)
        covers += covered(ANALYSTS[3](holdout.query, 60, drawing))
    return covers


def test_transcripts_that_are_not_counted_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the last of 60 questions is promised what a first one is, as if nothing had been told before."""
    assert holds(attacked("rounding", 30), 30)
    at = described.Rounding.at
    monkeypatch.setattr(described.Rounding, "at", lambda self, question: at(self, 1) - Fraction(1, 2 * self.levels))
    monkeypatch.setattr(described, "on_grid", lambda value, levels: value)
    assert not holds(attacked("rounding", 30), 30)


@pytest.mark.long
def test_a_part_that_is_used_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: splitting that gives every question the same people, as in a naive holdout."""

    def same(self: Any, values: Any, guess: Any) -> Any:
        asked, self.asked = self.asked, 1
        try:
            return answer(self, values, guess)
        finally:
            self.asked = asked

    answer = splitting.SplittingAnswering.answer
    drawing, covers = np.random.default_rng(), 0
    monkeypatch.setattr(splitting.SplittingAnswering, "answer", same)
    for _ in range(14):
        holdout = ReusableHoldout(sample(6_000, drawing), strategy="splitting", questions=150, confidence=CONFIDENCE)
        covers += covered(ANALYSTS[3](holdout.query, 150, drawing))
    assert not holds(covers, 14)


# Thresholdout.


@pytest.mark.long
def test_thresholdout_stops_when_its_failures_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> int:
        holdout = ReusableHoldout(np.ones(50_000), strategy="thresholdout", questions=100, failures=5)
        count = 0
        while count < 20:
            try:
                holdout.query(lambda rows: rows, guess=0.0)
            except lw.BudgetExhausted:
                break
            count += 1
        return count

    assert asked() == 5
    monkeypatch.setattr(  # planted bug: a failure that is not counted
        thresholdout.ThresholdoutAnswering, "failures", property(lambda self: 0, lambda self, value: None)
    )
    assert asked() == 20


def below(trials: int) -> float:
    """Return how often a guess holds whose distance is such that the threshold's noise decides, by an even chance."""
    best = thresholdout.Thresholdout.best(10_000, 2, 10, Fraction(1, 10))
    check = AboveThreshold(threshold_scale=Fraction(10**8), query_scale=Fraction(1000))
    strategy = thresholdout.Thresholdout(
        people=10_000, failures=10**6, check=check, level=10**9, sigma=best.sigma, chance=best.chance
    )
    nobody = np.zeros(strategy.people, dtype=np.int64)
    guess = Fraction(10**9 + check.offset + 7 * 10**7, strategy.people * (1 << 20))  # P(ρ > 7·10⁷) = e^(−0.7)
    answering, held = strategy.start(SYSTEM), 0
    for _ in range(trials):
        answering.answer(nobody, Fraction(1))  # fails surely, and ends the run
        held += answering.answer(nobody, guess).source == "guess"
    return held / trials


def test_each_failure_gets_a_threshold_with_fresh_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.25 < below(300) < 0.75  # 8 standard deviations to either side of 0.497
    drawn: list[int] = []
    noise = AboveThreshold._threshold_noise

    def once(self: Any, entropy: Any) -> int:
        drawn.append(drawn[0] if drawn else noise(self, entropy))
        return drawn[-1]

    monkeypatch.setattr(AboveThreshold, "_threshold_noise", once)  # planted bug
    assert not 0.25 < below(300) < 0.75
