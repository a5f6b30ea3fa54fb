"""Clipped sums with noise: exact lengths, parts that add up, and the laws of the noise."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapwing as lw
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.learn.noisy_sums import Releases, clip, root_up
from lapwing.learn.unit_rows import Integers, UnitRows

VECTORS = st.lists(st.lists(st.integers(-(1 << 27), 1 << 27), min_size=3, max_size=3), min_size=1, max_size=5)


def square(vector: Integers) -> int:
    return sum(int(entry) ** 2 for entry in vector)


@given(vectors=VECTORS, bound=st.integers(1, 1 << 28))
def test_no_vector_is_longer_than_the_bound(vectors: list[list[int]], bound: int) -> None:
    rows = np.array(vectors, dtype=np.int64)
    clipped = clip(rows, bound)
    for before, after in zip(rows, clipped, strict=True):
        assert square(after) <= bound**2
        assert (np.abs(after) <= np.abs(before)).all()
        assert (after * before >= 0).all()
        if square(before) <= bound**2:
            assert (after == before).all()


@given(vectors=VECTORS)
def test_lengths_are_rounded_up_exactly(vectors: list[list[int]]) -> None:
    rows = np.array(vectors, dtype=np.int64)
    for row, length in zip(rows, root_up(np.square(rows).sum(axis=1)).tolist(), strict=True):
        assert (length - 1) ** 2 < square(row) <= length**2 or (length == 0 and square(row) == 0)


@pytest.mark.parametrize("length", [2, 3, 94906267, (1 << 31) - 1])
def test_squares_and_their_neighbours(length: int) -> None:
    """A double cannot tell the root of n² from that of n² + 1 above 2⁵³."""
    for more, wanted in ((0, length), (1, length + 1), (-1, length)):
        squares = length**2 + more
        rows = np.zeros((1, 4), dtype=np.int64)
        left = squares
        for place in range(4):  # a sum of four squares, taken greedily, which may fall short: then it is another number
            rows[0, place] = isqrt(left)
            left -= isqrt(left) ** 2
        if left == 0:
            assert root_up(np.square(rows).sum(axis=1)).tolist() == [wanted]


def test_rounding_to_nearest_would_be_too_long() -> None:
    """The planted bug: the same vectors, rounded to nearest."""
    rows = np.random.default_rng(3).integers(-1000, 1000, (200, 5))
    nearest = np.rint(rows * (50 / np.sqrt(np.square(rows).sum(axis=1)))[:, None]).astype(np.int64)
    assert any(square(row) > 50**2 for row in nearest)
    assert all(square(row) <= 50**2 for row in clip(rows, 50))


def units(rows: list[list[int]], starts: list[int]) -> tuple[UnitRows, Integers]:
    table = np.array(rows, dtype=np.int64)
    return UnitRows(features=table, target=table[:, 0], starts=np.array(starts, dtype=np.int64)), table


def releases(times: int = 4, part: Fraction = Fraction(1, 4), *, replaced: bool = False) -> Releases:
    return Releases(lw.GaussianDP(1), {"sum": (times, part)}, replaced=replaced)


def test_parts_add_up_to_the_price() -> None:
    """Four releases of a quarter of μ² each: σ is twice the bound, and twice that where a unit is replaced."""
    assert float(releases().noise("sum", 100, 3).sigma) == pytest.approx(200)
    assert float(releases(replaced=True).noise("sum", 100, 3).sigma) == pytest.approx(400)
    assert releases().noise("sum", 100, 3).sigma >= 200
    zero = Releases(lw.ZeroConcentratedDP(Fraction(1, 2)), {"sum": (4, Fraction(1, 4))}, replaced=False)
    assert float(zero.noise("sum", 100, 3).sigma) == pytest.approx(200)


def test_more_than_the_price_is_refused() -> None:
    """The planted bug: σ that is right for one step, used for all."""
    with pytest.raises(InvalidParameter, match="exceed the cost"):
        releases(times=5)
    there, (rows, contributions) = releases(times=1), units([[1, 2]], [0])
    there.release("sum", rows, contributions, reach=10, bound=10)
    with pytest.raises(BudgetExhausted, match="more releases than were paid"):
        there.release("sum", rows, contributions, reach=10, bound=10)


def test_a_pure_loss_buys_none() -> None:
    with pytest.raises(InvalidParameter, match="gdp or zcdp"):
        Releases(lw.PureDP(1), {"sum": (1, Fraction(1))}, replaced=False)


def test_noise_has_its_law() -> None:
    rows, contributions = units([[30, 40, *[0] * 998]], [0])
    drawn = Releases(lw.GaussianDP(1), {"sum": (6, Fraction(1, 6))}, replaced=False)
    sigma = float(drawn.noise("sum", 5, 1000).sigma)
    released = np.array([drawn.release("sum", rows, contributions, reach=100, bound=5) for _ in range(6)])
    noise = (released - contributions // 10) / sigma
    variance, spread = float(np.square(noise).mean()), np.sqrt(2 / noise.size)
    assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
    assert abs(variance - 1) < 5 * spread
    assert not abs(variance * 0.9**2 - 1) < 5 * spread  # the planted bug: noise of nine tenths


def test_a_unit_is_clipped_with_all_its_rows() -> None:
    rows, contributions = units([[30, 40], [30, 40], [0, 1]], [0, 2])
    exact = clip(rows.summed(contributions), 50).sum(axis=0)
    assert exact.tolist() == [30, 41]
    per_row = clip(contributions, 50).sum(axis=0)  # the planted bug
    assert square(per_row - [0, 1]) > 50**2
