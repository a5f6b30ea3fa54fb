"""Correlated noise by matrices: what they cost is what brute force finds, and their error is near the best there is."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import lapwing as lw
from lapwing.mechanisms import BufferedToeplitz, ContinualGaussian, Events, Stays
from lapwing.mechanisms.continual.fitting import fitted
from lapwing.mechanisms.continual.mixtures import Mixture
from tests.mechanisms.continual.matrices import column, counting, streams_of_events, streams_of_stays, toeplitz
from tests.support.effort import one_in

EVENTS = [
    Events(1),
    Events(2),
    Events(3, 1),
    Events(3, 2),
    Events(3, 1, 2),
    Events(4, 2, 3),
]
WINDOWS = [None, 1, 3, 7]


def some_matrix(ticks: int, window: int | None = None) -> BufferedToeplitz:
    return fitted(ticks, window, Events(1), 2)


@pytest.mark.parametrize("window", one_in(2, WINDOWS))
def test_the_two_factors_make_the_counts(window: int | None) -> None:
    n = 40
    matrix = some_matrix(n, window)
    b = matrix.estimating.values(np.arange(n, dtype=float))
    if window is not None:
        b[window:] -= matrix.estimating.values(np.arange(n - window, dtype=float))
    product = toeplitz(b) @ toeplitz([float(c) for c in column(matrix)])
    assert np.abs(product - counting(n, window)).max() < 1e-12
    assert [matrix.weight(t) for t in (1, 2, 5, 39, 40)] == pytest.approx([b[:t] @ b[:t] for t in (1, 2, 5, 39, 40)])


def check_events(matrix: BufferedToeplitz, events: Events, stated: float) -> None:
    c = toeplitz([float(entry) for entry in column(matrix)])
    found = max(float(np.sum((c @ stream) ** 2)) for stream in streams_of_events(events, matrix.ticks))
    assert found <= stated <= found * (1 + 1e-8)


@pytest.mark.parametrize("events", one_in(3, EVENTS), ids=str)
def test_no_events_do_more_than_stated(events: Events) -> None:
    matrix = some_matrix(7)
    check_events(matrix, events, float(matrix.sensitivity_squared(events)))


def check_stays(matrix: BufferedToeplitz, stays: Stays, stated: float) -> None:
    c = toeplitz([float(entry) for entry in column(matrix)])
    found = max(float(np.sum((c @ stream) ** 2)) for stream in streams_of_stays(stays, matrix.ticks))
    assert found <= stated


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("window", [None, 3])
def test_no_stays_do_more_than_stated(most: int, window: int | None) -> None:
    matrix = some_matrix(7, window)
    check_stays(matrix, Stays(most), float(matrix.sensitivity_squared(Stays(most))))


@pytest.mark.long
def test_one_stay_does_what_is_stated() -> None:
    matrix = some_matrix(9)
    c = toeplitz([float(entry) for entry in column(matrix)])
    found = max(float(np.sum((c @ stream) ** 2)) for stream in streams_of_stays(Stays(1), 9, cells=1))
    assert found == pytest.approx(float(matrix.sensitivity_squared(Stays(1))), rel=1e-8)


def test_twin_coefficients_that_are_stated_too_small_are_noticed() -> None:
    matrix = some_matrix(7)
    less = Mixture(matrix.behind.weights * 0.9, matrix.behind.decays)
    wrong = some_matrix(7)
    wrong.__dict__["behind"] = less
    try:
        with pytest.raises(AssertionError):
            check_events(matrix, Events(2), float(wrong.sensitivity_squared(Events(2))))
    finally:
        wrong.__dict__.pop("behind")


def test_twin_stays_that_count_once_are_noticed() -> None:
    matrix = some_matrix(7)
    with pytest.raises(AssertionError):
        check_stays(matrix, Stays(2), float(matrix.sensitivity_squared(Stays(1))))


@pytest.mark.long
def test_products_in_closed_form_are_those_of_exact_numbers() -> None:
    matrix = fitted(150, None, Events(1), 3)
    c = column(matrix)
    for i, j in ((0, 0), (0, 1), (3, 50), (0, 149), (149, 149), (20, 21)):
        exact = sum((c[k] * c[k + j - i] for k in range(150 - j)), Fraction(0))
        found = float(matrix.inner(np.array([float(i)]), np.array([float(j)]))[0])
        assert found == pytest.approx(float(exact), rel=1e-12)


def test_many_events_are_bounded_from_above() -> None:
    matrix = some_matrix(90)
    c = toeplitz([float(entry) for entry in column(matrix)])
    exact = float(np.sum((c @ np.ones(90)) ** 2))
    assert exact <= float(matrix.sensitivity_squared(Events(90, 1))) <= 1.5 * exact


@pytest.mark.long
@pytest.mark.parametrize(("ticks", "least", "most"), [(1 << 10, 3.188, 3.273 * 1.005), (1 << 20, 5.394, 5.479 * 1.02)])
def test_the_error_is_near_the_best(ticks: int, least: float, most: float) -> None:
    """The least is what group algebra reaches (Henzinger and Upadhyay 2025), the most is near the square root's."""
    matrix = fitted(ticks, None, Events(1), 5)
    assert least < matrix.error(Events(1)) < most
    assert len(matrix.decays) <= 10


@pytest.mark.long
def test_it_is_no_worse_than_the_square_root() -> None:
    f = [1.0]
    for k in range(1, 1024):
        f.append(f[-1] * (1 - 1 / (2 * k)))
    for n, buffers in ((64, 3), (1024, 4)):
        assert fitted(n, None, Events(1), buffers).error(Events(1)) <= sum(x * x for x in f[:n]) * 1.0005


@pytest.mark.parametrize("window", one_in(3, [1, 10, 100]))
def test_the_error_in_a_window_does_not_grow_with_the_horizon(window: int) -> None:
    short, long = (fitted(n, window, Events(1), 3).error(Events(1)) for n in (200, 20_000))
    assert long <= short * 1.02
    assert long <= fitted(window, None, Events(1), 3).error(Events(1)) * 1.35


@pytest.mark.long
def test_the_error_of_all_ticks_is_their_root_mean_square() -> None:
    events, n = Events(4, 1, 10), 40
    matrix = fitted(n, None, events, 2, of_all=True)
    b, c = (
        toeplitz(list(v)) for v in (matrix.estimating.values(np.arange(n, dtype=float)), map(float, column(matrix)))
    )
    moved = np.linalg.norm(c[:, ::10].sum(axis=1))
    assert matrix.error(events, of_all=True) == pytest.approx(np.sqrt(np.square(b).sum() / n) * moved, rel=1e-9)
    assert matrix.error(events, of_all=True) < fitted(n, None, events, 2).error(events, of_all=True)


def test_fresh_noise_is_best_for_single_ticks() -> None:
    assert fitted(100, 1, Events(5, 1), 4).decays == ()
    assert float(fitted(100, 1, Events(5, 1), 4).sensitivity_squared(Events(5, 1))) == pytest.approx(5)


def test_decays_that_make_no_such_matrix_are_refused() -> None:
    third = Fraction(1, 3)
    for decays in ((third,), (third, third), (2 * third, third), (Fraction(0), third), (third, Fraction(1))):
        with pytest.raises(lw.InvalidParameter, match="pairs of numbers that grow"):
            BufferedToeplitz(10, None, decays)


@pytest.mark.parametrize("buffers", one_in(3, [1, 2, 5]))
def test_columns_fall_and_are_convex(buffers: int) -> None:
    c = column(fitted(300, None, Events(1), buffers))
    falls = [a - b for a, b in itertools.pairwise(c)]
    assert min(c) >= 0
    assert min(falls) >= 0
    assert all(a >= b for a, b in itertools.pairwise(falls))


@pytest.mark.parametrize(("ticks", "window"), [(0, None), (True, None), (1 << 31, None), (5, 0), (5, 6), (5, 2.0)])
def test_horizons_that_are_none_are_refused(ticks: int, window: int | None) -> None:
    with pytest.raises(lw.InvalidParameter, match="whole number"):
        BufferedToeplitz(ticks, window)


def test_a_loss_is_kept() -> None:
    for loss in (lw.GaussianDP(0.7), lw.ZeroConcentratedDP(0.3)):
        mechanism = ContinualGaussian.for_loss(loss, some_matrix(96), Events(8, 1), 3)
        kept = mechanism.loss(loss.kind)
        assert kept.amount <= loss.amount
        assert math.isclose(kept.amount, loss.amount, rel_tol=1e-9)
