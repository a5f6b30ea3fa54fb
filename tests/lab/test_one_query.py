"""*one-query*: the guess about Bob is as good as its law, within its bound; naive counts give him away."""

from fractions import Fraction

import numpy as np
import pytest

from lapwing.lab import Settings, one_query
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import exact_count
from lapwing.lab.students import BOBS_BIRTHDAY
from lapwing.session import Session
from tests.support.lab.laws import best_guess, discrete_laplace
from tests.support.lab.planted import a_tenth_too_small

EPSILONS = (0.05, 0.1, 0.5, 1.0, 3.0)


@pytest.mark.long
def test_naive_counts_fall_and_lapwing_stays_within_its_bound() -> None:
    found = one_query.run(Settings(short=True))
    assert found.holds
    naive = {(row["target"], row["attack"]): row["right, observed"] for row in found.rows[:3]}
    assert naive == {
        ("exact counts", "one question"): 1.0,
        ("counts below 5 hidden", "one question"): 0.5,
        ("counts below 5 hidden", "two questions"): 1.0,
    }
    best = [float(row["right, observed"] or 0) for row in found.rows if row["target"] == "Lapwing's noise"]
    assert len(best) == 2
    assert max(best) < 0.53  # barely better than random


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_predictions_are_those_of_the_law(epsilon: float) -> None:
    """The best guess by one answer, and by a difference of two, by all their probabilities."""
    with_bob, without = (discrete_laplace(1 / epsilon, bob, round(40 / epsilon)) for bob in (1, 0))
    assert one_query.predicted(one_query.ONE, epsilon) == pytest.approx(best_guess(with_bob, without))
    assert at_most(epsilon) == pytest.approx(best_guess(with_bob, without))
    two = best_guess(np.convolve(with_bob, without), np.convolve(without, without))
    assert one_query.predicted(one_query.TWO, epsilon) == pytest.approx(two)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_guess_by_two_answers_exceeds_the_bound_even_if_both_are_about_bob(epsilon: float) -> None:
    with_bob, without = (discrete_laplace(1 / epsilon, bob, round(20 / epsilon)) for bob in (1, 0))
    both = best_guess(np.outer(with_bob, with_bob), np.outer(without, without))
    assert one_query.predicted(one_query.TWO, epsilon) < both <= at_most(2 * epsilon) + 1e-9


@pytest.mark.long
def test_another_epsilon_holds() -> None:
    found = one_query.run(Settings(epsilon=Fraction(1), short=True))
    assert found.holds
    assert {round(float(row["right, at most"] or 0), 2) for row in found.rows[3:]} == {0.73, 0.88}


def test_targets_can_be_chosen() -> None:
    naive = one_query.run(Settings(against="naive", short=True))
    assert naive.holds
    assert len(naive.rows) == 3
    assert "Lapwing" not in {str(row["target"])[:7] for row in naive.rows}


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_query, "noise_of", a_tenth_too_small)
    assert not one_query.run(Settings(epsilon=Fraction(1), against="lapwing", short=True)).holds


@pytest.mark.long
def test_exact_counts_in_the_place_of_the_engine_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: an engine that adds no noise, asked by the attack itself."""

    def exact(session: Session, question: str, epsilon: Fraction, count: int) -> np.ndarray:
        table = next(worlds)
        if question == bob.alone:
            answer = exact_count(table, "Notepad", born=BOBS_BIRTHDAY)
        elif question == bob.group:
            answer = exact_count(table, "Notepad")
        else:
            answer = exact_count(table, "Notepad", not_born=BOBS_BIRTHDAY)
        return np.full(count, answer)

    bob = FirstStudent.of(None)
    assert bob.alone == one_query.BOB_ALONE
    worlds = iter([table for table in (bob.table, bob.without) for _ in range(3)])
    monkeypatch.setattr(one_query, "fresh_answers", exact)
    found = one_query.run(Settings(against="lapwing"))
    assert [row["right, observed"] for row in found.rows[:2]] == [1.0, 1.0]
    assert not found.holds
