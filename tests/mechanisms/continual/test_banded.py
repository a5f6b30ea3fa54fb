"""Bands of the square root: what they cost is what brute force finds, and they are taken where they have less error."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import lapwing as lw
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import (
    BandedToeplitz,
    BufferedToeplitz,
    ContinualGaussian,
    Events,
    OncePerCell,
    RoundedGaussian,
    Stays,
    continual_mechanism,
)
from lapwing.mechanisms.continual.banded import best_banded
from lapwing.mechanisms.continual.fitting import fitted
from tests.mechanisms.continual.matrices import Matrix, counting, streams_of_events, streams_of_stays, toeplitz
from tests.mechanisms.continual.test_buffered import EVENTS
from tests.support.effort import only
from tests.support.fixed_entropy import StreamEntropy

ROOT = (Fraction(1), Fraction(1, 2), Fraction(3, 8))
CONVEX = (Fraction(1), Fraction(1, 2), Fraction(1, 5))


def full(matrix: BandedToeplitz) -> Matrix:
    c = [float(number) for number in matrix.coefficients]
    return toeplitz([*c, *[0.0] * (matrix.ticks - len(c))])


def check_events(matrix: BandedToeplitz, events: Events, stated: float) -> None:
    c = full(matrix)
    found = max(float(np.sum((c @ stream) ** 2)) for stream in streams_of_events(events, matrix.ticks))
    assert found <= stated <= found * (1 + 1e-8)


@pytest.mark.parametrize("events", EVENTS, ids=str)
@pytest.mark.parametrize("coefficients", [ROOT, CONVEX, (Fraction(1), Fraction(1), Fraction(1))], ids=str)
def test_no_events_do_more_than_stated(coefficients: tuple[Fraction, ...], events: Events) -> None:
    matrix = BandedToeplitz(7, None, coefficients)
    check_events(matrix, events, float(matrix.sensitivity_squared(events)))


def test_first_appearances_do_no_more_than_stated() -> None:
    matrix = BandedToeplitz(7, None, ROOT)
    column = float(sum(number**2 for number in matrix.coefficients))
    assert 3 * column <= float(matrix.sensitivity_squared(OncePerCell(3))) <= 3 * column * (1 + 1e-8)


def test_twin_coefficients_that_are_stated_too_small_are_noticed() -> None:
    """Rounded down to two digits, where what is released has all of them."""
    matrix = BandedToeplitz(7, None, ROOT)
    less = BandedToeplitz(7, None, tuple(Fraction(int(number * 4), 4) for number in ROOT))
    with pytest.raises(AssertionError):
        check_events(matrix, Events(2), float(less.sensitivity_squared(Events(2))))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_stays_want_a_convex_column_and_then_do_no_more_than_stated(most: int) -> None:
    matrix = BandedToeplitz(7, None, CONVEX)
    c = full(matrix)
    found = max(float(np.sum((c @ stream) ** 2)) for stream in streams_of_stays(Stays(most), 7))
    assert found <= float(matrix.sensitivity_squared(Stays(most)))
    with pytest.raises(lw.InvalidParameter, match="too large a step for stays"):
        BandedToeplitz(7, None, ROOT).sensitivity_squared(Stays(most))
    assert best_banded(96, 4, Stays(most)) is None


def of_two_stays(coefficients: tuple[Fraction, ...]) -> float:
    """The inner product of what two short stays do, one after the other in the same cell."""
    c = full(BandedToeplitz(9, None, coefficients))
    return float((c @ [1, -1, 0, 0, 0, 0, 0, 0, 0]) @ (c @ [0, 0, 1, -1, 0, 0, 0, 0, 0]))


def test_twin_without_a_convex_column_what_is_proven_of_stays_is_not_so() -> None:
    """Their squares alone do not bound what they do together: which is why it is refused."""
    ninth = Fraction(9, 10)
    assert of_two_stays((Fraction(1), ninth, ninth)) > 0.05
    assert of_two_stays(CONVEX) <= 0


def test_products_are_those_of_exact_numbers() -> None:
    matrix = best_banded(90, 6, Events(1))
    assert matrix is not None
    c = [*matrix.coefficients, *[Fraction(0)] * (90 - len(matrix.coefficients))]
    for i, j in ((0, 0), (0, 1), (0, 5), (0, 6), (3, 50), (0, 89), (89, 89), (86, 88), (83, 88)):
        exact = float(sum((c[k] * c[k + j - i] for k in range(90 - j)), Fraction(0)))
        found = float(matrix.inner(np.array([float(i)]), np.array([float(j)]))[0])
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("window", [None, 1, 3, 7])
def test_the_weights_are_those_of_the_other_factor(window: int | None) -> None:
    matrix = BandedToeplitz(30, window, ROOT)
    b = counting(30, window) @ np.linalg.inv(full(matrix))
    assert [matrix.weight(t) for t in range(1, 31)] == pytest.approx((b**2).sum(axis=1).tolist())


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundedGaussian, "release", lambda _, values, entropy=SYSTEM: values)


def mechanism_for(window: int | None, sigma: Fraction = Fraction(2)) -> ContinualGaussian:
    matrix = BandedToeplitz(40, window, ROOT)
    return ContinualGaussian(matrix=matrix, participation=Events(2), norm=Fraction(1), sigma=sigma)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("window", [None, 1, 4])
def test_without_noise_the_estimates_are_the_counts_also_after_restarts(window: int | None) -> None:
    stream = np.random.default_rng(5).integers(-9, 30, (40, 8))
    mechanism = mechanism_for(window)
    sums, estimates = mechanism.start(8), mechanism.estimates(8)
    found = []
    for row in stream:
        found.append(estimates.advance(sums.advance(row)))
        sums = mechanism.restored(sums.to_bytes())
    assert np.abs(np.array(found) - counting(40, window) @ stream).max() < 1e-3


@pytest.mark.usefixtures("silent")
def test_neighbours_are_no_farther_apart_than_stated_with_rounding() -> None:
    """On a coarse grid, so that rounding is felt."""
    matrix = BandedToeplitz(6, None, tuple(Fraction(number) for number in (1, "0.61", "0.37")))
    mechanism = ContinualGaussian(matrix=matrix, participation=Events(2), norm=Fraction(1), sigma=Fraction(1))
    mechanism.__dict__["fraction_bits"] = 2
    background = np.random.default_rng(7).integers(0, 1000, (6, 2))

    def released(stream: IntArray) -> Matrix:
        sums = mechanism.start(2)
        return np.array([sums.advance(row).tolist() for row in stream]) / 4

    base, farthest, beyond = released(background), 0.0, False
    for stream in streams_of_events(Events(2), 6):
        moved = released(background + stream.astype(np.int64)) - base
        farthest = max(farthest, float(np.linalg.norm(moved)))
        beyond = beyond or float(np.linalg.norm(moved)) > float(np.linalg.norm(full(matrix) @ stream)) + 0.01
    assert farthest**2 <= float(mechanism.sensitivity_squared)
    assert beyond, "rounding moves nothing here, so this shows nothing"


@pytest.mark.parametrize("window", [None, 5])
def test_the_error_is_what_is_stated(window: int | None) -> None:
    mechanism = mechanism_for(window)
    sums, estimates = mechanism.start(4000), mechanism.estimates(4000)
    entropy, nothing = StreamEntropy("21"), np.zeros(4000, dtype=np.int64)
    found = [estimates.advance(sums.advance(nothing, entropy)) for _ in range(40)]
    for tick in (1, 2, 7, 40):
        assert np.std(found[tick - 1]) == pytest.approx(mechanism.standard_deviation(tick), rel=0.05)
        covered = np.mean(np.abs(found[tick - 1]) <= mechanism.half_width(tick, Fraction(1, 10)))
        assert covered == pytest.approx(0.9, abs=0.02)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ticks", "participation", "window", "banded"),
    only(
        [0, 6],
        [
            (96, Events(1), 4, True),
            (96, Events(8), 4, True),
            (96, OncePerCell(3), 12, True),
            (48, Events(2, 1, 24), None, True),
            (24, Events(8), None, False),
            (24, Stays(8), None, False),
            (1 << 20, Events(1), 4, False),
        ],
        many=True,
    ),
)
def test_a_band_is_taken_where_it_has_less_error(ticks: int, participation: Events, window: int, banded: bool) -> None:
    mechanism = continual_mechanism(lw.GaussianDP(1), ticks, participation, window=window)
    assert isinstance(mechanism, ContinualGaussian)
    assert isinstance(mechanism.matrix, BandedToeplitz) is banded
    assert isinstance(mechanism.matrix, BufferedToeplitz) is not banded
    other = fitted(ticks, window, participation, 5)
    assert mechanism.matrix.error(participation) <= other.error(participation)
    assert mechanism.loss("gdp").amount <= 1
    if banded:
        assert mechanism.half_width(ticks, 0.05) < 0.9995 * ContinualGaussian.for_loss(
            lw.GaussianDP(1), other, participation
        ).half_width(ticks, 0.05)


def test_coefficients_fall_and_are_on_the_grid() -> None:
    matrix = best_banded(300, 24, Events(1))
    assert matrix is not None
    assert all(a >= b >= 0 for a, b in pairwise(matrix.coefficients))
    assert all((number * (1 << 60)).denominator == 1 for number in matrix.coefficients)
    third = Fraction(1, 3)
    for wrong in ((), (third,), (Fraction(1), third, 2 * third), (Fraction(1), -third), (Fraction(1),) * 65):
        with pytest.raises(lw.InvalidParameter, match="begin with 1, fall"):
            BandedToeplitz(100, None, wrong)
