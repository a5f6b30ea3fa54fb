"""Uniform integers, and what follows from them alone: draws by integer weights, and random subsets.

Words of 8, 16, 32 or 64 bits are cut to the fewest bits that hold the greatest integer wanted, and those at or above
the bound are dropped. What remains is uniform below the bound, whatever the bound. How many are dropped says nothing
about the values that are kept: given that it is kept, a word is uniform and independent of all others.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, in_chunks
from lapwing.exact.entropy import Entropy, read_exactly

_INT64_BOUND = 1 << 63
# Marks for this many members of the population a wanted one cost less than sorting.
_MARKS_PER_MEMBER = 64
_MARKS_AT_LEAST = 1 << 16


def uniform_integers(bound: int, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent integers, each uniform on 0 … bound − 1, exactly.

    Args:
        bound: Any integer ≥ 1.
        size: How many, ≥ 0.
        entropy: The randomness.

    Returns:
        int64 for a bound up to 2^63, Python integers beyond.
    """
    if bound < 1 or size < 0:
        raise ValueError("the bound must be at least 1 and the size at least 0")
    bits = (bound - 1).bit_length()
    if bits == 0:
        return np.zeros(size, dtype=np.int64)
    return in_chunks(lambda count: _below(bound, bits, count, entropy), size)


def _below(bound: int, bits: int, count: int, entropy: Entropy) -> IntArray:
    """Draw words until `count` of them are below the bound; those left over are independent of them and dropped."""
    draw = _words if bound <= _INT64_BOUND else _wide_words
    if bound == 1 << bits:
        return draw(bits, count, entropy)
    result: IntArray = np.empty(count, dtype=np.int64)
    if bound > _INT64_BOUND:
        result = result.astype(np.object_)
    filled = 0
    while filled < count:
        missing = count - filled
        # At least half of all words are kept; a few more than the mean make a second turn rare.
        trials = -(-missing << bits) // bound
        words = draw(bits, trials if missing == 1 else trials + trials // 64 + 8, entropy)
        kept = words[words < bound][:missing]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


def _words(bits: int, count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return `count` uniform words of up to 63 bits."""
    width = next(width for width in (1, 2, 4, 8) if bits <= 8 * width)
    words = np.frombuffer(read_exactly(entropy, width * count), dtype=f"<u{width}")
    cut: NDArray[np.int64] = (words >> words.dtype.type(8 * width - bits)).astype(np.int64)
    return cut


def _wide_words(bits: int, count: int, entropy: Entropy) -> NDArray[np.object_]:
    """Return `count` uniform Python integers of any number of bits."""
    width = -(-bits // 8)
    data = read_exactly(entropy, width * count)
    result = np.empty(count, dtype=np.object_)
    for i in range(count):
        result[i] = int.from_bytes(data[width * i : width * (i + 1)], "little") >> (8 * width - bits)
    return result


def categorical(weights: Sequence[int] | IntArray, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `size` independent indices with P(i) = weights[i] / (sum of the weights), exactly.

    r is uniform below the sum, and i is the index with s_i ≤ r < s_(i + 1) for the partial sums s of the weights: there
    are weights[i] such r.

    Args:
        weights: Integers ≥ 0 of any size, not all 0.
        size: How many, ≥ 0.
        entropy: The randomness.
    """
    whole = [int(weight) for weight in weights]
    if not whole or min(whole) < 0 or not any(whole):
        raise ValueError("the weights must be at least 0 and not all 0")
    ends = list(accumulate(whole))
    places = uniform_integers(ends[-1], size, entropy)
    dtype = np.int64 if ends[-1] < _INT64_BOUND else np.object_
    return np.searchsorted(np.array(ends, dtype=dtype), places.astype(dtype), side="right").astype(np.int64)


def subset(population: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw a uniformly random subset of `size` members of 0 … population − 1, exactly.

    Members are drawn with repetition, as many as are still missing, until none is missing. Renaming the members
    renames the outcome and changes no probability, so all subsets of the size are equally likely. Of a size above
    half the population, it is the complement that is drawn.

    Args:
        population: From 0 to 2^63.
        size: From 0 to the population.
        entropy: The randomness.

    Returns:
        The members, ascending.
    """
    if not 0 <= size <= population <= _INT64_BOUND:
        raise ValueError("the size must be from 0 to the population, and the population at most 2^63")
    drawn = min(size, population - size)
    if 2 * size <= population and population > _MARKS_PER_MEMBER * size + _MARKS_AT_LEAST:
        return _sorted_members(population, drawn, entropy)
    marks = np.zeros(population, dtype=np.bool_)
    missing = drawn
    while missing:
        marks[uniform_integers(population, missing, entropy).astype(np.int64)] = True
        missing = drawn - int(np.count_nonzero(marks))
    return np.flatnonzero(marks if drawn == size else ~marks).astype(np.int64)


def _sorted_members(population: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw a subset that is small against its population."""
    members = np.empty(0, dtype=np.int64)
    while members.size < size:
        more = uniform_integers(population, size - members.size, entropy).astype(np.int64)
        members = np.unique(np.concatenate((members, more)))
    return members
