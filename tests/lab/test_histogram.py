"""*histogram* holds, and a noise that is a tenth too small, or an interval one too narrow, is noticed."""

from fractions import Fraction

import pytest

from lapwing import noise
from lapwing.lab import Settings, histogram


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = histogram.run(Settings(short=True))
    assert found.holds
    scales = {(row["cells"], row["asked"]): row["scale"] for row in found.rows}
    assert scales == {(5, "singly"): 5, (5, "at once"): 1, (96, "singly"): 96, (96, "at once"): 1}


@pytest.mark.long
def test_another_epsilon_holds() -> None:
    assert histogram.run(Settings(epsilon=Fraction(1, 10), short=True)).holds


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5), Fraction(96), Fraction(960)])
def test_half_widths_are_the_least_that_cover(scale: Fraction) -> None:
    reach = histogram.half_width(scale)
    assert histogram._within(scale, reach) >= 0.95
    assert reach == 0 or histogram._within(scale, reach - 1) < 0.95


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: drawn(scale * 9 / 10, size))
    assert not histogram.run(Settings()).holds


@pytest.mark.long
def test_a_narrow_interval_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = histogram._engine
    monkeypatch.setattr(histogram, "_engine", lambda epsilon: {k: v - 1 for k, v in counted(epsilon).items()})
    assert not histogram.run(Settings(short=True)).holds
