"""The choice of a quantile from counts: its law, what neighbours differ by, and how far its rank strays."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy import stats

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import Quantile, Sensitivity
from lapwing.mechanisms.quantile import distances
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

HALF = Fraction(1, 2)
ONE_ROW = Sensitivity.from_l1(1)


def log_law(mechanism: QuantileOfCounts, counts: tuple[int, ...]) -> list[float]:
    """Return ln P of every point, worked out from the rows themselves."""
    rows = [point for point, count in enumerate(counts) for _ in range(count)]
    q, weights = mechanism.quantile, []
    for point in range(mechanism.points):
        below, at_most = sum(row < point for row in rows), sum(row <= point for row in rows)
        error = max(Fraction(0), below - q * len(rows), q * len(rows) - at_most)
        weights.append(-float(error / mechanism.scale))
    total = log(sum(map(exp, weights)))
    return [weight - total for weight in weights]


def ranges(mechanism: QuantileOfCounts, rows: int) -> Iterator[float]:
    """Yield by how much the log-ratios of neighbours differ, for all small counts and `rows` rows more."""
    for counts in product(range(3), repeat=mechanism.points):
        for added in product(range(mechanism.points), repeat=rows):
            more = tuple(count + added.count(point) for point, count in enumerate(counts))
            pairs = zip(log_law(mechanism, more), log_law(mechanism, counts), strict=True)
            ratios = [one - other for one, other in pairs]
            yield max(ratios) - min(ratios)


@pytest.mark.parametrize("quantile", one_in(2, [Fraction(0), Fraction(1, 3), HALF, Fraction(9, 10), Fraction(1)]))
@pytest.mark.parametrize("rows", one_in(2, [2, 1]))
def test_neighbours_differ_by_no_more_than_the_loss_says(quantile: Fraction, rows: int) -> None:
    sensitivity = Sensitivity.from_l1(rows)
    mechanism = QuantileOfCounts.for_loss(PureDP(1), sensitivity, quantile=quantile, points=4)
    assert mechanism.loss(sensitivity, "pure") == PureDP(1)
    widest = max(ranges(mechanism, rows))
    assert widest <= 1 + 1e-9
    sharper = QuantileOfCounts(quantile=quantile, points=4, scale=mechanism.scale * Fraction(9, 10))
    if quantile in (0, HALF, 1):  # there it is attained, and a twin of less noise is caught
        assert max(ranges(sharper, rows)) > 1 + 1e-9


@pytest.mark.parametrize("loss", [PureDP(1), GaussianDP(Fraction(1, 4)), ZeroConcentratedDP(Fraction(1, 50))])
def test_it_loses_no_more_than_is_paid_and_errs_as_the_choice_from_rows(
    loss: PureDP | GaussianDP | ZeroConcentratedDP,
) -> None:
    mechanism = QuantileOfCounts.for_loss(loss, Sensitivity.from_l1(3), quantile=HALF, points=100)
    assert mechanism.loss(Sensitivity.from_l1(3), loss.kind) <= loss
    assert not mechanism.loss(Sensitivity.from_l1(4), loss.kind) <= loss
    same = Quantile.for_loss(loss, quantile=HALF, lower=0, upper=99, rows=3)
    assert mechanism.scale == same.scale
    assert mechanism.half_width(0.95) >= same.rank_error(Fraction(95, 100)) > mechanism.half_width(0.95) - 1


def check_law(release: Callable[[QuantileOfCounts, np.ndarray, StreamEntropy], np.ndarray]) -> None:
    """Draw in many cells, whose trees have a node above the leaves, and compare with the law of each."""
    counts = (3, 0, 1, 4)
    mechanism = QuantileOfCounts(quantile=Fraction(1, 3), points=4, scale=Fraction(3, 2))
    drawn = release(mechanism, np.array([[sum(counts), *counts]] * 6_000), StreamEntropy("quantile of counts"))
    assert drawn.shape == (6_000, 1)
    expected = [6_000 * exp(value) for value in log_law(mechanism, counts)]
    assert stats.chisquare(np.bincount(drawn[:, 0], minlength=4), expected).pvalue > 1e-8


def test_every_cell_is_drawn_by_its_law() -> None:
    check_law(lambda mechanism, counts, entropy: mechanism.release(counts, entropy))


@pytest.mark.long
def test_twin_an_inner_node_read_as_a_leaf_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_law(lambda mechanism, counts, entropy: mechanism.release(counts[:, :-1], entropy))


@pytest.mark.long
def test_no_rows_give_any_point() -> None:
    mechanism = QuantileOfCounts(quantile=HALF, points=4, scale=Fraction(1, 1000))
    drawn = mechanism.release(np.zeros((3_000, 4), dtype=np.int64), StreamEntropy("nobody"))
    assert stats.chisquare(np.bincount(drawn[:, 0], minlength=4)).pvalue > 1e-8
    assert mechanism.release(np.zeros((0, 4), dtype=np.int64)).shape == (0, 1)


@pytest.mark.long
def test_the_rank_is_within_its_error() -> None:
    counts = np.random.default_rng(5).integers(0, 4, 200)
    mechanism = QuantileOfCounts.for_loss(PureDP(HALF), ONE_ROW, quantile=Fraction(3, 4), points=200)
    drawn = mechanism.release(np.tile(counts, (2_000, 1)), StreamEntropy("ranks"))[:, 0]
    at_most = np.cumsum(counts)
    off = distances(at_most - counts, at_most, int(at_most[-1]), mechanism.quantile)[drawn] / 4
    assert (off <= mechanism.half_width(0.95)).mean() >= 0.95
    assert off.mean() < 10


def test_it_is_written_and_read() -> None:
    mechanism = QuantileOfCounts(quantile=Fraction(1, 3), points=12, scale=Fraction(22, 7))
    assert QuantileOfCounts.from_record(mechanism.record()) == mechanism


def test_what_is_none_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="denominator"):
        QuantileOfCounts(quantile=Fraction(1, 3**20), points=4, scale=Fraction(1))
    with pytest.raises(InvalidParameter, match="points"):
        QuantileOfCounts(quantile=HALF, points=0, scale=Fraction(1))
    with pytest.raises(InvalidParameter, match="scale"):
        QuantileOfCounts(quantile=HALF, points=4, scale=Fraction(0))
