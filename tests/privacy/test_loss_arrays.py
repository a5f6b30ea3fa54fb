"""Losses as arrays: never below the list, near it, read by another accountant, and composed here again."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from lapwing.errors import InvalidParameter
from lapwing.privacy import loss_arrays
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteLaplacePair
from lapwing.privacy.loss_arrays import ArrayPair, LossArrays, arrays_of
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import ApproximatePair, Direction, GaussianPair, LaplacePair
from tests.support.effort import one_in

TENTH, HUNDREDTH = Fraction(1, 10), Fraction(1, 100)
MILLIONTH = Fraction(1, 10**6)

LISTS: dict[str, LossDistribution] = {
    "training": compose([(SubsampledPair(GaussianPair(Fraction(1)), HUNDREDTH), 300)]),
    "noise": compose([(LaplacePair(TENTH), 20), (GaussianPair(TENTH), 1)]),
    "one": compose([(DiscreteLaplacePair(Fraction(2), 3), 1)]),
    "failing": compose([(ApproximatePair(TENTH, Fraction(1, 10**8)), 20)]),
}


def delta(arrays: LossArrays, epsilon: float) -> float:
    gains = np.maximum(0.0, -np.expm1(epsilon - arrays.losses))
    return math.fsum([*(arrays.probabilities * gains), arrays.infinite])


def check_list(name: str, direction: Direction) -> None:
    loss = LISTS[name]
    parts = [(pair, count) for pair, count in loss.parts]
    arrays = arrays_of(loss, direction=direction, step=Fraction(1, 50))
    assert math.fsum([*arrays.probabilities, arrays.infinite]) == pytest.approx(1, abs=1e-9)
    assert (arrays.probabilities >= 0).all()
    assert np.allclose(arrays.losses / 0.02, np.round(arrays.losses / 0.02))
    for epsilon in (0.0, 0.013, 0.3, 1.0, 1.57):
        bound = _in_direction(parts, direction, epsilon)
        assert bound[0] * (1 - 1e-12) <= delta(arrays, epsilon) <= bound[1] * 1.02 + 1e-14


def _in_direction(parts: list, direction: Direction, epsilon: float) -> tuple[float, float]:  # type: ignore[type-arg]
    from lapwing.privacy.certified_curve import bound_delta

    lower, upper = bound_delta(tuple(parts), direction, Fraction(epsilon), 1e-4, Fraction(0))
    return float(lower), float(upper)


@pytest.mark.parametrize("name", one_in(2, LISTS))
@pytest.mark.parametrize("direction", one_in(2, ["remove", "add"]))
def test_arrays_are_above_the_list_and_near_it(name: str, direction: Direction) -> None:
    check_list(name, direction)


@pytest.mark.parametrize(
    ("name", "fault"),
    one_in(
        3,
        [
            ("LossArrays", lambda f: lambda losses, *of: f(losses - 0.02, *of)),
            ("float_up", lambda f: lambda x: 0.99 * f(x)),
            ("_hull", lambda f: lambda points: f([(x, y * 99 / 100 if x else y) for x, y in points])),
        ],
        many=True,
    ),
    ids=["losses rounded down", "masses rounded down", "bounds below the curve"],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., object]) -> None:
    monkeypatch.setattr(loss_arrays, name, fault(getattr(loss_arrays, name)))
    with pytest.raises(AssertionError):
        check_list("training", "remove")


@pytest.mark.long
def test_the_other_direction_is_no_bound() -> None:
    loss = LISTS["training"]
    other = arrays_of(loss, direction="add", step=Fraction(1, 50))
    assert delta(other, 0.5) < _in_direction(list(loss.parts), "remove", 0.5)[0]


@pytest.mark.long
def test_arrays_compose_here_again() -> None:
    loss = LISTS["training"]
    ways = [arrays_of(loss, direction=direction, step=HUNDREDTH) for direction in ("remove", "add")]
    again = compose([(ArrayPair(*ways), 4)]).to_epsilon(MILLIONTH)
    exact = loss.self_compose(4).to_epsilon(MILLIONTH)
    assert exact.lower <= again.upper <= exact.upper + 0.02
    symmetric = compose([(ArrayPair(arrays_of(LISTS["noise"], step=HUNDREDTH)), 1)]).to_epsilon(MILLIONTH)
    alone = LISTS["noise"].to_epsilon(MILLIONTH)
    assert alone.lower <= symmetric.upper <= alone.upper + 0.01


@pytest.mark.long
def test_another_accountant_reads_them() -> None:
    """dp-accounting composes them with a mechanism of its own, and states no less than is true."""
    loss, step = LISTS["training"], 1e-2

    def theirs(direction: Direction) -> pld_pmf.PLDPmf:
        arrays = arrays_of(loss, direction=direction, step=Fraction(1, 100))
        first = round(float(arrays.losses[0]) / step)
        return pld_pmf.DensePLDPmf(step, first, arrays.probabilities, arrays.infinite, pessimistic_estimate=True)

    found = PrivacyLossDistribution(theirs("remove"), theirs("add")).self_compose(3).get_epsilon_for_delta(1e-6)
    exact = loss.self_compose(3).to_epsilon(MILLIONTH)
    assert exact.lower <= found <= exact.upper + 0.03


def arrays(losses: list[float], probabilities: list[float], infinite: float = 0.0) -> LossArrays:
    return LossArrays(np.array(losses), np.array(probabilities), infinite)


@pytest.mark.long
def test_arrays_of_a_known_law() -> None:
    """Randomized response: two atoms; what is missing is infinite, what is too much is taken from below."""
    chance = math.exp(1) / (1 + math.exp(1))
    response = compose([(ArrayPair(arrays([-1, 1], [1 - chance, chance])), 5)]).to_delta(1)
    other = compose([(LaplacePair(Fraction(1)), 5)]).to_delta(1)
    assert response.lower > other.upper
    missing = ArrayPair(arrays([-1, 1], [1 - chance, chance - 1e-7]))
    assert float(missing.law("add", "upper", 1).infinite) == pytest.approx(1e-7)
    surplus = ArrayPair(arrays([-1, 1], [1 - chance + 1e-7, chance])).law("remove", "upper", 1)
    assert isinstance(surplus, type(missing.law("remove", "upper", 1)))
    assert surplus.infinite == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ArrayPair(arrays([1, 0], [0.5, 0.5])), "must rise"),
        (lambda: ArrayPair(arrays([0, 1], [1.5, -0.5])), "not be negative"),
        (lambda: ArrayPair(arrays([0, 1], [0.5, 0.4])), "sum to 0.9"),
        (lambda: ArrayPair(arrays([0], [0.5, 0.5])), "as many of both"),
        (lambda: ArrayPair(arrays([0, math.inf], [0.5, 0.5])), "finite numbers"),
        (lambda: arrays_of(LISTS["noise"], step=0), "step"),
        (lambda: arrays_of(LISTS["noise"], step=1e-6), "give a larger step"),
        (lambda: arrays_of(LISTS["noise"], tail=0), "tail"),
        (lambda: arrays_of(LISTS["noise"], direction="both"), "remove or add"),  # type: ignore[arg-type]
        (lambda: SubsampledPair(ArrayPair(arrays([0], [1])), TENTH), "cannot be sampled"),
    ],
)
def test_what_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        make()
