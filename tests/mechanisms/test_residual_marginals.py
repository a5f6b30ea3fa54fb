"""Marginals from residuals: how far one unit moves them by brute force, what a cell errs by, and twins."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.exact.rounded_gaussian import rounded_gaussian
from lapwing.mechanisms import ResidualMarginals, RowsOfUnit
from lapwing.mechanisms import residual_marginals as module
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP

SMALL = (((2, 3), ((0,), (1,), (0, 1))), ((3, 2, 2), ((0, 1), (1, 2))), ((4,), ((0,),)), ((3, 1, 2), ((0, 1), (2,))))
UNITS = (
    RowsOfUnit(),
    RowsOfUnit(rows=2),
    RowsOfUnit(low=-2, high=3),
    RowsOfUnit(replaced=True),
    RowsOfUnit(low=-2, high=1, replaced=True),
    RowsOfUnit(rows=2, high=2, replaced=True),
)
FEW = ((3, 2, 4), ((), (0,), (1, 2), (0, 1), (0, 2)))


def up_to(three: int, attributes: int) -> list[tuple[int, ...]]:
    return [whole for size in range(three + 1) for whole in combinations(range(attributes), size)]


def basis(mechanism: ResidualMarginals) -> np.ndarray[Any, Any]:
    """All residuals of a table of all attributes, each divided by its noise's deviation: a matrix, written out."""
    rows = []
    for axes, precision in zip(mechanism.residuals, mechanism.precisions, strict=True):
        matrix: np.ndarray[Any, Any] = np.ones((1, 1))
        for axis, size in enumerate(mechanism.sizes):
            of_axis = size * np.eye(size) - 1 if axis in axes else np.ones((1, size))
            matrix = np.kron(matrix, of_axis)
        rows.append(matrix * float(precision) ** 0.5)
    return np.concatenate(rows)


def units(cells: int, unit: RowsOfUnit) -> Iterator[np.ndarray[Any, Any]]:
    """Everything that a unit can be whose rows add low, high or nothing."""
    for rows in combinations_with_replacement(product(range(cells), sorted({unit.low, 0, unit.high})), unit.rows):
        table = np.zeros(cells)
        for cell, value in rows:
            table[cell] += value
        yield table


def furthest(mechanism: ResidualMarginals, unit: RowsOfUnit) -> float:
    matrix = basis(mechanism)
    moved = np.unique([matrix @ table for table in units(prod(mechanism.sizes), unit)], axis=0)
    if not unit.replaced:
        return float((moved**2).sum(axis=1).max())
    return float(max(((moved - other) ** 2).sum(axis=1).max() for other in moved))


def loses_what_it_says(sizes: tuple[int, ...], marginals: tuple[tuple[int, ...], ...], unit: RowsOfUnit) -> None:
    mechanism = ResidualMarginals.for_loss(GaussianDP(1), sizes=sizes, marginals=marginals, unit=unit)
    assert furthest(mechanism, unit) == pytest.approx(1, rel=1e-9)
    assert 1 - 1e-10 <= mechanism.mu_squared(unit) <= 1


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("sizes", "marginals"), SMALL)
def test_no_unit_moves_more_than_is_paid(
    sizes: tuple[int, ...], marginals: tuple[tuple[int, ...], ...], unit: RowsOfUnit
) -> None:
    loses_what_it_says(sizes, marginals, unit)


def test_a_wrong_column_norm_is_found() -> None:
    right = module._inner_product
    with (
        patch.object(module, "_inner_product", lambda sizes, axes, agreed: right(sizes, axes, agreed) - len(axes)),
        pytest.raises(AssertionError),
    ):
        loses_what_it_says(*SMALL[0], UNITS[0])


def test_columns_taken_as_orthogonal_are_found() -> None:
    with (
        patch.object(module, "_products", lambda *_: [Fraction(0)]),
        pytest.raises(AssertionError),
    ):
        loses_what_it_says(*SMALL[0], RowsOfUnit(replaced=True))


# ---- what is released ------------------------------------------------------------------------------------------------


def tables_of(full: np.ndarray[Any, Any], marginals: tuple[tuple[int, ...], ...]) -> list[Any]:
    axes = range(full.ndim)
    return [np.asarray(full.sum(axis=tuple(axis for axis in axes if axis not in whole))) for whole in marginals]


def of(sizes: tuple[int, ...], marginals: tuple[tuple[int, ...], ...], mu: int = 1) -> ResidualMarginals:
    return ResidualMarginals.for_loss(GaussianDP(mu), sizes=sizes, marginals=marginals, unit=RowsOfUnit())


def silent(_variance: Fraction, size: int, _entropy: object) -> Any:
    return np.zeros(size, dtype=np.int64)


def gives_the_tables_without_noise(full: np.ndarray[Any, Any]) -> None:
    sizes, marginals = FEW
    tables = tables_of(full, marginals)
    with patch.object(module, "rounded_gaussian", silent):
        for told, table in zip(of(sizes, marginals).release(tables), tables, strict=True):
            assert told.tolist() == table.tolist()


@pytest.mark.parametrize("scale", [1, 2**55, 2**70])
def test_without_noise_tables_come_back_exactly(scale: int) -> None:
    gives_the_tables_without_noise(np.arange(24, dtype=object).reshape(3, 2, 4) * scale - 5)


def test_a_residual_that_is_missing_is_found() -> None:
    measured = ResidualMarginals._measured

    def but_one(self: Any, axes: Any, *rest: Any) -> Any:
        return measured(self, axes, *rest) * (axes != frozenset({0, 2}))

    with patch.object(ResidualMarginals, "_measured", but_one), pytest.raises(AssertionError):
        gives_the_tables_without_noise(np.arange(24).reshape(3, 2, 4) ** 2)


def draws_what_it_says() -> None:
    sizes, marginals = FEW
    mechanism, drawn = of(sizes, marginals), list[tuple[Fraction, int]]()

    def watched(variance: Fraction, size: int, entropy: Any) -> Any:
        drawn.append((variance, size))
        return rounded_gaussian(variance, size, entropy)

    with patch.object(module, "rounded_gaussian", watched):
        mechanism.release(tables_of(np.zeros(sizes, dtype=np.int64), marginals))
    of_columns = [prod(sizes[i] * (sizes[i] - 1) for i in axes) for axes in mechanism.residuals]
    assert sum(norm / variance for norm, (variance, _) in zip(of_columns, drawn, strict=True)) <= 1
    assert [size for _, size in drawn] == [prod(sizes[i] for i in axes) for axes in mechanism.residuals]


def test_the_noise_is_that_of_the_loss() -> None:
    draws_what_it_says()


def test_less_noise_on_one_residual_is_found() -> None:
    measured = ResidualMarginals._measured

    def less(self: Any, axes: Any, precision: Fraction, *rest: Any) -> Any:
        return measured(self, axes, precision / Fraction(81, 100) if axes == {1} else precision, *rest)

    with patch.object(ResidualMarginals, "_measured", less), pytest.raises(AssertionError):
        draws_what_it_says()


def errors(times: int) -> tuple[ResidualMarginals, list[np.ndarray[Any, Any]]]:
    sizes, marginals = FEW
    mechanism, full = of(sizes, marginals), np.arange(24).reshape(3, 2, 4)
    tables = tables_of(full, marginals)
    told = [mechanism.release(tables) for _ in range(times)]
    return mechanism, [
        np.array([one[place].reshape(-1) - table.reshape(-1) for one in told]) for place, table in enumerate(tables)
    ]


@pytest.mark.long
def test_errors_are_as_large_as_is_said() -> None:
    mechanism, erring = errors(1_500)
    for whole, one in zip(mechanism.marginals, erring, strict=True):
        noise = mechanism.noise(whole)
        # All cells of a marginal err alike; of 1,500 draws the mean square strays by 3.7 percent.
        measured = (one.astype(float) ** 2).mean(axis=0) / noise.standard_deviation**2
        assert all(0.8 < ratio < 1.2 for ratio in measured), (whole, measured)
        assert (np.abs(one) <= noise.half_width(0.95)).mean(axis=0).min() >= 0.93


def test_answers_agree_with_each_other() -> None:
    sizes, marginals = FEW
    tables = of(sizes, marginals).release(tables_of(np.arange(24).reshape(3, 2, 4), marginals))
    told = dict(zip(marginals, tables, strict=True))
    assert told[0, 1].sum(axis=1).tolist() == told[(0,)].tolist() == told[0, 2].sum(axis=1).tolist()
    assert told[0, 1].sum(axis=0).tolist() == told[1, 2].sum(axis=1).tolist()
    assert told[0, 2].sum(axis=0).tolist() == told[1, 2].sum(axis=0).tolist()
    assert int(told[()]) == int(told[(0,)].sum())


def of_digits(digits: tuple[int, ...] = (2, 1)) -> ResidualMarginals:
    """Regions, districts inside them, and something else."""
    wanted = ((), (0,), (0, 1), (0, 2), (0, 1, 2))
    return ResidualMarginals.for_loss(
        GaussianDP(1), sizes=(3, 4, 2), marginals=wanted, unit=RowsOfUnit(), digits=digits
    )


def test_digits_of_one_fact_agree_with_two_roundings_each() -> None:
    full = np.arange(24).reshape(3, 4, 2)
    mechanism = of_digits()
    tables = mechanism.release(tables_of(full, mechanism.marginals))
    told = dict(zip(mechanism.marginals, tables, strict=True))
    assert told[0, 1, 2].sum(axis=1).tolist() == told[0, 2].tolist()
    assert told[0, 1, 2].sum(axis=2).tolist() == told[0, 1].tolist()
    assert told[0, 1].sum(axis=1).tolist() == told[0, 2].sum(axis=1).tolist() == told[(0,)].tolist()
    apart = of_digits(())
    assert mechanism.precisions == apart.precisions  # so the loss and the variances are the same
    assert mechanism.noise((0, 1, 2)).slack == apart.noise((0, 1, 2)).slack - 2
    for digits in ((3, 1), (1, 2), (0, 3)):  # too many, a marginal without the first digit, a fact without any
        with pytest.raises(InvalidParameter, match="digits"):
            of_digits(digits)


@pytest.mark.parametrize(("size", "share"), [(2, 0.0953), (5, 0.3805), (10, 0.613)])
def test_up_to_three_of_eight_columns(size: int, share: float) -> None:
    marginals = up_to(3, 8)
    mechanism = of((size,) * 8, tuple(marginals))
    largest = max(map(mechanism.variance, marginals))
    assert share < largest / len(marginals) < share * 1.005  # separate noise has the variance 93 in each
    assert mechanism.mu_squared(RowsOfUnit()) <= 1


@pytest.mark.long
def test_the_optimum_by_its_dual() -> None:
    """By symmetry all marginals of one size have one weight; their best weights are found on a grid, apart."""
    attributes, size = 4, 3
    mechanism = of((size,) * attributes, tuple(up_to(2, attributes)))
    found = float(max(map(mechanism.variance, up_to(2, attributes))))
    inside = np.array([[1, 0, 0], [1, 1, 0], [1, 2, 1]])  # residuals of each size in a marginal of each size
    many, cost = np.array([1, 4, 6]), np.array([1.0, 6.0, 36.0])
    share = np.array([[(2 / 27) ** a * (1 / 9) ** (w - a) if a <= w else 0.0 for a in range(3)] for w in range(3)])
    containing = many[:, np.newaxis] * inside / many  # marginals of each size around a residual
    best = 0.0
    for first, second in product(np.linspace(0, 1, 201), repeat=2):
        if first + second <= 1:
            weights = np.array([first, second, max(0, 1 - first - second)]) / many
            best = max(best, float((many * np.sqrt(cost * (weights @ (share * containing)))).sum() ** 2))
    assert best * 0.999 <= found <= best * 1.003


@pytest.mark.parametrize(("sizes", "marginals"), [*SMALL, FEW, ((2,) * 6, tuple(up_to(2, 6)))])
def test_never_worse_than_noise_on_each(sizes: tuple[int, ...], marginals: tuple[tuple[int, ...], ...]) -> None:
    beside = list(range(1, len(marginals) + 1))
    loss = sum(Fraction(1, each) for each in beside)
    mechanism = ResidualMarginals.for_loss(
        GaussianDP.from_mu_squared(loss), sizes=sizes, marginals=marginals, unit=RowsOfUnit(), beside=beside
    )
    for each, whole in zip(beside, marginals, strict=True):
        assert mechanism.variance(whole) <= each * 1.003


# ---- parameters ------------------------------------------------------------------------------------------------------


def test_zero_concentrated_is_half_of_the_square() -> None:
    sizes, marginals = FEW
    same = ResidualMarginals.for_loss(ZeroConcentratedDP(0.5), sizes=sizes, marginals=marginals, unit=RowsOfUnit())
    assert same == of(sizes, marginals)
    assert same.loss(RowsOfUnit(), "zcdp") == ZeroConcentratedDP(same.mu_squared(RowsOfUnit()) / 2)


@pytest.mark.long
def test_what_is_refused() -> None:
    def refused(part: str, **given: Any) -> None:
        usual: dict[str, Any] = {"sizes": (2, 3), "marginals": ((0, 1),), "unit": RowsOfUnit()}
        with pytest.raises(InvalidParameter, match=part):
            ResidualMarginals.for_loss(given.pop("loss", GaussianDP(1)), **(usual | given))

    refused("pure loss", loss=PureDP(1))
    refused("at least one", marginals=())
    refused("ascending", marginals=((1, 0),))
    refused("ascending", marginals=((2,),))
    refused("twice", marginals=((0,), (0,)))
    refused("more than", sizes=(2,) * 16, marginals=(tuple(range(16)),))
    refused("give as many", beside=(1, 2))
    with pytest.raises(InvalidParameter, match="add nothing"):
        RowsOfUnit(low=0, high=0)
    with pytest.raises(InvalidParameter, match="shape"):
        of(*FEW).release([np.zeros(1, dtype=np.int64)] * len(FEW[1]))
    with pytest.raises(InvalidParameter, match="one for each"):
        ResidualMarginals(sizes=(2,), marginals=((0,),), precisions=(Fraction(1),))


def test_residuals_are_all_sets_inside() -> None:
    sizes, marginals = FEW
    inside = {frozenset(some) for whole in marginals for some in chain(*(combinations(whole, n) for n in range(3)))}
    assert set(of(sizes, marginals).residuals) == inside
