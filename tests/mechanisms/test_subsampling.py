"""Subsampling: amplified losses by other routes, exact laws of sampled mechanisms, and what must be refused."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import DiscreteLaplace, FixedSizeSample, PoissonSample, Subsampled
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import only
from tests.support.enumeration import Law, NoEntropy
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy.oracle import real

THIRD = Subsampled(sample=PoissonSample(rate=Fraction(1, 3)))
PAIRS = Subsampled(sample=FixedSizeSample(size=2, population=4))
BOTH = pytest.mark.parametrize("sampled", [THIRD, PAIRS], ids=["Poisson", "fixed size"])
SHARES = tuple(Fraction(x) for x in ("1", "1/2", "1/1000", "1/1000000000"))
EPSILONS = tuple(Fraction(x) for x in ("1/1000000000000", "1/10", "1", "8", "1000000"))


def poisson(share: Fraction) -> Subsampled:
    return Subsampled(sample=PoissonSample(rate=share))


def through(epsilon: Fraction, share: Fraction) -> mpf:
    """ln(1 + q(e^ε − 1)), from the larger of its two ends."""
    with mp.workdps(120):
        e, q = real(epsilon), real(share)
        return mp.log1p(q * mp.expm1(e)) if e < 100 else e + mp.log(q) + mp.log1p((1 / q - 1) * mp.exp(-e))


def check_loss(loss: Callable[[Fraction, PureDP], PureDP]) -> None:
    for share, epsilon in product(SHARES, EPSILONS):
        true = through(epsilon, share)
        assert true * (1 - mpf(10) ** -50) <= real(loss(share, PureDP(epsilon)).epsilon) <= true * (1 + mpf(2) ** -60)


def test_the_amplified_loss_is_the_theorem_rounded_up() -> None:
    check_loss(lambda share, inner: poisson(share).loss(inner, neighbouring="add_remove"))
    assert poisson(Fraction(1, 2)).loss(PureDP(0), neighbouring="add_remove") == PureDP(0)
    assert poisson(Fraction(1, 8)).loss(ApproxDP(0, 0.5), neighbouring="add_remove") == ApproxDP(0, 0.0625)
    assert PAIRS.loss(PureDP(1), neighbouring="replace_one") == poisson(Fraction(1, 2)).loss(
        PureDP(1), neighbouring="add_remove"
    )


@pytest.mark.parametrize(
    "twin",
    [
        lambda share, inner: PureDP(share * inner.epsilon),
        lambda share, inner: poisson(share * Fraction(999999, 10**6)).loss(inner, neighbouring="add_remove"),
        lambda share, inner: inner,
    ],
)
def test_twins_of_the_amplified_loss_are_caught(twin: Callable[[Fraction, PureDP], PureDP]) -> None:
    with pytest.raises(AssertionError):
        check_loss(twin)


@pytest.mark.long
@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=1),
    st.fractions(min_value=Fraction(1, 10**6), max_value=60),
    st.fractions(min_value=0, max_value=1),
)
def test_the_way_back_is_rounded_down(share: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    sampled = poisson(share)
    wanted = ApproxDP(epsilon, delta)
    inner = sampled.inner_loss(wanted, neighbouring="add_remove")
    assert sampled.loss(inner, neighbouring="add_remove").epsilon <= epsilon * (1 + Fraction(1, 2**60))
    assert through(inner.epsilon, share) <= real(epsilon) * (1 + mpf(10) ** -50)
    assert through(inner.epsilon * (1 + Fraction(1, 2**55)), share) > real(epsilon)
    assert share * inner.delta <= delta
    assert inner.delta == 1 or share * inner.delta == delta
    assert sampled.inner_loss(PureDP(epsilon), neighbouring="add_remove") == PureDP(inner.epsilon)


# Exact laws, added up over every sample


def over_samples(rows: tuple[int, ...], samples: dict[tuple[int, ...], mpf], noise: Callable[[int], mpf]) -> Law:
    """The law of the sum of a sample plus noise of at most 40."""
    sums: Counter[int] = Counter()
    for chosen, chance in samples.items():
        sums[sum(rows[i] for i in chosen)] += chance
    return {y: mp.fsum(p * noise(y - s) for s, p in sums.items()) for y in range(-30, 31)}


def poisson_samples(rows: int, rate: Fraction) -> dict[tuple[int, ...], mpf]:
    q = real(rate)
    sizes = range(rows + 1)
    return {c: q ** len(c) * (1 - q) ** (rows - len(c)) for n in sizes for c in combinations(range(rows), n)}


def fixed_samples(rows: int, size: int) -> dict[tuple[int, ...], mpf]:
    chosen = list(combinations(range(rows), size))
    return {c: mpf(1) / len(chosen) for c in chosen}


def delta(law: Law, other: Law, epsilon: mpf) -> mpf:
    return mp.fsum(max(mpf(0), p - mp.exp(epsilon) * other[y]) for y, p in law.items())


@cache
def laplace(x: int) -> mpf:
    return mechanism_cases.laplace_law(Fraction(1), x)


@cache
def gaussian(x: int) -> mpf:
    return mechanism_cases.gaussian_law(Fraction(1), x)


def poisson_pairs(rows: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(rows[:i] + rows[i + 1 :], rows) for i in range(len(rows))]


def check_poisson(amplified: Callable[[PureDP], PureDP], rate: Fraction, noise: Callable[[int], mpf]) -> None:
    """Sampled sums of up to three bits: δ at ε' is at most q times the inner δ at ε, both ways, for every ε."""
    for bits in product((0, 1), repeat=3):
        for fewer, more in poisson_pairs(bits):
            laws = [over_samples(rows, poisson_samples(len(rows), rate), noise) for rows in (fewer, more)]
            for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(2)):
                after = real(amplified(PureDP(epsilon)).epsilon)
                inner = delta({y: noise(y - 1) for y in range(-30, 31)}, dict(zip_law(noise)), real(epsilon))
                for law, other in (laws, laws[::-1]):
                    assert delta(law, other, after) <= real(rate) * inner + mpf(10) ** -12


def zip_law(noise: Callable[[int], mpf]) -> list[tuple[int, mpf]]:
    return [(y, noise(y)) for y in range(-30, 31)]


@pytest.mark.parametrize(
    ("rate", "noise"), only([0, 3], product([Fraction(1, 3), Fraction(3, 4)], [laplace, gaussian]), many=True)
)
def test_poisson_samples_lose_no_more(rate: Fraction, noise: Callable[[int], mpf]) -> None:
    check_poisson(lambda inner: poisson(rate).loss(inner, neighbouring="add_remove"), rate, noise)
    with pytest.raises(AssertionError):
        check_poisson(lambda inner: poisson(rate * Fraction(9, 10)).loss(inner, neighbouring="add_remove"), rate, noise)


def check_fixed(amplified: Callable[[PureDP], PureDP], noise: Callable[[int], mpf]) -> None:
    """Sampled sums of two of four bits, one of them replaced."""
    for bits in product((0, 1), repeat=3):
        laws = [over_samples((last, *bits), fixed_samples(4, 2), noise) for last in (0, 1)]
        for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(2)):
            after = real(amplified(PureDP(epsilon)).epsilon)
            inner = delta({y: noise(y - 1) for y in range(-30, 31)}, dict(zip_law(noise)), real(epsilon))
            for law, other in (laws, laws[::-1]):
                assert delta(law, other, after) <= inner / 2 + mpf(10) ** -12


@pytest.mark.parametrize("noise", [laplace, gaussian])
def test_samples_of_fixed_size_lose_no_more(noise: Callable[[int], mpf]) -> None:
    check_fixed(lambda inner: PAIRS.loss(inner, neighbouring="replace_one"), noise)
    with pytest.raises(AssertionError):
        check_fixed(lambda inner: poisson(Fraction(2, 5)).loss(inner, neighbouring="add_remove"), noise)


def worst(laws: list[Law]) -> mpf:
    return max(abs(mp.log(laws[0][y] / laws[1][y])) for y in range(-20, 21))


def test_the_other_neighbours_would_lose_more() -> None:
    """With Laplace noise of scale 1 and rows from −1 to 1, add_remove loses 1; a replacement moves the sum by 2."""
    laws = [over_samples((x,), poisson_samples(1, Fraction(1, 3)), laplace) for x in (-1, 1)]
    assert worst(laws) > real(THIRD.loss(PureDP(1), neighbouring="add_remove").epsilon) + mpf("0.1")
    laws = [over_samples((x, 0, 0, 0), fixed_samples(4, 2), laplace) for x in (-1, 1)]
    assert worst(laws) > real(PAIRS.loss(PureDP(1), neighbouring="replace_one").epsilon) + mpf("0.1")
    for sampled, wrong in ((THIRD, "replace_one"), (PAIRS, "add_remove"), (THIRD, "both")):
        for ask in (sampled.loss, sampled.inner_loss):
            with pytest.raises(InvalidParameter, match="is proven to amplify losses for"):
                ask(PureDP(1), neighbouring=wrong)


@BOTH
def test_measures_without_a_theorem_are_refused(sampled: Subsampled) -> None:
    losses: tuple[Any, ...] = (GaussianDP(1), ZeroConcentratedDP(1), ApproximateGaussianDP(1, 0.1), 1.0)
    for loss in losses:
        for ask in (sampled.loss, sampled.inner_loss):
            with pytest.raises(InvalidParameter, match="states nothing in"):
                ask(loss, neighbouring=sampled.sample.neighbouring)


def test_a_sampled_gaussian_is_not_gaussian() -> None:
    """Why: at a large ε, its δ is almost that of the whole mechanism times q, far above any smaller μ's."""
    law, other = (over_samples(rows, poisson_samples(len(rows), Fraction(1, 3)), gaussian) for rows in ((1,), ()))
    assert delta(law, other, mpf(5)) > 100 * mpf(GaussianDP(Fraction(1, 2)).to_delta(epsilon=5))


# Release


def seen(rows: Any, entropy: Entropy) -> Any:
    return rows


def test_rows_keep_their_kind_and_order() -> None:
    entropy = StreamEntropy("kind")
    table = np.arange(40).reshape(20, 2)
    chosen = THIRD.release(table, seen, entropy)
    assert chosen.shape[1] == 2
    assert (chosen[:, 1] == chosen[:, 0] + 1).all()
    assert (np.diff(chosen[:, 0]) > 0).all()
    letters = PAIRS.release(("a", "b", "c", "d"), seen, entropy)
    assert isinstance(letters, list)
    assert letters == sorted(letters)
    assert len(set(letters)) == 2
    noisy = THIRD.release([1] * 9, lambda rows, source: DiscreteLaplace(scale=Fraction(1)).release(len(rows), source))
    assert type(noisy) is int


@pytest.mark.parametrize(("samples", "pairs"), [(5_000, 1_500), pytest.param(20_000, 6_000, marks=pytest.mark.long)])
def test_samples_fit_their_laws(samples: int, pairs: int) -> None:
    entropy = StreamEntropy("samples")
    sizes = np.bincount([len(THIRD.sample.draw(4, entropy)) for _ in range(samples)], minlength=5)
    expected = np.array([float(p) for p in mechanism_cases.sampled_count(4, Fraction(1, 3)).values()])
    assert p_value(sizes, expected) > LEAST_P_VALUE
    sets = Counter(tuple(PAIRS.sample.draw(4, entropy).tolist()) for _ in range(pairs))
    assert p_value(np.array(list(sets.values())), np.full(6, 1 / 6)) > LEAST_P_VALUE


def test_a_population_is_given_whole() -> None:
    with pytest.raises(InvalidParameter, match="There are 3 rows, but the population is 4"):
        PAIRS.release([1, 2, 3], seen, NoEntropy())


@pytest.mark.parametrize(
    "build",
    [
        lambda: PoissonSample(rate=0.5),  # type: ignore[arg-type]
        lambda: PoissonSample(rate=Fraction(0)),
        lambda: PoissonSample(rate=Fraction(3, 2)),
        lambda: PoissonSample(rate=True),  # type: ignore[arg-type]
        lambda: FixedSizeSample(size=0, population=4),
        lambda: FixedSizeSample(size=5, population=4),
        lambda: FixedSizeSample(size=1, population=2.0),  # type: ignore[arg-type]
        lambda: FixedSizeSample(size=True, population=2),
        lambda: Subsampled(sample=Fraction(1, 2)),  # type: ignore[arg-type]
    ],
)
def test_samples_that_mean_nothing_are_refused(build: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        build()
