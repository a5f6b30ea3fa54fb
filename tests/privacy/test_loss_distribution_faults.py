"""Faults of other accountants, planted bugs, and parameters that are refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from mpmath import mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Enclosure
from lapwing.privacy import inversion, loss_laws, windows
from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.discs import Discs
from lapwing.privacy.infinite_mass import Lost
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.loss_laws import Laws
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    RandomizedResponsePair,
)
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.intervals import check_delta, check_epsilon, forget

TENTH = Fraction(1, 10)
MILLIONTH = Fraction(1, 10**6)


@pytest.fixture(autouse=True)
def fresh() -> None:
    forget()


def test_a_thousand_randomized_responses_are_not_rounded_up() -> None:
    """An accountant that rounds each loss up to a multiple of 0.001 still has δ > 10⁻⁶ a fifth above our upper end."""
    epsilon, step = Fraction("0.01235"), Fraction(1, 1000)
    one = exact.response(1, epsilon)
    heads = exact.composed([({0: one[-1], 1: one[1]}, 1000)])

    def of_sums(tail: int, head: int) -> exact.Lattice:
        return {head * count + tail * (1000 - count): mass for count, mass in heads.items()}

    law = of_sums(-1, 1)
    found = compose([(RandomizedResponsePair(epsilon), 1000)]).to_epsilon(MILLIONTH)
    check_epsilon(found, lambda e: exact.lattice_delta(law, epsilon, e), MILLIONTH)
    coarse = of_sums(math.ceil(-epsilon / step), math.ceil(epsilon / step))
    with pytest.raises(AssertionError):
        check_epsilon(found, lambda e: exact.lattice_delta(coarse, step, e), MILLIONTH)
    assert exact.lattice_delta(coarse, step, Fraction(found.upper) * Fraction(6, 5)) > mpf(10) ** -6


def test_epsilon_is_never_negative() -> None:
    for delta in ("0.4", "0.9", "0.999"):
        assert compose([(LaplacePair(TENTH), 3)]).to_epsilon(Fraction(delta)) == (0, 0)
    assert compose([(BoundedRangePair(Fraction(1, 10**12)), 10**9)]).to_epsilon(MILLIONTH) == (0, 0)


def check_hundred() -> None:
    law = exact.composed([(exact.response(1, TENTH), 100)])
    loss = compose([(RandomizedResponsePair(TENTH), 100)])
    for epsilon in (Fraction(0), Fraction(1), Fraction("4.01"), Fraction(7)):
        check_delta(loss.to_delta(epsilon), exact.lattice_delta(law, TENTH, epsilon))


def check_steps() -> None:
    remove, add = exact.subsampled_gaussian_deltas(mpf(1), mpf(1) / 4, mpf(1) / 10)  # about 0.083 and 0.058
    loss = compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 4)), 1)], width=Fraction(1, 100))
    check_delta(loss.to_delta(TENTH), max(remove, add))


def check_truth_told() -> None:
    loss = compose([(ApproximatePair(TENTH, MILLIONTH), 50)])
    check_delta(loss.to_delta(4), exact.kov_delta(TENTH, MILLIONTH, 50, Fraction(4)))


@pytest.mark.long
def test_checks_pass_without_bugs() -> None:
    check_truth_told()
    check_hundred()
    check_steps()


@pytest.mark.long
def test_twin_one_direction_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LossDistribution, "directions", lambda self: ("add",))
    with pytest.raises(AssertionError):
        check_steps()


def test_twin_infinite_mass_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lost, "infinite", lambda self: Enclosure(Fraction(0), Fraction(0)))
    with pytest.raises(AssertionError):
        check_truth_told()


def test_twin_smoothing_taken_for_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower bound without the second kernel is too high at a kink."""

    made = inversion.Inversion.of

    def of(laws: Laws, window: inversion.FourierWindow) -> inversion.Inversion:
        found = made(laws, window)
        return replace(found, lower=found.upper)

    monkeypatch.setattr(inversion.Inversion, "of", of)
    with pytest.raises(AssertionError):
        check_hundred()


def test_twin_copies_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a period far too short the sum counts δ(ε − T) too; without charging that, the lower bound is wrong."""
    honest = windows.Cumulants.period

    def short(self: windows.Cumulants, aim: windows.Aim, tilt: float) -> tuple[float, float]:
        period, beyond = honest(self, aim, tilt)
        return period / 8, beyond

    monkeypatch.setattr(windows.Cumulants, "period", short)
    check_hundred()
    monkeypatch.setattr(inversion, "copies", lambda *_: (0.0, -1e6))
    with pytest.raises(AssertionError):
        check_hundred()


@pytest.mark.long
def test_twin_truncation_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With far too few nodes the bounds stay true, as long as what is left out is charged."""
    honest = windows.Cumulants.window

    def few(self: windows.Cumulants, aim: windows.Aim, tilt: float, fineness: float) -> inversion.FourierWindow | None:
        window = honest(self, aim, tilt, fineness)
        return window and window._replace(nodes=window.nodes._replace(size=max(2, window.nodes.size // 64)))

    monkeypatch.setattr(windows.Cumulants, "window", few)
    check_hundred()
    monkeypatch.setattr(inversion, "_rest", lambda *_: 0.0)
    with pytest.raises(AssertionError):
        check_hundred()


def noisy(self: Discs, other: Discs) -> Discs:
    """A product whose rounding errs as much as a large step of arithmetic may, in the worst direction."""
    product = honest_product(self, other)
    return Discs(product.centres * (1 - 1e-7), product.radius + charged * 1.1e-7 * product.bound, product.bound)


honest_product = Discs.__mul__
charged = 1.0


def test_twin_rounding_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic of half the digits: charged, the bounds hold; not charged, a Gaussian's upper bound is too small."""
    loss, true = compose([(GaussianPair(Fraction(1)), 1)]), oracle.gdp_delta(Fraction(1), Fraction(2))
    monkeypatch.setattr(Discs, "__mul__", noisy)
    check_delta(loss.to_delta(2), true)
    monkeypatch.setattr(f"{__name__}.charged", 0.0)
    loss_laws.kept_transform.cache_clear()
    with pytest.raises(AssertionError):
        check_delta(loss.to_delta(2), true)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplacePair(Fraction(0)),
        lambda: GaussianPair(Fraction(-1)),
        lambda: RandomizedResponsePair(TENTH, 1),
        lambda: RandomizedResponsePair(TENTH, True),
        lambda: ApproximatePair(TENTH, Fraction(1)),
        lambda: DiscreteLaplacePair(Fraction(1), 0),
        lambda: DiscreteGaussianPair(Fraction(1, 101), 1),
        lambda: DiscreteGaussianPair(Fraction(1), 11),
        lambda: BoundedRangePair(Fraction(0)),
        lambda: SubsampledPair(LaplacePair(TENTH), Fraction(0)),
        lambda: SubsampledPair(LaplacePair(TENTH), Fraction(2)),
        lambda: SubsampledPair(SubsampledPair(LaplacePair(TENTH), TENTH), TENTH),
        lambda: SubsampledPair(ApproximatePair(TENTH, TENTH), TENTH),
        lambda: SubsampledPair(MixturePair(((Fraction(1), ApproximatePair(TENTH, TENTH)),)), TENTH),
        lambda: MixturePair(((TENTH, LaplacePair(TENTH)),)),
        lambda: compose([(LaplacePair(TENTH), 0)]),
        lambda: compose([(LaplacePair(TENTH), 1)], width=0),
        lambda: compose([(LaplacePair(TENTH), 1)], width=2),
        lambda: compose([]).to_epsilon(1),
        lambda: compose([]).to_epsilon(-1),
        lambda: compose([]).to_delta(-1),
        lambda: compose([]).to_delta(math.nan),
        lambda: compose([]).self_compose(0),
    ],
)
def test_invalid_parameters(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()
