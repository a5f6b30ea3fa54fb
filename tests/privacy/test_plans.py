"""Plans: certified scales, in proportion to weights, and the best noise for so many queries."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.analytic_gaussian import analytic_gaussian_sigma_up
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.filters import Account, Granted, charge
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.plans import Planned, cheapest, choices, discrete_laplace, gaussian, laplace, scales_for
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

MILLIONTH = Fraction(1, 10**6)
Scales = Callable[[Loss, Sequence[Planned]], tuple[Fraction, ...]]


def plan(kind: str) -> list[Planned]:
    noisy = [
        Planned(loss=laplace(1, kind), weight=Fraction(1), times=7),
        Planned(loss=discrete_laplace(3, kind), times=2),
    ]
    if kind == "pure":
        return noisy
    return [*noisy, Planned(loss=gaussian(5, kind), weight=Fraction(5, 2), times=40)]


def check_keeps_the_budget(scales_of: Scales) -> None:
    """An account grants everything at these scales, and not at scales smaller by a billionth."""
    for kind in ("pure", "gdp", "zcdp"):
        budget = loss_for(kind, Fraction(2), MILLIONTH)
        planned = plan(kind)
        scales = scales_of(budget, planned)
        assert len({scale / one.weight for scale, one in zip(scales, planned, strict=True)}) == 1
        account = Account.opened(budget)
        for scale, one in zip(scales, planned, strict=True):
            for _ in range(one.times):
                decision = charge(account, one.loss(scale))
                assert isinstance(decision, Granted)
                account = decision.account
        less = [one.loss(scale * (1 - Fraction(1, 10**9))) for scale, one in zip(scales, planned, strict=True)]
        total = sum((one.times * loss.amount for one, loss in zip(planned, less, strict=True)), Fraction(0))
        assert total > budget.amount


def test_planned_scales_keep_the_budget() -> None:
    check_keeps_the_budget(scales_for)


def test_twins_are_caught() -> None:
    def nearest(budget: Loss, planned: Sequence[Planned]) -> tuple[Fraction, ...]:
        return tuple(scale * (1 - Fraction(1, 10**12)) for scale in scales_for(budget, planned))

    def generous(budget: Loss, planned: Sequence[Planned]) -> tuple[Fraction, ...]:
        return tuple(scale * (1 + Fraction(1, 10**6)) for scale in scales_for(budget, planned))

    def without_weights(budget: Loss, planned: Sequence[Planned]) -> tuple[Fraction, ...]:
        return tuple(scale / one.weight for scale, one in zip(scales_for(budget, planned), planned, strict=True))

    for twin in (nearest, generous, without_weights):
        with pytest.raises(AssertionError):
            check_keeps_the_budget(twin)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6), st.integers(1, 10**6))
def test_a_single_kind_has_a_closed_form(epsilon: Fraction, times: int) -> None:
    (scale,) = scales_for(PureDP(epsilon), [Planned(loss=laplace(3, "pure"), times=times)])
    assert 3 * times / epsilon <= scale * (1 + Fraction(1, 10**13))
    assert scale <= 3 * times / epsilon * (1 + Fraction(1, 10**9))


def test_the_best_noise_for_so_many_queries() -> None:
    """Laplace noise in a pure account for up to 7 unit queries at (1, 1e-6), Gaussian noise from 8 on."""
    best = {k: (cheapest(k, 1, 1, MILLIONTH).noise, cheapest(k, 1, 1, MILLIONTH).kind) for k in (1, 7, 8, 1000)}
    assert best == {1: ("laplace", "pure"), 7: ("laplace", "pure"), 8: ("gaussian", "gdp"), 1000: ("gaussian", "gdp")}
    assert [(choice.noise, choice.kind) for choice in choices(5, 1, 1, 0)] == [("laplace", "pure")]


# Provenance: standard deviations for k unit counts at ε = 1, δ = 1e-6, computed with 60-digit arithmetic from the
# formulas; also tabulated in the project's notes on accounting.
@pytest.mark.parametrize(
    ("k", "laplace_std", "zcdp_std", "gdp_std"), [(10, 14.14, 14.33, 13.36), (1000, 1414.2, 143.3, 133.6)]
)
def test_known_scales(k: int, laplace_std: float, zcdp_std: float, gdp_std: float) -> None:
    found = {(choice.noise, choice.kind): float(choice.scale) for choice in choices(k, 1, 1, MILLIONTH)}
    assert found["laplace", "pure"] * 2**0.5 == pytest.approx(laplace_std, rel=1e-3)
    assert found["gaussian", "zcdp"] == pytest.approx(zcdp_std, rel=1e-3)
    assert found["gaussian", "gdp"] == pytest.approx(gdp_std, rel=1e-3)


@given(st.integers(1, 10**6), st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(20)]))
def test_choices_keep_the_promise_and_are_sorted(queries: int, epsilon: Fraction) -> None:
    found = choices(queries, 2, epsilon, MILLIONTH)
    assert [choice.half_width for choice in found] == sorted(choice.half_width for choice in found)
    for choice in found:
        loss = (laplace(2, choice.kind) if choice.noise == "laplace" else gaussian(4, choice.kind))(choice.scale)
        assert (queries * loss).to_epsilon(delta=MILLIONTH) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_half_widths_cover(confidence: float) -> None:
    for choice in choices(3, 1, 1, MILLIONTH, confidence=confidence):
        width, scale, tail = real(choice.half_width), real(choice.scale), 1 - real(Fraction(str(confidence)))
        beyond = mp.exp(-width / scale) if choice.noise == "laplace" else mp.erfc(width / scale / mp.sqrt(2))
        assert beyond <= tail <= beyond * (1 + mpf(10) ** -12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(50)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**12), MILLIONTH, Fraction(1, 2)])
def test_the_analytic_gaussian(epsilon: Fraction, delta: Fraction) -> None:
    sigma = analytic_gaussian_sigma_up(9, epsilon, delta)
    assert oracle.gdp_delta(9 / sigma**2, epsilon) <= real(delta)
    assert oracle.gdp_delta(9 / (sigma * (1 - Fraction(1, 10**9))) ** 2, epsilon) > real(delta)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="Nothing is planned"):
        scales_for(PureDP(1), [])
    with pytest.raises(InvalidParameter, match="budget is 0"):
        scales_for(PureDP(0), plan("pure"))
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        scales_for(GaussianDP(1), plan("pure"))
    with pytest.raises(InvalidParameter, match="No scale"):
        scales_for(ZeroConcentratedDP(1), [Planned(loss=lambda scale: ZeroConcentratedDP(2))])
    with pytest.raises(InvalidParameter, match="weight is 0"):
        Planned(loss=laplace(1, "pure"), weight=Fraction(0))
    with pytest.raises(InvalidParameter, match="no finite ε"):
        gaussian(1, "pure")(Fraction(1))
    for arguments in ((0, 1, 1, 0.1), (1, 0, 1, 0.1), (1, 1, 0, 0.1), (1, 1, 1, 1)):
        with pytest.raises(InvalidParameter):
            choices(*arguments)
    with pytest.raises(InvalidParameter, match="l2_squared"):
        analytic_gaussian_sigma_up(-1, Fraction(1), MILLIONTH)
