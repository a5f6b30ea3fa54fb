"""What a budget means for one person and for several, against formulas evaluated elsewhere."""

import math
from fractions import Fraction

import mpmath
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from lapwing.catalog.model import Budget
from lapwing.guarantee import meaning
from lapwing.guarantee.meaning import LEVELS, guess_up, odds_change_up, odds_factor_up, power_up, towards_group
from lapwing.privacy.measures import GaussianDP

DELTA = Fraction(1, 10**6)


def budget(measure: str, keys: Fraction = Fraction(0), epsilon: int = 3) -> Budget:
    delta = keys if measure == "pure" else DELTA
    return Budget(epsilon=Fraction(epsilon), delta=delta, delta_keys=keys, measure=measure, neighbouring="add_remove")


def delta_of(mu: float, epsilon: float) -> float:
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


@pytest.mark.parametrize("people", meaning.GROUPS)
def test_a_group_in_a_gaussian_ledger(people: int) -> None:
    described = budget("gdp")
    mu = brentq(lambda m: delta_of(m, 3) - 1e-6, 0.1, 2)
    exact = brentq(lambda e: delta_of(people * mu, e) - 1e-6, 0, 100)
    towards = towards_group(described, described.loss, people)
    assert towards.delta == DELTA
    assert towards.epsilon is not None
    assert exact <= towards.epsilon + 1e-6
    assert towards.epsilon == pytest.approx(exact, rel=1e-5)


def test_a_group_in_a_pure_ledger() -> None:
    described = budget("pure")
    assert towards_group(described, described.loss, 4).epsilon == 12
    assert towards_group(described, described.loss, 4).delta == 0


def test_a_group_in_a_concentrated_ledger() -> None:
    described = budget("zcdp")
    rho = float(described.loss.amount)
    towards = towards_group(described, described.loss, 2)
    assert towards.epsilon is not None
    assert 3 < towards.epsilon <= 4 * rho + 2 * math.sqrt(4 * rho * math.log(1e6))


@pytest.mark.parametrize("measure", ["pure", "zcdp"])
def test_a_group_with_private_keys(measure: str) -> None:
    described = budget(measure, DELTA / 10)
    towards = towards_group(described, described.loss, 3)
    exact = float(described.delta) * (math.exp(9) - 1) / (math.exp(3) - 1)
    assert towards.epsilon == 9
    assert float(towards.delta or 0) == pytest.approx(exact, rel=1e-9)


def test_a_group_with_private_keys_in_a_gaussian_ledger() -> None:
    """Two people: the power of a test that is always right about one is composed with itself."""
    keys = DELTA / 10
    described = budget("gdp", keys)
    towards = towards_group(described, described.loss, 2)
    with mpmath.workdps(40):
        mu, d = mpmath.sqrt(mpmath.mpf(str(float(described.loss.amount)))), mpmath.mpf(1) / 10**7
        quantile = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * d / (1 - d))
        group = float(d + (1 - d) * mpmath.ncdf(quantile + mu))
    assert float(towards.delta or 0) == pytest.approx(2 * group, rel=1e-6)
    assert towards.epsilon is not None
    left = float(towards.delta or 0) - group
    assert delta_of(2 * math.sqrt(float(described.loss.amount)), towards.epsilon) <= left * 1.001


def test_where_nothing_is_promised() -> None:
    described = budget("pure", Fraction(1, 100))
    assert towards_group(described, described.loss, 10).epsilon is None


@pytest.mark.parametrize("level", LEVELS)
def test_the_power_of_the_best_test(level: Fraction) -> None:
    gaussian, pure = budget("gdp"), budget("pure")
    mu = math.sqrt(float(gaussian.loss.amount))
    exact = float(norm.cdf(norm.ppf(float(level)) + mu))
    assert exact <= power_up(gaussian, gaussian.loss, level) <= exact + 0.00101
    bound = min(math.exp(3) * float(level), 1 - (1 - float(level)) * math.exp(-3))
    assert bound <= power_up(pure, pure.loss, level) <= bound + 0.00101


def test_keys_add_to_the_power() -> None:
    described = budget("gdp", DELTA / 2)
    assert power_up(described, GaussianDP(0), Fraction(1, 10)) > 0.1


def test_odds_are_rounded_up() -> None:
    assert odds_factor_up(Fraction(3)) >= math.exp(3)
    assert odds_factor_up(Fraction(3)) == pytest.approx(math.exp(3), rel=1e-15)
    assert odds_factor_up(Fraction(10_000)) == math.inf


def test_the_odds_are_those_of_the_guarantee() -> None:
    assert odds_change_up(Fraction(3), Fraction(0)) == (odds_factor_up(Fraction(3)), Fraction(0))
    assert odds_change_up(Fraction(3), DELTA) == (2 * odds_factor_up(Fraction(3)), 3 * DELTA)
    for mu in (0.3, 0.65, 1.2):  # two normal laws, and the ε of each at its δ
        epsilon = brentq(lambda e, m=mu: delta_of(m, e) - 1e-6, 0, 100)
        factor, chance = odds_change_up(Fraction(epsilon), DELTA)
        edge = math.log(factor) / mu
        beyond = max(
            norm.sf(edge - mu / 2) + norm.cdf(-edge - mu / 2), norm.sf(edge + mu / 2) + norm.cdf(mu / 2 - edge)
        )
        assert 0 < beyond < chance


@pytest.mark.parametrize("measure", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("keys", [Fraction(0), DELTA / 10])
def test_no_guess_is_right_more_often_than_said(measure: str, keys: Fraction) -> None:
    """A guess is a test: right with (1 - false alarms + power)/2. Some level of false alarms attains the figure."""
    described = budget(measure, keys)
    total = described.loss
    rates = [Fraction(n, 1000) for n in range(1, 1000)]
    best = max((1 - level + power_up(described, total, level)) / 2 for level in rates)
    said = guess_up(described, total)
    assert best - Fraction(1, 1000) <= said <= best + Fraction(2, 1000)
    assert said <= guess_up(described, total, steps=2) <= 1


def test_a_guess_between_contents_is_two_steps_away() -> None:
    described = budget("pure")
    assert float(guess_up(described, described.loss)) == pytest.approx(1 / (1 + math.exp(-3)), abs=1e-4)
    assert float(guess_up(described, described.loss, steps=2)) == pytest.approx(1 / (1 + math.exp(-6)), abs=1e-4)
    gaussian = budget("gdp")
    mu = math.sqrt(gaussian.loss.amount)
    assert float(guess_up(gaussian, gaussian.loss, steps=2)) == pytest.approx(norm.cdf(mu), abs=1e-4)
