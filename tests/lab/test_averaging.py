"""*averaging*: fresh noise falls after as many repeats as predicted, and Lapwing gives no second answer for free."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.answer import Answer
from lapwing.budget import BudgetView
from lapwing.lab import Settings, averaging, guesses
from lapwing.lab.course import protected_students
from lapwing.lab.naive import with_laplace
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.lab.laws import Floats, discrete_laplace

FIGURES = {Fraction(1, 10): (1_118, 609), Fraction(1, 2): (51, 28), Fraction(1): (15, 8)}


def transform(epsilon: float, t: Floats) -> NDArray[np.complex128]:
    """Return the characteristic function of one term, ε(|y| − |y − 1|) for y = 1 + Laplace noise, in closed form."""
    middle: NDArray[np.complex128] = (
        np.exp(1j * t * epsilon) * (1 - np.exp(-epsilon * (1 + 2j * t))) / (2 * (1 + 2j * t))
    )
    ends: NDArray[np.complex128] = 0.5 * np.exp(1j * t * epsilon) + 0.5 * np.exp(-epsilon - 1j * t * epsilon)
    return ends + middle


def beyond_by_inversion(epsilon: float, repeats: int, level: float) -> float:
    """Return P(S > level) + ½P(S = level) by the formula of Gil-Pelaez 1951."""
    step = 1e-3
    t = (np.arange(400_000, dtype=np.float64) + 0.5) * step
    power = transform(epsilon, t) ** repeats
    return 0.5 + float((np.imag(power * np.exp(-1j * t * level)) / t).sum()) * step / np.pi


@pytest.mark.parametrize(("epsilon", "repeats"), one_in(2, [(1.0, 14), (1.0, 15), (0.5, 50), (0.5, 51)], many=True))
def test_shares_of_right_guesses_are_those_of_another_computation(epsilon: float, repeats: int) -> None:
    assert guesses.beyond(epsilon, repeats, 0.0) == pytest.approx(beyond_by_inversion(epsilon, repeats, 0.0), abs=1e-4)


@pytest.mark.parametrize(("epsilon", "repeats"), only([0], [(1.0, 8), (0.5, 28)], many=True))
def test_shares_of_sure_posteriors_are_those_of_another_computation(epsilon: float, repeats: int) -> None:
    found = guesses.beyond(epsilon, repeats, averaging.LEVEL)
    assert found == pytest.approx(beyond_by_inversion(epsilon, repeats, averaging.LEVEL), abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "repeats"), one_in(3, list(FIGURES.items()), many=True))
def test_repeats_are_the_least_that_suffice(epsilon: Fraction, repeats: tuple[int, int]) -> None:
    for level, wanted, least in ((0.0, 0.95, repeats[0]), (averaging.LEVEL, 0.5, repeats[1])):
        assert guesses.least_repeats(float(epsilon), level, wanted) == least
        assert guesses.beyond(float(epsilon), least, level) >= wanted > guesses.beyond(float(epsilon), least - 1, level)


@pytest.mark.long
def test_a_finer_grid_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = (0.0, averaging.LEVEL)
    coarse = [
        guesses.beyond(float(e), n, level) for e, pair in FIGURES.items() for n, level in zip(pair, levels, strict=True)
    ]
    monkeypatch.setattr(guesses, "CELLS", 4 * guesses.CELLS)
    fine = [
        guesses.beyond(float(e), n, level) for e, pair in FIGURES.items() for n, level in zip(pair, levels, strict=True)
    ]
    assert coarse == pytest.approx(fine, abs=2e-4)


@pytest.mark.parametrize("answers", only([0], [1, 2, 3]))
def test_the_majority_is_the_best_guess_by_all_answers_of_lapwing(answers: int) -> None:
    """By the probabilities of all lists of answers: no other guess does better."""
    with_bob, without = (discrete_laplace(1 / 0.8, bob, 20) for bob in (1, 0))
    total = sum(
        max(prod(with_bob[list(places)].tolist()), prod(without[list(places)].tolist()))
        for places in product(range(with_bob.size), repeat=answers)
    )
    assert guesses.by_majority(0.8, answers) == pytest.approx(total / 2, abs=1e-5)


@pytest.mark.long
def test_a_small_epsilon_withstands_as_many_repeats_as_are_tried() -> None:
    assert guesses.least_repeats(0.01, 0.0, 0.95) is None


@pytest.mark.long
def test_fresh_noise_falls_and_lapwing_stays_within_its_bound() -> None:
    found = averaging.run(Settings(short=True))
    assert found.holds
    for row in found.rows:
        if row["target"] == averaging.FRESH:
            assert float(row["right, observed"] or 0) > 0.9
        else:
            assert float(row["right, predicted"] or 0) <= float(row["right, at most"] or 0) + 1e-12 < 0.74
    assert [row["answers"] for row in found.rows if row["target"] == averaging.OTHER] == [10, 2, 1]
    assert {row["different"] for row in found.rows if row["target"] == averaging.SAME} == {1}


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(3, 10), Fraction(5)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert averaging.run(Settings(epsilon=epsilon, short=True)).holds


class Forgetful:
    """A system that answers afresh whatever it answered before, and has budget enough for all of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked = 0

    def sql(self, text: str, *, epsilon: Fraction) -> Answer:
        self.asked += 1
        return self.session.sql(f"{text} AND id > {-1000 - self.asked}", epsilon=epsilon)

    def budget(self) -> BudgetView:
        return self.session.budget()


@contextmanager
def forgetful(epsilon: Fraction) -> Iterator[Forgetful]:
    with protected_students(1_000) as session:
        yield Forgetful(session)


@pytest.mark.long
def test_a_system_that_forgets_its_answers_and_its_budget_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(averaging, "protected_students", forgetful)
    found = averaging.run(Settings(epsilon=Fraction(1), against="lapwing", short=True))
    failed = {check.what for check in found.checks if not check.holds}
    assert "different answers to 50 times the same at ε = 1" in failed
    assert "cost of the repeats at ε = 1" in failed
    assert "answers in other words by a budget of 1 at ε = 1" in failed


@pytest.mark.long
@pytest.mark.parametrize("times", one_in(2, [0.7, 1.5]))
def test_naive_noise_of_another_scale_is_noticed(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    monkeypatch.setattr(averaging, "with_laplace", lambda true, scale, size: with_laplace(true, times * scale, size))
    assert not averaging.run(Settings(epsilon=Fraction(1, 2), against="naive")).holds


@pytest.mark.parametrize(("epsilon", "median"), [(0.1, 467), (0.5, 23), (1.0, 7)])
def test_who_looks_after_each_answer_is_sure_earlier(epsilon: float, median: int) -> None:
    """By the law of S step by step, from which those are taken out who stop at a posterior above 0.95."""
    cells = guesses.CELLS
    level, least = int(np.ceil(averaging.LEVEL * cells / epsilon)), -int(12 * cells / epsilon)
    going = np.zeros(level - least)
    going[-least] = 1.0
    answers = 0
    while going.sum() > 0.5:
        moved = np.convolve(going, guesses.term_law(epsilon))
        going = moved[cells : cells + going.size]
        answers += 1
    assert answers == pytest.approx(median, rel=0.005)
