"""The fast path of the lazy normal number claims only what is true, and the slow path decides the rest rightly."""

from dataclasses import replace
from fractions import Fraction
from math import floor, isqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.exact import rounded_gaussian as law
from lapwing.exact.acceptance import Acceptance, Proposal, Proposals
from lapwing.exact.rounded_gaussian import _Scaling
from lapwing.exact.uniform import LazyUniform
from lapwing.exact.unsettled_multiples import accepts, rounded, settled
from tests.exact.test_acceptance import rejection
from tests.support.effort import one_in
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

FRACTION = 1 << 54
COIN = 1 << 32
RATE = Fraction(1, 8192)


@pytest.mark.parametrize("proposals", [1000, pytest.param(4000, marks=pytest.mark.long)])
def test_fast_and_slow_acceptance_agree(proposals: int) -> None:
    given = law._acceptance().propose(proposals, StreamEntropy("agree"))
    accepted, unsettled = law._acceptance().review(given)
    for i in np.setdiff1d(np.arange(proposals), unsettled):
        u = LazyUniform(prefix=int(given.words[i]) >> 10, bits=54, entropy=StreamEntropy("u"))
        coin = LazyUniform(prefix=int(given.coins[i]), bits=32, entropy=StreamEntropy("coin"))
        assert accepts(int(given.signed[i]), u, coin) == accepted[i]


@pytest.mark.parametrize("signed", [0, -1, 30, -31, 700, -1000, 4000])
def test_slow_acceptance_reveals_until_it_is_certain(signed: int) -> None:
    """The first bits of C are those of the limit itself, so that only further bits can tell."""
    u_bits = int.from_bytes(StreamEntropy(f"u {signed}").read(80), "little")
    limit = floor(rejection(RATE, signed, Fraction(u_bits, 1 << 640)) * (1 << 288))
    for offset, expected in ((-1, False), (0, None), (1, True)):
        coin_bits = limit + offset
        parts = [word.to_bytes(8, "little") for word in words(u_bits, 640, 54)]
        coins = [word.to_bytes(8, "little") for word in words(coin_bits, 288, 32)]
        # Each round reveals 64 bits of u, then 64 of C.
        tape = b"".join(a + b for a, b in zip(parts[:4], coins, strict=True))
        entropy = RecordedEntropy(tape, then=StreamEntropy("more"))
        u = LazyUniform(prefix=u_bits >> (640 - 54), bits=54, entropy=entropy)
        coin = LazyUniform(prefix=coin_bits >> (288 - 32), bits=32, entropy=entropy)
        decision = accepts(signed, u, coin)
        assert expected is None or decision == expected
        assert coin.bits >= 160
        truth = all(rejection(RATE, signed, end) <= coin.lower for end in (u.lower, u.upper))
        assert decision == truth


def words(bits: int, length: int, first: int) -> list[int]:
    """Cut a string of bits into 64-bit words, after its first few."""
    return [(bits >> (length - first - 64 * (i + 1))) & (2**64 - 1) for i in range((length - first) // 64)]


VARIANCES = [
    Fraction(32**2),
    Fraction(401, 10) ** 2,
    Fraction(64**2),
    Fraction(5000),
    Fraction(1_000_003, 3),
    Fraction(2**40),
    Fraction(10**40 + 57, 10**20 + 39),
    Fraction(2**81),
    Fraction(2**100),
]


def is_nearest(variance: Fraction, value: int, place: Fraction) -> bool:
    """Whether σ·place/64 lies within ½ of the value, by comparing squares."""
    square = variance * place**2 / 4096
    return square <= (value + Fraction(1, 2)) ** 2 and (value == 0 or square >= (value - Fraction(1, 2)) ** 2)


def check_rounding(variance: Fraction, scaling: _Scaling, signed: list[int], fractions: list[int]) -> int:
    """Settled roundings must hold at both ends of what is known of u; return how many were settled."""
    values, unsettled = scaling.round(
        np.array(signed, dtype=np.int64), np.array([fraction << 10 for fraction in fractions], dtype=np.uint64)
    )
    for whole, fraction, value, is_open in zip(signed, fractions, values.tolist(), unsettled, strict=True):
        if not is_open:
            assert value == 0 or (value > 0) == (whole >= 0)
            for end in (fraction, fraction + 1):
                assert is_nearest(variance, abs(value), abs(whole + Fraction(end, FRACTION)))
    return int((~unsettled).sum())


def rounding_cases(variance: Fraction) -> tuple[list[int], list[int]]:
    """Random places, and the places where σ(H + u)/64 is nearest to a half, on either side of 0."""
    stream = StreamEntropy("rounding")
    signed, fractions = [], []
    for height in [0, 1, 2, 63, 200, 500, 511] * 30:
        fraction = int.from_bytes(stream.read(8), "little") >> 10
        sigma = Fraction(isqrt(int(variance * 2**400)), 2**200)
        half = floor(sigma * (height + Fraction(fraction, FRACTION)) / 64) + Fraction(1, 2)
        nearest = floor((half * 64 / sigma - height) * FRACTION)
        for candidate in [fraction, *range(nearest - 6, nearest + 7), 0, FRACTION - 1]:
            if 0 <= candidate < FRACTION:
                signed += [height, ~height]
                fractions += [candidate, FRACTION - 1 - candidate]
    return signed, fractions


@pytest.mark.parametrize("variance", one_in(9, VARIANCES), ids=str)
def test_settled_rounding_is_proven(variance: Fraction) -> None:
    assert check_rounding(variance, _Scaling.of(variance), *rounding_cases(variance)) > 400


@pytest.mark.parametrize("variance", [VARIANCES[1], VARIANCES[4], VARIANCES[6]], ids=str)
def test_twin_a_factor_that_is_off_is_caught(variance: Fraction) -> None:
    """A factor σ/64 that is one part in 2^59 too small, or too great, moves a rounding somewhere."""
    scaling = _Scaling.of(variance)
    for low in (scaling.low - np.uint64(32), scaling.low + np.uint64(32)):
        with pytest.raises(AssertionError):
            check_rounding(variance, replace(scaling, low=low), *rounding_cases(variance))


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_the_factor_is_bracketed(variance: Fraction) -> None:
    """S ≤ 2^s·σ/64 < S + 1, in squares, with S of 64 bits."""
    scaling = _Scaling.of(variance)
    word, shift = int(scaling.high) << 32 | int(scaling.low), scaling.fraction_bits + 10
    assert word.bit_length() == 64
    assert word**2 <= variance / 4096 * 4**shift < (word + 1) ** 2


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2**160), Fraction(2**401 + 1, 3)], ids=str)
def test_slow_rounding_is_exact(variance: Fraction) -> None:
    stream = StreamEntropy("slow")
    for signed in (0, -1, 5, -6, 700, 10**6):
        for start in (0, 1, FRACTION - 1, FRACTION // 3):
            u = LazyUniform(prefix=start, bits=54, entropy=stream)
            value = rounded(variance, signed, u)
            for end in (u.lower, u.upper):
                assert is_nearest(variance, value, abs(signed + end))


@pytest.mark.parametrize("variance", [Fraction(1601), Fraction(1 << 80)], ids=str)
def test_fast_and_slow_paths_give_the_same_numbers(variance: Fraction) -> None:
    given = law._acceptance().propose(5000, StreamEntropy("same"))
    accepted, unsettled = law._acceptance().review(given)
    values, unrounded = _Scaling.of(variance).round(given.signed, given.words)
    for i in np.setdiff1d(np.flatnonzero(accepted & ~unrounded), unsettled):
        proposal = Proposal(*(int(column[i]) for column in given))
        assert settled(variance, proposal, StreamEntropy("slow"), is_accepted=True) == values[i]


def test_the_slow_path_alone_gives_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every proposal unsettled: the numbers that come out are the same, from the same bytes."""

    def nothing_is_settled(self: Acceptance, given: Proposals) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        return np.zeros(given.signed.size, dtype=bool), np.arange(given.signed.size)

    fast = law._rounded_multiples(Fraction(1000), 300, StreamEntropy("alone"))
    monkeypatch.setattr(Acceptance, "review", nothing_is_settled)
    slow = law._rounded_multiples(Fraction(1000), 300, StreamEntropy("alone"))
    assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("variance", [Fraction(5000), Fraction(1 << 60), Fraction(1 << 120)], ids=str)
def test_one_number_is_the_first_of_many(variance: Fraction) -> None:
    """A single number takes the bits of its proposal in a row; an array of proposals takes them column by column."""
    for label in ("one", "two", "three"):
        single = law._rounded_multiple(variance, StreamEntropy(label))
        stream = StreamEntropy(label)
        data = stream.read(20)
        given = Proposals(
            law._acceptance().table.draw(1, RecordedEntropy(data[:8])).astype(np.int64),
            np.frombuffer(data[8:16], dtype="<u8"),
            np.frombuffer(data[16:], dtype="<u4"),
        )
        assert law._acceptance().review(given)[0].all()
        u = LazyUniform(prefix=int(given.words[0]) >> 10, bits=54, entropy=stream)
        assert abs(single) == rounded(variance, int(given.signed[0]), u)


@pytest.mark.parametrize("start", one_in(2, [b"\x00", b"\xff"]))
def test_equal_bits_lead_far_out(start: bytes) -> None:
    """A proposal deep in the table's tail is beyond the fast path's products, and is settled by the slow one."""
    value = law._accepted_multiples(Fraction(10_000), 1, RecordedEntropy(start * 42, then=StreamEntropy("far")))
    assert value.size == 0 or abs(int(value[0])) > 100 * 512 // 64
