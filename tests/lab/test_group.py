"""*group*: ten who do everything together have ten times the loss, attained; as one privacy unit they have one."""

from fractions import Fraction

import numpy as np
import pytest

from lapwing.lab import Settings, group
from lapwing.lab.course import protected_students
from lapwing.lab.guesses import at_most
from lapwing.lab.one_query import BOB_ALONE
from lapwing.mechanisms import DiscreteLaplace
from lapwing.privacy.measures import PureDP
from tests.support.lab.laws import best_guess, discrete_laplace
from tests.support.lab.planted import a_tenth_too_small


@pytest.mark.long
def test_it_holds_and_ten_times_epsilon_is_attained() -> None:
    found = group.run(Settings(short=True))
    assert found.holds
    ten, unit = found.rows[3], found.rows[-1]
    assert (ten["together"], ten["epsilon"]) == (10, 1.0)
    assert float(ten["times, observed"] or 0) == pytest.approx(np.e, rel=0.05)
    assert (unit["hidden"], unit["epsilon"]) == (group.ALL, 0.1)
    assert float(unit["right, observed"] or 0) < 0.53 < 0.69 < float(ten["right, observed"] or 0)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10, 11, 20])
def test_predictions_are_those_of_the_law(size: int, epsilon: float) -> None:
    """The best guess, and the largest ratio of probabilities, by all answers."""
    reach = round(40 / epsilon) + size
    there, absent = (discrete_laplace(1 / epsilon, true, reach) for true in (size, 0))
    loss = float(PureDP(epsilon).for_group(size).epsilon)
    assert group.right(size, epsilon) == pytest.approx(best_guess(there, absent))
    assert group.right(size, epsilon) <= at_most(loss) + 1e-12
    inside = slice(reach - size, reach + 2 * size)
    assert float(np.log(there[inside] / absent[inside]).max()) == pytest.approx(loss)


def test_clones_are_students_of_their_own_or_one_privacy_unit() -> None:
    alike = group.with_clones([5_000, 5_001])
    assert alike.num_rows == 1_002
    assert alike.slice(1_000).drop_columns("id").equals(alike.slice(0, 1).drop_columns("id").take([0, 0]))
    with protected_students(1_000, group.with_clones([0] * 9), max_rows_per_unit=10) as session:
        (row,) = session.sql(BOB_ALONE, epsilon=1_000).rows()
    assert row["n"] == 10


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert group.run(Settings(epsilon=epsilon, short=True)).holds


@pytest.mark.long
def test_a_loss_that_does_not_grow_with_the_group_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PureDP, "for_group", lambda loss, size: loss)
    assert not group.run(Settings(short=True)).holds


@pytest.mark.long
def test_a_group_that_is_not_one_unit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: noise as of single students where the ten are to be hidden together."""
    monkeypatch.setattr(group, "_noise_for_all", lambda epsilon: DiscreteLaplace(scale=1 / epsilon))
    failed = {check.what for check in group.run(Settings(short=True)).checks if not check.holds}
    assert f"bound of guesses right, a group of 10, hidden is {group.ALL}" in failed


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "noise_of", a_tenth_too_small)
    assert not group.run(Settings(short=True)).holds
