"""The discrete Gaussian has the stated law: composed by rejection, and drawn millions of times."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.exact import discrete_gaussian as module
from lapwing.exact.acceptance import Acceptance, Proposals
from lapwing.exact.discrete_gaussian import discrete_gaussian
from lapwing.exact.entropy import SystemEntropy
from lapwing.exact.rounded_gaussian import rounded_gaussian
from tests.support.effort import one_in, only
from tests.support.exact.fit import (
    AT_SIZES,
    FEW,
    FRESH,
    LEAST_P_VALUE,
    binned,
    discrete_gaussian_cumulative,
    edges_of,
    p_value,
)
from tests.support.exact.independent import discrete_gaussian_probability, exact, number
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

VARIANCES = [
    Fraction(1, 12),
    Fraction(1),
    Fraction(100, 3),
    Fraction(1600),
    Fraction(1 << 12),  # the greatest with a table of its own
    Fraction((1 << 12) + 1),  # the first that is split
    Fraction(10**6, 9),
    Fraction(1 << 40),
    Fraction(10**24, 7),
    Fraction(1 << 100),
]


def fit(variance: Fraction, claimed: Fraction, draws: int) -> float:
    drawn = discrete_gaussian(variance, draws, StreamEntropy(f"discrete {variance}"))
    assert drawn.dtype == np.int64
    sigma = Fraction(math.sqrt(claimed))
    edges = edges_of(sigma, reach=4.0, draws=draws) if sigma > 1 else [-2, -1, 0, 1] if sigma == 1 else [-1, 0]
    return p_value(*binned(drawn.astype(np.int64), edges, discrete_gaussian_cumulative(claimed)))


@AT_SIZES
@pytest.mark.parametrize("variance", one_in(8, VARIANCES), ids=str)
def test_draws_fit(variance: Fraction, draws: int) -> None:
    assert fit(variance, variance, draws) > LEAST_P_VALUE


@AT_SIZES
@pytest.mark.parametrize("variance", one_in(12, VARIANCES), ids=str)
def test_twin_nine_tenths_of_sigma_do_not_fit(variance: Fraction, draws: int) -> None:
    assert fit(variance * Fraction(81, 100), variance, draws) < LEAST_P_VALUE


def test_twin_the_rounded_gaussian_does_not_fit() -> None:
    """At σ = 1/2 the two laws differ by a percent or two; this test tells them apart."""
    cumulative = discrete_gaussian_cumulative(Fraction(1, 4))
    for law, fits in ((module.discrete_gaussian, True), (rounded, False)):
        draws = law(Fraction(1, 4), FRESH, StreamEntropy("which")).astype(np.int64)
        assert (p_value(*binned(draws, [-2, -1, 0, 1], cumulative)) > LEAST_P_VALUE) is fits


def rounded(variance: Fraction, size: int, entropy: StreamEntropy) -> NDArray[np.int64]:
    return rounded_gaussian(variance, size, entropy).astype(np.int64)


@pytest.mark.parametrize("variance", [Fraction((1 << 12) + 1), Fraction(10**6, 9), Fraction(10**11, 3)], ids=str)
def test_proposal_and_acceptance_multiply_to_the_law(variance: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """P(H) · 2^−k · e^(−γ) is the same multiple of P(n) at every n, γ being what the sampler compares the coin with."""
    bits, acceptance = module._split(variance)
    seen: list[Fraction] = []

    def noting(coin: object, least: Fraction, most: Fraction) -> bool:
        seen.append(least)
        return least == most

    monkeypatch.setattr(module, "beyond", noting)
    sigma = math.isqrt(int(variance))
    ratios = []
    for n in [0, 1, -1, 2, -2, (1 << bits) - 1, 1 << bits, -(1 << bits), ~(1 << bits), sigma, -sigma, 3 * sigma + 1]:
        assert module._accepts(bits, acceptance.rate, n, 0, RecordedEntropy(b""))
        law, signed = acceptance.table.law, n >> bits
        proposed = exact.mpf(law.cumulative(signed, 320).lower - law.cumulative(signed - 1, 320).upper) / 2**320
        assert seen[-1] >= 0
        wanted = discrete_gaussian_probability(variance, n)
        ratios.append(proposed / 2**bits * exact.exp(-number(seen[-1])) / wanted)
    assert max(abs(ratio / ratios[0] - 1) for ratio in ratios) < 1e-60
    assert 0.985 < ratios[0] < 1


@pytest.mark.parametrize("bits", one_in(8, [1, 2, 15, 30, 31, 32, 33, 34, 44, 45, 63, 64, 65, 75, 128, 129]))
def test_settled_acceptance_is_right_for_every_number_of_low_bits(bits: int) -> None:
    """What the first 64 bits of L and 32 of C settle is what the whole number and a longer coin say."""
    variance = Fraction(3 << 10 + 2 * bits)
    assert module._split(variance)[0] == bits
    acceptance = module._split(variance)[1]
    given = acceptance.propose(300, StreamEntropy(f"low {bits}"))
    low, words = module._low_bits(bits, given.words, StreamEntropy("more"))
    assert {0 <= int(x) < 1 << bits for x in low} == {True}
    for h, x, word in zip(given.signed.tolist(), low.tolist(), words.tolist(), strict=True):
        number_ = (h << bits) | x
        gamma = acceptance.rate * (Fraction(number_, 1 << bits) ** 2 - max(h, ~h) ** 2)
        limit = -exact.expm1(-number(gamma)) * 2**32
        assert Fraction(word, 1 << 64) <= Fraction(x, 1 << bits) < Fraction(word + 1, 1 << 64)
        coins = np.array(sorted({max(int(limit) + shift, 0) for shift in range(-14, 15)}), dtype=np.uint32)
        rows = Proposals(np.full(coins.size, h), np.full(coins.size, word, dtype=np.uint64), coins)
        accepted, unsettled = acceptance.review(rows)
        refused = np.setdiff1d(np.flatnonzero(~accepted), unsettled)
        assert all(coin >= limit for coin in coins[accepted].tolist())
        assert all(coin + 1 <= limit for coin in coins[refused].tolist())


def test_the_slow_path_alone_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_settled(self: Acceptance, given: Proposals) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        return np.zeros(given.signed.size, dtype=bool), np.arange(given.signed.size)

    for variance in (Fraction(10**6), Fraction(1 << 80), Fraction(1 << 140)):
        fast = discrete_gaussian(variance, 300, StreamEntropy("alone"))
        with monkeypatch.context() as patch:
            patch.setattr(Acceptance, "review", nothing_is_settled)
            slow = discrete_gaussian(variance, 300, StreamEntropy("alone"))
        assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("power", [13, 60, 100, 101, 150, 160, 280])
def test_one_number_is_the_first_of_many(power: int) -> None:
    """A single number takes the bits of its proposal in a row; an array of proposals takes them column by column."""
    bits, acceptance = module._split(Fraction(1 << power))
    for label in ("1", "2", "3"):  # whose first proposals are accepted
        one = discrete_gaussian(Fraction(1 << power), 1, StreamEntropy(label))
        data = StreamEntropy(label).read(100)
        many = module._accepted(bits, acceptance, 1, RecordedEntropy(data))
        assert (one.tolist(), one.dtype) == (many.tolist(), many.dtype)


@pytest.mark.parametrize("start", [0, 8, 16, 24])
@pytest.mark.parametrize("variance", [Fraction(1 << 80), Fraction(1 << 100)], ids=str)
def test_the_bits_of_a_large_sigma_are_even(variance: Fraction, start: int) -> None:
    draws = discrete_gaussian(variance, FEW // 4, StreamEntropy("bits")).astype(np.int64)
    assert p_value(np.bincount(draws >> start & 255), np.full(256, 1 / 256)) > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("variance", "expected"),
    [
        (Fraction(1), [0, -1, 1, -1, 1, 1]),
        (Fraction(2), [0, -1, 1, -1, 1, 2]),
        (Fraction(10**6), [-4, -593, 679, -1065, 894, 1368]),
        (Fraction(1 << 80), [-3686056787, -653026752562, 746457630214, -1160415617516, 994820891491, 1503726400280]),
        (
            Fraction(1 << 160),
            [
                -4052862297494712365256,
                -718010507690300844644102,
                820738844062847688169767,
                -1275890464511032894561628,
                1093817137749089133652277,
                1653364662101721990638517,
            ],
        ),
    ],
    ids=str,
)
def test_known_answers(variance: Fraction, expected: list[int]) -> None:
    """Recorded from this code: a change of how bits become numbers must be meant."""
    assert discrete_gaussian(variance, 6, StreamEntropy("known")).tolist() == expected


def test_almost_no_noise_at_a_tiny_sigma() -> None:
    assert not discrete_gaussian(Fraction(1, 1 << 60), 1_000_000, SystemEntropy()).any()


@pytest.mark.parametrize("power", [51, 64, 80, 200])
def test_beyond_int64_results_are_python_integers(power: int) -> None:
    draws = discrete_gaussian(Fraction(1 << 2 * power), 10_000, StreamEntropy("wide"))
    assert draws.dtype == object
    assert {type(x) for x in draws.tolist()} == {int}
    thousandths = np.array([(1000 * x) >> power for x in draws.tolist()])
    cumulative = discrete_gaussian_cumulative(Fraction(1000**2))
    assert p_value(*binned(thousandths, list(range(-2500, 2501, 250)), cumulative)) > LEAST_P_VALUE
    assert p_value(np.bincount([x & 15 for x in draws.tolist()]), np.full(16, 1 / 16)) > LEAST_P_VALUE


@pytest.mark.parametrize("start", only([], [b"\x00", b"\xff"]))
def test_a_number_beyond_int64_is_not_wrapped(start: bytes) -> None:
    """A height of some 2^20 at σ = 2^50, from a run of equal bits, is accepted whole or not at all."""
    bits, acceptance = module._split(Fraction(1 << 100))
    numbers = module._accepted(bits, acceptance, 1, RecordedEntropy(start * 200, then=StreamEntropy("far")))
    assert numbers.size == 0 or abs(int(numbers[0])) > 10 << 50


@pytest.mark.parametrize("variance", [Fraction(10), Fraction(10**5)], ids=str)
@pytest.mark.parametrize("size", [0, 1, 2, 2048, 2049, 65_537])
def test_sizes(variance: Fraction, size: int) -> None:
    draws = discrete_gaussian(variance, size, SystemEntropy())
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize(("variance", "size"), [(Fraction(0), 1), (Fraction(-1), 1), (Fraction(1), -1)])
def test_refuses_what_has_no_meaning(variance: Fraction, size: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        discrete_gaussian(variance, size, RecordedEntropy(b""))
