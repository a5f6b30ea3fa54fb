"""*sum*: Bob's scholarship shows through noise for a sensitivity of 1, and not through Lapwing's; the total stays."""

from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from lapwing.lab import Finding, Settings, sums
from lapwing.lab.course import protected_students
from lapwing.lab.experiment import Target
from lapwing.mechanisms import DiscreteLaplace
from tests.support.effort import only
from tests.support.lab.laws import best_guess, discrete_laplace
from tests.support.lab.planted import a_tenth_too_small

TARGETS: Final[tuple[Target, ...]] = ("naive", "lapwing")


def observed(found: Finding) -> dict[tuple[str, str], float]:
    return {(str(row["scholarship"]), str(row["figure"])): float(row["observed"] or 0) for row in found.rows}


@pytest.mark.long
def test_naive_noise_shows_bob_and_lapwing_does_not() -> None:
    found = sums.run(Settings(short=True))
    assert found.holds
    seen = observed(found)
    assert seen["Bob's, noise for 1", "within ±10"] == pytest.approx(0.63, abs=0.01)
    assert seen["Bob's, noise for 1", "4,500 told from nothing"] == 1
    assert seen["Bob's, Lapwing", "scale of the noise"] == 60_000
    assert seen["Bob's, Lapwing", "within ±10"] < 0.001
    assert seen["Bob's, Lapwing", "4,500 told from nothing"] < 0.525
    assert seen["total, Lapwing", "relative mean error"] == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize("scale", only((0, 1), [50.0, 3_000.0, 60_000.0]))
def test_predictions_are_those_of_the_law(scale: float) -> None:
    reach = round(40 * scale) + 4_500
    places = np.arange(-reach, reach + 1)
    nothing, bob = (discrete_laplace(scale, true, reach) for true in (0, 4_500))
    assert sums.told_apart(scale) == pytest.approx(best_guess(nothing, bob))
    assert sums.mean_error(scale) == pytest.approx(float(np.abs(places) @ nothing))
    for near in (0, 1, 10, 100):
        assert sums.within(near, scale) == pytest.approx(float(nothing[np.abs(places) <= near].sum()))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(3, 8), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert sums.run(Settings(epsilon=epsilon, short=True)).holds


@pytest.mark.long
def test_targets_can_be_chosen() -> None:
    naive, ours = (observed(sums.run(Settings(against=target, short=True))) for target in TARGETS)
    assert {name for name, _ in naive} == {"Bob's, noise for 1"}
    assert {name for name, _ in ours} == {"Bob's, Lapwing", "total, Lapwing"}


@pytest.mark.long
def test_noise_for_a_sensitivity_of_one_in_the_place_of_lapwings_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "noise_of", lambda session, question, epsilon: DiscreteLaplace(scale=1 / epsilon))
    failed = {c.what for c in sums.run(Settings(against="lapwing", short=True)).checks if not c.holds}
    assert "scale of the noise, Bob's, Lapwing" in failed
    assert "bound of 4,500 told from nothing, Bob's, Lapwing" in failed


@pytest.mark.long
def test_bounds_that_are_too_narrow_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the curator's public bounds end below Bob's scholarship."""

    def narrow(epsilon: Fraction, table: pa.Table) -> object:
        return protected_students(epsilon, table, bounds={"scholarship": (0, 600)})

    monkeypatch.setattr(sums, "protected_students", narrow)
    assert not sums.run(Settings(against="lapwing", short=True)).holds


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "noise_of", a_tenth_too_small)
    failed = {c.what for c in sums.run(Settings(epsilon=Fraction(1), short=True)).checks if not c.holds}
    assert "relative mean error of the total" not in failed  # its law is computed from the scale
    assert {"scale of the noise, Bob's, Lapwing", "bound of 4,500 told from nothing, Bob's, Lapwing"} & failed
