"""Randomized response: exact losses by other routes, unbiased estimates, and error bounds that hold."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import RandomizedResponse
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import PRIVACY_MEASURES, GaussianDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import examples, one_in
from tests.support.enumeration import NoEntropy, law_of
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

COINS = tuple(
    RandomizedResponse(keep=Fraction(keep), categories=categories)
    for keep, categories in (
        ("3/4", 2), ("501/1000", 2), ("1999/2000", 2), ("1/2", 3), ("9/10", 5), ("1/6", 7), ("1/2", 10),
        ("1/2", 1000), ("1/1000", 10**6), ("999/1000", 10**6),
    )
)  # fmt: skip
FACES = pytest.mark.parametrize("coin", COINS, ids=lambda coin: f"{coin.keep} of {coin.categories}")
Amount = Callable[[RandomizedResponse, str], mpf]


def quantile(p: mpf) -> mpf:
    return oracle.bisect(lambda x: oracle.normal(x) - p, mpf(-60), mpf(60), 200)


def divergence(coin: RandomizedResponse, order: mpf) -> mpf:
    """D_α of (p, r, r, …) from (r, p, r, …), face by face."""
    p, r = real(coin.keep), real(coin.other)
    rest = (coin.categories - 2) * r
    return mp.log(p**order * r ** (1 - order) + r**order * p ** (1 - order) + rest) / (order - 1)


def true_amount(coin: RandomizedResponse, kind: str) -> mpf:
    """ε; μ² at which the corner of the trade-off function lies on that of μ-GDP; the best of many orders."""
    p, r = real(coin.keep), real(coin.other)
    if kind == "pure":
        return mp.log(p / r)
    if kind == "gdp":
        return (quantile(p) - quantile(r)) ** 2

    def ratio(y: mpf) -> mpf:
        order = 1 + mp.exp(y)
        return divergence(coin, order) / order

    spots = [mpf(y) / 4 for y in range(-160, 60)]
    best = max(spots, key=ratio)
    low, high = best - mpf(1) / 4, best + mpf(1) / 4
    for _ in range(60):
        third = (high - low) / 3
        low, high = (low + third, high) if ratio(low + third) < ratio(high - third) else (low, high - third)
    return ratio(low)


def check_amounts(amount: Amount) -> None:
    """The stated loss is the true one, rounded up by little."""
    for coin in COINS:
        for kind in PRIVACY_MEASURES:
            true = true_amount(coin, kind)
            assert true * (1 - mpf(10) ** -40) <= amount(coin, kind) <= true * (1 + mpf(10) ** -11), (coin, kind)


def stated(coin: RandomizedResponse, kind: str) -> mpf:
    return real(coin.loss(kind).amount)


def test_losses_are_the_least_that_hold() -> None:
    check_amounts(stated)


def of_two_faces(coin: RandomizedResponse, kind: str) -> mpf:
    return real(PureDP(float(mp.log(real(coin.keep / (1 - coin.keep))))).to_kind(kind).amount)


def at_order_one(coin: RandomizedResponse, kind: str) -> mpf:
    p, r = real(coin.keep), real(coin.other)
    return (p - r) * mp.log(p / r) if kind == "zcdp" else stated(coin, kind)


def of_the_pure_loss(coin: RandomizedResponse, kind: str) -> mpf:
    pure = coin.loss("pure")
    return real(pure.to_kind(kind).amount)


@pytest.mark.parametrize("twin", one_in(4, [of_two_faces, at_order_one, of_the_pure_loss]))
def test_twins_of_losses_are_caught(twin: Amount) -> None:
    with pytest.raises(AssertionError):
        check_amounts(twin)


@FACES
def test_losses_cover_the_coin(coin: RandomizedResponse) -> None:
    """δ at many ε, and divergences at many orders, from the faces themselves."""
    p, r = real(coin.keep), real(coin.other)
    for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3), Fraction(6)):
        factor = mp.exp(real(epsilon))
        delta = max(mpf(0), p - factor * r)
        if epsilon == 0:
            delta = p - r
        for kind in PRIVACY_MEASURES:
            assert delta <= coin.loss(kind).to_delta(epsilon=epsilon) + mpf(10) ** -16
    rho = real(coin.loss("zcdp").amount)
    for order in ("1.0001", "1.1", "1.5", "2", "3", "7", "30", "1000"):
        assert divergence(coin, mpf(order)) <= rho * mpf(order)


def test_a_coin_that_says_nothing_loses_nothing() -> None:
    for categories in (2, 3, 1000):
        coin = RandomizedResponse(keep=Fraction(1, categories), categories=categories)
        assert all(coin.loss(kind).amount == 0 for kind in PRIVACY_MEASURES)
        assert RandomizedResponse.for_loss(PureDP(0), categories) == coin


def check_for_loss(for_loss: Callable[[Any, int], RandomizedResponse], loss: Any, categories: int) -> None:
    """The loss is kept, and changing values less often by 2⁻⁴⁰ of that would not keep it."""
    coin = for_loss(loss, categories)
    assert coin.categories == categories
    assert coin.loss(loss.kind) <= loss
    bolder = RandomizedResponse(keep=1 - (1 - coin.keep) * (1 - Fraction(1, 2**40)), categories=categories)
    assert bolder.loss(loss.kind) > loss


@pytest.mark.parametrize(
    ("amount", "categories"), one_in(5, product(["1/100", "1/2", "3", "30"], [2, 3, 8, 1000]), many=True)
)
def test_for_loss(categories: int, amount: str) -> None:
    for loss in mechanism_cases.losses(Fraction(amount)):
        check_for_loss(RandomizedResponse.for_loss, loss, categories)


@pytest.mark.long
@given(st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**4), st.integers(2, 50))
@examples(15)
def test_for_loss_of_anything(amount: Fraction, categories: int) -> None:
    for loss in (PureDP(amount), GaussianDP.from_mu_squared(amount)):
        check_for_loss(RandomizedResponse.for_loss, loss, categories)


def test_twins_of_for_loss_are_caught() -> None:
    def through_pure(loss: Any, categories: int) -> RandomizedResponse:
        return RandomizedResponse.for_loss(PureDP(pure_epsilon_down(loss.kind, loss.amount)), categories)

    def too_bold(loss: Any, categories: int) -> RandomizedResponse:
        coin = RandomizedResponse.for_loss(loss, categories)
        return RandomizedResponse(keep=1 - (1 - coin.keep) * (1 - Fraction(1, 2**45)), categories=categories)

    for twin in (through_pure, too_bold):
        with pytest.raises(AssertionError):
            check_for_loss(twin, ZeroConcentratedDP(Fraction(1, 2)), 5)


def test_the_ends_of_for_loss() -> None:
    bold = RandomizedResponse.for_loss(PureDP(10**6), 3)
    assert 0 < 1 - bold.keep < Fraction(1, 2**3900)
    assert bold.loss("pure") <= PureDP(10**6)
    shy = RandomizedResponse.for_loss(PureDP(Fraction(1, 10**30)), 3)
    assert shy.loss("pure") <= PureDP(Fraction(1, 10**30))
    assert shy.keep >= Fraction(1, 3)


@pytest.mark.parametrize(
    "bad",
    [
        {"keep": 0.75}, {"keep": True}, {"keep": "3/4"}, {"keep": 1}, {"keep": Fraction(1, 3)}, {"keep": 0},
        {"keep": Fraction(-3, 4)}, {"categories": 1}, {"categories": 2.0}, {"categories": True},
        {"categories": 2**41}, {"keep": float("nan")}, {"keep": Fraction(1, 5), "categories": 4},
    ],
)  # fmt: skip
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"keep": Fraction(3, 4), "categories": 2}
    with pytest.raises(InvalidParameter, match="it must be"):
        RandomizedResponse(**{**good, **bad})
    with pytest.raises(InvalidParameter, match="must be one of"):
        COINS[0].loss("approx")


# Release

ROWS = 1_000_000


def check_release(released: Any, codes: Any, coin: RandomizedResponse) -> None:
    """Each true category's rows are spread over the faces as the law says."""
    for code in range(coin.categories):
        counts = np.bincount(released[codes == code], minlength=coin.categories)
        expected = np.full(coin.categories, float(coin.other))
        expected[code] = float(coin.keep)
        assert p_value(counts, expected) > LEAST_P_VALUE


@pytest.mark.long
@pytest.mark.parametrize("categories", [2, 3, 7])
def test_a_million_rows_fit_the_law(categories: int) -> None:
    coin = RandomizedResponse(keep=Fraction(3, 5), categories=categories)
    codes = np.arange(ROWS) % categories
    released = coin.release(codes, StreamEntropy(f"faces {categories}"))
    assert released.dtype == np.int64
    check_release(released, codes, coin)
    with pytest.raises(AssertionError):
        check_release(released, codes, RandomizedResponse(keep=Fraction(61, 100), categories=categories))


def test_every_code_is_released_as_one() -> None:
    coin = RandomizedResponse(keep=Fraction(10**6 - 1, 10**6), categories=4)
    strange: Any = np.array([-5, 0, 3, 4, 10**30, -(10**30)], dtype=object)
    assert coin.release(strange, StreamEntropy("strange")).tolist() == [0, 0, 3, 3, 3, 0]
    assert coin.release(np.zeros(0, dtype=np.int64), NoEntropyOnAnEmptyColumn()).tolist() == []
    small: Any = np.array([1], dtype=np.int8)
    assert coin.release(small).dtype == np.int64


class NoEntropyOnAnEmptyColumn(NoEntropy):
    def read(self, size: int) -> bytes:
        return super().read(size) if size else b""


@pytest.mark.parametrize("codes", [np.zeros(3), np.array([True]), np.zeros((2, 2), dtype=int), ["a"], [None], 3])
def test_codes_that_are_none_are_refused_before_anything_is_drawn(codes: Any) -> None:
    with pytest.raises(InvalidParameter):
        COINS[0].release(codes, NoEntropy())


# Estimates


@pytest.mark.parametrize("categories", one_in(2, [2, 3]))
def test_estimates_are_unbiased(categories: int) -> None:
    """Exactly: their mean over the enumerated law is the truth."""
    coin = RandomizedResponse(keep=Fraction(3, 5), categories=categories)
    for codes in product(range(categories), repeat=3):
        law: Any = law_of(lambda entropy, codes=codes: tuple(coin.release(np.array(codes), entropy).tolist()))  # type: ignore[misc]
        for category in range(categories):
            mean = mp.fsum(p * real(coin.estimate(np.array(seen))[category]) for seen, p in law.items())
            assert abs(mean - codes.count(category)) < mpf(10) ** -40
            raw = mp.fsum(p * seen.count(category) for seen, p in law.items())
            assert abs(raw - codes.count(category)) > mpf(10) ** -3 or codes.count(category) * categories == 3


def test_estimates_add_up_and_come_from_counts_too() -> None:
    coin = RandomizedResponse(keep=Fraction(1, 2), categories=5)
    released = coin.release(np.arange(1000) % 5, StreamEntropy("add up"))
    found = coin.estimate(released)
    assert sum(found) == 1000
    assert found == coin.estimate_from_counts(np.bincount(released, minlength=5))
    for wrong in (np.array([5]), np.array([-1])):
        with pytest.raises(InvalidParameter, match="lies outside 0 to 4"):
            coin.estimate(wrong)
    with pytest.raises(InvalidParameter, match="4 counts for 5"):
        coin.estimate_from_counts(np.array([1, 2, 3, 4]))
    silent = RandomizedResponse(keep=Fraction(1, 5), categories=5)
    for ask in (lambda: silent.estimate(released), lambda: silent.half_width(1000, 0.95)):
        with pytest.raises(InvalidParameter, match="says nothing"):
            ask()


def binomial(count: int, p: float) -> Any:
    """The binomial law by repeated convolution."""
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, [1 - p, p])
    return law


HalfWidth = Callable[[RandomizedResponse, int, Fraction], Fraction]


def check_half_width(half_width: HalfWidth) -> None:
    """Over every split of some rows, the exact law of the count puts enough on estimates that near."""
    for coin, rows in product((COINS[0], COINS[2], COINS[3], COINS[4], COINS[6]), (1, 7, 60)):
        p, r = float(coin.keep), float(coin.other)
        for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000)):
            h = half_width(coin, rows, confidence)
            for true in {0, 1, rows // 3, rows // 2, rows}:
                law = np.convolve(binomial(true, p), binomial(rows - true, r))
                near = [
                    float(mass)
                    for count, mass in enumerate(law)
                    if abs((count - rows * coin.other) / (coin.keep - coin.other) - true) <= h
                ]
                assert sum(near) >= float(confidence) - 1e-12, (coin, rows, confidence, true)


def test_half_widths_cover() -> None:
    check_half_width(lambda coin, rows, confidence: Fraction(coin.half_width(rows, confidence)))


def test_twins_of_half_width_are_caught() -> None:
    def of_the_raw_count(coin: RandomizedResponse, rows: int, confidence: Fraction) -> Fraction:
        return coin.half_width(rows, confidence) * (coin.keep - coin.other)

    def half(coin: RandomizedResponse, rows: int, confidence: Fraction) -> Fraction:
        return Fraction(coin.half_width(rows, confidence), 2)

    for twin in (of_the_raw_count, half):
        with pytest.raises(AssertionError):
            check_half_width(twin)


@pytest.mark.long
def test_half_widths_of_many_rows_are_narrow() -> None:
    """At most 1.4 times the normal law's at 95 %, and they hold in a simulation."""
    coin, rows = RandomizedResponse(keep=Fraction(3, 4)), 100_000
    normal = 1.96 * (rows * 3 / 16) ** 0.5 * 2
    h = coin.half_width(rows, 0.95)
    assert normal <= h <= 1.4 * normal
    codes, entropy = (np.arange(rows) < 300).astype(np.int64), StreamEntropy("narrow")
    errors = [coin.estimate(coin.release(codes, entropy))[1] - 300 for _ in range(200)]
    assert sum(abs(error) > h for error in errors) <= 10
    assert coin.half_width(0, 0.95) == 0
    for wrong in (-1, 1.5, True):
        with pytest.raises(InvalidParameter, match="rows"):
            coin.half_width(wrong, 0.95)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="confidence"):
        coin.half_width(5, 1)
