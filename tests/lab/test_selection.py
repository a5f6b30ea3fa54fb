"""*selection* holds, its laws are those of enumeration, and noise that is off, or a bound that is, is noticed."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log, prod
from typing import Any

import numpy as np
import pytest

from lapwing.lab import Settings, selection
from lapwing.lab import selection_laws as laws
from lapwing.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from tests.support.effort import one_in

FEW = np.array([3, 3, 2, 0], dtype=np.int64)


@pytest.mark.long
def test_it_holds_and_has_the_bounds_of_the_textbook() -> None:
    found = selection.run(Settings(short=True))
    assert found.holds
    bounds = {row["way"]: float(str(row["bound at 95 %"])) for row in found.rows}
    # 4Δ(ln d + t)/ε for scores that move either way, and 2Δ(ln d + t)/ε for counts, with Δ = 1, d = 50, t = 3, ε = 0.1.
    assert bounds["noisy max, Laplace, 2/ε"] == pytest.approx(4 * (log(50) + 3) / 0.1)
    assert bounds["noisy max, Laplace, 1/ε"] == pytest.approx(2 * (log(50) + 3) / 0.1)
    assert bounds["exponential mechanism"] == pytest.approx((log(50) + 3) / 0.1)
    errors = {row["way"]: float(str(row["error, predicted"])) for row in found.rows}
    assert errors["permute-and-flip"] < errors["exponential mechanism"] < errors["all noisy counts"]


def _noisy_max(scores: list[int], scale: float) -> list[float]:
    """Add up all noises within reach, for each of the candidates, and share ties."""
    q, reach = exp(-1 / scale), int(24 * scale)
    chance = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)}
    law = [0.0] * len(scores)
    for noises in product(chance, repeat=len(scores)):
        noisy = [score + noise for score, noise in zip(scores, noises, strict=True)]
        tied = [i for i, value in enumerate(noisy) if value == max(noisy)]
        for i in tied:
            law[i] += prod(chance[noise] for noise in noises) / len(tied)
    return law


@pytest.mark.parametrize("scores", [[1, 0], [2, 2, 1]])
def test_the_law_of_noisy_max_is_that_of_enumeration(scores: list[int]) -> None:
    assert laws.noisy_max_laplace(np.array(scores), 0.75) == pytest.approx(_noisy_max(scores, 0.75), rel=1e-7)


@pytest.mark.parametrize(
    ("scale", "within"),
    one_in(
        4, [(0.05, 1e-9), (0.5, 1e-9), (3.0, 1e-9), (60.0, 1e-9), (700.0, 1e-9), (1e5, 1e-5), (1e8, 1e-5)], many=True
    ),
)
def test_the_law_of_noisy_max_adds_up(scale: float, within: float) -> None:
    law = laws.noisy_max_laplace(selection.COUNTS, scale)
    assert law.sum() == pytest.approx(1, abs=within)
    assert (np.diff(law) <= 1e-12).all()
    same = laws.noisy_max_laplace(np.zeros(50, dtype=np.int64), scale)
    assert same == pytest.approx(np.full(50, 1 / 50), rel=within)


@pytest.mark.long
def test_every_so_many_values_will_do_for_wide_noise() -> None:
    roughly = laws.noisy_max_laplace(selection.COUNTS, 4_000.0)
    assert roughly == pytest.approx(laws.noisy_max_laplace(selection.COUNTS, 4_000.0, widest=4_000), rel=1e-5)


def test_permute_and_flip_is_noisy_max_with_exponential_noise() -> None:
    heads = [Fraction(1), Fraction(2, 3), Fraction(2, 3), Fraction(1, 5), Fraction(1, 97)]
    assert laws.by_permutations(heads) == laws.by_exponential_noise(heads)
    assert sum(laws.by_permutations(heads)) == 1
    coins = [Fraction(float(p)) for p in np.exp((FEW - FEW.max()) / 2.0)]
    expected = [float(p) for p in laws.by_permutations(coins)]
    assert laws.permute_and_flip(FEW, 2.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert selection.run(Settings(epsilon=epsilon, short=True)).holds


def _failed(checks: Any) -> str:
    return " · ".join(check.what for check in checks if not check.holds)


def _less(kind: Any, **named: str) -> Callable[..., int]:
    release = kind.release
    return lambda self, scores: int(release(kind(scale=self.scale / 2, **named), scores))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "named", "way"),
    one_in(
        3,
        [
            (ReportNoisyMax, {"noise": "laplace"}, "noisy max, Laplace, 1/ε"),
            (ExponentialMechanism, {}, "exponential mechanism"),
            (PermuteAndFlip, {}, "permute-and-flip"),
        ],
        many=True,
    ),
)
def test_too_little_noise_is_noticed(kind: Any, named: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "release", _less(kind, **named))
    (tried,) = (one for one in selection._ways(Fraction(1, 10)) if one.name == way)
    _, checks = selection._compared(tried, 2_000)
    assert f"the best, {way}" in _failed(checks)


def test_a_bound_without_its_factor_is_noticed() -> None:
    """The hardest case is beyond half of the exponential mechanism's bound in almost half of all choices."""
    (way,) = (one for one in selection._ways(Fraction(1, 10)) if one.name == "exponential mechanism")
    assert way.hardest(way.bound(3)) < exp(-3) < 0.4 < way.hardest(way.bound(3) / 2)


@pytest.mark.parametrize("index", [0, 1])
def test_a_choice_that_costs_more_is_noticed(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise that is enough for one count, or where all scores move one way, is not enough for these."""
    ways = list(selection._ways(Fraction(1, 10)))
    ways[index] = replace(ways[index], mechanism=ways[2].mechanism)
    monkeypatch.setattr(selection, "_ways", lambda epsilon, conditions: ways)
    assert _failed(selection._cost(Fraction(1, 10))) == f"ε of {ways[index].name}"
