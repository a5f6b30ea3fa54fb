"""Subsampling against the formula at 60 digits, against worst pairs by definition, and against all subsets of a set."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import amplification
from lapwing.privacy.measures import (
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateZeroConcentratedDP,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
)
from lapwing.privacy.renyi import RenyiDP
from tests.support.privacy.oracle import real

EPSILONS = tuple(Fraction(x) for x in ("1e-6", "0.01", "0.7", "1", "5", "50", "999", "1001", "1e20"))
RATES = tuple(Fraction(x) for x in ("1e-5", "0.01", "1/3", "0.999999", "1"))
Amplify = Callable[[PureDP, Fraction], PureDP]

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)
rates = st.fractions(min_value=Fraction(1, 10**5), max_value=1, max_denominator=10**5)


def check_formula(amplify: Amplify) -> None:
    for epsilon in EPSILONS:
        for rate in RATES:
            with mp.workdps(120):
                e, q = real(epsilon), real(rate)
                true = e + mp.log(q + (1 - q) * mp.exp(-e))
            stated = real(amplify(PureDP(epsilon), rate).epsilon)
            assert true * (1 - mpf(10) ** -50) <= stated <= true * (1 + mpf(10) ** -18)


def test_the_formula_is_rounded_up() -> None:
    check_formula(amplification.subsampled)


def check_worst_pair(amplify: Amplify) -> None:
    """Randomized response on a sample attains the stated ε, to 1e-15; and the reverse direction is below it."""
    for epsilon in EPSILONS[:6]:
        for rate in RATES:
            high = 1 / (1 + mp.exp(-real(epsilon)))
            without, within = (1 - high, high), (high, 1 - high)
            mixed = [(1 - real(rate)) * p0 + real(rate) * p1 for p0, p1 in zip(without, within, strict=True)]
            ratios = [mp.log(m / w) for m, w in zip(mixed, without, strict=True)]
            stated = real(amplify(PureDP(epsilon), rate).epsilon)
            assert max(abs(r) for r in ratios) <= stated + mpf(10) ** -50
            assert stated <= max(ratios) * (1 + mpf(10) ** -15)


def test_the_worst_pair_attains_it() -> None:
    check_worst_pair(amplification.subsampled)


@pytest.mark.parametrize(
    "twin",
    [
        lambda loss, rate: PureDP(rate * loss.epsilon),
        lambda loss, rate: PureDP(
            Fraction(float(amplification.subsampled(loss, rate).epsilon * (1 - Fraction(1, 10**9))))
        ),
        lambda loss, rate: amplification.subsampled(loss, rate * Fraction(9, 10)),
        lambda loss, rate: loss,
    ],
    ids=["linear", "rounded down", "less sampling", "none"],
)
def test_twins_are_caught(twin: Amplify) -> None:
    with pytest.raises(AssertionError):
        check_formula(twin)
    with pytest.raises(AssertionError):
        check_worst_pair(twin)


@pytest.mark.parametrize("loss", [ApproxDP(1, 0.1), ApproxDP(Fraction(1, 10), Fraction(1, 1000)), ApproxDP(3, 0)])
@pytest.mark.parametrize("rate", RATES[1:])
def test_the_worst_approximate_pair(loss: ApproxDP, rate: Fraction) -> None:
    """With probability δ the pair is told apart, else it is randomized response: qδ is attained at ε'."""
    high, delta, q = 1 / (1 + mp.exp(-real(loss.epsilon))), real(loss.delta), real(rate)
    without = [delta, mpf(0), (1 - delta) * high, (1 - delta) * (1 - high)]
    within = [mpf(0), delta, (1 - delta) * (1 - high), (1 - delta) * high]
    mixed = [(1 - q) * p0 + q * p1 for p0, p1 in zip(without, within, strict=True)]
    stated = amplification.subsampled(loss, rate)
    factor = mp.exp(real(stated.epsilon))
    gain = mp.fsum(max(mpf(0), m - factor * w) for m, w in zip(mixed, without, strict=True))
    back = mp.fsum(max(mpf(0), w - factor * m) for m, w in zip(mixed, without, strict=True))
    assert abs(gain - real(stated.delta)) <= mpf(10) ** -15
    assert back <= real(stated.delta) + mpf(10) ** -40


def worst_ratio_of_subsets(epsilon: Fraction, size: int, population: int) -> mpf:
    """The largest log-ratio of neighbours' output laws: randomized response of whether unit 0 is marked in the sample.

    The sample's other units show how many there are, which is public. Marks are neighbours by replacement.
    """
    high = 1 / (1 + mp.exp(-real(epsilon)))

    def law(marked: bool) -> mpf:
        samples = list(combinations(range(population), size))
        return mp.fsum(high if marked and 0 in sample else 1 - high for sample in samples) / len(samples)

    yes, no = law(True), law(False)
    return max(abs(mp.log(yes / no)), abs(mp.log((1 - yes) / (1 - no))))


@pytest.mark.parametrize(("size", "population"), [(1, 1), (1, 5), (2, 5), (3, 6)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)])
def test_all_subsets(epsilon: Fraction, size: int, population: int) -> None:
    stated = amplification.subsampled(PureDP(epsilon), size=size, population=population)
    worst = worst_ratio_of_subsets(epsilon, size, population)
    assert worst <= real(stated.epsilon) + mpf(10) ** -50 <= worst * (1 + mpf(10) ** -15)
    if size < population:
        assert worst > real(Fraction(size, population) * epsilon)


@given(epsilons, rates)
def test_inverses(epsilon: Fraction, rate: Fraction) -> None:
    inner = amplification.subsampled_inner(PureDP(epsilon), rate)
    assert (
        epsilon * (1 - Fraction(1, 10**15)) <= amplification.subsampled(inner, rate).epsilon <= epsilon <= inner.epsilon
    )
    pair = amplification.subsampled_inner(ApproxDP(epsilon, Fraction(1, 10**6)), rate)
    assert amplification.subsampled(pair, rate) <= ApproxDP(epsilon, Fraction(1, 10**6))
    assert pair.epsilon == inner.epsilon


@pytest.mark.long
@given(epsilons, epsilons, rates, rates)
def test_monotone(a: Fraction, b: Fraction, p: Fraction, q: Fraction) -> None:
    (a, b), (p, q) = sorted((a, b)), sorted((p, q))
    assert amplification.subsampled(PureDP(a), p) <= amplification.subsampled(PureDP(b), q)
    assert amplification.subsampled(PureDP(b), q) <= PureDP(b)


def test_ends() -> None:
    assert amplification.subsampled(PureDP(0), 0.3) == PureDP(0)
    assert amplification.subsampled(ApproxDP(2, 0.1), 1) == ApproxDP(2, 0.1)
    assert amplification.subsampled_inner(ApproxDP(1, 0.5), size=1, population=10).delta == 1
    assert amplification.subsampled(PureDP(1), size=3, population=10) == amplification.subsampled(
        PureDP(1), Fraction(3, 10)
    )


@pytest.mark.parametrize("rate", [0, -0.1, 1.0001, float("nan"), "0.5", True])
def test_a_rate_outside_is_refused(rate: float) -> None:
    with pytest.raises(InvalidParameter, match="sampling rate"):
        amplification.subsampled(PureDP(1), rate)


@pytest.mark.parametrize(("size", "population"), [(0, 5), (6, 5), (1, 0), (2.0, 5), (True, 5), (1, "5")])
def test_sizes_outside_are_refused(size: int, population: int) -> None:
    with pytest.raises(InvalidParameter, match=r"size|population"):
        amplification.subsampled(PureDP(1), size=size, population=population)


@pytest.mark.parametrize(
    "loss",
    [
        GaussianDP(1),
        ZeroConcentratedDP(1),
        ApproximateGaussianDP(1, 0.1),
        ApproximateZeroConcentratedDP(1, 0.1),
        RenyiDP({2: 1}),
    ],
)
def test_measures_that_do_not_survive_sampling_say_why(loss: PureDP) -> None:
    for amplify in (amplification.subsampled, amplification.subsampled_inner):
        with pytest.raises(InvalidParameter, match=f"{loss.kind} loss states nothing"):
            amplify(loss, 0.5)


def test_a_subsampled_gaussian_has_no_useful_mu() -> None:
    """At rate 0.1, 1-GDP on the sample: near a level of 1e-12 the power is that of μ = 0.7, at ½ that of μ = 0.1."""

    def mu_at(level: mpf) -> mpf:
        quantile = -mp.sqrt(2) * mp.erfinv(1 - 2 * level)
        power = mpf("0.9") * level + mpf("0.1") * mp.ncdf(quantile + 1)
        return mp.sqrt(2) * mp.erfinv(2 * power - 1) - quantile

    assert mu_at(mpf(10) ** -12) > mpf("0.6")
    assert mu_at(mpf("0.5")) < mpf("0.1")
