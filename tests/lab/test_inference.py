"""*inference* holds, its figures come out of its table, and a release that tells too much of Bob is noticed."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import e, mpf

from lapwing import noise
from lapwing.lab import Settings, inference
from lapwing.mechanisms import DiscreteLaplace


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = inference.run(Settings(short=True))
    assert found.holds
    exact = {check.what: check.observed for check in found.checks}
    assert exact["negative in the town"] == 0.991
    assert exact["negative in Bob's quarter"] == 0.155
    for row in found.rows:
        if row["what"] == "negative in Bob's quarter":
            assert float(str(row["observed"])) == pytest.approx(0.155, abs=0.1)  # noise of 200 has chance e^−20


def test_the_worlds_differ_by_bob_alone() -> None:
    with_bob, without, otherwise = (inference.town(world) for world in inference.WORLDS)
    assert with_bob.num_rows == inference.QUARTERS * inference.PEOPLE
    assert without.equals(with_bob.slice(1))
    changed = np.flatnonzero(np.array(with_bob["negative"]) != np.array(otherwise["negative"]))
    assert changed.tolist() == [0]


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_no_guess_of_a_neighbouring_world_is_better(epsilon: Fraction) -> None:
    """Sum the larger of the two laws: over one count that moves by 1, and over two that do."""
    q = float(e ** -(mpf(epsilon.numerator) / epsilon.denominator))
    reach = int(60 / epsilon)
    away = np.arange(-reach, reach + 1)
    present, absent = ((1 - q) / (1 + q) * q ** np.abs(away - shift) for shift in (1, 0))
    assert np.maximum(present, absent).sum() / 2 == pytest.approx(inference._success(epsilon), rel=1e-9)
    bears, lacks = np.outer(present, absent), np.outer(absent, present)
    assert np.maximum(bears, lacks).sum() / 2 == pytest.approx(inference._success(epsilon), rel=1e-9)


@pytest.mark.long
def test_another_epsilon_holds() -> None:
    assert inference.run(Settings(epsilon=Fraction(1), short=True)).holds


@pytest.mark.long
def test_too_little_noise_tells_whether_bob_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: drawn(scale * 8 / 10, size))
    failed = [check.what for check in inference.run(Settings()).checks if not check.holds]
    assert failed == ["right guess whether Bob is in", "right guess which he is, if he is in"]


@pytest.mark.long
def test_an_engine_without_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(self: DiscreteLaplace, values: Any, *rest: object) -> Any:
        return values

    monkeypatch.setattr(DiscreteLaplace, "release", exact)
    failed = [check.what for check in inference.run(Settings(short=True)).checks if not check.holds]
    assert failed == [f"largest error of the counts, {world}" for world in inference.WORLDS]
