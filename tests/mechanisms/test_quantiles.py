"""Many quantiles: their law, what a level costs, the error they state, and twins of what could go wrong."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, islice, pairwise, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import Quantile, Quantiles
from lapwing.mechanisms import quantiles as module
from lapwing.privacy.measures import PureDP, ZeroConcentratedDP
from tests.mechanisms.test_mechanism_cases import delta
from tests.support import mechanism_cases
from tests.support.effort import one_in, only
from tests.support.enumeration import Law, NoEntropy, law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.mechanisms import quantile_oracle
from tests.support.privacy.oracle import real

HALF = Fraction(1, 2)
CLOSE = mpf(10) ** -12
WANTED = (Fraction(1, 5), HALF, Fraction(4, 5))
SMALL = Quantiles(quantiles=WANTED, lower=0, upper=3, scale=Fraction(1, 3))
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))

Rows = tuple[int, ...]


def law(mechanism: Quantiles, rows: Rows) -> Law:
    return law_of(lambda entropy: mechanism.release(rows, entropy))


def neighbours() -> Iterator[tuple[Rows, Rows]]:
    """All data sets of up to three rows on 0 … 3, and each with one row more."""
    for size in range(4):
        for rows in combinations_with_replacement(range(4), size):
            for x in range(4):
                yield rows, tuple(sorted((*rows, x)))


@pytest.mark.parametrize(
    "mechanism",
    only(
        (0, 1, 2, 3),
        [
            SMALL,
            replace(SMALL, quantiles=(Fraction(1, 3),)),
            replace(SMALL, quantiles=(Fraction(0), Fraction(1))),
            replace(SMALL, quantiles=(Fraction(0), Fraction(1, 10), Fraction(9, 10), Fraction(1)), upper=2),
            replace(SMALL, quantiles=(Fraction(1, 10), HALF), spread=3, upper=1),
        ],
    ),
)
def test_laws(mechanism: Quantiles) -> None:
    for rows in ((), (2,), (1, 1, 1), (0, 1, 3), (3, 3, -5)):
        found = law(mechanism, rows)
        wanted = quantile_oracle.quantiles(
            rows, mechanism.quantiles, mechanism.lower, mechanism.upper, mechanism.scale, mechanism.spread
        )
        for outcome in found.keys() | wanted.keys():
            assert abs(found.get(outcome, mpf(0)) - wanted.get(outcome, mpf(0))) < CLOSE


def check_losses(stated: Callable[[Quantiles, str], Any]) -> None:
    """The stated losses cover all small neighbours, in both directions and in all measures."""
    losses = {kind: stated(SMALL, kind) for kind in ("pure", "gdp", "zcdp")}
    laws = {
        rows: quantile_oracle.quantiles(rows, SMALL.quantiles, 0, 3, SMALL.scale)
        for pair in neighbours()
        for rows in pair
    }
    for pair in neighbours():
        for first, second in (pair, pair[::-1]):
            one, other = laws[first], laws[second]
            assert max(mp.log(p / other[y]) for y, p in one.items()) <= real(losses["pure"].epsilon)
            for epsilon in (Fraction(0), Fraction(1), Fraction(4)):
                spent = delta(one, other, epsilon)
                assert all(spent <= mpf(loss.to_delta(epsilon=epsilon)) + CLOSE for loss in losses.values())


def test_the_stated_losses_cover_neighbours() -> None:
    check_losses(lambda mechanism, kind: mechanism.loss(kind))


@pytest.mark.long
@pytest.mark.parametrize("level", one_in(2, [0, 1]))
def test_twin_a_level_that_is_not_charged_is_caught(level: int) -> None:
    def uncharged(mechanism: Quantiles, kind: str) -> Any:
        widths = module._widths(mechanism.quantiles)
        return mechanism.loss(kind).from_amount(module._amount(kind, [widths[level]], mechanism.scale))

    with pytest.raises(AssertionError):
        check_losses(uncharged)


def parts_of(mechanism: Quantiles, rows: Rows, script: Rows) -> list[tuple[int, int, Rows]]:
    """The ends and the rows of every part, where what is chosen follows a script."""
    parts, chosen = [], iter(script)

    def choose(ordered: Any, quantile: Fraction, lower: int, upper: int, scale: Fraction, entropy: Any) -> int:
        parts.append((lower, upper, tuple(ordered.tolist())))
        return min(max(next(chosen), lower), upper)

    with patch.object(module, "choose", choose):
        mechanism.release(rows, NoEntropy())
    return parts


def check_parts(every: int = 1) -> None:
    """Given what was released before, a row more is in one part of a level at most, and changes nothing else."""
    quartiles = (Fraction(1, 4), HALF, Fraction(3, 4))
    mechanism = Quantiles(quantiles=quartiles, lower=0, upper=3, scale=HALF)
    levels = [split.level for split in module._splits(quartiles)]
    for first, second in neighbours():
        for script in islice(product(range(4), repeat=3), 0, None, every):
            changed = Counter[int]()
            pairs = zip(parts_of(mechanism, first, script), parts_of(mechanism, second, script), strict=True)
            for level, (one, other) in zip(levels, pairs, strict=True):
                assert one[:2] == other[:2]
                assert all(one[0] <= x <= one[1] for x in one[2])
                assert not Counter(one[2]) - Counter(other[2])
                changed[level] += (Counter(other[2]) - Counter(one[2])).total()
            assert changed[0] == 1
            assert changed[1] <= 1


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_row_is_in_one_part_of_a_level(every: int) -> None:
    check_parts(every)


def balanced(part: Any, point: int, side: str) -> int:
    """Divide equal rows as the target rank has it: then a row more moves another one across."""
    low, high = int(np.searchsorted(part, point, side="left")), int(np.searchsorted(part, point, side="right"))
    return min(max(low, -(-len(part) // 2)), high)


def both_sides(part: Any, point: int, side: str) -> int:
    """Leave the middle row to the right whatever is chosen: then a row's part depends on other rows."""
    return len(part) // 2


@pytest.mark.parametrize("searchsorted", [balanced, both_sides])
def test_twins_where_rows_change_sides_with_others_are_caught(searchsorted: Any) -> None:
    with patch.object(module, "np", NumpyWith(searchsorted=searchsorted)), pytest.raises(AssertionError):
        check_parts()


class NumpyWith:
    """NumPy with one function replaced."""

    def __init__(self, **replaced: Any) -> None:
        self.replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self.replaced.get(name, getattr(np, name))


def test_widths_and_losses_are_the_theorems() -> None:
    assert module._widths(DECILES) == [1, Fraction(6, 5), Fraction(4, 3), 1]
    mechanism = Quantiles(quantiles=WANTED, lower=0, upper=9, scale=HALF)
    assert mechanism.levels == 2
    assert mechanism.loss("pure") == PureDP(2 * (1 + Fraction(6, 5)))
    assert mechanism.loss("pure", rows=3) == PureDP(6 * (1 + Fraction(6, 5)))
    assert mechanism.loss("zcdp") == ZeroConcentratedDP(4 * (1 + Fraction(36, 25)) / 8)
    one = replace(mechanism, quantiles=(Fraction(1, 3),))
    assert one.loss("gdp") == Quantile(quantile=Fraction(1, 3), lower=0, upper=9, scale=HALF).loss("gdp")
    with pytest.raises(InvalidParameter, match="must be one of"):
        mechanism.loss("approx")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 100])
def test_splits_are_complete_and_as_many_levels_deep_as_stated(count: int) -> None:
    wanted = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    splits = module._splits(wanted)
    known = {-1, count}
    for split in splits:
        assert {split.left, split.right} <= known
        assert split.left < split.place < split.right
        assert split.place not in known
        known.add(split.place)
    assert known == set(range(-1, count + 1))
    assert max(split.level for split in splits) == count.bit_length() - 1


@pytest.mark.parametrize("loss", [*mechanism_cases.losses(Fraction(1, 3), Fraction(2)), PureDP(10**12)])
@pytest.mark.parametrize("wanted", [DECILES, (Fraction(1, 100), HALF)])
def test_for_loss_spends_all_and_no_more(loss: Any, wanted: tuple[Fraction, ...]) -> None:
    for rows in (1, 3):
        mechanism = Quantiles.for_loss(loss, quantiles=wanted, lower=0, upper=100, rows=rows)
        assert mechanism.loss(loss.kind, rows=rows) <= loss
        if mechanism.scale > Fraction(1, 2**30):
            less = replace(mechanism, scale=mechanism.scale * (1 - Fraction(1, 2**40)))
            assert less.loss(loss.kind, rows=rows) > loss


TIED = np.repeat(np.arange(0, 1000, 100), 60)
DISTINCT = np.arange(0, 1200, 2)
RUNS = 300
# Hoeffding: a share of RUNS independent events is this far from its probability with probability below 1e-8.
FAR = float(mp.sqrt(mp.log(1e8) / (2 * RUNS)))


def worst_errors(mechanism: Quantiles, rows: Any) -> list[Fraction]:
    """The largest rank error of each of many releases."""
    entropy, ordered, found = StreamEntropy("rank error"), np.sort(rows), []
    for _ in range(RUNS):
        values = mechanism.release(rows, entropy)
        assert all(low <= high for low, high in pairwise(values))
        assert mechanism.lower <= values[0] <= values[-1] <= mechanism.upper
        errors = []
        for q, v in zip(mechanism.quantiles, values, strict=True):
            target, below = q * rows.size, int(np.searchsorted(ordered, v))
            at_most = int(np.searchsorted(ordered, v, side="right"))
            errors.append(max(Fraction(0), below - target, target - at_most))
        found.append(max(errors))
    return found


def check_rank_error(mechanism: Quantiles, rows: Any, error: Fraction) -> None:
    """It holds in three quarters of all releases."""
    assert sum(e > error for e in worst_errors(mechanism, rows)) / RUNS <= 0.25 + FAR


SHARE = Fraction(3, 4)
EQUAL = np.zeros(50, dtype=np.int64)
# A third of the rows are equal, at the median, which is released first; the other quantile is not near them.
HEAP = np.concatenate((np.arange(300), np.full(300, 300), np.arange(301, 601)))


@pytest.mark.parametrize(("rows", "ties"), only([], [(DISTINCT, 1), (TIED, 60), (EQUAL, 50)], many=True))
def test_the_rank_error_holds(rows: Any, ties: int) -> None:
    mechanism = Quantiles(quantiles=DECILES, lower=0, upper=1200, scale=Fraction(2))
    check_rank_error(mechanism, rows, mechanism.rank_error(SHARE, ties=ties))


@pytest.mark.long
def test_the_rank_error_holds_where_it_is_large_and_a_twelfth_is_caught() -> None:
    mechanism = Quantiles(quantiles=DECILES, lower=0, upper=2**40, scale=Fraction(2))
    error = mechanism.rank_error(SHARE, ties=50)
    check_rank_error(mechanism, EQUAL, error)
    with pytest.raises(AssertionError):
        check_rank_error(mechanism, EQUAL, error / 12)


@pytest.mark.long
def test_the_rank_error_holds_with_equal_rows_and_a_twin_that_forgets_them_is_caught() -> None:
    mechanism = Quantiles(quantiles=(HALF, Fraction(7, 10)), lower=0, upper=600, scale=Fraction(1, 2))
    error = mechanism.rank_error(SHARE, ties=300)
    check_rank_error(mechanism, HEAP, error)
    with pytest.raises(AssertionError):
        check_rank_error(mechanism, HEAP, error - 300)
    # Spread over 1024 points each, equal rows are no longer in the way.
    check_rank_error(replace(mechanism, spread=1024), HEAP, Fraction(30))


def test_the_rank_error_is_made_of_that_of_each_level() -> None:
    mechanism = Quantiles(quantiles=(Fraction(1, 4), HALF, Fraction(3, 4)), lower=0, upper=99, scale=Fraction(3))
    each = Quantile(quantile=HALF, lower=0, upper=99, scale=Fraction(3)).rank_error(1 - Fraction(1, 30))
    assert mechanism.rank_error(Fraction(9, 10), ties=7) == 2 * each + 7


@pytest.mark.long
def test_a_million_rows() -> None:
    rows = np.arange(10**6, dtype=np.int64)
    mechanism = Quantiles(quantiles=DECILES, lower=0, upper=10**6, scale=Fraction(4), spread=2**10)
    values = mechanism.release(rows, StreamEntropy("a million"))
    error = mechanism.rank_error(1 - Fraction(1, 10**9), ties=1)
    assert all(abs(v - int(q * 10**6)) <= error + 1 for q, v in zip(DECILES, values, strict=True))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("quantiles", ()),
        ("quantiles", [HALF]),
        ("quantiles", (HALF, HALF)),
        ("quantiles", (HALF, Fraction(1, 4))),
        ("quantile", (HALF, 0.75)),
        ("quantile", (Fraction(-1), HALF)),
        ("upper", -1),
        ("lower", 1.0),
        ("scale", 0),
        ("scale", 0.5),
        ("spread", 0),
        ("spread", True),
        ("spread", 2**61),
    ],
)
def test_parameters_that_mean_nothing_are_refused(field: str, value: Any) -> None:
    name = "quantiles" if field == "quantile" else field
    fields: dict[str, Any] = {"quantiles": WANTED, "lower": 0, "upper": 9, "scale": Fraction(1), name: value}
    with pytest.raises(InvalidParameter, match=field):
        Quantiles(**fields)


@pytest.mark.parametrize("values", [[1.5], [True], [float("nan")], ["1"], np.zeros((2, 2), dtype=np.int64), 7])
def test_values_that_are_not_whole_are_refused_before_anything_is_drawn(values: Any) -> None:
    with pytest.raises(InvalidParameter):
        replace(SMALL, spread=2).release(values, NoEntropy())


def test_other_arguments_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        SMALL.loss("pure", rows=0)
    with pytest.raises(InvalidParameter, match="ties"):
        SMALL.rank_error(0.9, ties=0)
    for confidence in (0, 1, float("nan")):
        with pytest.raises(InvalidParameter, match="confidence"):
            SMALL.rank_error(confidence, ties=1)
    with pytest.raises(InvalidParameter, match="no finite noise"):
        Quantiles.for_loss(PureDP(0), quantiles=WANTED, lower=0, upper=9)
