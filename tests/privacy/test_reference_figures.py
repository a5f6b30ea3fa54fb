"""Figures that are known by other routes, table by table.

Provenance: the project's notes on accounting, from the formulas that each test names, and from dp-accounting 0.6.0
where it says so. Where the notes have basic composition in place of a larger √(2·ln(1/δ)·kε²) + ½kε², the larger is
from its formula. δ is 1e-6 unless another is named.
"""

import math
from fractions import Fraction

import pytest

from lapwing.privacy import bounded_range
from lapwing.privacy.advanced_composition import advanced_rho_down
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.continuous_laplace import laplace_loss
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from lapwing.privacy.pairs import GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from lapwing.privacy.plans import choices

MILLIONTH = Fraction(1, 10**6)


def last_digit(figure: str) -> float:
    """Half a unit in the last digit that is written, and a little for the rounding of halves."""
    return 0.51 * 10.0 ** -len(figure.partition(".")[2])


def check(found: float, figure: str) -> None:
    assert abs(found - float(figure)) <= last_digit(figure)


def certified(pair: Pair, count: int) -> tuple[float, float]:
    return compose([(pair, count)]).to_epsilon(MILLIONTH)


ZCDP = """
0.005  0.4299  0.3969  0.5307
0.05   1.4716  1.3676  1.7123
0.1    2.1419  1.9945  2.4508
0.5    5.2215  4.8866  5.7565
1      7.7662  7.2861  8.4338
2     11.6886 10.9972 12.5130
10    32.2217 30.5789 33.5079
"""


@pytest.mark.parametrize("row", ZCDP.split("\n")[1:-1])
def test_zcdp_and_the_gaussian_of_the_same_rho(row: str) -> None:
    """Canonne, Kamath and Steinke 2020; μ = √(2ρ); and ρ + 2√(ρ·ln(1/δ)) of Bun and Steinke, which a cap inverts."""
    rho, by_zcdp, by_gdp, simple = row.split()
    loss = ZeroConcentratedDP(Fraction(rho))
    check(loss.to_epsilon(delta=MILLIONTH), by_zcdp)
    check(GaussianDP.from_mu_squared(2 * loss.rho).to_epsilon(delta=MILLIONTH), by_gdp)
    error = Fraction(last_digit(simple))
    assert advanced_rho_down(Fraction(simple) - error, MILLIONTH) <= loss.rho
    assert advanced_rho_down(Fraction(simple) + error, MILLIONTH) >= loss.rho
    lower, upper = certified(GaussianPair(2 * loss.rho), 1)
    assert lower - last_digit(by_gdp) <= float(by_gdp) <= upper + last_digit(by_gdp)


LAPLACE = """
 100 0.1   5.757  5.222  5.125  4.693  4.782
1000 0.1  21.623 20.552 20.127 18.950 19.405
 100 0.01  0.531  0.430  0.429  0.391  0.395
1000 0.03  5.437  4.920  4.892  4.567  4.636
  20 0.5  14.254 13.374 12.142  9.671  9.989
 100 1   102.565 100.69 80.122 71.546 83.531
"""


@pytest.mark.parametrize("row", LAPLACE.split("\n")[1:-1])
def test_many_laplace_answers(row: str) -> None:
    """By √(2·ln(1/δ)·kε²) + ½kε²; ρ = ½kε²; ρ = k(ε + e^(−ε) − 1); dp-accounting; and as any k ε-DP mechanisms.

    The last column is an upper bound, by up to a hundredth: a composition of losses that were rounded up.
    """
    times, size, advanced, by_half, by_kl, distribution, any_private = row.split()
    count, epsilon = int(times), Fraction(size)
    rho = count * epsilon**2 / 2
    error = Fraction(last_digit(advanced))
    assert advanced_rho_down(Fraction(advanced) - error, MILLIONTH) <= rho
    assert advanced_rho_down(Fraction(advanced) + error, MILLIONTH) >= rho
    check(ZeroConcentratedDP(rho).to_epsilon(delta=MILLIONTH), by_half)
    check((count * laplace_loss(epsilon, "zcdp")).to_epsilon(delta=MILLIONTH), by_kl)
    lower, upper = certified(LaplacePair(epsilon), count)
    assert upper - lower <= 1e-4
    check(lower, distribution)
    lower, upper = certified(RandomizedResponsePair(epsilon), count)
    assert lower <= float(any_private) + last_digit(any_private)
    assert float(any_private) <= upper * 1.01


EXPONENTIAL = """
 100 0.1  2.419  5.219
1000 0.1  8.846 20.541
 100 1   37.42  94.90
"""


@pytest.mark.parametrize("row", EXPONENTIAL.split("\n")[1:-1])
def test_many_exponential_mechanisms(row: str) -> None:
    """By ρ = kε²/8 of bounded range, and by ρ = kε·tanh(ε/2) of any ε-DP mechanism."""
    times, size, by_range, by_pure = row.split()
    amount = int(times) * bounded_range.bounded_range_amount("zcdp", Fraction(size))
    check(ZeroConcentratedDP(amount).to_epsilon(delta=MILLIONTH), by_range)
    check((int(times) * PureDP(Fraction(size)).to_kind("zcdp")).to_epsilon(delta=MILLIONTH), by_pure)


def test_one_gaussian_and_a_thousand_steps_of_training() -> None:
    """4.886554 by its closed form; and 1.77824 to 1.82824 by another's certified bounds, 2.10137 by Rényi orders."""
    check(GaussianDP(1).to_epsilon(delta=MILLIONTH), "4.886554")
    lower, upper = certified(GaussianPair(Fraction(1)), 1)
    assert lower <= 4.8865545
    assert upper >= 4.8865535
    steps = compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 100)), 1000)], width=Fraction(1, 100))
    found = steps.to_epsilon(Fraction(1, 10**5))
    assert found.upper >= 1.77824
    assert found.lower <= 1.82824
    assert found.upper < 2.10137


SCALES = """
    1  1.41    6.17  1.41  4.53  4.22
   10  14.1   20.0   14.1  14.33 13.36
  100  141    63.8   58.7  45.3  42.3
 1000  1414   202    188   143.3 133.6
10000  14142  641    597   453   422
"""


@pytest.mark.parametrize("row", SCALES.split("\n")[1:-1])
def test_standard_deviations_of_unit_counts(row: str) -> None:
    """Of k counts at ε = 1: Laplace by Σε, ρ and its distribution; Gaussian by ρ and μ.

    The three columns of noise that `choices` offers too are its own; the others are the noise at which ε is 1. The
    last digit of a figure may have been rounded up, so a whole unit of it is allowed.
    """
    times, basic, by_zcdp, distribution, noise_zcdp, noise_gdp = row.split()
    count = int(times)
    offered = {(one.noise, one.kind): float(one.scale) for one in choices(count, 1, 1, MILLIONTH)}

    def near(found: float, figure: str) -> None:
        assert abs(found - float(figure)) <= 2 * last_digit(figure)

    near(offered["laplace", "pure"] * math.sqrt(2), basic)
    near(offered["gaussian", "zcdp"], noise_zcdp)
    near(offered["gaussian", "gdp"], noise_gdp)

    def around(figure: str) -> list[Fraction]:
        return [Fraction((float(figure) + sign * 2 * last_digit(figure)) / math.sqrt(2)) for sign in (-1, 1)]

    less, more = ((count * laplace_loss(1 / scale, "zcdp")).to_epsilon(delta=MILLIONTH) for scale in around(by_zcdp))
    assert more <= 1 <= less
    few, many = (compose([(LaplacePair(1 / scale), count)]).to_epsilon(MILLIONTH) for scale in around(distribution))
    assert many.lower <= 1 <= few.upper


@pytest.mark.parametrize("noise", ["0.9", "1.1"])
def test_twin_a_tenth_more_or_less_noise_is_in_no_table(noise: str) -> None:
    factor = Fraction(noise)
    with pytest.raises(AssertionError):
        check(ZeroConcentratedDP(Fraction(1, 2) / factor**2).to_epsilon(delta=MILLIONTH), "5.2215")
    with pytest.raises(AssertionError):
        check(certified(LaplacePair(Fraction(1, 10) / factor), 100)[0], "4.693")
    with pytest.raises(AssertionError):
        check(ZeroConcentratedDP(Fraction(1, 8) / factor**2).to_epsilon(delta=MILLIONTH), "2.419")
