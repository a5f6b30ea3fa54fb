"""Intervals of means: they hold the true mean as often as they say, and are narrower than two margins make them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.answer import interval_ends, joint_margins
from lapwing.exact.entropy import SYSTEM
from lapwing.exact.rounded_gaussian import rounded_gaussian
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.query.derivation import moments
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import Derived, MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import JointMargins
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures import Count, Measure, Sum
from tests.support.effort import one_in

LOW, HIGH = -20, 60
PAY = ColumnReference(name="pay", type=Fixed(step=Fraction(1, 2), low=LOW, high=HIGH))
COUNT, OTHER = Count(), Count(argument=PAY)
TOTAL = Sum(argument=PAY, origin=20)
MEAN = Average(total=TOTAL, count=COUNT)
# In steps of a quarter, from 0 to the square of 40 steps of a half.
SQUARED = ColumnReference(name="squared", type=Fixed(step=Fraction(1, 4), low=0, high=1600))
SQUARES = Sum(argument=SQUARED, origin=800)
VARIANCE = moments.variance(TOTAL, SQUARES, COUNT, sample=False)
NOISE: dict[Measure, NoiseLaw] = {
    COUNT: RoundedGaussian(sigma=Fraction(9)),
    OTHER: RoundedGaussian(sigma=Fraction(9)),
    TOTAL: RoundedGaussian(sigma=Fraction(360)),
    SQUARES: RoundedGaussian(sigma=Fraction(9 * 800)),
}
DRAWS = 20_000
CONFIDENCE = Fraction(19, 20)


def missed(rows: int, sum_of_steps: int, draws: int = DRAWS) -> float:
    """Return how often the interval of a mean misses the true one: of so many rows, with that sum around the origin."""
    cells = NoisyCells(
        size=draws,
        measures={
            COUNT: rounded_gaussian(Fraction(81), draws, SYSTEM) + rows,
            TOTAL: rounded_gaussian(Fraction(360**2), draws, SYSTEM) + sum_of_steps,
        },
        keys={},
        margins=lambda _: {},
    )
    interval = MEAN.interval(cells, interval_ends.margins_of(MEAN, NOISE, CONFIDENCE))
    true = (20 + sum_of_steps / rows) / 2
    low, high = (end.floats(draws) for end in interval)
    return float(np.mean((true < low - 1e-9) | (true > high + 1e-9)))


WORLDS = [(rows, sign * part * rows // 4) for rows in (30, 200, 5000) for sign in (-1, 1) for part in (0, 60, 160)]
TOLERANCE = 5 * (0.05 * 0.95 / DRAWS) ** 0.5


@pytest.mark.parametrize(("rows", "total"), one_in(3, WORLDS, many=True))
def test_the_true_mean_is_missed_no_more_often_than_said(rows: int, total: int) -> None:
    assert missed(rows, total) <= 0.05 + TOLERANCE


@pytest.mark.parametrize(("rows", "total"), [(2000, 30 * 2000), (5000, -30 * 5000)])
@pytest.mark.parametrize("narrower", ["sum", "count"])
def test_narrower_margins_would_be_noticed(
    rows: int, total: int, narrower: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = joint_margins.joint_margins

    def planted(*arguments: Any) -> Any:
        found = real(*arguments)
        assert found is not None
        key = TOTAL if narrower == "sum" else COUNT
        return JointMargins({**found, key: found[key] * Fraction(1, 2)})

    monkeypatch.setattr(interval_ends, "joint_margins", planted)
    assert missed(rows, total) > 0.05 + TOLERANCE


def width(value: Derived, noise: dict[Measure, NoiseLaw], rows: int, total: int) -> float:
    cells = NoisyCells(
        size=1,
        measures={COUNT: np.array([rows]), OTHER: np.array([rows]), TOTAL: np.array([total])},
        keys={},
        margins=lambda _: {},
    )
    interval = value.interval(cells, interval_ends.margins_of(value, noise, CONFIDENCE))
    assert interval is not None
    low, high = (end.floats(1)[0] for end in interval)
    return float(high - low)


@pytest.mark.parametrize(("total", "share"), [(0, 0.88), (40 * 5000, 0.63), (-40 * 5000, 0.63), (20 * 5000, 0.71)])
def test_they_are_narrower(total: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    joint = width(MEAN, NOISE, 5000, total)
    monkeypatch.setattr(interval_ends, "joint_margins", lambda *_: None)
    assert joint / width(MEAN, NOISE, 5000, total) == pytest.approx(share, abs=0.02)


def number(value: int) -> Derived:
    return ConstantValue(value=Fraction(value), shape="integer")


TOGETHER = [
    MEAN,
    compute("round", compute("multiply", MEAN, number(3))),
    compute("subtract", MEAN, MEAN),
    compute("square_root", compute("absolute", MEAN)),
    VARIANCE,
    moments.deviation(TOTAL, SQUARES, COUNT, sample=True),
]
APART = [
    compute("multiply", MEAN, MeasureValue(measure=COUNT)),
    compute("add", MEAN, MeasureValue(measure=OTHER)),
    compute("add", MEAN, Average(total=TOTAL, count=OTHER)),
    compute("divide", MeasureValue(measure=TOTAL), MeasureValue(measure=COUNT)),
    compute("add", VARIANCE, MEAN),
    compute("multiply", VARIANCE, MeasureValue(measure=COUNT)),
    moments.covariance(TOTAL, TOTAL, SQUARES, COUNT, sample=False),
    MeasureValue(measure=COUNT),
]


@pytest.mark.parametrize("value", TOGETHER, ids=str)
def test_what_rests_on_one_mean_alone(value: Derived) -> None:
    assert joint_margins.joint_margins(value, NOISE, CONFIDENCE) is not None


@pytest.mark.parametrize("value", APART, ids=str)
def test_what_rests_on_more_has_margins_of_its_own(value: Derived) -> None:
    assert joint_margins.joint_margins(value, NOISE, CONFIDENCE) is None


def test_other_noise_has_margins_of_its_own() -> None:
    laplace = {**NOISE, COUNT: DiscreteLaplace(scale=Fraction(9))}
    assert joint_margins.joint_margins(MEAN, laplace, CONFIDENCE) is None


def test_where_the_count_may_be_below_one_the_mean_may_be_anywhere() -> None:
    assert width(MEAN, NOISE, 3, 0) == (HIGH - LOW) / 2


# ---- variances -------------------------------------------------------------------------------------------------------


def variance_missed(rows: int, mean: int, spread: int, *, sample: bool = False, draws: int = DRAWS) -> float:
    """Return how often the interval of a variance misses the true one, of half the rows on either side of a mean.

    Args: mean: around the origin, and spread, in steps.
    """
    released: dict[Measure, Any] = {
        COUNT: rounded_gaussian(Fraction(81), draws, SYSTEM) + rows,
        TOTAL: rounded_gaussian(Fraction(360**2), draws, SYSTEM) + rows * mean,
        SQUARES: rounded_gaussian(Fraction(7200**2), draws, SYSTEM) + rows * (mean**2 + spread**2 - 800),
    }
    cells = NoisyCells(size=draws, measures=released, keys={}, margins=lambda _: {})
    value = moments.variance(TOTAL, SQUARES, COUNT, sample=sample)
    interval = value.interval(cells, interval_ends.margins_of(value, NOISE, CONFIDENCE))
    assert interval is not None
    true = spread**2 / 4 * (rows / (rows - 1) if sample else 1)
    low, high = (end.floats(draws) for end in interval)
    return float(np.mean((true < low - 1e-9) | (true > high + 1e-9)))


SPREADS = [
    (rows, mean, spread) for rows in (40, 300, 20_000) for mean, spread in ((0, 20), (25, 10), (-30, 3), (0, 40))
]


@pytest.mark.parametrize(("rows", "mean", "spread"), one_in(2, SPREADS, many=True))
@pytest.mark.parametrize("sample", [False, True])
def test_the_true_variance_is_missed_no_more_often_than_said(rows: int, mean: int, spread: int, sample: bool) -> None:
    assert variance_missed(rows, mean, spread, sample=sample, draws=4000) <= 0.05 + 5 * (0.05 * 0.95 / 4000) ** 0.5


@pytest.mark.parametrize("narrower", [SQUARES, TOTAL, COUNT], ids=["squares", "sum", "count"])
def test_narrower_margins_of_a_variance_would_be_noticed(narrower: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    real = joint_margins.joint_margins

    def planted(*arguments: Any) -> Any:
        found = real(*arguments)
        assert found is not None
        return JointMargins({**found, narrower: found[narrower] / 4}, found.mean, found.apart)

    monkeypatch.setattr(interval_ends, "joint_margins", planted)
    missed = [
        variance_missed(20_000, mean, spread, draws=4000) for mean, spread in ((0, 20), (30, 9), (35, 2), (0, 10))
    ]
    assert max(missed) > 0.07


def test_the_interval_of_a_variance_is_about_half_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    def wide() -> float:
        measures: dict[Measure, list[int]] = {
            COUNT: [20_000],
            TOTAL: [20_000 * 10],
            SQUARES: [20_000 * (100 + 225 - 800)],
        }
        cells = NoisyCells(
            size=1, measures={m: np.array(v) for m, v in measures.items()}, keys={}, margins=lambda _: {}
        )
        interval = VARIANCE.interval(cells, interval_ends.margins_of(VARIANCE, NOISE, CONFIDENCE))
        assert interval is not None
        low, high = (end.floats(1)[0] for end in interval)
        return float(high - low)

    joint = wide()
    monkeypatch.setattr(interval_ends, "joint_margins", lambda *_: None)
    assert joint < 0.55 * wide()
