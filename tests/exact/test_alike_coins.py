"""Many coins of one chance: their law recovered, bit by bit, from what recorded bytes make of them."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from lapwing.errors import EntropyFault
from lapwing.exact import coins as module
from lapwing.exact.bounds import Bracket
from lapwing.exact.coins import bernoulli
from lapwing.exact.uniform import LazyUniform
from tests.exact.test_integers import Short
from tests.support.exact.fit import LEAST_P_VALUE
from tests.support.fixed_entropy import LoggedEntropy, RecordedEntropy, StreamEntropy

SIZE = 256 * 20
"""Twenty coins for each first byte; more than take whole words."""
REST = 1 << 56
DYADIC = [Fraction(threshold, 1 << 64) for threshold in (
    1, 2, 255, 1 << 56, (1 << 56) - 1, (1 << 56) + 1, 1 << 63, (1 << 63) + 1, 3 << 54, 12345678901234567891,
    (1 << 64) - (1 << 56), (1 << 64) - 1,
)]  # fmt: skip
OTHERS = [Fraction(1, 3), Fraction(1, 255), Fraction(2, 7), 1 - Fraction(1, 1 << 70), Fraction(1, 3 << 64)]


def flipped(chance: Fraction, rest: int, beyond: bytes = b"") -> np.ndarray:
    """Flip twenty coins for each first byte; all that are undecided go on with the same 56 bits, and then others."""
    first = np.repeat(np.arange(256, dtype=np.uint8), 20).tobytes()
    words = (rest << 8).to_bytes(8, "little") * 20
    coins = bernoulli(chance, SIZE, RecordedEntropy(first + words + beyond * 20)).reshape(256, 20)
    assert (coins == coins[:, :1]).all()
    return coins[:, 0]


def law(chance: Fraction, beyond: bytes = b"") -> Fraction:
    """Return the share of 64-bit words that are heads: which first bytes are, and where rests begin not to be."""
    least, most = flipped(chance, 0, beyond), flipped(chance, REST - 1, beyond)
    open_ones = np.flatnonzero(least != most)
    if not open_ones.size:
        return Fraction(int(least.sum()), 256)
    (byte,) = open_ones
    assert least[byte]
    heads, tails = 0, REST - 1
    while tails - heads > 1:
        middle = (heads + tails) // 2
        heads, tails = (middle, tails) if flipped(chance, middle, beyond)[byte] else (heads, middle)
    return Fraction(int(most.sum()) * REST + tails, 1 << 64)


def check_law() -> None:
    """With 64 bits a chance of as many is exact; of another, only the word that holds it is decided later, rightly."""
    for chance in DYADIC:
        assert law(chance) == chance
    for chance in OTHERS:
        low = Fraction(int(chance * (1 << 64)), 1 << 64)
        assert law(chance, beyond=b"\xff" * 8) == low
        assert law(chance, beyond=bytes(8)) == low + Fraction(1, 1 << 64)


def test_the_law_is_exact() -> None:
    check_law()


def off_by(where: int, lower: int, upper: int) -> Callable[[module.RationalChance, int, int], Bracket]:
    """Return brackets with a mistake where they are asked for with so many bits."""
    right = module.RationalChance.bracket

    def bracket(self: module.RationalChance, index: int, bits: int) -> Bracket:
        low, high = right(self, index, bits)
        return Bracket(low + lower, high + upper) if bits == where else Bracket(low, high)

    return bracket


@pytest.mark.parametrize("where", [8, 64])
@pytest.mark.parametrize(("lower", "upper"), [(1, 0), (0, -1), (1, 1), (-1, -1)])
def test_twin_off_by_one_is_caught(monkeypatch: pytest.MonkeyPatch, where: int, lower: int, upper: int) -> None:
    monkeypatch.setattr(module.RationalChance, "bracket", off_by(where, lower, upper))
    with pytest.raises((AssertionError, EntropyFault, ValueError, OverflowError)):
        check_law()


def test_twin_no_refinement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bits alone, the chance rounded down."""

    def coarse(heads: np.ndarray, chance: module.RationalChance, entropy: RecordedEntropy) -> None:
        heads[:] = np.frombuffer(entropy.read(heads.size), dtype=np.uint8) < chance.bracket(0, 8).lower

    monkeypatch.setattr(module, "_flip_alike", coarse)
    with pytest.raises(AssertionError):
        check_law()


def test_twin_nothing_after_64_bits_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazyUniform, "below", lambda self, bracket: False)
    with pytest.raises(AssertionError):
        check_law()


def test_each_coin_takes_a_byte_and_few_take_more() -> None:
    for chance in (Fraction(1, 3), Fraction(1, 2)):
        entropy = LoggedEntropy(StreamEntropy("bytes"))
        bernoulli(chance, 600_000, entropy)
        assert len(entropy.log) == 600_000 if chance == Fraction(1, 2) else len(entropy.log) < 600_000 * 1.05


def test_pieces_are_independent() -> None:
    """Coins of one piece, of the next, and of neighbours, over more than one read."""
    coins = bernoulli(Fraction(2, 7), 3 << 18, StreamEntropy("pieces"))
    for one, other in ((coins[:-1], coins[1:]), (coins[: 1 << 18], coins[1 << 18 : 1 << 19])):
        both = int(np.count_nonzero(one & other))
        assert stats.binomtest(both, one.size, 4 / 49).pvalue > LEAST_P_VALUE


def test_a_short_read_is_a_fault() -> None:
    with pytest.raises(EntropyFault):
        bernoulli(Fraction(1, 3), SIZE, Short())
