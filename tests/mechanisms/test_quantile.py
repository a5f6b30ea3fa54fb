"""One quantile: the range of its law on neighbours, the error it states, and twins of what could go wrong."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import Quantile
from lapwing.mechanisms import quantile as module
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import one_in
from tests.support.enumeration import Law, NoEntropy, law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.mechanisms import quantile_oracle
from tests.support.privacy.oracle import real

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
SHARES = tuple(Fraction(x) for x in ("0", "1/4", "1/2", "2/3", "1"))
CLOSE = mpf(10) ** -12
TOP = 4

Rows = tuple[int, ...]
Range = Callable[[Fraction], Fraction]


def neighbours() -> Iterator[tuple[Rows, Rows]]:
    """All data sets of up to three rows on 0 … TOP, and each with one row more."""
    for size in range(4):
        for rows in combinations_with_replacement(range(TOP + 1), size):
            for x in range(TOP + 1):
                yield rows, tuple(sorted((*rows, x)))


def log_ratios(q: Fraction, scale: Fraction, first: Rows, second: Rows) -> list[mpf]:
    one, other = (quantile_oracle.quantile(rows, q, 0, TOP, scale) for rows in (first, second))
    return [mp.log(one[v] / other[v]) for v in one]


def check_range(stated: Range) -> None:
    """No log-ratios between neighbours differ by more than is stated, and some differ by just as much."""
    for q in SHARES:
        mechanism = Quantile(quantile=q, lower=0, upper=TOP, scale=THIRD)
        widest = mpf(0)
        for first, second in neighbours():
            ratios = log_ratios(q, mechanism.scale, first, second)
            widest = max(widest, max(ratios) - min(ratios))
        assert abs(widest - real(stated(q) / mechanism.scale)) < CLOSE


def test_the_bounded_range_holds_and_is_attained() -> None:
    check_range(module.width_at_one)


@pytest.mark.long
@pytest.mark.parametrize(
    "twin", one_in(2, [lambda q: max(q, 1 - q), lambda q: Fraction(1), lambda q: 2 * q, lambda q: 2 * max(q, 1 - q)])
)
def test_twins_of_the_range_are_caught(twin: Range) -> None:
    with pytest.raises(AssertionError):
        check_range(twin)


def test_the_stated_loss_is_that_of_the_range_and_of_all_rows_of_a_unit() -> None:
    mechanism = Quantile(quantile=Fraction(1, 4), lower=0, upper=9, scale=Fraction(3))
    assert mechanism.loss("pure") == PureDP(HALF)
    assert mechanism.loss("zcdp") == ZeroConcentratedDP(Fraction(1, 32))
    assert mechanism.loss("pure", rows=4) == PureDP(2)
    with pytest.raises(InvalidParameter, match="must be one of"):
        mechanism.loss("approx")


def check_pure(loss: Callable[[Quantile], PureDP]) -> None:
    """On a huge grid the pure loss is attained: nearly all points gain distance, one loses it."""
    mechanism = Quantile(quantile=HALF, lower=0, upper=2**60, scale=Fraction(3, 4))
    first, second = np.array([5, 2**60]), np.array([0, 5, 2**60])
    laws = []
    for rows in (first, second):
        starts, lengths, distances = module.pieces(rows, HALF, 0, 2**60)
        assert int(lengths.sum()) == 2**60 + 1
        weights = [mp.exp(-real(int(d) / (2 * mechanism.scale))) for d in distances]
        total = mp.fsum(int(n) * w for n, w in zip(lengths, weights, strict=True))
        laws.append({3: weights[int(np.searchsorted(starts, 3, side="right")) - 1] / total})
    attained = mp.log(laws[1][3] / laws[0][3])
    assert abs(attained - real(loss(mechanism).epsilon)) < mpf(10) ** -9


def test_the_pure_loss_is_attained() -> None:
    check_pure(lambda mechanism: PureDP(mechanism.loss("pure").amount))


def test_twin_half_the_pure_loss_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_pure(lambda mechanism: PureDP(mechanism.loss("pure").amount / 2))


def law(mechanism: Quantile, rows: Rows) -> Law:
    return law_of(lambda entropy: mechanism.release(rows, entropy))


def check_laws(shares: Sequence[Fraction] = SHARES) -> None:
    """The law is that of the definition, for all small data and several quantiles."""
    for q in shares:
        mechanism = Quantile(quantile=q, lower=0, upper=TOP, scale=HALF)
        for rows, _ in neighbours():
            found = law(mechanism, rows)
            wanted = quantile_oracle.quantile(rows, q, 0, TOP, HALF)
            assert found.keys() == wanted.keys()
            assert all(abs(found[v] - p) < CLOSE for v, p in wanted.items())


@pytest.mark.parametrize("share", one_in(8, SHARES), ids=str)
def test_laws_of_all_small_data(share: Fraction) -> None:
    check_laws([share])


def planted(change: Callable[[Any, Any, Any], tuple[Any, Any, Any]]) -> Any:
    """Return `pieces` with a bug planted in what it returns."""
    true = module.pieces
    return patch.object(module, "pieces", lambda *arguments: change(*true(*arguments)))


@pytest.mark.parametrize(
    "change",
    [
        lambda starts, lengths, d: (starts, lengths + (np.arange(lengths.size) == 0), d),
        lambda starts, lengths, d: (starts, np.maximum(lengths, 1), d),
        lambda starts, lengths, d: (starts, lengths, np.append(d[1:], d[-1:])),
        lambda starts, lengths, d: (starts, lengths, np.append(d[:1], d[:-1])),
        lambda starts, lengths, d: (starts, (lengths > 0).astype(np.int64), d),
    ],
    ids=["a point too many", "empty gaps count", "< for ≤", "≤ for <", "lengths forgotten"],
)
def test_twins_of_the_pieces_are_caught(change: Any) -> None:
    with planted(change), pytest.raises(AssertionError):
        check_laws()


@pytest.mark.long
@given(
    st.lists(st.integers(-40, 40), max_size=30),
    st.fractions(0, 1, max_denominator=50),
    st.integers(-20, 0),
    st.integers(0, 20),
)
def test_pieces_cover_the_grid_with_the_right_distances(values: list[int], q: Fraction, lower: int, upper: int) -> None:
    rows = module.clamped(values, lower, upper)
    starts, lengths, distances = module.pieces(np.sort(rows), q, lower, upper)
    points = [
        (start + k, d)
        for start, n, d in zip(starts.tolist(), lengths.tolist(), distances, strict=True)
        for k in range(n)
    ]
    assert [v for v, _ in points] == list(range(lower, upper + 1))
    for v, d in points:
        assert Fraction(int(d), q.denominator) == quantile_oracle.rank_error(rows.tolist(), q, v)
    assert min(d for _, d in points) == 0


def exceeds(mechanism: Quantile, rows: Sequence[int], error: Fraction) -> mpf:
    """P(rank error > error)."""
    law = quantile_oracle.quantile(rows, mechanism.quantile, mechanism.lower, mechanism.upper, mechanism.scale)
    return mp.fsum(p for v, p in law.items() if quantile_oracle.rank_error(rows, mechanism.quantile, v) > error)


DATA: tuple[Rows, ...] = ((), (3,), (0, 0, 0, 0), tuple(range(30)), (5, 5, 5, 5, 7, 30, 30, 30, 30), (12,) * 40)


def check_rank_error(error: Callable[[Quantile, Fraction], Fraction]) -> None:
    """It holds with its confidence, by the exact law; where all rows are equal, a little less does not."""
    for q in SHARES:
        for scale in (HALF, Fraction(2)):
            for confidence in (HALF, Fraction(9, 10), Fraction(999, 1000)):
                mechanism = Quantile(quantile=q, lower=0, upper=30, scale=scale)
                e = error(mechanism, confidence)
                for rows in DATA:
                    assert exceeds(mechanism, rows, e) <= real(1 - confidence)
                equal = (30,) * int(e) if q == 1 else (0,) * int(e)
                if q in (0, 1) and e > 0:
                    assert exceeds(mechanism, equal, e - 1) > real(1 - confidence)


@pytest.mark.long
def test_the_rank_error_holds_and_is_attained() -> None:
    check_rank_error(lambda mechanism, confidence: mechanism.rank_error(confidence))


@pytest.mark.parametrize("change", [-1, 1])
def test_twins_of_the_rank_error_are_caught(change: int) -> None:
    with pytest.raises(AssertionError):
        check_rank_error(lambda mechanism, confidence: max(Fraction(0), mechanism.rank_error(confidence) + change))


def test_one_point_is_without_error() -> None:
    mechanism = Quantile(quantile=HALF, lower=4, upper=4, scale=Fraction(100))
    assert mechanism.rank_error(0.999) == 0
    assert mechanism.release([1, 2, 3], StreamEntropy("one point")) == 4


@pytest.mark.parametrize("loss", [*mechanism_cases.losses(Fraction(1, 3), Fraction(2)), PureDP(10**12)])
def test_for_loss_spends_all_and_no_more(loss: Any) -> None:
    for rows in (1, 3):
        mechanism = Quantile.for_loss(loss, quantile=Fraction(9, 10), lower=0, upper=100, rows=rows)
        assert mechanism.loss(loss.kind, rows=rows) <= loss
        if mechanism.scale > Fraction(1, 2**30):
            less = Quantile(
                quantile=Fraction(9, 10), lower=0, upper=100, scale=mechanism.scale * (1 - Fraction(1, 2**40))
            )
            assert less.loss(loss.kind, rows=rows) > loss


@pytest.mark.long
def test_a_million_rows_on_a_huge_grid() -> None:
    rows = np.arange(10**6, dtype=np.int64) * 10**12
    mechanism = Quantile(quantile=Fraction(9, 10), lower=-(2**61), upper=2**61, scale=HALF)
    value = mechanism.release(rows, StreamEntropy("a million"))
    assert abs(value // 10**12 - 900_000) <= mechanism.rank_error(1 - Fraction(1, 10**9))


def test_counts_that_do_not_fit_are_python_integers() -> None:
    below, at_most = np.array([0, 2**50]), np.array([2**49, 2**51])
    found = module.distances(below, at_most, 2**51, Fraction(1, 2**20))
    assert found.dtype == np.object_
    assert found.tolist() == [0, 2**70 - 2**51]


def test_integers_of_numpy_are_parameters_too() -> None:
    mechanism = Quantile(quantile=HALF, lower=np.int8(-128), upper=np.int8(127), scale=Fraction(1))  # type: ignore[arg-type]
    assert mechanism == Quantile(quantile=HALF, lower=-128, upper=127, scale=Fraction(1))
    assert type(mechanism.lower) is int
    assert -128 <= mechanism.release([5], StreamEntropy("numpy")) <= 127


def test_values_beyond_int64_are_moved_to_the_ends() -> None:
    mechanism = Quantile(quantile=Fraction(1), lower=0, upper=10, scale=Fraction(1, 2**30))
    assert mechanism.release([10**30, -(10**40)], StreamEntropy("far")) == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("quantile", -1),
        ("quantile", Fraction(3, 2)),
        ("quantile", 0.5),
        ("quantile", True),
        ("quantile", float("nan")),
        ("quantile", Fraction(1, 2**20 + 1)),
        ("upper", -1),
        ("lower", 0.0),
        ("lower", -(2**61) - 1),
        ("upper", 2**61 + 1),
        ("upper", True),
        ("scale", 0),
        ("scale", -1),
        ("scale", 1.0),
        ("scale", Fraction(2**81)),
        ("scale", "1"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(field: str, value: Any) -> None:
    fields: dict[str, Any] = {"quantile": HALF, "lower": 0, "upper": 9, "scale": Fraction(1), field: value}
    with pytest.raises(InvalidParameter, match=field):
        Quantile(**fields)


@pytest.mark.parametrize("values", [[1.5], [True], [float("nan")], ["1"], np.zeros((2, 2), dtype=np.int64), [None], 7])
def test_values_that_are_not_whole_are_refused_before_anything_is_drawn(values: Any) -> None:
    mechanism = Quantile(quantile=HALF, lower=0, upper=9, scale=Fraction(1))
    with pytest.raises(InvalidParameter):
        mechanism.release(values, NoEntropy())


def test_other_arguments_that_mean_nothing_are_refused() -> None:
    mechanism = Quantile(quantile=HALF, lower=0, upper=9, scale=Fraction(1))
    for rows in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="rows"):
            mechanism.loss("pure", rows=rows)  # type: ignore[arg-type]
    for confidence in (0, 1, 2, float("nan"), "0.9"):
        with pytest.raises(InvalidParameter, match="confidence"):
            mechanism.rank_error(confidence)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no finite noise"):
        Quantile.for_loss(GaussianDP(0), quantile=HALF, lower=0, upper=9)


def test_the_data_are_only_read() -> None:
    rows = np.array([7, 3, 5])
    Quantile(quantile=HALF, lower=4, upper=6, scale=Fraction(1)).release(rows, StreamEntropy("read"))
    assert rows.tolist() == [7, 3, 5]
