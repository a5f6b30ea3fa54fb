"""UnboundedQuantile and RaceToTheTop beyond their rows in a table: all neighbours of small data, errors, exact sums."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import AboveThreshold, RaceToTheTop, ScoreSensitivity, UnboundedQuantile
from lapwing.mechanisms.clipping import cut_sums
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support.effort import one_in
from tests.support.enumeration import NoEntropy
from tests.support.mechanisms import threshold_oracle as oracle
from tests.support.privacy.oracle import real

TINY = Fraction(1, 2**30)
CLOSE = mpf(10) ** -15
Values = tuple[int, ...]


def neighbours(most: int, *, replaced: bool) -> Iterator[tuple[Values, Values]]:
    """All pairs of data sets of at most two values that differ in one."""
    for size in range(2):
        for kept in combinations_with_replacement(range(most + 1), size):
            for value in range(most + 1):
                if replaced:
                    yield from (((*kept, value), (*kept, other)) for other in range(value))
                else:
                    yield kept, (*kept, value)


def worst_ratio(p: dict[int, mpf], q: dict[int, mpf]) -> mpf:
    return max(abs(mp.log(p[y] / q[y])) for y in p if p[y] > CLOSE)


# Unbounded quantile

values = st.lists(st.integers(-5, 50) | st.sampled_from([2**62, 2**62 + 1, 10**30, -(10**30)]), max_size=20)
growths = st.sampled_from([Fraction(101, 100), Fraction(3, 2), Fraction(2), Fraction(17, 3)])


def quantile(scale: Fraction, rank: int, most: int = 4, growth: Fraction = Fraction(2)) -> UnboundedQuantile:
    return UnboundedQuantile(threshold_scale=scale, query_scale=scale, rank=rank, growth=growth, most=most)


def check_quantile_neighbours(states: Callable[[UnboundedQuantile], Fraction], *, replaced: bool) -> None:
    """The loss covers all neighbours among small data sets, and is attained by some."""
    first, second, worst = Fraction(1, 3), Fraction(2, 3), mpf(0)
    mechanism = UnboundedQuantile(threshold_scale=first, query_scale=second, rank=1, growth=Fraction(2), most=4)
    laws: dict[Values, dict[int, mpf]] = {}
    for pair in neighbours(5, replaced=replaced):
        for data in pair:
            if data not in laws:
                laws[data] = oracle.quantile_law(first, second, 1, (1, 2, 4), data)
        worst = max(worst, worst_ratio(laws[pair[0]], laws[pair[1]]))
    assert worst <= real(states(mechanism)) + CLOSE
    assert replaced or worst >= real(states(mechanism)) - CLOSE


@pytest.mark.parametrize("replaced", [False, True])
def test_the_loss_of_a_quantile_covers_all_neighbours(replaced: bool) -> None:
    check_quantile_neighbours(lambda mechanism: mechanism.loss("pure").amount, replaced=replaced)


@pytest.mark.parametrize(
    "states",
    [lambda m: 1 / m.threshold_scale, lambda m: 1 / m.query_scale, lambda m: 1 / m.threshold_scale + 2 / m.query_scale],
)
def test_twin_a_wrong_price_of_a_quantile_is_caught(states: Callable[[UnboundedQuantile], Fraction]) -> None:
    with pytest.raises(AssertionError):
        check_quantile_neighbours(states, replaced=False)


@given(st.integers(0, 100), growths, st.integers(100, 2**62))
def test_candidates_grow_as_stated(start: int, growth: Fraction, most: int) -> None:
    ladder = UnboundedQuantile(
        threshold_scale=TINY, query_scale=TINY, rank=0, start=start, growth=growth, most=most
    ).candidates.tolist()
    assert ladder[0] == start
    assert ladder[-1] == most
    assert all(low < high <= max(growth * low, low) + 1 for low, high in pairwise(ladder))
    assert all(high >= min(most, growth * low) for low, high in pairwise(ladder))


def check_quiet(release: Callable[[UnboundedQuantile, list[int]], int], data: list[int], rank: int) -> None:
    """Without noise it is the first candidate that at most `rank` values exceed, or the last."""
    mechanism = quantile(TINY, rank, most=40)
    passing = [bound for bound in mechanism.candidates.tolist() if sum(x > bound for x in data) <= rank]
    assert release(mechanism, data) == (passing or [40])[0]


@given(values, st.integers(0, 5))
def test_a_quiet_quantile_is_the_first_that_passes(data: list[int], rank: int) -> None:
    check_quiet(lambda mechanism, x: mechanism.release(x, SYSTEM), data, rank)


@pytest.mark.parametrize(
    ("twin", "data"),
    [
        (lambda m, x: m.release([v + 1 for v in x], SYSTEM), [2, 2, 2]),
        (lambda m, x: m.release(x[1:], SYSTEM), [9]),
    ],
    ids=["at least for more than", "a value forgotten"],
)
def test_twins_of_the_count_are_caught(twin: Callable[[UnboundedQuantile, list[int]], int], data: list[int]) -> None:
    with pytest.raises(AssertionError):
        check_quiet(twin, data, 0)


def test_for_loss_of_a_quantile() -> None:
    for loss in (PureDP(0.3), GaussianDP(0.3), ZeroConcentratedDP(0.02)):
        mechanism = UnboundedQuantile.for_loss(loss, rank=10)
        kept = mechanism.loss(loss.kind).amount
        assert loss.amount * (1 - Fraction(1, 2**40)) <= kept <= loss.amount
        before = AboveThreshold.for_epsilon_of(loss, ScoreSensitivity(monotonic=True))
        assert mechanism.threshold_scale**2 + mechanism.query_scale**2 <= 2 * before.query_scale**2
    assert UnboundedQuantile.for_loss(PureDP(0.3), rank=10).loss("pure") == PureDP(0.3)


def misses(mechanism: UnboundedQuantile, data: Sequence[int], h: int) -> mpf:
    """P(the bound is exceeded by rank + h or more, or the candidate before it by rank − h or fewer), exactly."""
    ladder = mechanism.candidates.tolist()
    law = oracle.quantile_law(mechanism.threshold_scale, mechanism.query_scale, mechanism.rank, ladder, data)

    def exceeding(bound: int) -> int:
        return sum(x > bound for x in data)

    def missed(i: int) -> bool:
        too_low = i < len(ladder) - 1 and exceeding(ladder[i]) >= mechanism.rank + h
        return too_low or (i > 0 and exceeding(ladder[i - 1]) <= mechanism.rank - h)

    return mp.fsum(law[bound] for i, bound in enumerate(ladder) if bound in law and missed(i))


def check_rank_error(rank_error: Callable[[UnboundedQuantile, Fraction], int]) -> None:
    mechanism = quantile(Fraction(2), 30, most=64)
    data = [min(1 << k, 64) + 1 for k in range(6) for _ in range(14)]
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        assert misses(mechanism, data, rank_error(mechanism, confidence)) <= real(1 - confidence)


def test_rank_error() -> None:
    check_rank_error(lambda mechanism, confidence: mechanism.rank_error(confidence))


def test_twin_a_rank_error_that_is_too_small_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_rank_error(lambda mechanism, confidence: mechanism.rank_error(confidence) // 3)


def test_a_ladder_of_one_candidate_and_no_values() -> None:
    only = UnboundedQuantile(threshold_scale=TINY, query_scale=TINY, rank=0, start=7, most=7)
    assert only.candidates.tolist() == [7]
    assert only.release([100], SYSTEM) == 7
    assert only.rank_error(0.9) == 1
    assert quantile(TINY, 0).release([], SYSTEM) == 1
    assert UnboundedQuantile(threshold_scale=TINY, query_scale=TINY, rank=0, start=0).release([0, -3], SYSTEM) == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("threshold_scale", value) for value in (0, 0.5, "1")),
        *(("query_scale", value) for value in (-1, True, float("nan"))),
        *(("rank", value) for value in (-1, 0.5, True)),
        *(("start", value) for value in (-1, 1.0, 101)),
        *(("growth", value) for value in (1, Fraction(1, 2), 1.01, "2", float("inf"))),
        *(("most", value) for value in (0, 2**62 + 1, 8.0)),
    ],
)
def test_bad_parameters_of_a_quantile_are_refused(field: str, value: Any) -> None:
    parameters = {"threshold_scale": 1, "query_scale": 1, "rank": 1, "start": 1, "growth": 2, "most": 100}
    with pytest.raises(InvalidParameter, match=field):
        UnboundedQuantile(**parameters | {field: value})


def test_a_ladder_without_end_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="larger growth"):
        UnboundedQuantile(threshold_scale=TINY, query_scale=TINY, rank=1, growth=1 + Fraction(1, 10**9))


# Race to the top

RACE = RaceToTheTop(scale=Fraction(3, 2), most=4, failure=Fraction(1, 10))


def check_race_neighbours(states: Callable[[RaceToTheTop], Fraction], *, replaced: bool) -> None:
    worst = mpf(0)
    race = RaceToTheTop(scale=Fraction(1, 2), most=3, failure=Fraction(9, 10))
    laws: dict[Values, dict[int, mpf]] = {}
    for pair in neighbours(4, replaced=replaced):
        for data in pair:
            if data not in laws:
                cut = [min(x, race.most) for x in data]
                laws[data] = oracle.race_law(race.scale, race.levels, race.failure, cut)
        worst = max(worst, worst_ratio(laws[pair[0]], laws[pair[1]]))
    assert worst <= real(states(race)) + CLOSE


@pytest.mark.parametrize("replaced", one_in(2, [False, True]))
def test_the_loss_of_a_race_covers_all_neighbours(replaced: bool) -> None:
    check_race_neighbours(lambda race: race.loss("pure").amount, replaced=replaced)


@pytest.mark.long
def test_twin_one_level_s_loss_for_all_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_race_neighbours(lambda race: 1 / race.scale, replaced=False)


@pytest.mark.parametrize(
    ("most", "levels"), [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (4, (1, 2, 4)), (9, (1, 2, 4, 8, 9))]
)
def test_levels_and_losses(most: int, levels: tuple[int, ...]) -> None:
    race = RaceToTheTop(scale=Fraction(6), most=most, failure=Fraction(1, 20))
    assert race.levels == levels
    assert race.loss("pure") == PureDP(Fraction(len(levels), 6))
    assert race.loss("gdp") == PureDP(Fraction(len(levels), 6)).to_kind("gdp")
    assert RaceToTheTop.for_loss(PureDP(0.1), most=most).scale == 10 * len(levels)


def test_for_loss_of_a_race() -> None:
    for loss in (PureDP(0.3), GaussianDP(0.3), ZeroConcentratedDP(0.02)):
        kept = RaceToTheTop.for_loss(loss, most=10**6).loss(loss.kind).amount
        assert loss.amount * (1 - Fraction(1, 2**40)) <= kept <= loss.amount


@given(st.lists(st.integers(0, 100) | st.integers(0, 2**62), max_size=30), st.integers(1, 2**62))
def test_cut_sums_are_exact(data: list[int], most: int) -> None:
    levels = RaceToTheTop(scale=Fraction(1), most=most, failure=Fraction(1, 2)).levels
    cut = np.array([min(x, most) for x in data], dtype=np.int64)
    assert cut_sums(cut, levels) == [sum(min(x, level) for x in data) for level in levels]


@given(st.lists(st.integers(-5, 100) | st.sampled_from([2**62, 10**30, -(10**30)]), max_size=30))
def test_a_quiet_race_is_the_sum(data: list[int]) -> None:
    quiet = RaceToTheTop(scale=TINY, most=50, failure=Fraction(1, 20))
    # The scale of the highest level is tiny as well, so noise and penalty are 0.
    assert quiet.release(data, SYSTEM) == sum(min(max(x, 0), 50) for x in data)


def test_penalties_are_the_least() -> None:
    for level in RACE.levels:
        share, h = real(RACE.failure) / 4, RACE.penalty(level)
        assert 1 - oracle.laplace_at_most(RACE.scale * level, h) <= share
        assert 1 - oracle.laplace_at_most(RACE.scale * level, h - 1) > share
    loud = RaceToTheTop(scale=Fraction(2**18), most=2**62, failure=Fraction(1, 20))
    assert float(loud.penalty(2**62)) / 2**80 == pytest.approx(np.log(64 / 0.1), rel=1e-6)
    with pytest.raises(InvalidParameter, match="must be one of 1, 2, 4"):
        RACE.penalty(3)


def check_shortfall(shortfall: Callable[[RaceToTheTop, int], int]) -> None:
    """P(truth − h ≤ release ≤ truth) is at least 1 − β, by the exact law."""
    for data in ((), (1,) * 90, (2,) * 60, (4,) * 40, (1, 2, 3, 4) * 9, (1,) * 50 + (4,)):
        law, truth = oracle.race_law(RACE.scale, RACE.levels, RACE.failure, data), sum(data)
        h = shortfall(RACE, max(data, default=0))
        assert mp.fsum(law[y] for y in law if truth - h <= y <= truth) >= 1 - real(RACE.failure)


@pytest.mark.long
def test_shortfall() -> None:
    check_shortfall(lambda race, largest: race.shortfall(largest))
    assert RACE.shortfall(3) == RACE.shortfall(4) == RACE.shortfall(10**9) == 2 * RACE.penalty(4)
    assert RACE.shortfall(0) == 2 * RACE.penalty(1)


def test_twin_a_shortfall_that_is_too_small_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_shortfall(lambda race, largest: race.shortfall(largest) // 3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", value) for value in (0, -1, 0.5, "1", True, 2**80)),
        *(("most", value) for value in (0, 2.0, True, 2**62 + 1)),
        *(("failure", value) for value in (0, 1, 0.05, "0.1", True, float("nan"))),
    ],
)
def test_bad_parameters_of_a_race_are_refused(field: str, value: Any) -> None:
    parameters = {"scale": 1, "most": 100, "failure": Fraction(1, 20)} | {field: value}
    with pytest.raises(InvalidParameter, match=field):
        RaceToTheTop(**parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [[1.5], [True], ["1"], [None], [[1]], np.array([0.5])])
def test_bad_data_draw_nothing(data: Any) -> None:
    for mechanism in (RACE, quantile(Fraction(1), 1)):
        with pytest.raises(InvalidParameter, match=r"must be whole numbers|one dimension"):
            mechanism.release(data, NoEntropy())
