"""Correlated noise: against all patterns of a unit's steps, closed forms, the matrices of sums over time, and twins."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import BufferedToeplitz, Events
from lapwing.privacy import matrix_sensitivity as module
from lapwing.privacy.listing import listed
from lapwing.privacy.matrix_sensitivity import sensitivity_of_matrix

Matrix = NDArray[np.float64]


def patterns(steps: int, most: int, separation: int) -> list[tuple[int, ...]]:
    return [
        chosen
        for size in range(1, most + 1)
        for chosen in combinations(range(steps), size)
        if all(b - a >= separation for a, b in pairwise(chosen))
    ]


def by_trial(matrix: Matrix, most: int, separation: int) -> float:
    """The largest norm of what one unit does, with a number 1 or −1 in each of its steps."""
    return max(
        float(np.linalg.norm(matrix[:, list(chosen)] @ signs))
        for chosen in patterns(len(matrix), most, separation)
        for signs in product((1, -1), repeat=len(chosen))
    )


def random_matrix(steps: int, bands: int) -> Matrix:
    draws = np.random.default_rng(steps * 31 + bands).normal(size=(steps, steps))
    return np.tril(np.triu(draws, 1 - bands))


def check(steps: int, bands: int, most: int, separation: int) -> None:
    """Never below what a unit can do; as much where no two of its steps meet, or all numbers are of one sign."""
    for matrix in (random_matrix(steps, bands), np.abs(random_matrix(steps, bands))):
        bound = float(sensitivity_of_matrix(matrix, participations=most, separation=separation))
        least = by_trial(matrix, most, separation)
        assert least <= bound * (1 + 1e-15)
        if bands <= separation:
            assert bound <= least * (1 + 1e-12)


CASES = [(6, 6, 1, 1), (7, 3, 3, 3), (7, 2, 3, 3), (8, 8, 3, 2), (8, 3, 4, 2), (6, 6, 6, 1), (9, 4, 2, 4)]


def check_all() -> None:
    for case in CASES:
        check(*case)


@pytest.mark.parametrize(("steps", "bands", "most", "separation"), CASES)
def test_all_patterns(steps: int, bands: int, most: int, separation: int) -> None:
    check(steps, bands, most, separation)


@pytest.mark.parametrize(
    "fault",
    [
        lambda f: lambda weights, most, separation: f(weights, max(0, most - 1), separation),
        lambda f: lambda weights, most, separation: f(weights, most, separation + 1),
        lambda f: lambda weights, most, separation: f(weights[:, 1:], most, separation),
        lambda f: lambda weights, most, separation: 0.9 * f(weights, most, separation),
    ],
    ids=["one step less", "one farther apart", "the first step left out", "nine tenths"],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., object]) -> None:
    monkeypatch.setattr(module, "_largest", fault(module._largest))
    with pytest.raises(AssertionError):
        check_all()


def test_closed_forms() -> None:
    """The identity adds steps up by squares; sums of all steps so far have the first column as their longest."""
    assert float(sensitivity_of_matrix(np.eye(20), participations=4)) == pytest.approx(2, rel=1e-12)
    assert float(sensitivity_of_matrix(np.tril(np.ones((25, 25))))) == pytest.approx(5, rel=1e-12)
    assert float(sensitivity_of_matrix(np.eye(20), participations=100, separation=7)) == pytest.approx(
        3**0.5, rel=1e-12
    )


def test_sums_over_time_have_the_same_sensitivity() -> None:
    """Of the matrices of `mechanisms.continual`; where steps meet, a little more is stated than there."""
    decays = tuple(Fraction(1, n) for n in (50, 20, 5, 2))
    toeplitz = BufferedToeplitz(64, None, decays)
    lags = np.subtract.outer(np.arange(64), np.arange(64))
    column = np.concatenate([[1.0], toeplitz.behind.values(np.arange(63, dtype=float))])
    matrix = np.where(lags >= 0, column[np.maximum(lags, 0)], 0.0)
    for most, separation in ((1, 1), (4, 8), (3, 16)):
        other = float(toeplitz.sensitivity_squared(Events(most=most, per_tick=1, spacing=separation))) ** 0.5
        bound = float(sensitivity_of_matrix(matrix, participations=most, separation=separation))
        assert other * (1 - 1e-9) <= bound <= other * (1.1 if most > 1 else 1 + 1e-9)


def test_a_part_of_a_list() -> None:
    part = listed("gaussian", sigma=2, sensitivity=sensitivity_of_matrix(np.eye(9), participations=9))
    assert float(part.mechanism.loss("gdp").amount) == pytest.approx(2.25, rel=1e-12)


@pytest.mark.parametrize(
    ("encoder", "numbers", "said"),
    [
        ([[1, 0]], {}, "must be square"),
        ([[1, 1], [0, 1]], {}, "lower triangular"),
        ([[float("nan")]], {}, "finite"),
        ([[1]], {"participations": 0}, "participations"),
        ([[1]], {"separation": 0}, "separation"),
    ],
)
def test_what_is_refused(encoder: list[list[float]], numbers: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        sensitivity_of_matrix(encoder, **numbers)
