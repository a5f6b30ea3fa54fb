"""Estimates: coverage by the exact law, consistency, maximum likelihood, forged reports, and what is advised."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from lapwing.errors import InvalidParameter
from lapwing.local import (
    BinaryResponse,
    FrequencyEstimate,
    KaryResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
    advise,
    epsilon_needed,
    estimate,
    likeliest,
    respondents_needed,
)
from lapwing.local.frequencies.consistency import on_simplex
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

MANY = 10_000
COVERED: tuple[Any, ...] = (
    BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 5)),
    KaryResponse.for_epsilon(3, 4),
    UnaryEncoding.optimised(1, 10),
    UnaryEncoding.symmetric(2, 10),
    SubsetSelection.for_epsilon(1, 100),
    LocalHashing.for_epsilon(2, 50),
)
Ends = Callable[[FrequencyEstimate, str], tuple[NDArray[np.float64], NDArray[np.float64]]]


def every_count(mechanism: Any) -> FrequencyEstimate:
    """One estimate whose values stand for all numbers of supports that a value can have among 10,000 reports."""
    counts = np.arange(MANY + 1)
    return FrequencyEstimate(values=("",) * (MANY + 1), mechanism=mechanism, reports=MANY, supports=counts)


def law(mechanism: Any, share: float, whom: str) -> NDArray[np.float64]:
    """The exact law of the number of supports: given who responded, or of a random sample."""
    p, q = (float(chance) for chance in mechanism.rates(1))
    if whom == "population":
        return np.asarray(stats.binom.pmf(np.arange(MANY + 1), MANY, q + share * (p - q)))
    having = round(share * MANY)
    parts = [stats.binom.pmf(np.arange(n + 1), n, chance) for n, chance in ((having, p), (MANY - having, q))]
    return np.asarray(np.convolve(*parts))


def check_coverage(ends: Ends, whom: str) -> None:
    """At 95 %, for 10,000 reports, the truth is inside in 93.5 to 96.5 % of cases, whatever the share."""
    for mechanism, share in product(COVERED, (0.0, 0.02, 0.3, 0.5, 1.0)):
        low, high = ends(every_count(mechanism), whom)
        covered = float(law(mechanism, share, whom)[(low <= share) & (share <= high)].sum())
        assert 0.935 <= covered <= 0.965, (mechanism, share, covered)


@pytest.mark.parametrize("whom", one_in(2, ["respondents", "population"]))
def test_intervals_cover(whom: Any) -> None:
    check_coverage(lambda found, whom: found.interval(0.95, whom=whom), whom)  # type: ignore[arg-type]


def confidence_of_one_side(found: FrequencyEstimate, whom: Any) -> Any:
    return found.interval(0.9, whom=whom)


def of_the_noise_at_zero(found: FrequencyEstimate, whom: Any) -> Any:
    reach = 1.96 * found.standard_error(whom)[0] * 0.9
    return found.raw - reach, found.raw + reach


@pytest.mark.parametrize("twin", [confidence_of_one_side, of_the_noise_at_zero])
@pytest.mark.parametrize("whom", ["respondents", "population"])
def test_twins_of_intervals_are_caught(twin: Ends, whom: str) -> None:
    with pytest.raises(AssertionError):
        check_coverage(twin, whom)


def test_the_interval_of_the_respondents_is_not_that_of_the_population() -> None:
    with pytest.raises(AssertionError):
        check_coverage(lambda found, whom: found.interval(0.95, whom="respondents"), "population")


def simulated(mechanism: Any, people: int, label: str) -> tuple[FrequencyEstimate, NDArray[np.float64], Any]:
    codes = np.minimum(np.arange(people) % (2 * mechanism.categories), mechanism.categories - 1)
    reports = mechanism.randomize(codes, StreamEntropy(label))
    return estimate(mechanism, reports), np.bincount(codes, minlength=mechanism.categories) / people, reports


EACH: tuple[Any, ...] = (
    BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 5)),
    *(option.mechanism for option in advise(1, 12, 1).options),
)


@pytest.mark.parametrize("mechanism", EACH, ids=[f"{m.name} {i}" for i, m in enumerate(EACH)])
def test_from_reports_to_shares(mechanism: Any) -> None:
    """Six standard errors; consistent shares are nearer; all intervals at once are wider and hold."""
    found, truth, _ = simulated(mechanism, 50_000, f"shares {mechanism.name} {mechanism.parameters}")
    assert (np.abs(found.raw - truth) <= 6 * found.standard_error()).all()
    assert (found.standard_error("population") > found.standard_error()).all()
    assert np.linalg.norm(found.consistent - truth) <= np.linalg.norm(found.raw - truth) * (1 + 1e-9)
    (low, high), (lower, higher) = found.interval(0.95), found.interval(1 - 1e-7, together=True)
    assert ((lower < low) & (high < higher)).all()
    assert ((lower <= truth) & (truth <= higher)).all()
    rows = found.rows()
    assert [row["share"] for row in rows] == found.raw.tolist()
    assert rows[-1]["seen"] is True
    assert found.to_arrow().to_pylist() == rows


FEW = (5, 40, 100)
RARE: tuple[Any, ...] = (
    KaryResponse.for_epsilon(1, 10),
    KaryResponse.for_epsilon(6, 10),
    KaryResponse.for_epsilon(8, 10),
    BinaryResponse.for_epsilon(6),
    UnaryEncoding.symmetric(8, 10),
)


def check_few(ends: Ends, whom: str) -> None:
    """With few reports, whatever the mechanism and the share, the truth is inside in 95 % of cases or more."""
    for mechanism, reports in product(RARE, FEW):
        p, q = (float(chance) for chance in mechanism.rates(1))
        counts = np.arange(reports + 1)
        found = FrequencyEstimate(values=("",) * (reports + 1), mechanism=mechanism, reports=reports, supports=counts)
        low, high = ends(found, whom)
        assert ((low <= found.raw) & (found.raw <= high)).all()
        for having in {0, 1, reports // 10, reports // 2, reports - 1, reports}:
            share = having / reports
            parts = [stats.binom.pmf(counts[: n + 1], n, c) for n, c in ((having, p), (reports - having, q))]
            respondents = np.convolve(*parts)
            population = stats.binom.pmf(counts, reports, q + share * (p - q))
            law_of_supports = respondents if whom == "respondents" else population
            covered = law_of_supports[(low <= share + 1e-12) & (share - 1e-12 <= high)].sum()
            assert covered >= 0.95 - 1e-9, (mechanism, reports, having, covered)


@pytest.mark.long
@pytest.mark.parametrize("whom", ["respondents", "population"])
def test_intervals_of_few_reports_cover(whom: Any) -> None:
    check_few(lambda found, whom: found.interval(0.95, whom=whom), whom)  # type: ignore[arg-type]


def by_the_normal_law(found: FrequencyEstimate, whom: str) -> Any:
    return found._around(1.96) if whom == "respondents" else found._wilson(1.96)


@pytest.mark.parametrize("twin", [confidence_of_one_side, by_the_normal_law])
@pytest.mark.parametrize("whom", ["respondents", "population"])
def test_twins_of_few_reports_are_caught(twin: Ends, whom: str) -> None:
    with pytest.raises(AssertionError):
        check_few(twin, whom)


@pytest.mark.parametrize("reports", [5, 60, 5000])
def test_few_reports_have_the_interval_of_clopper_and_pearson(reports: int) -> None:
    mechanism = KaryResponse.for_epsilon(8, 4)
    p, q = (float(chance) for chance in mechanism.rates(0))
    counts = np.array([0, reports // 5, reports // 2, reports])
    found = FrequencyEstimate(values=("a", "b", "c", "d"), mechanism=mechanism, reports=reports, supports=counts)
    low, high = found.interval(whom="population")
    for i, count in enumerate(counts):
        known = stats.binomtest(int(count), reports).proportion_ci(0.95, method="exact")
        assert (low[i], high[i]) == pytest.approx(((known.low - q) / (p - q), (known.high - q) / (p - q)), abs=1e-7)


@pytest.mark.parametrize("reports", [10, 100, 1000])
def test_noise_alone_rarely_passes_the_band_of_few_reports(reports: int) -> None:
    """Of ten values that nobody has, one passes it in 5 % of cases at most; a count less would let more pass."""
    mechanism = KaryResponse.for_epsilon(6, 10)
    p, q = (float(chance) for chance in mechanism.rates(1))
    found = FrequencyEstimate(
        values=tuple("abcdefghij"), mechanism=mechanism, reports=reports, supports=np.zeros(10, dtype=np.int64)
    )
    most = round(float(found.noise_band(0.95)[1] * (p - q) + q) * reports)
    assert stats.binom.sf(most, reports, q) <= 0.005 < stats.binom.sf(most - 1, reports, q)


@pytest.mark.parametrize("reports", [3000])
def test_ends_of_intervals_by_other_routes(reports: int) -> None:
    """Wilson's of SciPy, mapped; and the shares whose distance from the raw one is z standard errors at them."""
    mechanism, z = COVERED[1], stats.norm.ppf(0.975)
    p, q = (float(chance) for chance in mechanism.rates(0))
    counts = np.array([0, reports // 5, reports // 2, reports])
    found = FrequencyEstimate(values=("a", "b", "c", "d"), mechanism=mechanism, reports=reports, supports=counts)
    low, high = found.interval(whom="population")
    for i, count in enumerate(counts):
        known = stats.binomtest(int(count), reports).proportion_ci(0.95, method="wilson")
        assert (low[i], high[i]) == pytest.approx(((known.low - q) / (p - q), (known.high - q) / (p - q)), abs=1e-12)
    for ends in found.interval():
        variance = (ends * p * (1 - p) + (1 - ends) * q * (1 - q)) / (p - q) ** 2 / reports
        assert (found.raw - ends) ** 2 == pytest.approx(z**2 * variance, abs=1e-9)


def test_bonferroni_divides_what_may_fail() -> None:
    found, _, _ = simulated(COVERED[1], 2000, "bonferroni")
    assert np.array_equal(found.interval(0.8, together=True), found.interval(0.95))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_the_projection_is_the_nearest_point(raw: list[float]) -> None:
    """No vertex lies on the far side of the plane through the projection: the variational inequality."""
    given, nearest = np.array(raw), on_simplex(np.array(raw))
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1)
    for vertex in np.eye(len(raw)):
        assert (given - nearest) @ (vertex - nearest) <= 1e-9


def test_clipping_and_scaling_is_not_the_projection() -> None:
    raw = np.array([0.8, 0.5, -0.2])
    clipped = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    assert not np.allclose(on_simplex(raw), clipped)
    assert np.allclose(on_simplex(raw), [0.65, 0.35, 0])


@pytest.mark.parametrize("mechanism", one_in(2, EACH), ids=[f"{m.name} {i}" for i, m in enumerate(EACH)])
def test_no_shares_are_likelier(mechanism: Any) -> None:
    found, _, reports = simulated(mechanism, 1500, f"likely {mechanism.name}")
    best = likeliest(mechanism, reports)
    assert best.gap <= 1e-3

    def loglikelihood(shares: NDArray[np.float64]) -> float:
        return float(np.log(mechanism.likelihoods(reports) @ shares).sum())

    most = loglikelihood(best.shares)
    others = [found.consistent, np.full(mechanism.categories, 1 / mechanism.categories)]
    others += [0.99 * best.shares + 0.01 * vertex for vertex in np.eye(mechanism.categories)]
    for other in others:
        assert loglikelihood(other) <= most + 1e-3 + 1e-9


def test_likeliest_shares_of_a_coin_are_the_clipped_ones() -> None:
    coin = BinaryResponse.from_truth(0.75)
    for ones, share in ((600, 0.7), (100, 0.0), (900, 1.0)):
        reports = (np.arange(1000) < ones).astype(np.int64)
        assert likeliest(coin, reports).shares[1] == pytest.approx(share, abs=2e-3)
        assert estimate(coin, reports).consistent[1] == pytest.approx(share)


def test_what_cannot_be_told_from_zero() -> None:
    """Where nobody has a value, its share exceeds the band in a twentieth of a tenth of cases, by the exact law."""
    mechanism = UnaryEncoding.optimised(1, 10)
    beyond = every_count(mechanism)
    ten = FrequencyEstimate(values=("",) * 10, mechanism=mechanism, reports=MANY, supports=np.zeros(10, dtype=np.int64))
    chance = float(law(mechanism, 0, "respondents")[beyond.raw > ten.noise_band()[0]].sum())
    assert 0.003 <= chance <= 0.0065  # a twentieth over ten values


# Advice


def test_the_best_has_the_least_error_and_the_table_is_complete() -> None:
    advice = advise(1, 10, 1000)
    assert advice.best.name == "subset"
    assert {option.name for option in advice.options} == {
        "subset", "k-ary", "optimised unary", "symmetric unary", "hashing",
    }  # fmt: skip
    errors = [option.error for option in advice.options]
    assert errors == sorted(errors)
    assert advise(1, 2, 1000).best.name == "binary"
    assert advise(4, 4, 1000).best.name == "k-ary"
    assert advise(1, 1000, 10, most_bytes=16).best.name == "hashing"
    with pytest.raises(InvalidParameter, match="more than 0 bytes"):
        advise(1, 10, 10, most_bytes=0)


@pytest.mark.parametrize(("epsilon", "k"), [(1, 10), (Fraction(1, 2), 30), (3, 20)])
def test_no_other_size_or_range_is_better(epsilon: Any, k: int) -> None:
    def error(mechanism: Any) -> float:
        p, q = (float(chance) for chance in mechanism.rates(0))
        return sqrt((q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))) / 1000)

    options = {option.name: option for option in advise(epsilon, k, 1000).options}
    for option in options.values():
        assert option.error == pytest.approx(error(option.mechanism))
    sizes = [error(SubsetSelection.for_epsilon(epsilon, k, size)) for size in range(1, k)]
    assert options["subset"].error == pytest.approx(min(sizes), rel=1e-9)
    ranges = [error(LocalHashing.for_epsilon(epsilon, k, g)) for g in range(2, 100)]
    assert options["hashing"].error == pytest.approx(min(ranges), rel=1e-9)


def test_errors_at_zero_are_the_known_formulas() -> None:
    """n·variance of a share of 0: (k − 2 + E)/(E − 1)², 4E/(E − 1)², and e^(ε/2)/(e^(ε/2) − 1)²."""
    e, k = np.exp(1), 10
    for mechanism, known in (
        (KaryResponse.for_epsilon(1, k), (k - 2 + e) / (e - 1) ** 2),
        (UnaryEncoding.optimised(1, k), 4 * e / (e - 1) ** 2),
        (UnaryEncoding.symmetric(1, k), e**0.5 / (e**0.5 - 1) ** 2),
        (LocalHashing.for_epsilon(1, k, 4), (e - 1 + 4) ** 2 / ((e - 1) ** 2 * 3)),
    ):
        p, q = (float(chance) for chance in mechanism.rates(0))
        assert q * (1 - q) / (p - q) ** 2 == pytest.approx(known, rel=1e-6)


def test_what_an_accuracy_takes() -> None:
    """As many as needed give that half-width at worst, and one fewer does not; so with ε."""
    needed = respondents_needed(1, 2, 0.03)
    coin = BinaryResponse.for_epsilon(1)
    p, q = (float(chance) for chance in coin.rates(1))
    assert needed == pytest.approx(1.96**2 / 4 / (p - q) ** 2 / 0.03**2, rel=1e-4)
    assert respondents_needed(1, 2, 0.03, 0.99) > needed
    epsilon = epsilon_needed(needed, 2, 0.03)
    assert abs(epsilon - 1) <= Fraction(1, 1000)
    assert respondents_needed(epsilon, 2, 0.03) <= needed < respondents_needed(epsilon - Fraction(1, 1000), 2, 0.03)
    with pytest.raises(InvalidParameter, match="too few"):
        epsilon_needed(500, 2, 0.03)


@pytest.mark.parametrize(("epsilon", "k"), [(1, 2), (1, 10), (4, 200), (Fraction(1, 5), 40)])
def test_the_worst_share_is_the_worst_of_all(epsilon: Any, k: int) -> None:
    """Also where supports are rare whatever the share, so that λ = ½ cannot be."""
    for option in advise(epsilon, k, 100).options:
        p, q = (float(chance) for chance in option.mechanism.rates(1))
        supported = q + np.linspace(0, 1, 2001) * (p - q)
        worst = np.sqrt(supported * (1 - supported) / 100).max() / (p - q)
        assert option.worst == pytest.approx(worst, rel=1e-6)


def test_more_respondents_for_an_estimate() -> None:
    found, _, _ = simulated(COVERED[2], 5000, "more")
    reach = float(max((high - low).max() / 2 for low, high in [found.interval(whom="population")]))
    assert found.respondents_for(reach / 2) == pytest.approx(20_000, rel=0.02)


@pytest.mark.parametrize(
    "ask",
    one_in(
        10,
        [
            lambda found: found.interval(1),
            lambda found: found.interval(0.95, whom="all"),
            lambda found: found.forged(-1),
            lambda found: found.forged(10**9),
            lambda found: found.respondents_for(0),
            lambda found: estimate(COVERED[1], np.zeros(0, dtype=np.int64)),
            lambda found: estimate(COVERED[1], np.zeros(3, dtype=np.int64), ("a", "b")),
            lambda found: likeliest(COVERED[1], np.zeros(0, dtype=np.int64)),
            lambda found: likeliest(COVERED[2], np.zeros((10**7, 10), dtype=np.bool_)),
            lambda found: respondents_needed(1, 2, 0),
        ],
    ),
)
def test_questions_that_mean_nothing_are_refused(ask: Any) -> None:
    with pytest.raises(InvalidParameter):
        ask(every_count(COVERED[1]))
