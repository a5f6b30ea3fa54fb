"""Order statistics: what they are without noise, how far a unit moves their trees, and what their intervals hold."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.additive import Mechanism
from lapwing.mechanisms.trees import levels_above, spreads
from lapwing.query.aggregates.order_statistics import MOST_NODES, NODES_BY_CHOICE
from lapwing.query.bind.bind import bind
from lapwing.query.derivation import noisy_trees
from lapwing.query.derivation.noisy_trees import NoisyTrees, RankKind
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distribution import Distribution
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.sensitivity import stability
from tests.support.effort import is_long, one_in, only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.refusals import refused_as

LEAST_P_VALUE = 1e-8
SILENT = RoundedGaussian(sigma=Fraction(1, 2**30))


def tree(high: int, *, low: int = 0, width: int = 1, branching: int = 4, step: Fraction = Fraction(1)) -> Distribution:
    kind = Fixed(step=step, low=low, high=high)
    return Distribution(argument=ColumnReference(name="x", type=kind), width=width, branching=branching)


def nodes(measure: Distribution, cells: list[Any]) -> Any:
    """Return the exact nodes of cells of values in steps."""
    leaves = [
        np.bincount((np.array(cell, dtype=int) - measure.low) // measure.width, minlength=measure.sizes[-1])
        for cell in cells
    ]
    return np.concatenate(levels_above(np.array(leaves, dtype=np.int64), measure.branching), axis=-1)


KINDS: tuple[RankKind, ...] = ("discrete", "continuous", "extreme")


def statistic(measure: Distribution, share: Fraction | float, kind: RankKind = "discrete") -> OrderStatistic:
    return OrderStatistic(distribution=measure, share=Fraction(share), kind=kind, shape="real")


# ---- without noise ---------------------------------------------------------------------------------------------------


def sql_discrete(values: Any, q: Fraction) -> int:
    return int(np.sort(values)[max(1, ceil(q * len(values))) - 1])


def sql_continuous(values: Any, q: Fraction) -> float:
    rows, place = np.sort(values), q * (len(values) - 1)
    low, high = rows[floor(place)], rows[ceil(place)]
    return float(low + (place - floor(place)) * (high - low))


SHARES = [Fraction(n, 40) for n in range(41)] + [Fraction(1, 3), Fraction(99, 100)]
SHAPES = [(0, 3, 4), (0, 40, 4), (-7, 90, 4), (5, 300, 16), (0, 12, 2)]


def check_exact(quantile: Callable[[NoisyTrees, OrderStatistic], list[Any]]) -> None:
    generator = np.random.default_rng(1)
    for low, high, branching in SHAPES:
        measure = tree(high, low=low, branching=branching)
        cells = [generator.integers(low, high + 1, size) for size in (1, 2, 3, 10, 101, 1000)]
        found = NoisyTrees.of(measure, SILENT, nodes(measure, cells))
        for q in SHARES:
            discrete = quantile(found, statistic(measure, q))
            assert discrete == [sql_discrete(cell, q) for cell in cells]
            continuous = quantile(found, statistic(measure, q, "continuous"))
            wanted = [sql_continuous(cell, q) for cell in cells]
            assert np.allclose([float(value) for value in continuous], wanted, atol=2**-16)


def test_without_noise_quantiles_are_those_of_sql() -> None:
    check_exact(lambda found, asked: found.values(asked).values())


def test_twin_a_quantile_one_rank_off_is_caught() -> None:
    def later(found: NoisyTrees, asked: OrderStatistic) -> list[Any]:
        return replace(found, up_to=found.up_to - 1).values(asked).values()

    with pytest.raises(AssertionError):
        check_exact(later)


def test_wide_leaves_are_right_to_within_their_width() -> None:
    measure = tree(9_999, width=20, step=Fraction(1, 10))
    generator = np.random.default_rng(2)
    cells = [np.minimum(generator.exponential(800, 5_000).astype(int), 9_999)]
    found = NoisyTrees.of(measure, SILENT, nodes(measure, cells))
    for q in SHARES:
        for kind in KINDS[:2]:
            (value,) = found.values(statistic(measure, q, kind)).values()
            assert value is not None
            assert abs(float(value) * 10 - sql_discrete(cells[0], q)) <= 21


def test_no_rows_have_no_quantile_but_an_interval() -> None:
    measure = tree(40)
    found = NoisyTrees.of(measure, SILENT, nodes(measure, [[], [7]]))
    for kind in KINDS:
        assert found.values(statistic(measure, 0, kind)).values() == [None, 7]
        low, high = found.ends(statistic(measure, 1, kind), Fraction(1, 20))
        assert (floats(low) <= floats(high)).all()


def test_an_argument_of_one_value() -> None:
    measure = tree(5, low=5)
    found = NoisyTrees.of(measure, RoundedGaussian(sigma=Fraction(3)), nodes(measure, [[5] * 9, []]))
    for kind in KINDS:
        for share in (0, 1):
            assert found.values(statistic(measure, share, kind)).values() == [5, None]
            assert [end.values() for end in found.ends(statistic(measure, share, kind), Fraction(1, 9))] == [[5, 5]] * 2


# ---- sensitivities ---------------------------------------------------------------------------------------------------

TREES = [tree(0), tree(1), tree(4, branching=2), tree(5, branching=2), tree(5, branching=4), tree(8, branching=3)]


def vectors(measure: Distribution, rows: int, cells: int) -> Any:
    """Return the nodes of all cells, of every unit of at most `rows` rows, each in a leaf of a cell or in none."""
    choices = [None, *product(range(cells), range(measure.sizes[-1]))]
    found = []
    for unit in combinations_with_replacement(choices, rows):
        held: list[list[int]] = [[] for _ in range(cells)]
        for row in unit:
            if row is not None:
                held[row[0]].append(row[1] + measure.low)
        found.append(nodes(measure, held).reshape(-1))
    return np.array(found)


def farthest(found: Any, neighbouring: str) -> tuple[int, int]:
    others = found if neighbouring == "replace_one" else np.zeros_like(found[:1])
    moves = np.abs(found[:, None, :] - others[None, :, :])
    return max(int(moves.sum(axis=-1).max()), 1), max(int((moves**2).sum(axis=-1).max()), 1)


Claim = Callable[[Distribution, int, int, str], tuple[int, int]]


def claimed(measure: Distribution, rows: int, cells: int, neighbouring: str) -> tuple[int, int]:
    (one,) = stability.sensitivity_bounds(measure, rows_per_unit=rows, cells=cells, neighbouring=neighbouring)
    return int(one.sensitivity.l1), int(one.sensitivity.l2_squared)


def check_claims(claim: Claim) -> None:
    """No unit moves the nodes further than is claimed, and some unit moves them that far."""
    for measure in TREES:
        for rows, cells in ((1, 1), (2, 1), (1, 2), (2, 2)):
            found = vectors(measure, rows, cells)
            for neighbouring in ("add_remove", "replace_one"):
                assert claim(measure, rows, cells, neighbouring) == farthest(found, neighbouring)


def test_sensitivities_are_valid_and_attained() -> None:
    check_claims(claimed)


@pytest.mark.parametrize(
    "forgotten",
    [
        lambda measure, rows, cells, kind: claimed(tree(measure.high, branching=99), rows, cells, kind),
        lambda measure, rows, cells, kind: claimed(measure, 1, cells, kind),
        lambda measure, rows, cells, kind: claimed(measure, rows, cells, "add_remove"),
    ],
    ids=["levels", "rows", "replacing"],
)
def test_twins_that_forget_levels_rows_or_replacing_are_caught(forgotten: Claim) -> None:
    with pytest.raises(AssertionError):
        check_claims(forgotten)


# ---- noise -----------------------------------------------------------------------------------------------------------

NOISES: list[Mechanism] = [RoundedGaussian(sigma=Fraction(12)), DiscreteLaplace(scale=Fraction(9))]
RELEASES = 1500
MEASURE = tree(299, branching=4)


def data() -> list[Any]:
    generator = np.random.default_rng(3)
    return [
        generator.integers(0, 300, 4_000),
        np.minimum(generator.exponential(9, 4_000).astype(int), 299),
        np.repeat([40, 41, 250], [700, 20, 900]),
        generator.integers(100, 120, 60),
    ]


def released(noise: Mechanism, cell: Any, label: str) -> NoisyTrees:
    """Return many releases of one cell."""
    exact = np.repeat(nodes(MEASURE, [cell]), RELEASES, axis=0)
    return NoisyTrees.of(MEASURE, noise, noise.release(exact, StreamEntropy(label)))


def floats(column: Any) -> Any:
    return np.array([np.nan if value is None else float(value) for value in column.values()])


@pytest.mark.long
@pytest.mark.parametrize("noise", only([0], NOISES), ids=["gaussian", "laplace"])
def test_quantiles_ascend_and_lie_in_their_intervals(noise: Mechanism) -> None:
    for number, cell in enumerate(data()):
        found = released(noise, cell, f"ascend {number}")
        for kind in KINDS[:2]:
            before = np.full(RELEASES, -np.inf)
            for q in SHARES[: 41 : 2 if is_long() else 10]:
                asked = statistic(MEASURE, q, kind)
                values = floats(found.values(asked))
                assert not (values < before - 2**-15).any()
                before = np.maximum(before, np.nan_to_num(values, nan=-np.inf))
                low, high = (floats(end) for end in found.ends(asked, Fraction(1, 2)))
                assert not ((values < low) | (values > high)).any()
        low, high = (floats(found.values(statistic(MEASURE, share, "extreme"))) for share in (0, 1))
        middle = floats(found.values(statistic(MEASURE, Fraction(1, 2), "continuous")))
        assert not ((low > middle) | (middle > high)).any()


def misses(found: NoisyTrees, cell: Any, q: Fraction, kind: RankKind, chance: Fraction) -> int:
    """Count the releases whose interval misses the true value."""
    true = sql_continuous(cell, q) if kind == "continuous" else sql_discrete(cell, q)
    low, high = (floats(end) for end in found.ends(statistic(MEASURE, q, kind), chance))
    return int(((true < low) | (true > high)).sum())


def too_many(count: int, chance: Fraction) -> bool:
    return bool(stats.binom.sf(count - 1, RELEASES, float(chance)) < LEAST_P_VALUE)


def check_coverage(noise: Mechanism, chance: Fraction) -> None:
    for number, cell in enumerate(data()):
        found = released(noise, cell, f"cover {number}")
        for q in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(3, 4), Fraction(1)):
            for kind in KINDS:
                if kind != "extreme" or q in (0, 1):
                    assert not too_many(misses(found, cell, q, kind, chance), chance), (number, q, kind)


@pytest.mark.long
@pytest.mark.parametrize(("chance", "noise"), only([3], product([Fraction(1, 20), Fraction(1, 2)], NOISES), many=True))
def test_intervals_cover(noise: Mechanism, chance: Fraction) -> None:
    check_coverage(noise, chance)


@pytest.mark.long
def test_twin_intervals_of_a_quarter_of_the_width_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = noisy_trees.rank_margins
    monkeypatch.setattr("lapwing.query.derivation.noisy_trees.rank_margins", lambda *all_: narrow(*all_) / 4)
    with pytest.raises(AssertionError):
        check_coverage(NOISES[0], Fraction(1, 20))


def check_extremes(noise: Mechanism) -> None:
    """MIN is below all rows, and MAX above them, in one of twenty releases at most."""
    for number, cell in enumerate(data()):
        found = released(noise, cell, f"extremes {number}")
        below = int((floats(found.values(statistic(MEASURE, 0, "extreme"))) < cell.min()).sum())
        above = int((floats(found.values(statistic(MEASURE, 1, "extreme"))) > cell.max()).sum())
        if len(cell) > 1000:  # of few rows it is the median
            assert not too_many(below, Fraction(1, 20)), number
            assert not too_many(above, Fraction(1, 20)), number


@pytest.mark.parametrize("noise", one_in(2, NOISES), ids=["gaussian", "laplace"])
def test_extremes_are_inside_the_data(noise: Mechanism) -> None:
    check_extremes(noise)


def test_twin_extremes_of_the_first_row_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "lapwing.query.derivation.noisy_trees.rank_margins", lambda measure, *_: np.zeros(measure.sizes[-1])
    )
    with pytest.raises(AssertionError):
        check_extremes(NOISES[0])


@pytest.mark.long
@pytest.mark.parametrize("noise", one_in(2, NOISES), ids=["gaussian", "laplace"])
def test_the_error_of_a_rank_has_the_variance_of_its_weight(noise: Mechanism) -> None:
    """For every q the squared error of F̂ − q·n̂ averages to the weight: no bound is needlessly wide."""
    cell = data()[0]
    found = released(noise, cell, "variance")
    true = np.cumsum(np.bincount(cell, minlength=300))
    for q in (0.0, 0.5, 0.9):
        errors = (found.up_to - q * found.totals[:, None]) - (true - q * len(cell))
        weights = spreads(MEASURE.sizes, MEASURE.branching).weights(q) * noise.standard_deviation**2
        ratio = (errors**2).mean(axis=0)[:-1] / weights[:-1]
        assert 0.7 < ratio.min() < 1 < ratio.max() < 1.35
        for confidence in (Fraction(1, 2), Fraction(95, 100)):
            far = np.abs(errors) > noisy_trees.rank_error(MEASURE, noise, confidence, Fraction(q))
            assert not any(too_many(int(count), 1 - confidence) for count in far.sum(axis=0))


# ---- plans -----------------------------------------------------------------------------------------------------------

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.t]
source = "t.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.t.columns]
plan = { type = "string", values = ["a", "b"] }
town = { type = "string" }
district = { type = "integer", lower = 1, upper = 2000 }
age = { type = "integer", lower = 0, upper = 110 }
pay = { type = "decimal", lower = 0, upper = 500000, step = 0.01 }
share = { type = "float", lower = -1, upper = 1 }
points = { type = "integer" }
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="small", folder=Path())


def distributions(catalog: Catalog, text: str) -> tuple[Distribution, ...]:
    return bind(text, catalog).question.distributions


@pytest.mark.long
def test_all_order_statistics_of_a_column_are_one_measure(catalog: Catalog) -> None:
    text = """SELECT plan, MEDIAN(pay), QUANTILE(pay, 0.1), QUANTILE_CONT(pay, 0.9), QUANTILE_DISC(pay, 0.2),
        APPROX_QUANTILE(pay, 0.99), PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY pay), MIN(pay), MAX(pay),
        PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY pay), QUANTILE_CONT(pay, 0.75) - QUANTILE_CONT(pay, 0.25) AS iqr,
        PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY pay DESC)
        FROM t GROUP BY plan HAVING MEDIAN(pay) > 10 ORDER BY QUANTILE(pay, 0.3)"""
    plan = bind(text, catalog)
    assert plan.question.measures == plan.question.distributions
    assert len(plan.question.measures) == 1
    assert len(calibrate(plan, catalog.budget, epsilon=1).terms) == 1
    last = plan.outputs[-1].value
    assert isinstance(last, OrderStatistic)
    assert last.share == Fraction(1, 10)


def test_other_rows_or_values_are_other_measures(catalog: Catalog) -> None:
    text = "SELECT MEDIAN(pay), MEDIAN(pay) FILTER (WHERE age > 5), MEDIAN(pay / 2), MEDIAN(age), COUNT(*) FROM t"
    plan = bind(text, catalog)
    assert len(plan.question.distributions) == 4
    assert len(plan.question.numbers) == 1


def test_the_grid_is_as_fine_as_the_cells_allow(catalog: Catalog) -> None:
    widths = []
    for key in ("plan", "age", "district"):
        (measure,) = distributions(catalog, f"SELECT {key}, MEDIAN(pay) FROM t GROUP BY {key}")
        widths.append(measure.width)
        assert measure.sizes[-1] <= 2**16
    assert widths == [1000, 20_000, 200_000]
    (private,) = distributions(catalog, "SELECT town, MEDIAN(pay) FROM t GROUP BY town")
    assert private.width == 200_000
    (whole,) = distributions(catalog, "SELECT district, MEDIAN(age) FROM t GROUP BY district")
    assert whole.width == 1
    assert sum(whole.sizes) * 2000 < NODES_BY_CHOICE


def test_the_grid_follows_the_cells_of_the_grouping_sets(catalog: Catalog) -> None:
    """Each set has the cells of its own keys: those of two keys apart add up, and do not multiply."""

    def width(group: str) -> int:
        (measure,) = distributions(catalog, f"SELECT MEDIAN(pay) FROM t GROUP BY {group}")
        return int(measure.width)

    assert width("GROUPING SETS ((age), (plan), ())") == width("age") < width("age, plan, district")
    assert width("ROLLUP (age, plan)") >= width("age, plan")


def test_too_many_nodes_are_refused(catalog: Catalog) -> None:
    plan = bind("SELECT district, age, MEDIAN(pay) FROM t GROUP BY district, age", catalog)
    with refused_as("too_many_groups", saying=f"{MOST_NODES:,}"):
        calibrate(plan, catalog.budget, epsilon=1)


def test_an_error_is_no_price_of_a_quantile(catalog: Catalog) -> None:
    for text in ("SELECT MEDIAN(age) FROM t", "SELECT COUNT(*) FROM t HAVING MEDIAN(age) > 4"):
        with refused_as("error_not_public"):
            calibrate(bind(text, catalog), catalog.budget, error=5)


def test_a_distribution_is_paid_level_by_level(catalog: Catalog) -> None:
    plan = bind("SELECT MEDIAN(age), MAX(age) FROM t", catalog)
    (term,) = calibrate(plan, catalog.budget, epsilon=1).terms
    assert isinstance(term.measure, Distribution)
    assert term.measure.sizes == (2, 7, 28, 111)
    assert (term.candidate.sensitivity.l1, term.candidate.sensitivity.l2_squared) == (3 * 4, 9 * 4)
    assert term.half_width(Fraction(95, 100)) > term.mechanism.half_width(Fraction(95, 100))
    budget = replace(catalog.budget, neighbouring="replace_one")
    (replaced,) = calibrate(plan, budget, epsilon=1).terms
    assert (replaced.candidate.sensitivity.l1, replaced.candidate.sensitivity.l2_squared) == (24, 72)
