"""Every cell and bracket of a table is certified by independent arithmetic; corrupted tables must not pass."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mpf

from lapwing.errors import EntropyFault
from lapwing.exact.bounds import Bracket
from lapwing.exact.tables import Boundaries, IntegerLaw, InversionTable
from lapwing.exact.uniform import LazyUniform
from tests.support.effort import one_in, only
from tests.support.exact.independent import Cumulative, exact
from tests.support.exact.laws import CASES, Case, discrete_normal, geometric, heights, laplace, normal
from tests.support.fixed_entropy import LoggedEntropy, RecordedEntropy, StreamEntropy

DRY = RecordedEntropy(b"")
WALKED = [
    "laplace 1/3",
    "laplace 40",
    "block of 1/7",
    "geometric 1",
    "normal 1",
    "normal 40",
    "discrete normal 1/3",
    "discrete normal 64",
    "heights of 32",
]


@cache
def table_of(name: str) -> InversionTable:
    return InversionTable.of(CASES[name].law)


@cache
def true(case: Case, outcome: int) -> mpf:
    """P(X ≤ outcome), to the usual digits."""
    return case.cumulative(outcome)


def floors(case: Case, table: InversionTable) -> list[int]:
    """Return ⌊2^64 F⌋ at each boundary, from the independent formula."""
    return [int(exact.floor(true(case, table.first + j) * 2**64)) for j in range(table.boundaries)]


def ceils(case: Case, table: InversionTable) -> list[int]:
    return [int(exact.ceil(true(case, table.first + j) * 2**64)) for j in range(table.boundaries)]


def certify(table: InversionTable, case: Case) -> None:
    """Check every bracket and every decided cell against the independent distribution function."""
    boundaries, ceilings = floors(case, table), ceils(case, table)
    # Either tail that the table leaves out is below 2^-64, and the table does not claim to decide it.
    assert boundaries[0] == 0
    assert boundaries[-1] >= 2**64 - 1
    # Ends at 2^64 are left out; the others must be on the right side of the truth, and near it.
    for j, end in enumerate(table.possible):
        assert 0 <= boundaries[j] - int(end) <= 2
    for j, end in enumerate(table.certain):
        assert 0 <= int(end) - ceilings[j] <= 2
    assert {boundary >= 2**64 - 2 for boundary in boundaries[len(table.possible) :]} <= {True}
    assert {boundary >= 2**64 - 2 for boundary in boundaries[len(table.certain) :]} <= {True}
    for cell, position in enumerate(table.guide.tolist()):
        if position:
            assert 0 < position < table.boundaries
            assert ceilings[position - 1] <= cell << 48
            assert boundaries[position] >= (cell + 1) << 48
    assert np.count_nonzero(table.guide == 0) <= table.boundaries


@pytest.mark.parametrize("name", one_in(20, CASES))
def test_brackets_and_cells_are_certified(name: str) -> None:
    certify(table_of(name), CASES[name])


@pytest.mark.parametrize("name", one_in(14, CASES))
def test_fast_brackets_agree_with_slow_ones(name: str) -> None:
    """The recurrences of `boundaries` and the formulas of `cumulative` are two roads to one number."""
    law = CASES[name].law
    first, brackets = law.boundaries()
    for j in range(0, len(brackets), max(1, len(brackets) // 20)):
        lower, upper = law.cumulative(first + j, 64)
        assert brackets[j].lower <= upper
        assert lower <= brackets[j].upper
        fine = law.cumulative(first + j, 300)
        assert fine.upper - fine.lower <= 4
        assert fine.lower - 2 <= case_value(CASES[name], first + j, 300) <= fine.upper + 2


def case_value(case: Case, outcome: int, bits: int) -> int:
    return int(exact.floor(true(case, outcome) * 2**bits))


@pytest.mark.parametrize("name", one_in(28, CASES))
def test_the_guide_decides_the_right_measure(name: str) -> None:
    """Kolmogorov: what the cells have given an outcome so far, and could still give it, brackets its probability."""
    case, table = CASES[name], table_of(name)
    cells = Counter(table.guide.tolist())
    undecided = cells.pop(0)
    for position, count in cells.items():
        outcome = table.first + position
        probability = (true(case, outcome) - true(case, outcome - 1)) * 65536
        assert count <= probability <= count + min(undecided, 2)
    assert sum(cells.values()) + undecided == 65536


@pytest.mark.parametrize("name", one_in(2, WALKED))
@pytest.mark.parametrize("end", [b"\x00", b"\xff"])
def test_every_word_draws_the_inverse(name: str, end: bytes) -> None:
    """All 65,536 first words, followed by the lowest or the highest further bits: X = min {k : U < F(k)}."""
    case, table = CASES[name], table_of(name)
    words = np.arange(65536, dtype="<u2")
    undecided = int(np.count_nonzero(table.guide == 0))
    entropy = RecordedEntropy(words.tobytes() + end * (8 * undecided), then=StreamEntropy(name))
    outcomes = table.draw(65536, entropy)
    prefixes = (words.astype(np.uint64) << np.uint64(48)) + np.uint64(2**48 - 1 if end == b"\xff" else 0)
    boundaries = np.array([min(boundary, 2**64 - 1) for boundary in floors(case, table)], dtype=np.uint64)
    positions = outcomes[1:-1] - table.first
    assert (boundaries[positions - 1] <= prefixes[1:-1]).all()
    assert (prefixes[1:-1] <= boundaries[positions]).all()


@pytest.mark.parametrize(
    "case",
    only([1], [laplace(Fraction(1, 2)), laplace(Fraction(2)), normal(Fraction(1)), discrete_normal(Fraction(1))]),
)
def test_enumerating_all_short_bit_strings(case: Case) -> None:
    """Give the search every string of b bits and no more: what it decides is right, and what it leaves shrinks."""
    left = []
    for bits in (4, 8, 12):
        decided: Counter[int] = Counter()
        for prefix in range(1 << bits):
            try:
                decided[LazyUniform(prefix=prefix, bits=bits, entropy=DRY).quantile(case.law.cumulative)] += 1
            except EntropyFault:
                continue
        undecided = (1 << bits) - decided.total()
        left.append(Fraction(undecided, 1 << bits))
        for outcome in range(-8, 9):
            probability = (true(case, outcome) - true(case, outcome - 1)) * 2**bits
            assert decided[outcome] <= probability <= decided[outcome] + 2
    assert left[0] > left[1] > left[2]
    assert left[2] < Fraction(1, 50)


def recorded(bits_of_u: int, bits: int) -> bytes:
    """Return the bytes that make a small draw read these bits as U: 64 at a time."""
    words = [(bits_of_u >> start) & (2**64 - 1) for start in range(bits - 64, -1, -64)]
    return b"".join(word.to_bytes(8, "little") for word in words)


def uniform_of(log: bytes) -> tuple[int, int]:
    """Return the prefix and number of bits of U that a single draw read."""
    prefix = 0
    for start in range(0, len(log), 8):
        prefix = prefix << 64 | int.from_bytes(log[start : start + 8], "little")
    return prefix, 8 * len(log)


def draw_one(table: InversionTable, start: bytes, label: str) -> tuple[int, int, int]:
    entropy, again = (LoggedEntropy(RecordedEntropy(start, then=StreamEntropy(label))) for _ in range(2))
    outcome = int(table.draw(1, entropy)[0])
    assert (table.draw_one(again), again.log) == (outcome, entropy.log)
    return outcome, *uniform_of(bytes(entropy.log))


def is_inverse(cumulative: Cumulative, outcome: int, prefix: int, bits: int) -> bool:
    """Check that the whole interval of U that was revealed belongs to the outcome."""
    with exact.workprec(bits + 128):
        unit = exact.mpf(2) ** bits
        return bool(cumulative(outcome - 1) * unit <= prefix and prefix + 1 <= cumulative(outcome) * unit)


def forced(case: Case, table: InversionTable) -> Iterator[bytes]:
    """Yield starts of U that need an escalation: long runs of equal bits, and 192 bits of a boundary."""
    for length in (8, 16, 32):
        yield b"\x00" * length
        yield b"\xff" * length
    for j in range(1, table.boundaries - 1, table.boundaries // 4 + 1):
        yield recorded(int(exact.floor(case.cumulative(table.first + j) * 2**192)), 192)


@pytest.mark.parametrize("name", only([0], [name for name in CASES if name != "discrete normal 64"]))
def test_forced_escalation_is_the_exact_inverse(name: str) -> None:
    case, table = CASES[name], table_of(name)
    for start in forced(case, table):
        outcome, prefix, bits = draw_one(table, start, name)
        assert is_inverse(case.cumulative, outcome, prefix, bits)
        assert not is_inverse(case.cumulative, outcome + 1, prefix, bits)


@pytest.mark.parametrize("length", [96, 1000, pytest.param(5000, marks=pytest.mark.long)])
def test_the_tail_has_no_end(length: int) -> None:
    """Zeros without end lead ever deeper: the outcome of 2^-n is near −scale · n · ln 2."""
    outcome, _, bits = draw_one(InversionTable.of(laplace(Fraction(1)).law), bytes(length), "tail")
    assert -0.6932 * bits - 3 < outcome < -0.6931 * 8 * length + 3


def test_twin_a_wrong_scale_is_caught() -> None:
    with pytest.raises(AssertionError):
        certify(InversionTable.of(laplace(Fraction(99, 100)).law), laplace(Fraction(1)))
    with pytest.raises(AssertionError):
        certify(InversionTable.of(normal(Fraction(99, 100)).law), normal(Fraction(1)))
    with pytest.raises(AssertionError):
        certify(InversionTable.of(geometric(Fraction(99, 100)).law), geometric(Fraction(1)))
    with pytest.raises(AssertionError):
        certify(InversionTable.of(discrete_normal(Fraction(99, 100)).law), discrete_normal(Fraction(1)))


def test_twin_the_weights_of_another_zero_are_caught() -> None:
    with pytest.raises(AssertionError):
        certify(InversionTable.of(heights(Fraction(1, 5000)).law), discrete_normal(Fraction(2500)))


def test_twin_an_off_by_one_guide_is_caught() -> None:
    case = laplace(Fraction(3))
    table = InversionTable.of(case.law)
    with pytest.raises(AssertionError):
        certify(replace(table, guide=np.roll(table.guide, 1)), case)
    with pytest.raises(AssertionError):
        certify(replace(table, first=table.first + 1), case)


@dataclass(frozen=True)
class Tampered:
    """A law whose table claims something else than its formula."""

    law: IntegerLaw
    brackets: Boundaries

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        return self.law.cumulative(outcome, bits)

    def boundaries(self) -> Boundaries:
        return self.brackets


def test_twin_a_lumped_tail_is_caught() -> None:
    """All beyond the table's last outcome is given to that outcome."""
    case = laplace(Fraction(3))
    first, brackets = case.law.boundaries()
    cut = next(j for j, bracket in enumerate(brackets) if bracket.upper > 2**64 - 2**50)
    lumped = [*brackets[:cut], Bracket(2**64, 2**64)]
    with pytest.raises(AssertionError):
        certify(InversionTable.of(Tampered(case.law, Boundaries(first, lumped))), case)


@pytest.mark.parametrize(("lower", "upper"), [(3, 3), (-3, -3)])
def test_twin_a_bracket_beside_the_truth_is_caught(lower: int, upper: int) -> None:
    case = normal(Fraction(3))
    first, brackets = case.law.boundaries()
    middle = len(brackets) // 2
    brackets[middle] = Bracket(brackets[middle].lower + lower, brackets[middle].upper + upper)
    with pytest.raises(AssertionError):
        certify(InversionTable.of(Tampered(case.law, Boundaries(first, brackets))), case)


def test_a_small_draw_does_the_same_work_whatever_is_drawn() -> None:
    """Each number takes eight bytes, the middle and the far tail alike, and gives what the guide gives."""
    table = InversionTable.of(laplace(Fraction(40)).law)
    near, far = (RecordedEntropy(start * 8 * 100) for start in (b"\x80", b"\x01"))
    assert set(table.draw(100, near).tolist()) == {0}
    assert max(table.draw(100, far).tolist()) < -190
    assert near.unread == far.unread == 0


def test_small_and_large_draws_have_the_same_inverse() -> None:
    table = InversionTable.of(discrete_normal(Fraction(1000)).law)
    prefixes = np.frombuffer(StreamEntropy("both").read(8 * 50_000), dtype="<u8")
    words = (prefixes >> np.uint64(48)).astype("<u2")
    undecided = table.guide[words] == 0
    large = table.draw(50_000, RecordedEntropy(words.tobytes() + (prefixes[undecided] << np.uint64(16)).tobytes()))
    small = [table.draw_one(RecordedEntropy(prefix.tobytes())) for prefix in prefixes[:5000]]
    assert large[:5000].tolist() == small
    assert large[5000:6000].tolist() == table.draw(1000, RecordedEntropy(prefixes[5000:6000].tobytes())).tolist()


def test_a_table_does_not_take_too_many_outcomes() -> None:
    law = laplace(Fraction(1)).law
    with pytest.raises(ValueError, match="boundaries"):
        InversionTable.of(Tampered(law, Boundaries(0, [Bracket(0, 1)])))
    with pytest.raises(ValueError, match="boundaries"):
        InversionTable.of(Tampered(law, Boundaries(0, [Bracket(0, 1)] * (1 << 15))))
