"""The forms of reports: whole numbers, rows of them, and bits; how they are read, checked, packed and counted.

Unary encoding, RAPPOR and the noisy bits that devices keep have a bit for each value, and support those whose bit is 1.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, floor, log, prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, few

RARE: Final = 1e-9
"""An honest report is rejected with a smaller probability than this."""
MOST_OF_A_BYTE: Final = 255
"""Bits of which the sum fits in a byte."""
_SIDE_BY_SIDE: Final = 1 << 12


# Whole numbers.


def number_below(said: object, bound: int, name: str) -> int:
    """Return an integer from 0 to below a bound.

    Raises:
        ValueError: For anything else, a bool included.
    """
    if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said < bound:
        raise ValueError(f"{name} must be a whole number from 0 to {bound - 1}")
    return said


def list_of(said: object, length: int, form: str) -> Sequence[object]:
    """Return a list of so many parts.

    Raises:
        ValueError: For anything else.
    """
    if not isinstance(said, list) or len(said) != length:
        raise ValueError(f"r must be {form}")
    return said


def rows(said: Sequence[tuple[int, ...]], width: int) -> Reports:
    """Return reports of so many numbers each as the rows of an array."""
    return np.array(said, dtype=np.int64).reshape(len(said), width)


def checked_rows(reports: Reports, bounds: Sequence[int], form: str) -> NDArray[np.int64]:
    """Return reports that are rows of numbers, each below the bound of its column.

    Raises:
        InvalidParameter: If they are not.
    """
    if reports.ndim != 2 or reports.shape[1] != len(bounds):
        raise InvalidParameter(f"The reports must be rows of {form}.")
    for column, bound in enumerate(bounds):
        codes(reports[:, column], bound)
    return reports.astype(np.int64)


def index_bytes(count: int) -> int:
    """Return how many bytes hold a number below a count."""
    return max(1, ((count - 1).bit_length() + 7) // 8)


# Bits.


def read_bits(digits: object, count: int, weights: range, name: str = "the bits of r", last: str = "one") -> bytes:
    """Return packed bits from hexadecimal digits.

    Args:
        weights: How many of them may be 1.
        name: What messages call the digits, and the last bit.
        last: What messages call the digits, and the last bit.

    Raises:
        ValueError: If no honest device sends such.
    """
    size = -(-count // 8)
    if not isinstance(digits, str) or len(digits) != 2 * size or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"{name} must be {2 * size} digits 0-9, a-f")
    bits = bytes.fromhex(digits)
    number = int.from_bytes(bits, "little")
    if number >> count:
        raise ValueError(f"r has bits beyond the last {last}")
    if number.bit_count() not in weights:
        raise ValueError(f"r has {number.bit_count()} bits set; honest ones have {weights.start} to {weights.stop - 1}")
    return bits


@lru_cache(maxsize=1 << 8)
def honest_weights(rates: Rates, count: int, own: range = range(1, 2)) -> range:
    """Return the numbers of ones that an honest report of so many bits has, but for a probability of 1e-9.

    Bernstein's inequality for independent bits of variance V in all: the number is t or more from its mean with
    probability at most 2e^(−L), for t = L/3 + √(L²/9 + 2VL).

    Args:
        own: How many of the bits may be those of the answer.
    """
    p, q = rates
    means = [float(ones * p + (count - ones) * q) for ones in (own[0], own[-1])]
    variance = max(float(ones * p * (1 - p) + (count - ones) * q * (1 - q)) for ones in (own[0], own[-1]))
    level = log(2 / RARE)
    reach = level / 3 + sqrt(level**2 / 9 + 2 * variance * level)
    return range(max(0, floor(min(means) - reach)), min(count, ceil(max(means) + reach)) + 1)


def unpacked_bits(said: Sequence[bytes], count: int) -> NDArray[np.bool_]:
    """Return packed bits, so many each, as the rows of an array."""
    packed = np.frombuffer(b"".join(said), dtype=np.uint8).reshape(len(said), -(-count // 8))
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").astype(np.bool_)


def checked_bits(reports: Reports, count: int) -> NDArray[np.bool_]:
    """Return reports that are rows of so many bits.

    Raises:
        InvalidParameter: If they are not.
    """
    if reports.ndim != 2 or reports.shape[1] != count or reports.dtype != np.bool_:
        raise InvalidParameter(f"The reports must be rows of {count} bits (bool).")
    return reports


def random_bits(values: IntArray, count: int, rates: Rates, entropy: Entropy) -> NDArray[np.bool_]:
    """Return a row of bits for each value: its own is 1 with probability p, the others with q."""
    own, (p, q) = codes(values, count), rates
    bits = samplers.bernoulli(q, own.size * count, entropy).reshape(own.size, count)
    bits[np.arange(own.size), own] = samplers.bernoulli(p, own.size, entropy)
    return bits


def law_of_bits(pattern: int, bits: int, rates: Rates) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every row of bits: a 1 has probability p where the pattern has one, and q elsewhere."""
    ones = [rates.p if pattern >> bit & 1 else rates.q for bit in range(bits)]
    return {
        row: prod((one if bit else 1 - one for bit, one in zip(row, ones, strict=True)), start=Fraction(1))
        for row in product((0, 1), repeat=bits)
    }


def bit_transitions(count: int, rates: Rates) -> Transitions:
    """Return the law of all bits for each value, of at most eight."""
    laws = [law_of_bits(1 << value, count, rates) for value in few(count)]
    return Transitions(reports=tuple(laws[0]), rows=tuple(tuple(law.values()) for law in laws))


def ones_by_column(bits: NDArray[np.bool_], together: int = MOST_OF_A_BYTE) -> NDArray[np.int64]:
    """Return how many bits of each column are 1; short rows are put side by side, as long ones are summed faster.

    Args:
        together: Rows that are summed in bytes, at most `MOST_OF_A_BYTE`.
    """
    width = bits.shape[1]
    beside = max(1, _SIDE_BY_SIDE // width)
    most = len(bits) - len(bits) % beside
    sums: NDArray[np.int64] = _bytewise(bits[:most].reshape(most // beside, beside * width), together)
    sums = sums.reshape(beside, width).sum(axis=0)
    return sums + _bytewise(bits[most:], together)


def _bytewise(bits: NDArray[np.bool_], together: int) -> NDArray[np.int64]:
    """Return the sums of the columns; those of so many rows fit in a byte."""
    sums = np.zeros(bits.shape[1], dtype=np.int64)
    for start in range(0, len(bits), together):
        sums += np.add.reduce(bits[start : start + together].view(np.uint8), axis=0, dtype=np.uint8)
    return sums
