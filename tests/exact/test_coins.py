"""Coins: brackets recomputed with mpmath, every first word, forced escalations, laws that flips fit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import isqrt

import numpy as np
import pytest
from mpmath import mpf
from scipy import stats

from lapwing.errors import EntropyFault
from lapwing.exact import coins as module
from lapwing.exact.bounds import Bracket
from lapwing.exact.coins import CoinTable, bernoulli, bernoulli_exp, coins, exponential_coins
from lapwing.exact.decay import NATS, Digit, digits_of
from lapwing.exact.uniform import LazyUniform
from tests.exact.test_integers import Short
from tests.support.effort import one_in
from tests.support.exact.fit import LEAST_P_VALUE
from tests.support.exact.independent import exact, number
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

SCALES = [Fraction(x) for x in ("1/1073741824", "1/3", "1", "22/7", "90", "1000", "1048576")] + [Fraction(1 << 80)]


@dataclass(frozen=True)
class Roots:
    """The chances 1/√(k + 1): one, a half, and irrational ones."""

    count: int = 9

    def bracket(self, index: int, bits: int) -> Bracket:
        square = (1 << 2 * bits) // (index + 1)
        low = isqrt(square)
        return Bracket(low, min(low + 1, 1 << bits))

    def brackets(self, bits: int) -> list[Bracket]:
        return [self.bracket(index, bits) for index in range(self.count)]


def root(k: int) -> mpf:
    return 1 / exact.sqrt(exact.mpf(k + 1))


def decayed(place: Digit, digit: int) -> mpf:
    return exact.exp(-exact.mpf(digit << place.shift) / number(place.scale))


def certify(table: CoinTable, chances: list[mpf], *, slack: int = 3) -> None:
    """Each chance lies in its bracket, whose first 16 bits are the cells; and the bracket is narrow."""
    assert table.heads.size == table.most.size == len(chances)
    for heads, most, low, high, p in zip(
        table.heads.tolist(),
        table.most.tolist(),
        table.heads_cell.tolist(),
        table.most_cell.tolist(),
        chances,
        strict=True,
    ):
        scaled = p * 2**64
        assert heads <= scaled <= most + 1
        assert most - heads <= slack
        assert (low, high) == (heads >> 48, most >> 48)


@pytest.mark.parametrize("scale", one_in(8, SCALES), ids=str)
def test_the_tables_of_the_decay_are_certified(scale: Fraction) -> None:
    for place, table in module._decay_tables(scale):
        certify(table, [decayed(place, digit) for digit in range(place.count)])


def test_the_table_of_chances_is_certified() -> None:
    certify(module._table(Roots()), [root(k) for k in range(9)])


def test_twin_a_scale_off_by_a_billionth_is_caught() -> None:
    for place, table in module._decay_tables(Fraction(10)):
        wrong = replace(place, scale=Fraction(10) + Fraction(1, 10**9))
        with pytest.raises(AssertionError):
            certify(table, [decayed(wrong, digit) for digit in range(place.count)])


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("nats", [NATS, 9 * NATS])
def test_the_digits_make_up_the_distance(scale: Fraction, nats: int) -> None:
    """Digits add up to the distance, tables are short, and the top one reaches as far as it must."""
    top, *low = digits = digits_of(scale, nats)
    assert top.is_top
    assert not any(place.is_top for place in low)
    assert all(place.count <= (1 << 12) + 2 for place in digits)
    assert Fraction((top.count - 1) << top.shift) >= nats * scale
    for distance in [0, 1, 5, 4095, 4096, 10**6, (1 << 62) + 12345, 1 << 90, 3**100]:
        assert sum(place.value(distance) << place.shift for place in digits) == distance
        arrays = [np.array([distance], dtype=object)]
        if distance < 1 << 63:
            arrays.append(np.array([distance], dtype=np.int64))
        for place in digits:
            for array in arrays:
                assert place.indices(array).tolist() == [min(place.value(distance), place.count - 1)]


def heads_of_all_words(table: CoinTable, index: int, bracket: Callable[[int, int], Bracket], rest: bytes) -> int:
    """Flip 65,536 coins, one for each first word; the undecided get the rest that is given."""
    words = np.arange(65_536, dtype="<u2")
    entropy = RecordedEntropy(words.tobytes() + rest * 32, then=StreamEntropy("rest"))
    return int(np.count_nonzero(table.flip(np.full(65_536, index, dtype=np.int64), bracket, entropy)))


def check_words(table: CoinTable, chances: list[mpf], bracket: Callable[[int, int], Bracket]) -> None:
    """The share of heads is the chance, to within the one word that holds the boundary."""

    def one(index: int, position: int, bits: int) -> Bracket:
        return bracket(index, bits)

    for index, p in enumerate(chances):
        for rest, least, most in ((bytes(8), p * 65_536, p * 65_536 + 1), (b"\xff" * 8, p * 65_536 - 1, p * 65_536)):
            heads = heads_of_all_words(table, index, partial(one, index), rest)
            assert least <= heads <= most


def test_every_first_word() -> None:
    check_words(module._table(Roots()), [root(k) for k in range(9)], Roots().bracket)
    (place, table), *_ = module._decay_tables(Fraction(3))
    check_words(table, [decayed(place, digit) for digit in range(0, 30)], place.bracket)


def test_twin_a_cell_too_many_is_caught() -> None:
    table = module._table(Roots())
    wrong = replace(table, heads_cell=np.minimum(table.heads_cell, 65_534) + np.uint16(1))
    with pytest.raises(AssertionError):
        check_words(wrong, [root(k) for k in range(9)], Roots().bracket)


def recorded(u: int) -> bytes:
    """192 bits of U in the order in which a single coin reads them."""
    return b"".join((u >> start & (2**64 - 1)).to_bytes(8, "little") for start in (128, 64, 0))


def check_escalation() -> None:
    """A U that agrees with the chance in 64 bits and more is decided by what comes after, and rightly."""
    for k in range(1, 9):
        boundary = int(exact.floor(root(k) * 2**192))
        for u, wanted in ((boundary - 1, True), (boundary + 1, False)):
            assert bool(coins(Roots(), np.array([k]), RecordedEntropy(recorded(u)))[0]) is wanted
    for distance, scale in ((1, Fraction(1)), (7, Fraction(22, 7)), (50, Fraction(1)), (101, Fraction(1))):
        boundary = int(exact.floor(exact.exp(-distance / number(scale)) * 2**192))
        for u, wanted in ((boundary - 1, True), (boundary + 1, False)):
            flipped = exponential_coins(np.array([distance]), scale, RecordedEntropy(recorded(u)))
            assert bool(flipped[0]) is wanted


def test_forced_escalation() -> None:
    check_escalation()


def test_twin_no_escalation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tails for whatever 64 bits do not decide: chances below 2^-64 would be none at all."""
    monkeypatch.setattr(LazyUniform, "below", lambda self, bracket: False)
    with pytest.raises(AssertionError):
        check_escalation()


def check_flips(flips: Callable[[StreamEntropy], np.ndarray], chance: float, label: str) -> None:
    drawn = flips(StreamEntropy(label))
    assert drawn.dtype == np.bool_
    assert stats.binomtest(int(drawn.sum()), drawn.size, chance).pvalue > LEAST_P_VALUE


SIZES = (3000, 300_000)  # whole words, and words of 16 bits first


@pytest.mark.parametrize("size", one_in(3, SIZES))
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(10), Fraction(1000), Fraction(10**6, 7), Fraction(1 << 70)])
def test_exponential_coins_fit(scale: Fraction, size: int) -> None:
    for share in (Fraction(1, 20), Fraction(1), Fraction(4)):
        distance = int(share * scale) + 1
        kind = np.int64 if distance < 1 << 63 else np.object_
        chance = float(exact.exp(-distance / number(scale)))
        distances = np.full(size, distance, dtype=kind)
        check_flips(lambda e, d=distances: exponential_coins(d, scale, e), chance, f"{scale} {size}")  # type: ignore[misc]


@pytest.mark.parametrize("size", SIZES)
def test_other_coins_fit(size: int) -> None:
    check_flips(lambda entropy: bernoulli(Fraction(1, 3), size, entropy), 1 / 3, "third")
    check_flips(lambda entropy: bernoulli_exp(Fraction(7, 3), size, entropy), np.exp(-7 / 3), "exp")
    check_flips(lambda entropy: coins(Roots(), np.full(size, 4), entropy), 5**-0.5, "root")


def test_twin_a_chance_one_percent_off_does_not_fit() -> None:
    with pytest.raises(AssertionError):
        check_flips(lambda entropy: bernoulli(Fraction(33, 100), 3_000_000, entropy), 1 / 3, "third")


def test_coins_are_independent() -> None:
    """Pairs of neighbouring coins, and a coin with its distance."""
    drawn = exponential_coins(np.tile(np.array([0, 3, 700]), 100_000), Fraction(1000), StreamEntropy("pairs"))
    assert drawn[::3].all()
    both, chance = np.count_nonzero(drawn[1::3] & drawn[2::3]), float(np.exp(-0.703))
    assert stats.binomtest(int(both), 100_000, chance).pvalue > LEAST_P_VALUE


def test_chances_of_none_and_all() -> None:
    for end in (b"\x00", b"\xff"):
        for size in (1, 5000):
            entropy = RecordedEntropy(end * 10 * size)
            assert bernoulli(Fraction(1), size, entropy).all()
            entropy = RecordedEntropy(end * 10 * size)
            assert not bernoulli(Fraction(0), size, entropy).any()
            entropy = RecordedEntropy(end * 10 * size)
            assert bernoulli_exp(Fraction(0), size, entropy).all()


def test_distances_of_any_size() -> None:
    distances = np.array([0, 1, 2**62, 2**64, 3**200], dtype=object)
    for scale in SCALES:
        drawn = exponential_coins(distances, scale, StreamEntropy("any"))
        assert drawn[0]
        assert not drawn[-1]


def test_nothing_to_flip() -> None:
    assert exponential_coins(np.empty(0, dtype=np.int64), Fraction(1), RecordedEntropy(b"")).shape == (0,)
    assert bernoulli(Fraction(1, 2), 0, RecordedEntropy(b"")).shape == (0,)


def test_known_answers() -> None:
    """Recorded from this code: a change of how bits become coins must be meant."""
    entropy = StreamEntropy("known")
    distances = np.arange(20) * 40
    assert np.flatnonzero(exponential_coins(distances, Fraction(300), entropy)).tolist() == KNOWN["decay"]
    assert np.flatnonzero(bernoulli(Fraction(1, 3), 20, entropy)).tolist() == KNOWN["third"]


def test_bad_arguments() -> None:
    dry = RecordedEntropy(b"")
    for probability, size in ((Fraction(-1), 1), (Fraction(2), 1), (Fraction(1, 2), -1)):
        with pytest.raises(ValueError, match="probability"):
            bernoulli(probability, size, dry)
    with pytest.raises(ValueError, match="exponent"):
        bernoulli_exp(Fraction(-1), 1, dry)
    with pytest.raises(ValueError, match="scale"):
        exponential_coins(np.array([1]), Fraction(0), dry)
    for distances in (np.array([1.5]), np.array([[1]]), np.array([-1]), np.array([True])):
        with pytest.raises(ValueError, match="distances"):
            exponential_coins(distances, Fraction(1), dry)
    for indices in (np.array([9]), np.array([-1]), np.array([[0]]), np.array([0.0])):
        with pytest.raises(ValueError, match="indices"):
            coins(Roots(), indices, dry)
    with pytest.raises(ValueError, match="chances"):
        coins(Roots(count=0), np.array([0]), dry)


def test_short_reads_are_faults() -> None:
    for size in (3, 5000):
        with pytest.raises(EntropyFault):
            bernoulli(Fraction(1, 2), size, Short())


KNOWN: dict[str, list[int]] = {"decay": [0, 1, 2, 3, 8, 10, 11], "third": [2, 3, 4, 12, 15, 17]}
