"""The quantile tree: what it counts, what follows from the noisy counts, how wrong that is, and twins."""

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mpmath import mp

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    QuantileTree,
    ReleasedQuantileTree,
    RoundedGaussian,
    Sensitivity,
    trees,
)
from lapwing.mechanisms import quantile_tree as module
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import only
from tests.support.enumeration import NoEntropy
from tests.support.fixed_entropy import StreamEntropy
from tests.support.mechanisms import quantile_oracle

LAPLACE = DiscreteLaplace(scale=Fraction(2))
NOISES = (LAPLACE, RoundedGaussian(sigma=Fraction(3)), DiscreteGaussian(variance=Fraction(9)))
SHAPES = ((1, 2), (2, 2), (3, 2), (7, 2), (8, 2), (9, 3), (10, 3), (16, 4), (21, 4), (30, 16), (5, 16))


def tree(points: int, branching: int, noise: Any = LAPLACE) -> QuantileTree:
    return QuantileTree(lower=-3, upper=points - 4, branching=branching, noise=noise)


def without_noise(mechanism: QuantileTree, rows: Any) -> ReleasedQuantileTree:
    zeros = lambda scale, size, entropy: np.zeros(size, dtype=np.int64)  # noqa: E731
    with patch.object(samplers, "discrete_laplace", zeros):
        return mechanism.release(rows, NoEntropy())


def check_counts(release: Callable[[QuantileTree, Any], ReleasedQuantileTree]) -> None:
    """Every node counts the rows below it, and those off the grid are at its ends."""
    rows = np.array([-99, -3, -3, -1, 0, 0, 2, 5, 12, 26, 99])
    for points, branching in SHAPES:
        mechanism = tree(points, branching)
        found = [int(count) for level in release(mechanism, rows).counts for count in level]
        assert found == quantile_oracle.node_counts(rows.tolist(), -3, points - 4, branching)


def test_counts() -> None:
    check_counts(without_noise)


def test_twins_of_the_counts_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_counts(lambda mechanism, rows: without_noise(mechanism, rows + 1))
    with pytest.raises(AssertionError):
        check_counts(lambda mechanism, rows: without_noise(mechanism, rows[rows < 99]))


def check_sensitivity(stated: Callable[[QuantileTree, int], Sensitivity]) -> None:
    """A unit with some rows more moves the counts by what is stated, and by no less where all its rows are equal."""
    for points, branching in SHAPES:
        for rows in (1, 2, 3):
            mechanism, worst_l1, worst_l2 = tree(points, branching), 0, 0
            for unit in ([-3] * rows, [points - 4] * rows, [-3, points - 4, 0][:rows]):
                base = quantile_oracle.node_counts([0, 1], -3, points - 4, branching)
                more = quantile_oracle.node_counts([0, 1, *unit], -3, points - 4, branching)
                moved = [abs(a - b) for a, b in zip(base, more, strict=True)]
                worst_l1, worst_l2 = max(worst_l1, sum(moved)), max(worst_l2, sum(x * x for x in moved))
            assert stated(mechanism, rows) == Sensitivity(l1=worst_l1, l2_squared=worst_l2)


def test_the_sensitivity_is_attained() -> None:
    check_sensitivity(lambda mechanism, rows: module._sensitivity(len(mechanism.sizes), rows))


def test_twin_a_level_that_is_not_charged_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_sensitivity(lambda mechanism, rows: module._sensitivity(max(1, len(mechanism.sizes) - 1), rows))


def test_the_loss_is_that_of_the_noise() -> None:
    mechanism = tree(200, 4)
    assert mechanism.sizes == (4, 13, 50, 200)
    assert mechanism.loss("pure") == PureDP(2)
    assert mechanism.loss("pure", rows=3) == PureDP(6)
    gaussian = tree(200, 4, RoundedGaussian(sigma=Fraction(4)))
    assert gaussian.loss("gdp") == GaussianDP(Fraction(1, 2))
    assert gaussian.loss("gdp", rows=2) == GaussianDP(1)
    assert tree(200, 4, DiscreteGaussian(variance=Fraction(8))).loss("zcdp") == ZeroConcentratedDP(Fraction(1, 4))
    with pytest.raises(InvalidParameter, match="no finite ε"):
        gaussian.loss("pure")


@pytest.mark.parametrize("loss", mechanism_cases.losses(Fraction(1, 3), Fraction(2)))
def test_for_loss_spends_all_and_no_more(loss: Any) -> None:
    for rows in (1, 3):
        mechanism = QuantileTree.for_loss(loss, lower=0, upper=1000, rows=rows)
        assert isinstance(mechanism.noise, DiscreteLaplace if loss.kind == "pure" else RoundedGaussian)
        assert mechanism.loss(loss.kind, rows=rows) <= loss
        assert mechanism.loss(loss.kind, rows=rows).amount >= loss.amount * (1 - Fraction(1, 2**40))


def nodes_of(sizes: tuple[int, ...], branching: int) -> Any:
    """The matrix that turns leaf counts into the counts of all nodes."""
    points = sizes[-1]
    rows = []
    for depth, size in enumerate(sizes):
        width = branching ** (len(sizes) - 1 - depth)
        rows += [[float(k * width <= leaf < (k + 1) * width) for leaf in range(points)] for k in range(size)]
    return np.array(rows)


def cut(counts: Any, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(np.split(np.asarray(counts), np.cumsum(sizes)[:-1]))


def check_fit(fit: Callable[[tuple[Any, ...], int], Any]) -> None:
    """The leaves are those of the least-squares solution, found by linear algebra."""
    generator = np.random.default_rng(7)
    for points, branching in SHAPES:
        sizes = tree(points, branching).sizes
        counts = generator.integers(-50, 50, sum(sizes))
        wanted = np.linalg.lstsq(nodes_of(sizes, branching), counts.astype(float), rcond=None)[0]
        assert np.allclose(fit(cut(counts, sizes), branching), wanted, atol=1e-9)


def test_the_fit_is_the_least_squares_solution() -> None:
    check_fit(trees.consistent)


def test_twin_the_leaves_alone_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_fit(lambda counts, branching: counts[-1])


def weights_of(fit: Callable[[tuple[Any, ...], int], Any], sizes: tuple[int, ...], branching: int) -> Any:
    """How each node's noise enters the estimate of the count up to, and beyond, each leaf."""
    up_to = np.array([np.cumsum(fit(cut(unit, sizes), branching)) for unit in np.eye(sum(sizes))])
    return np.concatenate((up_to, up_to[:, -1:] - up_to), axis=1)


def check_weights(fit: Callable[[tuple[Any, ...], int], Any], largest: Callable[[tuple[int, ...], int], float]) -> None:
    """Noise enters by no more than 1 a node, and by squares that sum to what is stated."""
    for points, branching in (*SHAPES, (200, 4), (257, 2), (129, 2)):
        sizes = tree(points, branching).sizes
        weights = weights_of(fit, sizes, branching)
        assert np.abs(weights).max() <= 1 + 1e-9
        assert 1 - 2e-6 <= (weights**2).sum(axis=0).max() / largest(sizes, branching) <= 1


def largest_weight(sizes: tuple[int, ...], branching: int) -> float:
    return float(trees.largest_weight(sizes, branching))


def test_the_weights_of_the_noise() -> None:
    check_weights(trees.consistent, largest_weight)


def test_twins_of_the_weights_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_weights(lambda counts, branching: counts[-1].astype(float), largest_weight)
    with pytest.raises(AssertionError):
        check_weights(trees.consistent, lambda sizes, branching: 0.99 * largest_weight(sizes, branching))


RUNS = 200
FAR = float(mp.sqrt(mp.log(1e8) / (2 * RUNS)))
DATA = (np.arange(400) % 200, np.full(300, 77), np.array([], dtype=np.int64), np.repeat([0, 199], [5, 1000]))
ASKED = tuple(Fraction(i, 20) for i in range(21))


def worst_errors(mechanism: QuantileTree, rows: Any) -> list[float]:
    """The largest error of all answers of each of many releases."""
    entropy = StreamEntropy("tree")
    points = np.arange(mechanism.lower, mechanism.upper + 1)
    at_most = np.searchsorted(np.sort(rows), points, side="right")
    below = np.searchsorted(np.sort(rows), points, side="left")
    found = []
    for _ in range(RUNS):
        released = mechanism.release(rows, entropy)
        values = np.array(released.quantiles(ASKED)) - mechanism.lower
        ranks = np.array([float(q) for q in ASKED]) * rows.size
        errors = [0.0, *(below[values] - ranks), *(ranks - at_most[values])]
        errors += [abs(released.total - rows.size)]
        errors += np.abs(released._ascending - at_most).tolist()
        errors += np.abs(released._up_to - at_most).tolist()
        errors += np.abs(released._up_to[-1] - released._up_to - (rows.size - at_most)).tolist()
        found.append(float(max(errors)))
    return found


def check_rank_error(errors: list[float], error: float) -> None:
    """It holds in half of all releases."""
    assert sum(e > error for e in errors) / RUNS <= 0.5 + FAR


@pytest.mark.parametrize(("noise", "branching"), only([0], product(NOISES, [2, 16]), many=True))
def test_the_rank_error_holds(noise: Any, branching: int) -> None:
    mechanism = QuantileTree(lower=0, upper=199, branching=branching, noise=noise)
    for rows in DATA:
        errors = worst_errors(mechanism, rows)
        check_rank_error(errors, mechanism.rank_error(0.5))
        with pytest.raises(AssertionError):  # a twin that states much less
            check_rank_error(errors, 0.3 * mechanism.rank_error(0.5))


def test_answers_without_noise_are_those_of_the_data() -> None:
    rows = np.array([3, 3, 3, 7, 8, 20, 50])
    released = without_noise(QuantileTree(lower=0, upper=30, branching=3, noise=LAPLACE), rows)
    assert released.total == pytest.approx(7)
    assert released.quantiles((0, 0.1, Fraction(1, 2), 0.9, 1)) == (0, 3, 7, 30, 30)
    assert released.quantile(Fraction(3, 7) - Fraction(1, 1000)) == 3
    assert [released.cdf(v) for v in (-5, 2, 3, 7, 29, 30, 10**30)] == pytest.approx(
        [0, 0, 3 / 7, 4 / 7, 6 / 7, 1, 1], abs=1e-12
    )
    assert released.count_between(3, 7) == pytest.approx(4)
    assert released.count_between(-(10**30), 10**30) == pytest.approx(7)
    assert released.count_between(4, 6) == pytest.approx(0, abs=1e-9)


def test_answers_ascend_and_repeat() -> None:
    entropy = StreamEntropy("ascend")
    for rows in DATA:
        mechanism = QuantileTree(lower=0, upper=199, branching=5, noise=DiscreteLaplace(scale=Fraction(50)))
        for _ in range(20):
            released = mechanism.release(rows, entropy)
            values = released.quantiles(ASKED)
            assert values == released.quantiles(ASKED)
            assert all(low <= high for low, high in pairwise(values))
            assert values[0] == 0
            shares = [released.cdf(v) for v in range(-1, 201)]
            assert all(math.isnan(share) for share in shares) or (
                all(low <= high for low, high in pairwise(shares)) and shares[0] == 0 and shares[-1] == 1
            )
            parts = released.count_between(0, 99) + released.count_between(100, 199)
            assert released.count_between(0, 199) == pytest.approx(parts)


def test_an_estimated_total_of_nothing() -> None:
    released = ReleasedQuantileTree(lower=0, upper=2, branching=3, counts=(np.array([4, -5, -6]),))
    assert released.total == 0
    assert math.isnan(released.cdf(1))
    assert released.quantile(1) == 0
    assert released.count_between(0, 2) == -7


def test_what_is_released_is_frozen_and_holds_noisy_counts_only() -> None:
    released = tree(30, 4).release([1, 2, 3], StreamEntropy("frozen"))
    with pytest.raises(ValueError, match="read-only"):
        released.counts[0][0] = 1
    again = pickle.loads(pickle.dumps(released))
    assert again.quantiles(ASKED) == released.quantiles(ASKED)
    assert [field for field in released.__slots__ if not field.startswith("_")] == [
        "lower",
        "upper",
        "branching",
        "counts",
    ]


def test_large_noise_is_exact() -> None:
    released = tree(30, 4, DiscreteLaplace(scale=Fraction(2**70))).release([1, 2, 3], StreamEntropy("large"))
    assert all(isinstance(count, int) for count in released.counts[-1].tolist())
    assert max(abs(count) for count in released.counts[-1].tolist()) > 2**63
    assert -3 <= released.quantile(0.5) <= 26


@pytest.mark.long
def test_a_million_rows_and_points() -> None:
    rows = np.arange(10**6, dtype=np.int64)
    mechanism = QuantileTree.for_loss(GaussianDP(1), lower=0, upper=10**6)
    released = mechanism.release(rows, StreamEntropy("a million"))
    error = mechanism.rank_error(1 - Fraction(1, 10**9))
    for q, v in zip(ASKED, released.quantiles(ASKED), strict=True):
        assert v - error <= q * 10**6 <= v + 1 + error
    assert abs(released.count_between(1000, 1999) - 1000) <= 2 * error


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("upper", -1, "upper"),
        ("lower", 0.0, "lower"),
        ("branching", 1, "branching"),
        ("branching", 2.0, "branching"),
        ("upper", 2**22, "nodes"),
        ("upper", 2**60, "nodes"),
        ("branching", True, "branching"),
        ("noise", 3, "noise"),
        ("noise", None, "noise"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(field: str, value: Any, said: str) -> None:
    fields: dict[str, Any] = {"lower": 0, "upper": 9, "branching": 4, "noise": LAPLACE, field: value}
    with pytest.raises(InvalidParameter, match=said):
        QuantileTree(**fields)


@pytest.mark.parametrize("values", [[1.5], [True], [float("nan")], ["1"], np.zeros((2, 2), dtype=np.int64), 7])
def test_values_that_are_not_whole_are_refused_before_anything_is_drawn(values: Any) -> None:
    with pytest.raises(InvalidParameter):
        tree(10, 2).release(values, NoEntropy())


@pytest.mark.long
@pytest.mark.parametrize(("branching", "pure", "gaussian"), only([1], [(2, 525, 50), (16, 259, 75)], many=True))
def test_the_documented_rank_errors(branching: int, pure: int, gaussian: int) -> None:
    for loss, error in ((PureDP(1), pure), (GaussianDP(1), gaussian)):
        mechanism = QuantileTree.for_loss(loss, lower=0, upper=10**6, branching=branching)
        assert mechanism.rank_error(0.95) == error


def test_other_arguments_that_mean_nothing_are_refused() -> None:
    mechanism = tree(30, 4)
    released = without_noise(mechanism, [1])
    with pytest.raises(InvalidParameter, match="rows"):
        mechanism.loss("pure", rows=0)
    for confidence in (0, 1, float("nan")):
        with pytest.raises(InvalidParameter, match="confidence"):
            mechanism.rank_error(confidence)
    for q in (-0.1, 1.1, float("nan"), "0.5", True):
        with pytest.raises(InvalidParameter, match="quantile"):
            released.quantile(q)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="value"):
        released.cdf(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="low must not be above high"):
        released.count_between(5, 4)
    with pytest.raises(InvalidParameter, match="do not fit such a tree"):
        replace(released, branching=3)
