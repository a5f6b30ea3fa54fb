"""The fast path of the lazy normal number claims only what is true, and the slow path decides the rest rightly."""

from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.exact import normal
from lapwing.exact.normal import _accept, _accepts, _Proposals, _propose, _rounded, _Scaling, _settled
from lapwing.exact.uniform import LazyUniform
from tests.exact.independent import exact, number
from tests.fixed_entropy import RecordedEntropy, StreamEntropy

FRACTION = 1 << 54
COIN = 1 << 32


def proposals(heights: list[int], fractions: list[int], coins: list[int]) -> _Proposals:
    return _Proposals(
        sign=np.zeros(len(heights), dtype=np.int64),
        height=np.array(heights, dtype=np.int64),
        fraction=np.array(fractions, dtype=np.uint64),
        coin=np.array(coins, dtype=np.int64),
    )


def rejection(height: int, x: Fraction) -> Fraction:
    """1 − e^(−γ), γ = x(x + 2h)/8192, to 150 digits."""
    value = -exact.expm1(-number(x * (x + 2 * height) / 8192))
    return Fraction(int(exact.floor(value * 2**500)), 2**500)


def borderline() -> _Proposals:
    """Heights and fractions of all kinds, with coins on, beside and far from the limit of acceptance."""
    stream = StreamEntropy("borderline")
    rows = []
    for height in [0, 1, 2, 50, 100, 300, 604, 605, 998, 999, 1000, 5000]:
        for k in range(20):
            fraction = int.from_bytes(stream.read(8), "little") >> 10
            fraction = [0, FRACTION - 1, 1 << 23, (1 << 23) - 1][k] if k < 4 else fraction
            limit = floor(rejection(height, Fraction(fraction, FRACTION)) * COIN)
            farther = [limit + side * 2**power for side in (-1, 1) for power in range(3, 32, 2)]
            for coin in {*range(limit - 6, limit + 7), *farther, 0, COIN - 1}:
                if 0 <= coin < COIN:
                    rows.append((height, fraction, coin))
    return proposals(*(list(column) for column in zip(*rows, strict=True)))


def check_acceptance(given: _Proposals, accepted: NDArray[np.bool_], unsettled: NDArray[np.bool_]) -> None:
    """Whatever the unseen bits of x and C are, a settled proposal is what it is said to be."""
    for height, fraction, coin, is_accepted, is_unsettled in zip(*given[1:], accepted, unsettled, strict=True):
        assert not (is_accepted and is_unsettled)
        low = rejection(int(height), Fraction(int(fraction), FRACTION))
        high = rejection(int(height), Fraction(int(fraction) + 1, FRACTION))
        if is_accepted:
            assert Fraction(int(coin), COIN) >= high
        elif not is_unsettled:
            assert Fraction(int(coin) + 1, COIN) <= low + Fraction(1, 2**490)


def test_settled_acceptance_is_proven() -> None:
    given = borderline()
    accepted, unsettled = _accept(given)
    check_acceptance(given, accepted, unsettled)
    assert accepted.sum() > 1000
    assert (~accepted & ~unsettled).sum() > 1000


@pytest.mark.parametrize("shift", [-3, 3])
def test_twin_a_coin_that_is_off_by_three_is_caught(shift: int) -> None:
    """The comparison's slack is a few units of 2^-32: it covers the error, and not much more."""
    given = borderline()
    accepted, unsettled = _accept(given._replace(coin=given.coin + shift))
    with pytest.raises(AssertionError):
        check_acceptance(given, accepted, unsettled)


def test_few_proposals_are_unsettled() -> None:
    given = _propose(1_000_000, StreamEntropy("settled"))
    accepted, unsettled = _accept(given)
    assert unsettled.sum() < 20
    assert 0.992 < accepted.mean() < 0.996


def test_fast_and_slow_acceptance_agree() -> None:
    given = _propose(20_000, StreamEntropy("agree"))
    accepted, unsettled = _accept(given)
    for i in np.flatnonzero(~unsettled)[:4000]:
        x = LazyUniform(prefix=int(given.fraction[i]), bits=54, entropy=StreamEntropy("x"))
        coin = LazyUniform(prefix=int(given.coin[i]), bits=32, entropy=StreamEntropy("coin"))
        assert _accepts(int(given.height[i]), x, coin) == accepted[i]


@pytest.mark.parametrize("height", [0, 30, 700, 1000, 4000])
def test_slow_acceptance_reveals_until_it_is_certain(height: int) -> None:
    """The first bits of C are those of the limit itself, so that only further bits can tell."""
    x_bits = int.from_bytes(StreamEntropy(f"x {height}").read(80), "little")
    limit = floor(rejection(height, Fraction(x_bits, 1 << 640)) * (1 << 288))
    for offset, expected in ((-1, False), (0, None), (1, True)):
        coin_bits = limit + offset
        parts = [word.to_bytes(8, "little") for word in words(x_bits, 640, 54)]
        coins = [word.to_bytes(8, "little") for word in words(coin_bits, 288, 32)]
        # Each round reveals 64 bits of x, then 64 of C.
        tape = b"".join(a + b for a, b in zip(parts[:4], coins, strict=True))
        entropy = RecordedEntropy(tape, then=StreamEntropy("more"))
        x = LazyUniform(prefix=x_bits >> (640 - 54), bits=54, entropy=entropy)
        coin = LazyUniform(prefix=coin_bits >> (288 - 32), bits=32, entropy=entropy)
        decision = _accepts(height, x, coin)
        assert expected is None or decision == expected
        assert coin.bits >= 160
        truth = rejection(height, x.upper) <= coin.lower
        assert decision == truth


def words(bits: int, length: int, first: int) -> list[int]:
    """Cut a string of bits into 64-bit words, after its first few."""
    return [(bits >> (length - first - 64 * (i + 1))) & (2**64 - 1) for i in range((length - first) // 64)]


SIGMAS = [
    Fraction(32),
    Fraction(401, 10),
    Fraction(64),
    Fraction(1000, 3),
    Fraction(2**20),
    Fraction(10**30 + 57, 10**20 + 39),
    Fraction(2**50),
]


def check_rounding(sigma: Fraction, scaling: _Scaling, heights: list[int], fractions: list[int]) -> int:
    """Settled roundings must hold at both ends of what is known of x; return how many were settled."""
    given = proposals(heights, fractions, [0] * len(heights))
    values, unsettled = scaling.round(given.height, given.fraction)
    for height, fraction, value in zip(heights, fractions, np.where(unsettled, -1, values).tolist(), strict=True):
        if value >= 0:
            for end in (fraction, fraction + 1):
                product = sigma * (height + Fraction(end, FRACTION)) / 64
                assert value - Fraction(1, 2) <= product <= value + Fraction(1, 2)
    return int((~unsettled).sum())


def rounding_cases(sigma: Fraction) -> tuple[list[int], list[int]]:
    """Random places, and the places where σ(h + x)/64 is nearest to a half."""
    stream = StreamEntropy("rounding")
    heights, fractions = [], []
    for height in [0, 1, 2, 63, 200, 604, 999] * 30:
        fraction = int.from_bytes(stream.read(8), "little") >> 10
        half = floor(sigma * (height + Fraction(fraction, FRACTION)) / 64) + Fraction(1, 2)
        nearest = floor((half * 64 / sigma - height) * FRACTION)
        for candidate in [fraction, *range(nearest - 6, nearest + 7), 0, FRACTION - 1]:
            if 0 <= candidate < FRACTION:
                heights.append(height)
                fractions.append(candidate)
    return heights, fractions


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_settled_rounding_is_proven(sigma: Fraction) -> None:
    heights, fractions = rounding_cases(sigma)
    assert check_rounding(sigma, _Scaling.of(sigma), heights, fractions) > 200


@pytest.mark.parametrize("sigma", [SIGMAS[1], SIGMAS[3], SIGMAS[5]], ids=str)
def test_twin_a_factor_that_is_off_is_caught(sigma: Fraction) -> None:
    """A factor σ/64 that is one part in 2^59 too small, or too great, moves a rounding somewhere."""
    scaling = _Scaling.of(sigma)
    for low in (scaling.low - np.uint64(32), scaling.low + np.uint64(32)):
        with pytest.raises(AssertionError):
            check_rounding(sigma, replace(scaling, low=low), *rounding_cases(sigma))


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(2**80), Fraction(2**200 + 1, 3)], ids=str)
def test_slow_rounding_is_exact(sigma: Fraction) -> None:
    stream = StreamEntropy("slow")
    for height in (0, 5, 700, 10**6):
        for start in (0, 1, FRACTION - 1, FRACTION // 3):
            x = LazyUniform(prefix=start, bits=54, entropy=stream)
            value = _rounded(sigma, height, x)
            for end in (x.lower, x.upper):
                assert abs(sigma * (height + end) / 64 - value) <= Fraction(1, 2)


@pytest.mark.parametrize("sigma", [Fraction(401, 10), Fraction(1 << 40)], ids=str)
def test_fast_and_slow_paths_give_the_same_numbers(sigma: Fraction) -> None:
    given = _propose(5000, StreamEntropy("same"))
    accepted, unsettled = _accept(given)
    values, unrounded = _Scaling.of(sigma).round(given.height, given.fraction)
    for i in np.flatnonzero(accepted & ~unsettled & ~unrounded):
        slow = _settled(sigma, given, int(i), RecordedEntropy(b"", then=StreamEntropy("slow")), is_accepted=True)
        assert slow == (-values[i] if given.sign[i] else values[i])


def test_the_slow_path_alone_gives_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every proposal unsettled: the numbers that come out are the same, from the same bytes."""

    def nothing_is_settled(given: _Proposals) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.zeros(given.height.size, dtype=bool), np.ones(given.height.size, dtype=bool)

    fast = normal.rounded_multiples(Fraction(1000), 300, StreamEntropy("alone"))
    monkeypatch.setattr(normal, "_accept", nothing_is_settled)
    slow = normal.rounded_multiples(Fraction(1000), 300, StreamEntropy("alone"))
    assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("start", [b"\x00", b"\xff"])
def test_equal_bits_lead_far_out(start: bytes) -> None:
    """A proposal deep in the grid's tail is beyond the fast path's products, and is settled by the slow one."""
    entropy = RecordedEntropy(start * 42, then=StreamEntropy("far"))
    value = normal._accepted_multiples(Fraction(100), 1, entropy)
    table = normal._grid()
    assert table.boundaries == 1209
    assert value.size == 0 or abs(int(value[0])) > 100 * 1000 // 64
