"""*posterior*: beliefs end where the odds say, attained and not exceeded, and are as often true as they say."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.lab import Settings, posterior
from lapwing.lab.course import drawn
from lapwing.mechanisms import DiscreteLaplace
from tests.support.lab.laws import Floats, discrete_laplace
from tests.support.lab.planted import a_tenth_too_small

BELIEFS = (0.001, 0.1, 0.5, 0.77, 0.99)


def beliefs_after(belief: float, one: Floats, other: Floats) -> Floats:
    """Return what is believed after each answer, by Bayes."""
    return belief * one / (belief * one + (1 - belief) * other)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("belief", BELIEFS)
def test_ends_are_attained_by_one_count_and_no_answer_is_beyond_them(belief: float, epsilon: float) -> None:
    with_bob, without = (discrete_laplace(1 / epsilon, bob, round(40 / epsilon)) for bob in (1, 0))
    after = beliefs_after(belief, with_bob, without)
    low, high = posterior.by_odds(belief, epsilon)
    assert (after.min(), after.max()) == pytest.approx((low, high))
    least, most = posterior.as_printed(belief, epsilon)
    assert least <= low < belief < high <= most


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_what_bob_said_moves_odds_twice_as_far(epsilon: float) -> None:
    """By all answers in two cells: Notepad has one more if he said Notepad, and Vim if he said Vim."""
    one, nothing = (discrete_laplace(1 / epsilon, bob, round(25 / epsilon)) for bob in (1, 0))
    after = beliefs_after(0.5, np.outer(one, nothing), np.outer(nothing, one))
    assert (after.min(), after.max()) == pytest.approx(posterior.by_odds(0.5, 2 * epsilon))
    without = beliefs_after(0.5, np.outer(nothing, nothing), np.outer(nothing, nothing))
    assert without.min() == without.max() == 0.5  # what is believed where Bob is not in the data


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = posterior.run(Settings(short=True))
    assert found.holds
    ends = {(r["belief"], r["before"]): (r["low, predicted"], r["high, predicted"]) for r in found.rows}
    assert ends[posterior.IN_OR_OUT, 0.5] == pytest.approx((0.27, 0.73), abs=0.005)
    assert ends[posterior.WHICH, 0.5] == pytest.approx((0.12, 0.88), abs=0.005)
    assert posterior.as_printed(0.5, 1) == pytest.approx((0.5 / np.e, 1 - 0.5 / np.e))


def test_the_printed_bound_of_two_worlds_is_broken_by_one_histogram() -> None:
    """By all answers in two cells, and by Bayes: with Bob's data, without them, and where neighbours replace him."""
    one, nothing = (discrete_laplace(1.0, bob, 40) for bob in (1, 0))
    before = 1 / (1 + np.exp(2))
    with_bob = beliefs_after(before, np.outer(one, nothing), np.outer(nothing, one))
    without = beliefs_after(before, np.outer(nothing, nothing), np.outer(nothing, nothing))
    assert without == pytest.approx(np.full_like(without, 0.1192), abs=5e-5)
    assert with_bob.max() == pytest.approx(0.5)
    assert with_bob.max() > np.e * before == pytest.approx(0.324, abs=5e-4)
    assert (with_bob / without).max() <= np.exp(2)
    assert ((1 - with_bob) / (1 - without)).max() <= np.exp(2)
    half = (one_half := discrete_laplace(2.0, 1, 40)), discrete_laplace(2.0, 0, 40)
    replaced = beliefs_after(before, np.outer(one_half, half[1]), np.outer(half[1], one_half))
    assert (replaced / before).max() <= np.e


@pytest.mark.long
def test_it_says_so() -> None:
    found = posterior.run(Settings(short=True))
    (row,) = (r for r in found.rows if r["belief"] == posterior.WHICH and r["before"] != 0.5)
    assert float(str(row["high, true"])) > float(str(row["printed high"])) == pytest.approx(0.324, abs=5e-4)
    assert "0.324" in found.conclusion


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(3), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert posterior.run(Settings(epsilon=epsilon, short=True)).holds


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior, "noise_of", a_tenth_too_small)
    assert not posterior.run(Settings(short=True)).holds


@pytest.mark.long
def test_beliefs_that_are_true_more_often_than_they_say_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: draws with a tenth less noise than the mechanism states, which only the drawn worlds can show."""

    def less(mechanism: DiscreteLaplace, true: int, count: int) -> NDArray[np.int64]:
        return drawn(DiscreteLaplace(scale=mechanism.scale * 9 / 10), true, count)

    monkeypatch.setattr(posterior, "drawn", less)
    found = posterior.run(Settings())
    assert not found.holds
    assert {check.what[:4] for check in found.checks if not check.holds} == {"true"}
