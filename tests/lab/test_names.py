"""*names* holds, its laws are those of a second computation, and noise that is too small, or too large, is noticed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from mpmath import e, erfc, mp, mpf, sqrt

from lapwing.lab import Settings, names
from lapwing.lab.surnames import TOWN, surnames
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.session import Session
from tests.support.effort import one_in


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = names.run(Settings(short=True))
    assert found.holds
    reach = {(row["noise"], row["counts"]): row["± at 95 %"] for row in found.rows}
    assert reach["Laplace", 10_000] == 12
    assert reach["Laplace", 1] == 3
    assert reach["Gaussian", 10_000] == 19
    assert any(check.what == "ln(10,000/0.05)" and check.predicted == 12.2 for check in found.checks)


def test_the_names_are_those_of_the_census() -> None:
    counted = surnames()
    assert len(counted) == 10_000
    assert list(counted.items())[:3] == [("SMITH", 1_006), ("JOHNSON", 810), ("WILLIAMS", 699)]
    assert sum(counted.values()) == 70_751 < TOWN
    assert list(counted.values()) == sorted(counted.values(), reverse=True)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_laws_are_those_of_a_sum_over_the_noise(epsilon: Fraction) -> None:
    laplace, gaussian = names.laplace(epsilon), names._gaussian(epsilon)
    mechanism = gaussian.mechanism
    assert isinstance(mechanism, RoundedGaussian)
    with mp.workdps(40):
        q = e ** -(mpf(epsilon.numerator) / epsilon.denominator)
        for h in (0, 3, 12):
            total = (1 + 2 * sum(q**x for x in range(1, h + 1))) * (1 - q) / (1 + q)
            assert laplace.largest_within(h, 10_000) == pytest.approx(float(total**10_000), rel=1e-9)
        sigma = mpf(mechanism.sigma.numerator) / mechanism.sigma.denominator
        assert gaussian.tail(12) == pytest.approx(float(erfc(mpf("12.5") / (sigma * sqrt(2)))), rel=1e-9)


@pytest.mark.parametrize("k", [1, 10, 10_000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(20)])
def test_bounds_cover_and_quantiles_are_the_least_that_do(k: int, epsilon: Fraction) -> None:
    for noise in (names.laplace(epsilon), names._gaussian(epsilon)):
        reach = noise.quantile(k, 0.95)
        assert noise.largest_within(reach, k) >= 0.95
        assert reach == 0 or noise.largest_within(reach - 1, k) < 0.95
        assert noise.largest_within(int(noise.bound(k)), k) >= 0.95


def test_the_bound_for_continuous_noise_is_not_one_for_ours() -> None:
    laplace = names.laplace(Fraction(1))
    # Just below a whole number t, so many counts that ln(k/0.05) is there: an error of t is still beyond.
    k = round(0.05 * float(e) ** 12.99)
    assert 1 - laplace.largest_within(12, k) > 0.05
    assert 1 - laplace.largest_within(int(laplace.bound(k)), k) <= 0.05


@pytest.mark.long
def test_another_epsilon_holds() -> None:
    assert names.run(Settings(epsilon=Fraction(1, 10), short=True)).holds


def _scaled(factor: Fraction) -> Callable[..., Any]:
    release = DiscreteLaplace.release
    return lambda self, values, *rest: release(DiscreteLaplace(scale=self.scale * factor), values, *rest)


@pytest.mark.long
@pytest.mark.parametrize("factor", one_in(2, [Fraction(9, 10), Fraction(11, 10)]))
def test_noise_that_is_a_tenth_off_is_noticed(factor: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "release", _scaled(factor))
    assert any("Laplace errors" in check.what for check in names.run(Settings()).checks if not check.holds)


@pytest.mark.long
@pytest.mark.parametrize("factor", one_in(2, [Fraction(1, 2), Fraction(2)]))
def test_an_engine_with_other_noise_is_noticed(factor: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "release", _scaled(factor))
    _, checks = names._engine(Fraction(1), names.laplace(Fraction(1)))
    assert not all(check.holds for check in checks)


@pytest.mark.long
def test_an_engine_that_leaves_out_a_name_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Session.sql

    class Fewer:
        def __init__(self, rows: list[Any]) -> None:
            self._rows = rows

        def rows(self) -> list[Any]:
            return self._rows[:-1]

    monkeypatch.setattr(Session, "sql", lambda self, text, **given: Fewer(list(ask(self, text, **given).rows())))
    assert not names.run(Settings(short=True)).holds
