"""Uniform integers, draws by weight and subsets: every word accounted for, and laws that draws fit."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.errors import EntropyFault
from lapwing.exact import integers
from lapwing.exact.integers import categorical, subset, uniform_integers
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

DRAWS = 1_000_000


class Short:
    """Gives one byte less than asked for."""

    def read(self, size: int) -> bytes:
        return bytes(max(size - 1, 0))


def fit(draws: NDArray[np.int64], law: list[float]) -> float:
    return p_value(np.bincount(draws, minlength=len(law)), np.array(law))


@pytest.mark.parametrize("bound", one_in(4, [2, 3, 10, 255, 256, 257, 1000]))
def test_small_bounds_fit(bound: int) -> None:
    draws = uniform_integers(bound, DRAWS, StreamEntropy(f"uniform {bound}")).astype(np.int64)
    assert fit(draws, [1 / bound] * bound) > LEAST_P_VALUE


@pytest.mark.parametrize("bound", one_in(5, [(1 << 16) + 1, 1 << 31, (1 << 32) + 5, (1 << 62) + (1 << 61), 1 << 63]))
def test_large_bounds_fit(bound: int) -> None:
    """Sixteen equal parts of the range, and the last four bits."""
    draws = uniform_integers(bound, DRAWS // 4, StreamEntropy(f"uniform {bound}"))
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert draws.max() < bound
    cells = np.array([16 * x // bound for x in draws.tolist()])
    assert fit(cells, [1 / 16] * 16) > LEAST_P_VALUE
    assert fit(draws.astype(np.int64) & 15, [1 / 16] * 16) > LEAST_P_VALUE


@pytest.mark.parametrize("bound", [(1 << 63) + 1, 1 << 64, 10**30, 1 << 200])
def test_bounds_beyond_int64_give_python_integers(bound: int) -> None:
    draws = uniform_integers(bound, 20_000, StreamEntropy(f"uniform {bound}"))
    assert draws.dtype == object
    assert {type(x) for x in draws.tolist()} == {int}
    assert min(draws.tolist()) >= 0
    assert max(draws.tolist()) < bound
    assert fit(np.array([16 * x // bound for x in draws.tolist()]), [1 / 16] * 16) > LEAST_P_VALUE


def each_once(draw: Callable[[bytes], NDArray[np.int64]], bound: int) -> None:
    """Of all 256 bytes, those that are kept give each integer below the bound equally often."""
    counts = np.bincount(draw(bytes(range(256))), minlength=bound)
    assert counts.size == bound
    assert counts.min() == counts.max()


def with_words(words: bytes, bound: int) -> NDArray[np.int64]:
    bits = (bound - 1).bit_length()
    count = bound << (8 - bits)
    # Bytes of ones are at or above any bound that is not a power of two, so more of them change nothing.
    return uniform_integers(bound, count, RecordedEntropy(words + b"\xff" * 64)).astype(np.int64)


@pytest.mark.parametrize("bound", [200, 129, 255, 100, 5, 3])
def test_every_word_counts_the_same(bound: int) -> None:
    each_once(lambda words: with_words(words, bound), bound)


def test_twin_the_remainder_is_biased() -> None:
    with pytest.raises(AssertionError):
        each_once(lambda words: np.frombuffer(words, dtype=np.uint8).astype(np.int64) % 200, 200)


def test_known_answers() -> None:
    """Recorded from this code: a change of how bits become numbers must be meant."""
    assert uniform_integers(10, 8, StreamEntropy("known")).tolist() == KNOWN["ten"]
    assert uniform_integers(10**30, 2, StreamEntropy("known")).tolist() == KNOWN["wide"]
    assert categorical([1, 2, 0, 3], 8, StreamEntropy("known")).tolist() == KNOWN["weights"]
    assert subset(20, 6, StreamEntropy("known")).tolist() == KNOWN["subset"]


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [0, 5, 0, 1, 0], [10**30, 2 * 10**30, 0], [1 << 62, 1 << 62]])
def test_draws_by_weight_fit(weights: list[int]) -> None:
    draws = categorical(weights, DRAWS // 10, StreamEntropy(f"weights {weights}"))
    possible = [i for i, weight in enumerate(weights) if weight]
    assert set(draws.tolist()) <= set(possible)
    if len(possible) > 1:
        counts = np.array([np.count_nonzero(draws == i) for i in possible])
        assert p_value(counts, np.array([weights[i] / sum(weights) for i in possible])) > LEAST_P_VALUE


def test_twin_the_other_side_of_a_boundary_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    search = np.searchsorted
    monkeypatch.setattr(np, "searchsorted", lambda a, v, side: search(a, v, side="left"))
    with pytest.raises(AssertionError):
        test_draws_by_weight_fit([1, 2, 3])


def check_subsets(draw: Callable[[StreamEntropy], NDArray[np.int64]], population: int, size: int) -> None:
    entropy = StreamEntropy(f"subset {population} {size}")
    counts = Counter(tuple(draw(entropy).tolist()) for _ in range(20_000))
    every = list(combinations(range(population), size))
    assert counts.keys() <= set(every)
    assert p_value(np.array([counts[s] for s in every]), np.full(len(every), 1 / len(every))) > LEAST_P_VALUE


@pytest.mark.parametrize(("population", "size"), only([1], [(5, 2), (5, 3), (4, 1), (6, 5)], many=True))
def test_all_subsets_are_equally_likely(population: int, size: int) -> None:
    check_subsets(lambda entropy: subset(population, size, entropy), population, size)


@pytest.mark.long
def test_all_small_subsets_of_a_large_population_are_equally_likely() -> None:
    check_subsets(lambda entropy: integers._sorted_members(5, 2, entropy), 5, 2)


def test_the_last_member_of_the_largest_population_is_drawn() -> None:
    last = RecordedEntropy(b"\xff" * 8, StreamEntropy("another"))
    assert subset(1 << 63, 1, last).tolist() == [(1 << 63) - 1]


@pytest.mark.long
def test_twin_a_window_is_no_subset() -> None:
    """Neighbours are each as likely as they should be, but not together."""
    with pytest.raises(AssertionError):
        check_subsets(lambda entropy: np.sort(np.add(uniform_integers(5, 1, entropy), [0, 1]) % 5), 5, 2)


@pytest.mark.parametrize(
    ("population", "size"), [(0, 0), (1, 1), (10, 0), (10, 10), (100_000, 70_000), (10**12, 1000), (1 << 63, 3)]
)
def test_subsets_are_ascending_and_of_the_size(population: int, size: int) -> None:
    members = subset(population, size, StreamEntropy("sizes"))
    assert members.dtype == np.int64
    assert members.size == size
    assert (np.diff(members) > 0).all()
    if size:
        assert members[0] >= 0
        assert members[-1] < population


def test_bad_arguments() -> None:
    entropy = RecordedEntropy(b"")
    for bound, size in [(0, 1), (-1, 1), (5, -1)]:
        with pytest.raises(ValueError, match="bound"):
            uniform_integers(bound, size, entropy)
    for weights in ([], [0, 0], [1, -1]):
        with pytest.raises(ValueError, match="weights"):
            categorical(weights, 1, entropy)
    for population, size in [(3, 4), (3, -1), ((1 << 63) + 1, 1)]:
        with pytest.raises(ValueError, match="size"):
            subset(population, size, entropy)


def test_short_reads_are_faults() -> None:
    for bound in (2, 10, 10**30):
        with pytest.raises(EntropyFault):
            uniform_integers(bound, 5, Short())
    with pytest.raises(EntropyFault):
        subset(10, 4, Short())


def test_nothing_is_read_where_nothing_is_drawn() -> None:
    assert uniform_integers(1, 3, RecordedEntropy(b"")).tolist() == [0, 0, 0]
    assert uniform_integers(7, 0, RecordedEntropy(b"")).size == 0


KNOWN: dict[str, list[int]] = {
    "ten": [2, 7, 8, 3, 9, 9, 4, 9],
    "wide": [716218371264840254895961574346, 654401268285138063894063111983],
    "weights": [3, 3, 1, 3, 3, 3, 3, 1],
    "subset": [5, 6, 15, 17, 18, 19],
}
