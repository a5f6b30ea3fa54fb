"""Laws that every mechanism that adds noise must keep, over `mechanism_cases.ADDITIVE`, and twins that break them."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure
from lapwing.exact.entropy import SystemEntropy
from lapwing.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    PermuteAndFlip,
    RoundedGaussian,
    ScoreSensitivity,
    Sensitivity,
)
from lapwing.privacy import laplace_implies
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import PRIVACY_MEASURES, ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import one_in
from tests.support.enumeration import NoEntropy
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

ONE = Sensitivity(l1=1, l2_squared=1)
NOTHING = Sensitivity(l1=0, l2_squared=0)
ROWS = pytest.mark.parametrize("row", mechanism_cases.ADDITIVE, ids=lambda row: row.name)
SCALES = tuple(Fraction(x) for x in ("1/2", "1", "22/7", "40"))
CONFIDENCES = (Fraction(1, 2), Fraction("0.95"), Fraction("0.999999"), 1 - Fraction(1, 10**40))

Build = Callable[[Fraction], mechanism_cases.Additive]


def check_privacy(row: mechanism_cases.AdditiveRow, build: Build) -> None:
    """The stated losses cover the noise law itself: its δ at every ε, and its Rényi divergences."""
    for scale in SCALES[1:3]:
        stated, reach = build(scale), 150

        @cache
        def law(x: int, scale: Fraction = scale) -> mpf:
            return row.law(scale, x)

        for shift in (1, 3):
            sensitivity = Sensitivity(l1=shift, l2_squared=shift**2)
            losses = [stated.loss(sensitivity, kind) for kind in row.kinds]
            for epsilon in (Fraction(0), Fraction(1, 3), Fraction(2)):
                delta = oracle.discrete_delta(law, shift, epsilon, reach)
                for loss in losses:
                    assert delta <= loss.to_delta(epsilon=epsilon) + mpf(10) ** -16
            rho = losses[-1].amount
            for order in (mpf("1.01"), mpf(2), mpf(8)):
                assert oracle.renyi(law, shift, order, reach) <= real(rho) * order + mpf(10) ** -15


@ROWS
def test_the_stated_loss_covers_the_noise(row: mechanism_cases.AdditiveRow) -> None:
    check_privacy(row, row.build)


@ROWS
def test_twin_noise_of_nine_tenths_the_scale_is_caught(row: mechanism_cases.AdditiveRow) -> None:
    with pytest.raises(AssertionError):
        check_privacy(row, lambda scale: row.build(scale * Fraction(10, 9)))


def test_the_stated_losses_are_the_theorems() -> None:
    sensitivity = Sensitivity(l1=6, l2_squared=12)
    laplace, gaussian = DiscreteLaplace(scale=Fraction(12)), RoundedGaussian(sigma=Fraction(4))
    assert laplace.loss(sensitivity, "pure") == PureDP(0.5)
    for kind in ("gdp", "zcdp"):
        assert laplace.loss(sensitivity, kind) == laplace_implies.discrete_laplace_loss(Fraction(1, 12), 6, kind)
        assert laplace.loss(sensitivity, kind) < PureDP(0.5).to_kind(kind)
        # At sensitivity 1 the noise is randomized response, of which every ε-DP mechanism is a post-processing.
        worst = DiscreteLaplace(scale=Fraction(2)).loss(ONE, kind).amount / PureDP(0.5).to_kind(kind).amount
        assert abs(worst - 1) < Fraction(1, 10**17)
    assert gaussian.loss(sensitivity, "gdp") == GaussianDP.from_mu_squared(0.75)
    assert gaussian.loss(sensitivity, "zcdp") == ZeroConcentratedDP(0.375)


@ROWS
def test_what_a_mechanism_cannot_state_is_refused(row: mechanism_cases.AdditiveRow) -> None:
    reasons = {"pure": "no finite ε at δ = 0", "gdp": "does not imply"}
    for kind in row.refused_kinds:
        with pytest.raises(InvalidParameter, match=reasons[kind]):
            row.build(Fraction(1)).loss(ONE, kind)
        with pytest.raises(InvalidParameter, match=f"keeps no {kind} loss"):
            row.family.for_loss(PRIVACY_MEASURES[kind].from_amount(1), ONE)
    with pytest.raises(InvalidParameter, match="must be one of"):
        row.build(Fraction(1)).loss(ONE, "rdp")


@ROWS
@pytest.mark.parametrize("sensitivity", mechanism_cases.SENSITIVITIES)
def test_losses_grow_with_sensitivity_and_fall_with_scale(
    row: mechanism_cases.AdditiveRow, sensitivity: Sensitivity
) -> None:
    twice = Sensitivity(l1=2 * sensitivity.l1, l2_squared=4 * sensitivity.l2_squared)
    for kind in row.kinds:
        assert row.build(Fraction(1)).loss(NOTHING, kind).amount == 0
        by_scale = [row.build(scale).loss(sensitivity, kind) for scale in SCALES]
        assert all(small > large for small, large in pairwise(by_scale))
        # On a finer grid the discrete Laplace's own loss is less, for it gains from being less coarse.
        same, finer = row.build(Fraction(1)).loss(sensitivity, kind), row.build(Fraction(2)).loss(twice, kind)
        assert finer == same or (row.family is DiscreteLaplace and kind != "pure" and finer < same)
        doubled, group = row.build(Fraction(1)).loss(twice, kind), by_scale[1].for_group(2)
        assert doubled <= group


def check_for_loss(
    row: mechanism_cases.AdditiveRow,
    for_loss: Callable[[Loss, Sensitivity], mechanism_cases.Additive],
    loss: Loss,
    sensitivity: Sensitivity,
) -> None:
    """The scale that comes from a loss keeps it, and is not larger than it must be by more than 2⁻⁴⁰."""
    mechanism = for_loss(loss, sensitivity)
    assert mechanism.loss(sensitivity, loss.kind) <= loss
    less = row.build(row.scale(mechanism) * (1 - Fraction(1, 2**40)))
    assert less.loss(sensitivity, loss.kind) > loss


@ROWS
@pytest.mark.parametrize("sensitivity", mechanism_cases.SENSITIVITIES)
@pytest.mark.parametrize("amount", [Fraction(1, 10**9), Fraction("0.0153"), Fraction(1, 3), Fraction(1), Fraction(20)])
def test_for_loss(row: mechanism_cases.AdditiveRow, sensitivity: Sensitivity, amount: Fraction) -> None:
    for loss in mechanism_cases.losses(amount):
        if loss.kind in row.kinds:
            check_for_loss(row, row.family.for_loss, loss, sensitivity)


@ROWS
def test_twin_a_scale_that_is_too_small_or_rounded_down_is_caught(row: mechanism_cases.AdditiveRow) -> None:
    sensitivity, loss = mechanism_cases.SENSITIVITIES[1], loss_for(row.kinds[-1], Fraction(1, 2), Fraction(1, 10**6))
    for factor in (Fraction(9, 10), 1 - Fraction(1, 2**43)):

        def twin(loss: Loss, sensitivity: Sensitivity, factor: Fraction = factor) -> mechanism_cases.Additive:
            return row.build(factor * row.scale(row.family.for_loss(loss, sensitivity)))

        with pytest.raises(AssertionError):
            check_for_loss(row, twin, loss, sensitivity)


@given(
    st.sampled_from(mechanism_cases.ADDITIVE),
    st.fractions(min_value=Fraction(1, 10**6), max_value=30, max_denominator=10**6),
    st.integers(min_value=1, max_value=10**6),
)
def test_for_loss_of_anything(row: mechanism_cases.AdditiveRow, amount: Fraction, l1: int) -> None:
    sensitivity = Sensitivity(l1=l1, l2_squared=l1 * (l1 + 1) // 2)
    for loss in mechanism_cases.losses(amount):
        if loss.kind in row.kinds:
            check_for_loss(row, row.family.for_loss, loss, sensitivity)


def test_a_pure_scale_is_exact_and_simple_scales_stay_simple() -> None:
    assert DiscreteLaplace.for_loss(PureDP(0.3), Sensitivity(l1=2, l2_squared=2)).scale == Fraction(20, 3)
    assert RoundedGaussian.for_loss(GaussianDP(0.1), Sensitivity(l1=3, l2_squared=9)).sigma == 30
    assert RoundedGaussian.for_loss(ZeroConcentratedDP(0.5), ONE).sigma == 1
    sigma = RoundedGaussian.for_loss(loss_for("gdp", Fraction(3), Fraction(1, 10**6)), ONE).sigma
    assert sigma.numerator.bit_length() <= 48
    assert sigma.denominator & (sigma.denominator - 1) == 0


@ROWS
def test_the_ends_of_for_loss(row: mechanism_cases.AdditiveRow) -> None:
    assert row.scale(row.family.for_loss(ZeroConcentratedDP(1), NOTHING)) == Fraction(1, 2**30)
    assert row.scale(row.family.for_loss(ZeroConcentratedDP(10**24), ONE)) == Fraction(1, 2**30)
    with pytest.raises(InvalidParameter, match="no finite noise"):
        row.family.for_loss(ZeroConcentratedDP(0), ONE)
    with pytest.raises(InvalidParameter, match=r"2\^(80|160)"):
        row.family.for_loss(ZeroConcentratedDP(Fraction(1, 10**24)), Sensitivity(l1=10**15, l2_squared=10**30))


def check_coverage(
    row: mechanism_cases.AdditiveRow, coverage: Callable[[Fraction, int], tuple[Fraction, Fraction]]
) -> None:
    """P(|noise| ≤ h), added up from the law, lies within the stated bounds, and they are tight."""
    for scale in SCALES:
        for h in (0, 1, 2, 10, 57):
            true = mp.fsum(row.law(scale, x) for x in range(-h, h + 1))
            lower, upper = coverage(scale, h)
            assert real(lower) - mpf(10) ** -45 <= true <= real(upper) + mpf(10) ** -45
            assert upper - lower <= (1 - lower) / 2**120


@ROWS
def test_coverage(row: mechanism_cases.AdditiveRow) -> None:
    check_coverage(row, lambda scale, h: row.build(scale).coverage(h))
    assert row.build(Fraction(1)).coverage(-1) == Enclosure(Fraction(0), Fraction(0))


@ROWS
def test_twins_of_coverage_are_caught(row: mechanism_cases.AdditiveRow) -> None:
    def without_the_half(scale: Fraction, h: int) -> tuple[Fraction, Fraction]:
        # P(|N(0, σ²)| ≤ h) is that of noise of twice the scale at 2h, less its own half.
        return row.build(2 * scale).coverage(2 * h)

    def one_less(scale: Fraction, h: int) -> tuple[Fraction, Fraction]:
        return row.build(scale).coverage(h - 1)

    for twin in (without_the_half, one_less):
        with pytest.raises(AssertionError):
            check_coverage(row, twin)


def check_half_width(
    row: mechanism_cases.AdditiveRow, half_width: Callable[[Fraction, Fraction], int], scales: tuple[Fraction, ...]
) -> None:
    """It is enough, and one less is not."""
    for scale in scales:
        for confidence in CONFIDENCES:
            h = half_width(scale, confidence)
            assert row.build(scale).coverage(h).lower >= confidence
            assert h == 0 or row.build(scale).coverage(h - 1).upper < confidence


BROAD = (*SCALES, Fraction(1, 2**30), Fraction(10**9) / 7, Fraction(2**52 + 1), Fraction(2**80))


@ROWS
def test_half_width(row: mechanism_cases.AdditiveRow) -> None:
    check_half_width(row, lambda scale, confidence: row.build(scale).half_width(confidence), BROAD)


@ROWS
@pytest.mark.parametrize("error", [-1, 1])
def test_twins_of_half_width_are_caught(row: mechanism_cases.AdditiveRow, error: int) -> None:
    with pytest.raises(AssertionError):
        check_half_width(row, lambda scale, confidence: row.build(scale).half_width(confidence) + error, SCALES)


@ROWS
@pytest.mark.parametrize("h", one_in(3, [0, 1, 7, 50, 10**6, 2**53 + 1, 2**79]))
def test_for_half_width(row: mechanism_cases.AdditiveRow, h: int) -> None:
    for confidence in CONFIDENCES:
        mechanism = row.family.for_half_width(h, confidence)
        assert mechanism.half_width(confidence) <= h
        more = row.build(row.scale(mechanism) * (1 + Fraction(1, 2**40)))
        assert more.coverage(h).lower < confidence


@ROWS
def test_half_widths_that_mean_nothing_are_refused(row: mechanism_cases.AdditiveRow) -> None:
    for confidence in (0, 1, 1.5, -0.1, float("nan"), "0.95", Fraction(1, 10**400)):
        with pytest.raises(InvalidParameter, match="confidence"):
            row.build(Fraction(1)).half_width(confidence)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="confidence"):
            row.family.for_half_width(5, confidence)  # type: ignore[arg-type]
    for h in (-1, 1.5, True):
        with pytest.raises(InvalidParameter, match="half-width is"):
            row.family.for_half_width(h, 0.95)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"2\^(80|160)"):
        row.family.for_half_width(2**90, 0.95)


@ROWS
@pytest.mark.parametrize("scale", one_in(4, [*SCALES, Fraction(1, 10), Fraction(399, 100)]))
def test_standard_deviation(row: mechanism_cases.AdditiveRow, scale: Fraction) -> None:
    reach = int(scale * 150) + 20
    variance = 2 * mp.fsum(x * x * row.law(scale, x) for x in range(1, min(reach, 2500)))
    assert row.build(scale).standard_deviation == pytest.approx(float(mp.sqrt(variance)), rel=1e-12)
    assert row.build(Fraction(1, 2**30)).standard_deviation == 0
    large = row.build(Fraction(2**80)).standard_deviation
    assert large == pytest.approx(2**80 * (2**0.5 if row.name == "discrete Laplace" else 1))


@ROWS
@pytest.mark.parametrize("scale", [0, -2, 0.5, Fraction(0), Fraction(-1), Fraction(1, 2**31), Fraction(2**81)])
def test_scales_outside_are_refused(row: mechanism_cases.AdditiveRow, scale: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="it must be"):
        row.build(scale)


def test_whole_and_decimal_scales_are_read_exactly() -> None:
    assert DiscreteLaplace(scale=3).scale == Fraction(3)  # type: ignore[arg-type]
    assert RoundedGaussian(sigma=Decimal("0.1")).sigma == Fraction(1, 10)  # type: ignore[arg-type]
    assert DiscreteGaussian(variance=2).variance == Fraction(2)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="scale is True"):
        DiscreteLaplace(scale=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="sigma is '1'"):
        RoundedGaussian(sigma="1")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="variance is nan"):
        DiscreteGaussian(variance=float("nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, 1.0, True, None, Fraction(1)])
def test_sensitivities_are_whole(value: int) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity l1"):
        Sensitivity(l1=value, l2_squared=1)
    with pytest.raises(InvalidParameter, match="sensitivity l2_squared"):
        Sensitivity(l1=1, l2_squared=value)


Norm = Callable[[int, int], Sensitivity]
NORMS: dict[str, tuple[Norm, Callable[[tuple[int, ...]], int]]] = {
    "l1": (lambda bound, entries: Sensitivity.from_l1(bound), lambda v: sum(map(abs, v))),
    "l2": (
        lambda bound, entries: Sensitivity.from_l2_squared(bound, entries=entries),
        lambda v: sum(x * x for x in v),
    ),
    "linf": (lambda bound, entries: Sensitivity.from_linf(bound, entries=entries), lambda v: max(map(abs, v))),
}


def check_sensitivity(build: Norm, norm: Callable[[tuple[int, ...]], int]) -> None:
    """Over all integer vectors within a bound, both norms stay within what is said."""
    for entries in (1, 2, 3):
        vectors = list(product(range(-7, 8), repeat=entries))
        for bound in range(8):
            allowed = [v for v in vectors if norm(v) <= bound]
            stated = build(bound, entries)
            assert max(sum(map(abs, v)) for v in allowed) <= stated.l1
            assert max(sum(x * x for x in v) for v in allowed) <= stated.l2_squared


@pytest.mark.parametrize("name", NORMS)
def test_sensitivities_follow_from_one_norm(name: str) -> None:
    build, norm = NORMS[name]
    check_sensitivity(build, norm)


@pytest.mark.parametrize("name", NORMS)
def test_twin_a_sensitivity_that_is_one_too_small_is_caught(name: str) -> None:
    build, norm = NORMS[name]
    for l1, l2 in ((1, 0), (0, 1)):

        def less(bound: int, entries: int, l1: int = l1, l2: int = l2) -> Sensitivity:
            stated = build(bound, entries)
            return Sensitivity(l1=max(0, stated.l1 - l1), l2_squared=max(0, stated.l2_squared - l2))

        with pytest.raises(AssertionError):
            check_sensitivity(less, norm)


@given(
    st.lists(st.integers(min_value=-(10**20), max_value=10**20), min_size=1, max_size=6),
    st.integers(min_value=0, max_value=3),
)
def test_sensitivities_of_long_vectors(vector: list[int], unchanged: int) -> None:
    entries, l1, squared = len(vector) + unchanged, sum(map(abs, vector)), sum(x * x for x in vector)
    assert Sensitivity.from_l1(l1).l2_squared >= squared
    assert Sensitivity.from_l2_squared(squared, entries=entries).l1 >= l1
    most = Sensitivity.from_linf(max(map(abs, vector)), entries=entries)
    assert most.l1 >= l1
    assert most.l2_squared >= squared


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2", None])
def test_sensitivities_from_what_is_not_whole_are_refused(wrong: Any) -> None:
    builds: tuple[Callable[[], Sensitivity], ...] = (
        lambda: Sensitivity.from_l1(wrong),
        lambda: Sensitivity.from_l2_squared(wrong, entries=1),
        lambda: Sensitivity.from_linf(wrong, entries=1),
        lambda: Sensitivity.from_l2_squared(1, entries=wrong),
        lambda: Sensitivity.from_linf(1, entries=wrong),
    )
    for build in builds:
        with pytest.raises(InvalidParameter, match="must be a whole number"):
            build()


# Release

DRAWS = 100_000
# Hoeffding: a share of DRAWS independent events is this far from its probability with probability below 1e-8.
FAR = float(mp.sqrt(mp.log(2e8) / (2 * DRAWS)))


def check_release(row: mechanism_cases.AdditiveRow, mechanism: mechanism_cases.Additive, scale: Fraction) -> None:
    noisy = mechanism.release(np.full(DRAWS, 1000), SystemEntropy())
    stated = row.build(scale)
    for confidence in (0.3, 0.6, 0.9):
        h = stated.half_width(confidence)
        share = float(np.mean(np.abs(noisy - 1000) <= h))
        assert abs(share - float(stated.coverage(h).lower)) <= FAR
    assert abs(float(np.mean(noisy > 1000)) - float(1 - stated.coverage(0).lower) / 2) <= FAR


@ROWS
@pytest.mark.parametrize("scale", [Fraction(10), Fraction(2**45)])
def test_release_adds_the_stated_noise(row: mechanism_cases.AdditiveRow, scale: Fraction) -> None:
    check_release(row, row.build(scale), scale)


@ROWS
def test_twin_nine_tenths_of_the_noise_is_caught(row: mechanism_cases.AdditiveRow) -> None:
    with pytest.raises(AssertionError):
        check_release(row, row.build(Fraction(9)), Fraction(10))


@ROWS
@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3), (0, 4)])
def test_release_keeps_the_shape(row: mechanism_cases.AdditiveRow, shape: tuple[int, ...]) -> None:
    whole = np.zeros(shape, dtype=np.int64)
    kinds: tuple[IntArray, ...] = (whole, whole.astype(np.object_))
    for values in kinds:
        noisy = row.build(Fraction(3)).release(values, SystemEntropy())
        assert noisy.shape == shape
        assert noisy.dtype == np.int64
        assert not values.any()


@ROWS
def test_release_never_wraps(row: mechanism_cases.AdditiveRow) -> None:
    ends = np.array([2**63 - 1, -(2**63)] * 50)
    noisy = row.build(Fraction(1000)).release(ends, SystemEntropy())
    assert noisy.dtype == np.object_
    assert all(abs(int(y) - int(x)) < 10**6 for x, y in zip(ends, noisy, strict=True))
    huge: IntArray = np.array([10**30, -(10**40)], dtype=object)
    noisy = row.build(Fraction(1000)).release(huge, SystemEntropy())
    assert all(abs(int(y) - int(x)) < 10**6 for x, y in zip(huge, noisy, strict=True))
    # The type tells what the sums tell and no more: large noise that cancels leaves no trace in it.
    noisy = row.build(Fraction(1)).release(np.array([2**62, -(2**62)], dtype=object), SystemEntropy())
    assert noisy.dtype == np.int64


@ROWS
@pytest.mark.parametrize("values", [np.zeros(3), np.array([True]), np.array([1.5], dtype=object), np.array(["1"])])
def test_release_takes_integers_only(row: mechanism_cases.AdditiveRow, values: Any) -> None:
    with pytest.raises(InvalidParameter, match="must be whole numbers"):
        row.build(Fraction(1)).release(values, SystemEntropy())


@ROWS
def test_release_of_one_number_is_an_int(row: mechanism_cases.AdditiveRow) -> None:
    mechanism = row.build(Fraction(3))
    values: tuple[Any, ...] = (0, -7, 10**40, np.int64(5))
    for value in values:
        noisy = mechanism.release(value, StreamEntropy("one"))
        assert type(noisy) is int
        assert noisy == value + int(mechanism.release(np.zeros(1, dtype=np.int64), StreamEntropy("one"))[0])
    wrongs: tuple[Any, ...] = (1.0, True, "1", None, Fraction(1))
    for wrong in wrongs:
        with pytest.raises(InvalidParameter, match="an int, or to a list or array"):
            mechanism.release(wrong, NoEntropy())
    assert type(mechanism.release(4)) is int
    listed = mechanism.release([4, 10**40])  # type: ignore[call-overload]  # lists are taken, but arrays are typed
    assert isinstance(listed, np.ndarray)
    lists: tuple[Any, ...] = ([1.5], [True], [[1]], ["1"])
    for wrong in lists:
        with pytest.raises(InvalidParameter):
            mechanism.release(wrong, NoEntropy())


@pytest.mark.parametrize(
    "loss", [1, None, 0.5, GaussianDP, ApproxDP(1, 1e-6)], ids=["1", "None", "0.5", "class", "approx"]
)
@pytest.mark.parametrize("sensitivity", [ONE, ScoreSensitivity()], ids=["vector", "scores"])
def test_what_is_no_loss_of_a_measure_is_refused_by_name(loss: Any, sensitivity: Any) -> None:
    families: tuple[Any, ...] = (DiscreteLaplace, RoundedGaussian, DiscreteGaussian)
    if isinstance(sensitivity, ScoreSensitivity):
        families = (ExponentialMechanism, PermuteAndFlip, AboveThreshold)
    for family in families:
        with pytest.raises(InvalidParameter, match="The loss is of type"):
            family.for_loss(loss, sensitivity)


def test_the_other_kind_of_sensitivity_is_refused_by_name() -> None:
    scores, scale = ScoreSensitivity(), Fraction(1)
    wrongs: tuple[tuple[Any, Any], ...] = (
        *((family, scores) for family in (DiscreteLaplace, RoundedGaussian)),
        *((family, ONE) for family in (ExponentialMechanism, PermuteAndFlip, AboveThreshold)),
        (DiscreteLaplace, 1),
    )
    for family, sensitivity in wrongs:
        with pytest.raises(InvalidParameter, match="The sensitivity is of type"):
            family.for_loss(GaussianDP(1), sensitivity)
    for mechanism in (DiscreteLaplace(scale=scale), RoundedGaussian(sigma=scale), PermuteAndFlip(scale=scale)):
        with pytest.raises(InvalidParameter, match="The sensitivity is of type"):
            mechanism.loss("gdp", ONE)  # type: ignore[arg-type]


@ROWS
@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.uint64])
def test_release_reads_every_kind_of_integer(row: mechanism_cases.AdditiveRow, kind: type) -> None:
    values: Any = np.array([[1, 2], [3, np.iinfo(kind).max]], dtype=kind)
    noisy = row.build(Fraction(3)).release(values, StreamEntropy("kinds"))
    plain = row.build(Fraction(3)).release(values.astype(object), StreamEntropy("kinds"))
    assert noisy.tolist() == plain.tolist()


def test_releases_differ() -> None:
    mechanism = RoundedGaussian(sigma=Fraction(10**6))
    first, second = (mechanism.release(np.zeros(40, dtype=np.int64), SystemEntropy()) for _ in range(2))
    assert len({*first.tolist(), *second.tolist()}) > 70
