"""Fast simulations: sets are drawn without a favourite, counts are right however many there are, memory is bounded."""

import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from lapwing.local import BinaryResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding
from lapwing.local.frequencies import subset
from lapwing.local.report_formats import ones_by_column
from lapwing.local.simulation.blocks import simulate_counts
from tests.support.effort import only, some
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy

ROWS = 60_000


class Scripted:
    """Samplers that deal marks for the others of one row, and then others, from a script; in new names if given."""

    def __init__(self, kept: bool, marks: list[bool], draws: Iterator[int], true: int, names: tuple[int, ...]) -> None:
        self.kept, self.marks, self.draws, self.true, self.names = kept, marks, draws, true, names

    def bernoulli(self, probability: Fraction, size: int, entropy: Any) -> np.ndarray:
        if size == 1:
            return np.array([self.kept])
        cells = np.zeros(size, dtype=np.bool_)
        for other, mark in enumerate(self.marks):
            place = self.names[other]
            cells[place + (place >= self.true)] = mark
        return cells

    def uniform_integers(self, bound: int, size: int, entropy: Any) -> np.ndarray:
        assert bound == len(self.names)
        return np.array([self.names[next(self.draws)] for _ in range(size)], dtype=np.int64)


def drawn(mechanism: SubsetSelection, true: int, seed: int, names: tuple[int, ...]) -> tuple[set[int], bool]:
    """Return the others that are drawn for a script of a number, and whether the true value is there."""
    generator = np.random.default_rng(seed)
    kept, marks = bool(generator.integers(2)), generator.integers(0, 2, mechanism.categories - 1).astype(bool).tolist()
    script = Scripted(kept, marks, iter(generator.integers(0, mechanism.categories - 1, 4000).tolist()), true, names)
    with patch.object(subset, "samplers", script):
        (members,) = mechanism.randomize(np.array([true])).tolist()
    assert members == sorted(set(members))
    assert len(members) == mechanism.size
    assert (true in members) is kept
    return {member - (member > true) for member in members if member != true}, kept


def check_no_favourite() -> None:
    """If the others trade names in all that is drawn, they trade them in the set: the proof of `SubsetSelection`."""
    for k, size in ((5, 1), (5, 2), (5, 4), (6, 3)):
        mechanism = SubsetSelection.for_epsilon(1, k, size)
        same = tuple(range(k - 1))
        for seed in some(4, range(12)):
            for true in (0, k // 2, k - 1):
                plain, kept = drawn(mechanism, true, seed, same)
                for names in list(permutations(same))[:: 5 if k == 6 else 1]:
                    renamed, too = drawn(mechanism, true, seed, names)
                    assert (renamed, too) == ({names[other] for other in plain}, kept)


@pytest.mark.long
def test_no_other_is_a_favourite() -> None:
    check_no_favourite()


def check_sets(k: int, size: int) -> None:
    """Sets fit the exact matrix, for values at both ends and within."""
    mechanism = SubsetSelection.for_epsilon(1, k, size)
    matrix = mechanism.transition_matrix()
    numbers = {members: i for i, members in enumerate(matrix.reports)}
    for true in (0, k // 2, k - 1):
        reports = mechanism.randomize(np.full(ROWS, true), StreamEntropy(f"{k} {size} {true}"))
        seen = np.bincount([numbers[tuple(row)] for row in reports.tolist()], minlength=len(numbers))
        assert p_value(seen, np.array(matrix.rows[true], dtype=float)) > LEAST_P_VALUE


@pytest.mark.parametrize(("k", "size"), only([0], [(2, 1), (4, 3), (8, 1), (8, 2), (8, 7)], many=True))
def test_sets_fit_their_law(k: int, size: int) -> None:
    check_sets(k, size)


class TestTwinsOfSets:
    """Mistakes in how a set is completed: each is found by the exact check, and by the fit."""

    def caught(self, monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., None]) -> None:
        monkeypatch.setattr(subset, "_complete", wrong)
        with pytest.raises(AssertionError):
            check_no_favourite()
        with pytest.raises(AssertionError):
            check_sets(8, 2)

    @pytest.mark.long
    def test_the_next_place_if_one_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def next_place(marks: Any, starts: Any, given: Any, k: int, wanted: Any, entropy: Any) -> None:
            drawing: Any = vars(subset)["samplers"]
            for start, true, number in zip(starts.tolist(), given.tolist(), wanted.tolist(), strict=True):
                row = marks[start : start + k]
                while (missing := number - int(row.sum())) != 0:
                    place = int(drawing.uniform_integers(k - 1, 1, entropy)[0])
                    place += place >= true
                    while bool(row[place]) is (missing > 0) or place == true:
                        place = (place + 1) % k
                    row[place] = missing > 0

        self.caught(monkeypatch, next_place)

    def test_the_first_places(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def first_places(marks: Any, starts: Any, given: Any, k: int, wanted: Any, entropy: Any) -> None:
            for start, true, number in zip(starts.tolist(), given.tolist(), wanted.tolist(), strict=True):
                row = marks[start : start + k]
                while (missing := number - int(row.sum())) != 0:
                    row[next(i for i in range(k) if i != true and bool(row[i]) is (missing < 0))] = missing > 0

        self.caught(monkeypatch, first_places)


@pytest.mark.parametrize("rows", [0, 1, 39, 40, 255, 256, 11_000])
@pytest.mark.parametrize("width", [2, 100, 5000])
def test_set_bits_are_counted(rows: int, width: int) -> None:
    """Bytes never overflow: neither where all bits are set, nor with rows left over."""
    if rows * width > 1 << 22:
        rows = 600
    mechanism = UnaryEncoding.optimised(1, width)
    for bits in (np.ones((rows, width), dtype=bool), np.random.default_rng(1).random((rows, width)) < 0.4):
        assert mechanism.support_counts(bits).tolist() == [np.count_nonzero(column) for column in bits.T]
        assert mechanism.support_counts(bits[::2]).tolist() == [np.count_nonzero(column) for column in bits[::2].T]


def test_twin_a_byte_too_far_is_caught() -> None:
    bits = np.ones((11_000, 100), dtype=bool)
    assert ones_by_column(bits).tolist() == [11_000] * 100
    assert ones_by_column(bits, together=256).tolist() != [11_000] * 100


EVERY: list[Any] = [
    BinaryResponse.for_epsilon(1),
    KaryResponse.for_epsilon(1, 7),
    SubsetSelection.for_epsilon(1, 7),
    UnaryEncoding.optimised(1, 7),
    LocalHashing.for_epsilon(1, 7),
]
CERTAIN: dict[str, Any] = {
    "binary": BinaryResponse.for_epsilon(32),
    "k-ary": KaryResponse.for_epsilon(32, 7),
    "subset": SubsetSelection.for_epsilon(32, 7, 1),
}
"""With ε = 32 these report the truth, but for a chance of 1e-9 in all."""


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: mechanism.name)
def test_counts_of_blocks_add_up(mechanism: Any) -> None:
    """Every respondent is in one block, and with the value that is theirs."""
    values = np.arange(5000) ** 2 % mechanism.categories
    if mechanism.name in CERTAIN:
        counts = simulate_counts(CERTAIN[mechanism.name], values, StreamEntropy("certain"), at_once=999)
        assert counts.tolist() == np.bincount(values, minlength=mechanism.categories).tolist()
    counts = simulate_counts(mechanism, values, StreamEntropy(mechanism.name), at_once=999)
    for value, seen in enumerate(counts.tolist()):
        share = float(np.mean(values == value))
        p, q = map(float, mechanism.rates(value))
        assert abs(seen - 5000 * (share * p + (1 - share) * q)) < 6 * np.sqrt(5000 / 4)


def test_nobody_says_nothing() -> None:
    for mechanism in EVERY:
        assert simulate_counts(mechanism, np.array([], dtype=np.int64)).tolist() == [0] * mechanism.categories
        assert len(mechanism.randomize(np.array([], dtype=np.int64))) == 0


def peak(work: Callable[[], object]) -> int:
    """Return how many bytes are held at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize("name", only([1], ["unary", "subset"]))
def test_memory_does_not_grow_with_the_respondents(name: str) -> None:
    """Of 8,000 reports of 4,000 values, 32 million cells, no more is held than a block."""
    made: dict[str, Any] = {
        "unary": UnaryEncoding.optimised(1, 4000), "subset": SubsetSelection.for_epsilon(1, 4000)
    }  # fmt: skip
    mechanism = made[name]
    values = np.arange(8000) % 4000
    held = peak(lambda: simulate_counts(mechanism, values, StreamEntropy("memory")))
    at_once = peak(lambda: mechanism.support_counts(mechanism.randomize(values, StreamEntropy("all"))))
    assert held < min(30e6, at_once)
    assert at_once > 32e6
