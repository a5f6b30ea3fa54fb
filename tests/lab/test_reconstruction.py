"""*reconstruction* finds all bits behind noise of a fixed size, and hardly any behind Lapwing's."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

from lapwing import lab
from lapwing.lab import Settings, reconstruction
from lapwing.lab.course import protected_students
from lapwing.lab.naive import BASE, rounded_at_random
from lapwing.lab.reconstruction import Groups
from lapwing.mechanisms import DiscreteLaplace


@pytest.mark.long
def test_noise_of_a_fixed_size_hides_nobody_and_a_budget_does() -> None:
    found = reconstruction.run(Settings(short=True))
    assert found.holds
    rows = [{name: cell or 0.0 for name, cell in row.items()} for row in found.rows]
    assert rows[0]["observed"] == 1
    assert float(rows[3]["observed"]) < 0.8
    ours = {row["noise"]: float(row["observed"]) for row in rows if row["target"] == "Lapwing's noise"}
    assert ours["ε = 1 in all"] < 0.53
    assert ours["ε = 256 in all"] > 0.99


@pytest.mark.long
def test_least_squares_finds_what_a_linear_program_finds() -> None:
    groups = Groups.drawn(2_400, 30)
    bits = np.random.default_rng().integers(0, 2, 30)
    answers = rounded_at_random(groups.counts(bits))
    # min t over 0 ≤ x ≤ 1 with |Ax − y| ≤ t. Both miss a bit with probability below 10⁻⁷: 30·Φ(−√2369/8), and for the
    # program less, as some 190 answers are off by all that is possible.
    ones = np.ones((2_400, 1))
    program = linprog(
        np.eye(31)[30],
        A_ub=np.block([[groups.members, -ones], [-groups.members, -ones]]),
        b_ub=np.concatenate((answers, -answers)),
        bounds=[(0, 1)] * 30 + [(0, None)],
    )
    assert program.fun <= BASE - 1 + 1e-9
    assert (groups.decode(answers) == bits).all()
    assert ((program.x[:30] > 0.5) == bits).all()


def test_predictions_are_those_of_fresh_noise() -> None:
    groups = Groups.drawn(192, 64)
    noise = np.random.default_rng().normal(0.0, 2.0, (192, 20_000))
    right = (np.abs(groups.inverse @ noise) < 0.5).mean() / 2 + 0.5
    assert groups.right(2.0) == pytest.approx(right, abs=0.005)
    assert np.allclose(groups.inverse, np.linalg.pinv(groups.members))
    assert groups.weakest == pytest.approx(float(np.linalg.svd(groups.members, compute_uv=False)[-1]))
    assert reconstruction.deviation_of(7.5) == pytest.approx(DiscreteLaplace(scale=Fraction(15, 2)).standard_deviation)


def test_random_rounding_has_the_law_that_is_predicted() -> None:
    counts = np.arange(400_000)
    off = rounded_at_random(counts) - counts
    assert np.abs(off).max() < BASE
    assert ((counts + off) % BASE == 0).all()
    assert off.std() == pytest.approx(2.0, abs=0.03)
    assert abs(off.mean()) < 7 * 2 / sqrt(off.size)


@pytest.mark.long
def test_another_epsilon_holds_and_one_target_is_enough() -> None:
    assert reconstruction.run(Settings(epsilon=Fraction(20), short=True, against="lapwing")).holds
    found = reconstruction.run(Settings(short=True, against="naive"))
    assert found.holds
    assert {row["target"] for row in found.rows} == {"exact counts"}


@pytest.fixture(params=[40, pytest.param(reconstruction.BITS, marks=pytest.mark.long)])
def bits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for fewer bits, and not for the textbook's figures of 64: 80 of 80 found still exceed e/(1 + e) by far."""
    monkeypatch.setattr(reconstruction, "BITS", request.param)
    monkeypatch.setattr(reconstruction, "ASKED", 3 * request.param)
    monkeypatch.setattr(reconstruction, "_textbook", list)


@pytest.mark.long
@pytest.mark.usefixtures("bits")
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = reconstruction._answers
    monkeypatch.setattr(
        reconstruction, "protected_students", lambda epsilon, table: protected_students(400 * epsilon, table)
    )
    monkeypatch.setattr(
        reconstruction, "_answers", lambda session, groups, epsilon: answers(session, groups, 400 * epsilon)
    )
    found = reconstruction.run(Settings(epsilon=Fraction(1), short=True, against="lapwing"))
    wrong = {check.what for check in found.checks if not check.holds}
    assert wrong == {"bound of bits found, Lapwing", "noise within its scale, Lapwing"}


@pytest.mark.long
@pytest.mark.usefixtures("bits")
def test_a_budget_that_never_ends_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstruction, "is_refused", lambda session, question, epsilon: False)
    found = reconstruction.run(Settings(epsilon=Fraction(1), short=True, against="lapwing"))
    assert [check.what for check in found.checks if not check.holds] == ["refused when the budget is spent"]


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["reconstruction"].attack
