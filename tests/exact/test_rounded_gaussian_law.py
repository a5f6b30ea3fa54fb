import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from lapwing.exact.entropy import SystemEntropy
from lapwing.exact.rounded_gaussian import rounded_gaussian
from tests.support.effort import one_in
from tests.support.exact.fit import AT_SIZES, FEW, FRESH, LEAST_P_VALUE, binned, edges_of, gaussian_cumulative, p_value
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

SIGMAS = [
    Fraction(1, 4),
    Fraction(1),
    Fraction(10),
    Fraction(40),  # the greatest with a table of its own
    Fraction(401, 10),  # the first that is a multiple of a standard normal number
    Fraction(1000, 3),
    Fraction(1 << 20),
    Fraction(10**12, 7),
    Fraction(1 << 40),
    Fraction(1 << 50),
]


def fit(sigma: Fraction, claimed: Fraction, draws: int) -> float:
    drawn = rounded_gaussian(sigma**2, draws, StreamEntropy(f"gaussian {sigma}"))
    assert drawn.dtype == np.int64
    edges = edges_of(claimed, reach=4.0, draws=draws) if claimed > 1 else [-2, -1, 0, 1] if claimed == 1 else [-1, 0]
    return p_value(*binned(drawn.astype(np.int64), edges, gaussian_cumulative(claimed)))


@AT_SIZES
@pytest.mark.parametrize("sigma", one_in(8, SIGMAS), ids=str)
def test_draws_fit(sigma: Fraction, draws: int) -> None:
    assert fit(sigma, sigma, draws) > LEAST_P_VALUE


@AT_SIZES
@pytest.mark.parametrize("variance", one_in(3, [Fraction(2), Fraction(50), Fraction(10**7, 3)]), ids=str)
def test_draws_of_an_irrational_sigma_fit(variance: Fraction, draws: int) -> None:
    drawn = rounded_gaussian(variance, draws, StreamEntropy(f"variance {variance}")).astype(np.int64)
    sigma = Fraction(math.sqrt(variance))
    assert p_value(*binned(drawn, edges_of(sigma, reach=4.0, draws=draws), gaussian_cumulative(sigma))) > LEAST_P_VALUE


@AT_SIZES
@pytest.mark.parametrize("sigma", [Fraction(10), Fraction(1 << 20)], ids=str)
def test_twin_a_sigma_one_percent_off_does_not_fit(sigma: Fraction, draws: int) -> None:
    assert fit(sigma * Fraction(99, 100), sigma, draws) < LEAST_P_VALUE


@pytest.mark.parametrize("sigma", one_in(2, [Fraction(7), Fraction(700)]), ids=str)
def test_fresh_randomness_fits(sigma: Fraction) -> None:
    draws = rounded_gaussian(sigma**2, FRESH, SystemEntropy()).astype(np.int64)
    assert p_value(*binned(draws, edges_of(sigma, reach=3.3), gaussian_cumulative(sigma))) > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("sigma", "start"), one_in(3, [(1 << 20, 0), (1 << 40, 0), (1 << 40, 16), (1 << 40, 27), (1 << 50, 0)], many=True)
)
def test_the_bits_of_a_large_sigma_are_even(sigma: int, start: int) -> None:
    """Far below σ, any 8 neighbouring bits are uniform to within (2^(start + 8) / σ)²."""
    draws = rounded_gaussian(Fraction(sigma**2), FEW // 4, StreamEntropy("bits")).astype(np.int64)
    assert p_value(np.bincount(draws >> start & 255), np.full(256, 1 / 256)) > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        (Fraction(1), [0, -1, 1, -1, 1, 1]),
        (Fraction(5, 2), [0, -2, 2, -3, 2, 3]),
        (Fraction(1000), [-3, -594, 679, -1055, 905, 1368]),
        (Fraction(1 << 40), [-3686056787, -653026752562, 746457630214, -1160415617515, 994820891491, 1503726400280]),
        (
            Fraction(1 << 80),
            [
                -4052862297494711901769,
                -718010507690300844807430,
                820738844062847688023369,
                -1275890464511032894516760,
                1093817137749089133582239,
                1653364662101721990747898,
            ],
        ),
    ],
    ids=str,
)
def test_known_answers(sigma: Fraction, expected: list[int]) -> None:
    """Recorded from this code: a change of how bits become numbers must be meant.

    Recorded anew when small draws came to read 64 bits for each number at once.
    """
    assert rounded_gaussian(sigma**2, 6, StreamEntropy("known")).tolist() == expected


def test_almost_no_noise_at_a_tiny_sigma() -> None:
    assert not rounded_gaussian(Fraction(1, 1 << 60), 1_000_000, SystemEntropy()).any()


@pytest.mark.parametrize("power", one_in(3, [51, 64, 80]))
def test_beyond_int64_results_are_python_integers(power: int) -> None:
    sigma = Fraction(1 << power)
    draws = rounded_gaussian(sigma**2, 10_000, StreamEntropy("wide"))
    assert draws.dtype == object
    assert {type(x) for x in draws.tolist()} == {int}
    hundredths = np.array([(100 * x) >> power for x in draws.tolist()])
    edges = list(range(-250, 251, 25))
    assert p_value(*binned(hundredths, edges, hundredths_cumulative)) > LEAST_P_VALUE
    assert p_value(np.bincount([x & 15 for x in draws.tolist()]), np.full(16, 1 / 16)) > LEAST_P_VALUE


def hundredths_cumulative(x: int) -> float:
    """P(⌊100 X / σ⌋ ≤ x) where σ is huge: Φ((x + 1)/100)."""
    return float(stats.norm.cdf((x + 1) / 100))


@pytest.mark.parametrize("sigma", [Fraction(10), Fraction(100)], ids=str)
@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_sizes(sigma: Fraction, size: int) -> None:
    draws = rounded_gaussian(sigma**2, size, SystemEntropy())
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize(("variance", "size"), [(Fraction(0), 1), (Fraction(-1), 1), (Fraction(1), -1)])
def test_refuses_what_has_no_meaning(variance: Fraction, size: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        rounded_gaussian(variance, size, RecordedEntropy(b""))
