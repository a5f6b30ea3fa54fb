"""Variances and their kin: right without noise, NULL where they must be, inside bounds, inside their intervals."""

import statistics
from collections.abc import Mapping
from fractions import Fraction
from math import isclose, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.query.derivation import moments
from lapwing.query.derivation.derived import measures_of
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count, Measure, Sum
from tests.support.answer.one_cell import bracket, evaluate
from tests.support.effort import examples, only

STEP = Fraction(1, 2)


def column(name: str, low: int, high: int, step: Fraction = STEP) -> ColumnReference:
    return ColumnReference(name=name, type=Fixed(step=step, low=low, high=high))


# x in steps from −6 to 20 around the origin 7, y from 0 to 8 around 4: each square and product with its own bounds
ROWS = Count()
X = Sum(argument=column("x", -6, 20), origin=7)
Y = Sum(argument=column("y", 0, 8), origin=4)
XX = Sum(argument=column("xx", 0, 169, STEP**2), origin=84)
YY = Sum(argument=column("yy", 0, 16, STEP**2), origin=8)
XY = Sum(argument=column("xy", -52, 52, STEP**2))

STATISTICS: Mapping[str, Derived] = {
    "var_pop": moments.variance(X, XX, ROWS, sample=False),
    "var_samp": moments.variance(X, XX, ROWS, sample=True),
    "stddev_pop": moments.deviation(X, XX, ROWS, sample=False),
    "stddev_samp": moments.deviation(X, XX, ROWS, sample=True),
    "covar_pop": moments.covariance(X, Y, XY, ROWS, sample=False),
    "covar_samp": moments.covariance(X, Y, XY, ROWS, sample=True),
    "corr": moments.correlation(X, Y, XX, YY, XY, ROWS),
}
MEASURES: tuple[Measure, ...] = (ROWS, X, Y, XX, YY, XY)


def released(rows: list[tuple[int, int]]) -> dict[Measure, Fraction]:
    """What would be released of rows of steps, without noise."""
    around = [(x - X.origin, y - Y.origin) for x, y in rows]
    integers: dict[Measure, int] = {
        ROWS: len(rows),
        X: sum(x for x, _ in around),
        Y: sum(y for _, y in around),
        XX: sum(x * x - XX.origin for x, _ in around),
        YY: sum(y * y - YY.origin for _, y in around),
        XY: sum(x * y for x, y in around),
    }
    return {measure: value * measure.step for measure, value in integers.items()}


def expected(name: str, rows: list[tuple[int, int]]) -> float | None:
    xs, ys = ([float(value * STEP) for value in column] for column in zip(*rows, strict=True))
    ddof = 1 if name.endswith("samp") else 0
    if len(rows) <= ddof:
        return None
    match name.split("_")[0]:
        case "var":
            return statistics.pvariance(xs) * len(rows) / (len(rows) - ddof)
        case "stddev":
            return sqrt(statistics.pvariance(xs) * len(rows) / (len(rows) - ddof))
        case "covar":
            mx, my = statistics.fmean(xs), statistics.fmean(ys)
            return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / (len(rows) - ddof)
        case _:
            return None if len(set(xs)) == 1 or len(set(ys)) == 1 else statistics.correlation(xs, ys)


pairs = st.lists(st.tuples(st.integers(-6, 20), st.integers(0, 8)), min_size=1, max_size=30)


@pytest.mark.parametrize("name", only([0], STATISTICS))
@given(rows=pairs)
def test_without_noise_they_are_what_they_are_called(name: str, rows: list[tuple[int, int]]) -> None:
    value, wanted = evaluate(STATISTICS[name], released(rows), {}), expected(name, rows)
    assert (value is None) == (wanted is None)
    assert wanted is None or isclose(float(value), wanted, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("count", [-3, 0, 1])
@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "corr"])
def test_too_few_rows_have_none(name: str, count: int) -> None:
    values = released([(5, 5), (6, 1)]) | {ROWS: Fraction(count)}
    few = count < (2 if name.endswith("samp") else 1)
    assert (evaluate(STATISTICS[name], values, {}) is None) == few


noise = st.lists(st.integers(-400, 400), min_size=6, max_size=6)


@pytest.mark.parametrize("name", only([0], STATISTICS))
@examples(15, 1_000)
@given(rows=pairs, moved=noise, widths=st.lists(st.integers(0, 400), min_size=6, max_size=6))
def test_noise_leaves_them_inside_bounds_and_the_truth_inside_the_interval(
    name: str, rows: list[tuple[int, int]], moved: list[int], widths: list[int]
) -> None:
    true = released(rows)
    margins = {m: Fraction(w) * m.step for m, w in zip(MEASURES, widths, strict=True)}
    noisy = {
        m: value + max(-w, min(w, shift)) * m.step
        for (m, value), w, shift in zip(true.items(), widths, moved, strict=True)
    }
    value, n = evaluate(STATISTICS[name], noisy, {}), noisy[ROWS]
    factor = n / (n - 1) if name.endswith("samp") and n > 1 else Fraction(1)
    rx, ry = 13 * STEP, 4 * STEP
    most = {"var": rx**2 * factor, "stddev": 8, "covar": rx * ry * factor, "corr": 1}[name.split("_")[0]]
    least = 0 if name[0] in "vs" else -most
    assert value is None or least <= value <= most or name == "stddev_samp"
    found = bracket(STATISTICS[name], noisy, margins, {})
    truth: Any = evaluate(STATISTICS[name], true, {})
    assert found is not None
    assert truth is None or found[0] <= truth <= found[1]
    assert found[0] >= (0 if name[0] in "vs" else -2 * rx * ry)


def test_the_interval_of_a_variance_narrows_with_the_rows() -> None:
    def width(copies: int) -> float:
        values = released([(0, 1), (10, 5), (20, 8), (3, 3)] * copies)
        margins: dict[Measure, Fraction] = {m: 300 * m.step for m in MEASURES}
        found: Any = bracket(STATISTICS["var_samp"], values, margins, {})
        return float(found[1] - found[0])

    assert width(10_000) < width(1000) / 9
    assert width(10_000) < 2


def test_a_variance_rests_on_its_three_numbers() -> None:
    assert set(measures_of(STATISTICS["var_samp"])) == {ROWS, X, XX}
    assert set(measures_of(STATISTICS["corr"])) == set(MEASURES)


def test_the_population_s_factor_in_a_sample_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    check = test_without_noise_they_are_what_they_are_called.hypothesis.inner_test
    monkeypatch.setitem(STATISTICS, "var_samp", STATISTICS["var_pop"])
    with pytest.raises(AssertionError):
        check("var_samp", [(1, 1), (4, 4)])
