"""Group views: on data sets that are several units apart, the group's loss covers the exact laws."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    GroupView,
    PoissonSample,
    RandomizedResponse,
    RoundedGaussian,
    Sensitivity,
    Subsampled,
)
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP, PureDP
from tests.mechanisms.test_mechanism_cases import check_loss
from tests.support import mechanism_cases
from tests.support.effort import one_in
from tests.support.enumeration import Law
from tests.support.fixed_entropy import StreamEntropy

ONE = Sensitivity.from_l1(1)
POISSON: Any = Subsampled(sample=PoissonSample(rate=Fraction(1, 3)))
Stated = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A mechanism on two data sets that are `size` units apart; `stated` are its losses through a view of that size."""

    name: str
    size: int
    laws: Callable[[], tuple[Law, Law]]
    stated: Callable[[int], Stated]


def noise(law: Callable[[Fraction, int], mpf], scale: Fraction, shift: int) -> Law:
    return {x + shift: law(scale, x) for x in range(-60, 61)}


def shifted(law: Callable[[Fraction, int], mpf], scale: Fraction, shift: int) -> tuple[Law, Law]:
    return noise(law, scale, 0), noise(law, scale, shift)


def coins(codes: tuple[int, ...]) -> Law:
    return {faces: p for faces, p in mechanism_cases.coin_faces(codes, Fraction(3, 5), 3).items()}  # noqa: C416


def counts(rows: int) -> Law:
    sums = mechanism_cases.noisy_sums(mechanism_cases.sampled_count(rows, Fraction(1, 3)), Fraction(1), 40)
    return {y: p for y, p in sums.items()}  # noqa: C416


def of_samples(size: int) -> Any:
    return GroupView(mechanism=POISSON, size=size)


APART = (
    Apart(
        name="discrete Laplace",
        size=2,
        laws=lambda: shifted(mechanism_cases.laplace_law, Fraction(2), 2),
        stated=lambda size: {
            kind: GroupView(mechanism=DiscreteLaplace(scale=Fraction(2)), size=size).loss(ONE, kind)
            for kind in ("pure", "gdp", "zcdp")
        },
    ),
    Apart(
        name="rounded Gaussian",
        size=3,
        laws=lambda: shifted(mechanism_cases.gaussian_law, Fraction(3), 3),
        stated=lambda size: {
            kind: GroupView(mechanism=RoundedGaussian(sigma=Fraction(3)), size=size).loss(ONE, kind)
            for kind in ("gdp", "zcdp")
        },
    ),
    Apart(
        name="discrete Gaussian",
        size=2,
        laws=lambda: (
            noise(mechanism_cases.discrete_gaussian_law, Fraction(3), 0),
            noise(mechanism_cases.discrete_gaussian_law, Fraction(3), 2),
        ),
        stated=lambda size: {
            "zcdp": GroupView(mechanism=DiscreteGaussian(variance=Fraction(9)), size=size).loss(ONE, "zcdp")
        },
    ),
    Apart(
        name="randomized response",
        size=2,
        laws=lambda: (coins((0, 1, 2)), coins((1, 2, 2))),
        stated=lambda size: {
            kind: GroupView(
                mechanism=RandomizedResponse(keep=Fraction(3, 5), categories=3), size=size
            ).loss(kind)
            for kind in ("pure", "gdp", "zcdp")
        },
    ),
    Apart(
        name="sampled count",
        size=2,
        laws=lambda: (counts(1), counts(3)),
        stated=lambda size: {
            "pure": of_samples(size).loss(PureDP(1), neighbouring="add_remove"),
            "approx": of_samples(size).loss(
                ApproxDP(Fraction(1, 2), PureDP(1).to_delta(epsilon=0.5)), neighbouring="add_remove"
            ),
        },
    ),
)  # fmt: skip


def shelf_case(apart: Apart, stated: Stated) -> mechanism_cases.Case:
    """Put what a view states beside the laws, as a case of the table."""
    return mechanism_cases.Case(
        name=apart.name,
        run=lambda data, entropy: 0,
        pair=(0, 1),
        law=lambda data: {},
        stated=stated,
        planted=lambda data, entropy: 0,
    )


@pytest.mark.parametrize("apart", one_in(3, APART), ids=lambda apart: apart.name)
def test_the_groups_loss_covers_the_laws(apart: Apart) -> None:
    check_loss(shelf_case(apart, apart.stated(apart.size)), apart.laws())


@pytest.mark.parametrize("apart", one_in(5, APART), ids=lambda apart: apart.name)
def test_twin_the_loss_of_one_unit_is_not_enough(apart: Apart) -> None:
    for kind, loss in apart.stated(1).items():
        with pytest.raises(AssertionError):
            check_loss(shelf_case(apart, {kind: loss}), apart.laws())


def test_a_view_states_what_the_measure_says_and_releases_the_same() -> None:
    mechanism = DiscreteLaplace(scale=Fraction(7))
    view = GroupView(mechanism=mechanism, size=3)
    assert view.loss(ONE, "pure") == PureDP(Fraction(3, 7))
    values = np.arange(5)
    released = view.release(values, StreamEntropy("same"))
    assert released.tolist() == mechanism.release(values, StreamEntropy("same")).tolist()
    assert GroupView(mechanism=view, size=2).loss(ONE, "pure") == PureDP(Fraction(6, 7))
    assert mp.mpf(float(mechanism.loss(Sensitivity.from_l1(3), "gdp").amount)) < float(view.loss(ONE, "gdp").amount)


class Thresholded:
    """States a loss that holds but for a chance."""

    def loss(self, kind: str) -> ApproximateGaussianDP:
        return ApproximateGaussianDP.of(GaussianDP(1), Fraction(1, 10**6))

    def release(self, values: int, entropy: Entropy = SYSTEM) -> int:
        return values


def test_a_failure_weighs_more_towards_a_group() -> None:
    loss = GroupView(mechanism=Thresholded(), size=2).loss("approx_gdp")
    assert loss == Thresholded().loss("approx_gdp").for_group(2)
    assert loss.gaussian == GaussianDP(2)
    # Two tests in a row, each of μ = 1 and δ = 10⁻⁶, at level 0.
    first = mpf(10) ** -6
    power = first + (1 - first) * mp.ncdf(1 - mp.sqrt(2) * mp.erfinv(1 - 2 * first / (1 - first)))
    assert power <= mpf(loss.delta.numerator) / loss.delta.denominator < power * (1 + mpf(10) ** -12)


def test_sizes_that_mean_nothing_are_refused() -> None:
    for size in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidParameter, match="size is"):
            GroupView(mechanism=Thresholded(), size=size)  # type: ignore[arg-type]
