"""Intervals of means: they hold the true mean as often as they say, and are narrower than two margins make them."""

from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from lapwing.answer import interval_ends, joint_margins
from lapwing.mechanisms import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.laplace_combinations import combination_quantile
from lapwing.query.derivation import moments, rationals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import Rationals
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import Endpoints, JointMargins
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count, Measure, Sum
from tests.support.effort import one_in, only

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
LAPLACE: dict[Measure, NoiseLaw] = {
    COUNT: DiscreteLaplace(scale=Fraction(6)),
    TOTAL: DiscreteLaplace(scale=Fraction(240)),
    SQUARES: DiscreteLaplace(scale=Fraction(6 * 800)),
}
KINDS = {"gaussian": NOISE, "laplace": LAPLACE}
DRAWS = 20_000
CONFIDENCE = Fraction(19, 20)


def noisy(true: dict[Measure, int], noise: dict[Measure, NoiseLaw], draws: int) -> NoisyCells:
    """Return so many releases of the same numbers."""
    return NoisyCells(
        size=draws,
        measures={m: cast(DiscreteLaplace, noise[m]).release(np.full(draws, value)) for m, value in true.items()},
        keys={},
        margins=lambda _: {},
    )


def missed(rows: int, sum_of_steps: int, draws: int = DRAWS, noise: dict[Measure, NoiseLaw] = NOISE) -> float:
    """Return how often the interval of a mean misses the true one: of so many rows, with that sum around the origin."""
    cells = noisy({COUNT: rows, TOTAL: sum_of_steps}, noise, draws)
    interval = MEAN.interval(cells, interval_ends.margins_of(MEAN, noise, CONFIDENCE))
    true = (20 + sum_of_steps / rows) / 2
    low, high = (end.floats(draws) for end in interval)
    return float(np.mean((true < low - 1e-9) | (true > high + 1e-9)))


WORLDS = [(rows, sign * part * rows // 4) for rows in (30, 200, 5000) for sign in (-1, 1) for part in (0, 60, 160)]
TOLERANCE = 5 * (0.05 * 0.95 / DRAWS) ** 0.5


@pytest.mark.parametrize(("rows", "total"), one_in(3, WORLDS, many=True))
@pytest.mark.parametrize("kind", KINDS)
def test_the_true_mean_is_missed_no_more_often_than_said(kind: str, rows: int, total: int) -> None:
    assert missed(rows, total, noise=KINDS[kind]) <= 0.05 + TOLERANCE


@pytest.mark.parametrize(("rows", "total"), [(2000, 36 * 2000), (5000, -36 * 5000)])
@pytest.mark.parametrize("narrower", ["sum", "count"])
@pytest.mark.parametrize("kind", KINDS)
def test_narrower_margins_would_be_noticed(
    kind: str, rows: int, total: int, narrower: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = joint_margins.joint_margins

    def planted(*arguments: Any) -> Any:
        found = real(*arguments)
        assert found is not None
        key = TOTAL if narrower == "sum" else COUNT
        return JointMargins({**found, key: found[key] * Fraction(1, 2)})

    monkeypatch.setattr(interval_ends, "joint_margins", planted)
    assert missed(rows, total, noise=KINDS[kind]) > 0.05 + TOLERANCE


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


NARROWER = [
    *(("gaussian", *row) for row in [(0, 0.88), (40 * 5000, 0.63), (-40 * 5000, 0.63), (20 * 5000, 0.71)]),
    *(("laplace", *row) for row in [(0, 0.82), (40 * 5000, 0.56), (-40 * 5000, 0.56), (20 * 5000, 0.65)]),
]


@pytest.mark.parametrize(("kind", "total", "share"), NARROWER)
def test_they_are_narrower(kind: str, total: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    joint = width(MEAN, KINDS[kind], 5000, total)
    monkeypatch.setattr(interval_ends, "joint_margins", lambda *_: None)
    assert joint / width(MEAN, KINDS[kind], 5000, total) == pytest.approx(share, abs=0.02)


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
@pytest.mark.parametrize("kind", KINDS)
def test_what_rests_on_one_mean_alone(kind: str, value: Derived) -> None:
    assert joint_margins.joint_margins(value, KINDS[kind], CONFIDENCE) is not None


@pytest.mark.parametrize("value", APART, ids=str)
def test_what_rests_on_more_has_margins_of_its_own(value: Derived) -> None:
    assert joint_margins.joint_margins(value, NOISE, CONFIDENCE) is None


@pytest.mark.parametrize("law", [DiscreteLaplace(scale=Fraction(9)), DiscreteGaussian(variance=Fraction(81))], ids=str)
def test_other_noise_has_margins_of_its_own(law: NoiseLaw) -> None:
    assert joint_margins.joint_margins(MEAN, {**NOISE, COUNT: law}, CONFIDENCE) is None


def test_where_the_count_may_be_below_one_the_mean_may_be_anywhere() -> None:
    assert width(MEAN, NOISE, 3, 0) == (HIGH - LOW) / 2


# ---- variances -------------------------------------------------------------------------------------------------------


def variance_missed(
    rows: int, mean: int, spread: int, *, sample: bool = False, draws: int = DRAWS, kind: str = "gaussian"
) -> float:
    """Return how often the interval of a variance misses the true one, of half the rows on either side of a mean.

    Args: mean: around the origin, and spread, in steps.
    """
    cells = noisy(sums_of(rows, mean, spread), KINDS[kind], draws)
    value = moments.variance(TOTAL, SQUARES, COUNT, sample=sample)
    interval = value.interval(cells, interval_ends.margins_of(value, KINDS[kind], CONFIDENCE))
    assert interval is not None
    true = spread**2 / 4 * (rows / (rows - 1) if sample else 1)
    low, high = (end.floats(draws) for end in interval)
    return float(np.mean((true < low - 1e-9) | (true > high + 1e-9)))


def sums_of(rows: int, mean: int, spread: int) -> dict[Measure, int]:
    return {COUNT: rows, TOTAL: rows * mean, SQUARES: rows * (mean**2 + spread**2 - 800)}


SPREADS = [
    (rows, mean, spread) for rows in (40, 300, 20_000) for mean, spread in ((0, 20), (25, 10), (-30, 3), (0, 40))
]


@pytest.mark.parametrize(("rows", "mean", "spread"), only([0], SPREADS, many=True))
@pytest.mark.parametrize("sample", only([0], [True, False]))
@pytest.mark.parametrize("kind", only([0], KINDS))
def test_the_true_variance_is_missed_no_more_often_than_said(
    kind: str, rows: int, mean: int, spread: int, sample: bool
) -> None:
    missed = variance_missed(rows, mean, spread, sample=sample, draws=4000, kind=kind)
    assert missed <= 0.05 + 5 * (0.05 * 0.95 / 4000) ** 0.5


@pytest.mark.parametrize("narrower", only([0], [SQUARES, TOTAL, COUNT]), ids=["squares", "sum", "count"])
@pytest.mark.parametrize("kind", only([0], KINDS))
def test_narrower_margins_of_a_variance_would_be_noticed(
    kind: str, narrower: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = joint_margins.joint_margins

    def planted(*arguments: Any) -> Any:
        found = real(*arguments)
        assert found is not None
        return JointMargins({**found, narrower: found[narrower] / 4}, found.mean, found.apart, found.together)

    monkeypatch.setattr(interval_ends, "joint_margins", planted)
    missed = [
        variance_missed(20_000, mean, spread, draws=2000, kind=kind)
        for mean, spread in ((0, 20), (30, 9), (35, 2), (0, 10))
    ]
    assert max(missed) > 0.07


@pytest.mark.parametrize("share", only([0], [1, Fraction(6, 10)]), ids=str)
@pytest.mark.parametrize(("mean", "spread"), only([0], [(25, 10), (0, 20)], many=True))
def test_half_of_it_is_about_three_mean_errors_in_pure_ledgers(mean: int, spread: int, share: Fraction) -> None:
    """The quantile of one Laplace number is 3.0 mean errors. Six tenths of the interval, the planted bug, miss more."""
    draws = 4000
    cells = noisy(sums_of(20_000, mean, spread), LAPLACE, draws)
    released = rationals.floats(cast(Rationals, VARIANCE.column(cells)))
    interval = VARIANCE.interval(cells, interval_ends.margins_of(VARIANCE, LAPLACE, CONFIDENCE))
    assert interval is not None
    low, high = (released + float(share) * (end.floats(draws) - released) for end in interval)
    true = spread**2 / 4
    assert float(np.mean(high - low)) / 2 < 3.2 * float(share) * float(np.mean(np.abs(released - true)))
    assert (float(np.mean((true < low) | (true > high))) > 0.05 + 5 * (0.05 * 0.95 / draws) ** 0.5) == (share < 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_a_variance_is_about_half_as_wide(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = sums_of(20_000, 10, 15)
    cells = NoisyCells(size=1, measures={m: np.array([v]) for m, v in measures.items()}, keys={}, margins=lambda _: {})

    def wide() -> float:
        interval = VARIANCE.interval(cells, interval_ends.margins_of(VARIANCE, KINDS[kind], CONFIDENCE))
        assert interval is not None
        low, high = (end.floats(1)[0] for end in interval)
        return float(high - low)

    joint = wide()
    monkeypatch.setattr(interval_ends, "joint_margins", lambda *_: None)
    assert joint < 0.55 * wide()


def test_combined_scales_are_those_of_each_cell() -> None:
    """A sum of three Laplace numbers strays by its own quantile or a little more, whatever the others' are."""
    scales = np.array([[0.0, 0, 0], [3, 1, 2], [1, 1, 1], [0, 1e-300, 0], [1e300, 1, 0], [5, 0, 0]])
    columns = [Endpoints(numbers=rationals.of_floats(scales[:, place])) for place in range(3)]
    found = joint_margins._of_laplaces(Fraction(1, 20))(columns).values()
    for row, most in zip(scales, found, strict=True):
        exact = combination_quantile([Fraction(float(scale)) for scale in row], Fraction(1, 20))
        assert exact <= most <= exact * Fraction(102, 100) or max(row) < 1e-280
