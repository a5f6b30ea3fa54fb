"""What bounded range implies, against random pairs of bounded range and the pair that attains it."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from mpmath import mp, mpf

from lapwing.privacy import bounded_range
from tests.support.effort import one_in
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

ETAS = tuple(Fraction(x) for x in ("0.01", "0.5", "1", "2", "6"))
Pair = list[tuple[mpf, mpf]]


def random_pairs(eta: Fraction, count: int) -> Iterator[Pair]:
    """Yield laws P, Q on a few outcomes whose log-ratio varies by η: Q at random, P = Q·e^(r)/Σ with r in [0, η]."""
    source = Random(f"pairs of {eta}")
    for _ in range(count):
        outcomes = source.choice((2, 2, 3, 5))
        weights = [mpf(source.expovariate(1)) ** source.choice((1, 4)) for _ in range(outcomes)]
        total = mp.fsum(weights)
        ratios = [mpf(0), real(eta), *(real(eta) * source.random() for _ in range(outcomes - 2))]
        tilted = [w / total * mp.exp(r) for w, r in zip(weights, ratios, strict=True)]
        mass = mp.fsum(tilted)
        yield [(t / mass, w / total) for t, w in zip(tilted, weights, strict=True)]


def symmetric(eta: Fraction) -> Pair:
    high = 1 / (1 + mp.exp(-real(eta) / 2))
    return [(high, 1 - high), (1 - high, high)]


def check(pairs: Iterator[Pair], eta: Fraction, mu_squared: Fraction, rho: Fraction) -> None:
    """Each pair is η-DP, its trade-off curve is above that of μ, and its Rényi divergences are at most ρα."""
    mu = mp.sqrt(real(mu_squared))
    for pair in pairs:
        for law in (pair, [(q, p) for p, q in pair]):
            assert max(mp.log(p / q) for p, q in law) <= real(eta) + mpf(10) ** -40
            accused = missed = mpf(0)
            for p, q in sorted(law, key=lambda both: both[1] / both[0])[:-1]:
                accused, missed = accused + q, missed + p
                curve = oracle.normal(mp.sqrt(2) * mp.erfinv(1 - 2 * accused) - mu)
                assert 1 - missed >= curve - mpf(10) ** -15
            for order in (mpf("1.001"), mpf(2), mpf(6)):
                divergence = mp.log(mp.fsum(p**order * q ** (1 - order) for p, q in law)) / (order - 1)
                assert divergence <= real(rho) * order + mpf(10) ** -15


@pytest.mark.parametrize("number", [20, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("eta", ETAS)
def test_random_pairs_are_covered(eta: Fraction, number: int) -> None:
    mu_squared, rho = bounded_range.bounded_range_amount("gdp", eta), bounded_range.bounded_range_amount("zcdp", eta)
    check(random_pairs(eta, number), eta, mu_squared, rho)
    check(iter([symmetric(eta)]), eta, mu_squared, rho)


@pytest.mark.parametrize("eta", ETAS)
def test_twins_with_less_are_caught(eta: Fraction) -> None:
    """The symmetric pair attains μ; and its ρ is nearly η²/8 for a small η, so a tenth less is too little there."""
    mu_squared, rho = bounded_range.bounded_range_amount("gdp", eta), bounded_range.bounded_range_amount("zcdp", eta)
    with pytest.raises(AssertionError):
        check(iter([symmetric(eta)]), eta, mu_squared * Fraction(999, 1000), rho)
    if eta <= 1:
        with pytest.raises(AssertionError):
            check(iter([symmetric(eta)]), eta, mu_squared, rho * Fraction(9, 10))


def test_the_slope_in_the_proof_falls() -> None:
    """φ(2Φ−1) − xΦ(1−Φ) ≥ 0, and m < 1.8x below √½: the steps that `gdp_from_bounded_range_up` argues."""
    for x in (mpf(n) / 50 for n in range(1, 500)):
        density, below = mp.npdf(x), oracle.normal(x)
        assert density * (2 * below - 1) >= x * below * (1 - below)
        if 2 * x * x < 1:
            assert density * (2 * below - 1) / (below * (1 - below)) < mpf("1.8") * x
        else:
            assert density / (1 - below) <= (x + mp.sqrt(x * x + 4)) / 2 <= 2 * x


KINDS = ["pure", "gdp", "zcdp"]


def check_inverse(kind: str, inverse: Callable[[str, Fraction], Fraction]) -> None:
    for amount in (Fraction(1, 10**9), Fraction("0.0153"), Fraction(1, 2), Fraction(2), Fraction(30)):
        implied = bounded_range.bounded_range_amount(kind, inverse(kind, amount))
        assert amount * (1 - Fraction(1, 10**14)) <= implied <= amount * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("kind", KINDS)
def test_inverses(kind: str) -> None:
    check_inverse(kind, bounded_range.bounded_range_down)
    assert bounded_range.bounded_range_down("zcdp", Fraction(1, 2)) == 2
    steps = [bounded_range.bounded_range_amount(kind, eta) for eta in ETAS]
    assert all(less < more for less, more in pairwise(steps))


@pytest.mark.parametrize("kind", KINDS)
def test_twins_of_inverses_are_caught(kind: str) -> None:
    """A range of one millionth more or less, and that of twice the amount."""
    for factor in (1 + Fraction(1, 10**6), 1 - Fraction(1, 10**6)):

        def scaled(kind: str, amount: Fraction, by: Fraction = factor) -> Fraction:
            return bounded_range.bounded_range_down(kind, amount) * by

        with pytest.raises(AssertionError):
            check_inverse(kind, scaled)
    with pytest.raises(AssertionError):
        check_inverse(kind, lambda kind, amount: bounded_range.bounded_range_down(kind, 2 * amount))


# ---- log-ratios in one interval --------------------------------------------------------------------------------------

INTERVALS = [
    tuple(map(Fraction, ends)) for ends in (("0.5", "1"), ("1", "0.5"), ("0.01", "0.03"), ("2", "2.5"), ("6", "9"))
]


def pairs_within(below: Fraction, above: Fraction, count: int) -> Iterator[Pair]:
    """Yield laws on two to five outcomes whose log-ratios lie in [−below, above] and attain both ends."""
    source = Random(f"pairs in {below} {above}")
    for place in range(count):
        more = [source.uniform(-float(below), float(above)) for _ in range(place % 4)]
        ratios = [-real(below), real(above), *map(mpf, more)]
        weights = [mpf(source.expovariate(1)) for _ in ratios]
        up = mp.fsum(w * mp.expm1(r) for w, r in zip(weights, ratios, strict=True) if r > 0)
        down = -mp.fsum(w * mp.expm1(r) for w, r in zip(weights, ratios, strict=True) if r <= 0)
        balanced = [w * (down if r > 0 else up) for w, r in zip(weights, ratios, strict=True)]
        total = mp.fsum(balanced)
        yield [(w / total * mp.exp(r), w / total) for w, r in zip(balanced, ratios, strict=True)]


@pytest.mark.parametrize(("below", "above"), one_in(2, INTERVALS, many=True))
def test_pairs_within_an_interval_are_covered_and_coins_attain_it(below: Fraction, above: Fraction) -> None:
    mu_squared, rho = (bounded_range.interval_amount(kind, below, above) for kind in ("gdp", "zcdp"))
    check(pairs_within(below, above, 12), max(below, above), mu_squared, rho)
    assert mu_squared <= bounded_range.bounded_range_amount("gdp", below + above)
    assert bounded_range.interval_amount("pure", below, above) == max(below, above)
    for less in (Fraction(998, 1000), Fraction(9, 10)):
        with pytest.raises(AssertionError):
            check(pairs_within(below, above, 1), max(below, above), mu_squared * less, rho)


def test_an_interval_by_another_formula() -> None:
    """μ = Φ⁻¹(p) − Φ⁻¹(q) with p = (e^a − 1)/(e^a − e^(−b)), rounded upwards and by little."""
    for below, above in INTERVALS:
        p = mp.expm1(real(below)) / (mp.exp(real(below)) - mp.exp(-real(above)))
        q = p * mp.exp(-real(above))
        mu = mp.sqrt(2) * (mp.erfinv(2 * p - 1) - mp.erfinv(2 * q - 1))
        stated = real(bounded_range.interval_amount("gdp", below, above))
        assert mu**2 <= stated <= mu**2 * (1 + mpf(2) ** -60)
    assert float(bounded_range.interval_amount("gdp", Fraction(1, 2), Fraction(1))) ** 0.5 == pytest.approx(0.9077699)
