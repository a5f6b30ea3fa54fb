"""Lists to and from dp-accounting and OpenDP: the same mechanisms, the same figures, and what has no counterpart."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import opendp.prelude as dp
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.privacy import interchange
from lapwing.privacy.interchange import from_dp_event, from_opendp, to_dp_event
from lapwing.privacy.listing import Listed, listed
from lapwing.privacy.loss_points import distribution_of
from lapwing.privacy.statements import statements_of
from tests.support.effort import one_in

dp.enable_features("contrib")

LIST = [
    listed("gaussian", 200, sigma=1.1, rate=0.01),
    listed("laplace", 3, epsilon=0.1),
    listed("laplace", scale=20, sensitivity=2),
    listed("gaussian", 2, mu=0.25),
    listed("discrete-laplace", scale=8, sensitivity=3),
]


def texts(parts: tuple[Listed, ...]) -> list[str]:
    return [part.text for part in parts]


def test_events_are_read() -> None:
    sampled = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.1))
    event = dp_event.ComposedDpEvent(
        [
            dp_event.SelfComposedDpEvent(dp_event.ComposedDpEvent([sampled, dp_event.NoOpDpEvent()]), 1000),
            dp_event.LaplaceDpEvent(10.0),
            dp_event.DiscreteLaplaceDpEvent(0.5, 2),
            dp_event.SampledWithoutReplacementDpEvent(50, 5, dp_event.LaplaceDpEvent(2)),
            dp_event.SingleEpochTreeAggregationDpEvent(4.0, [3, 8]),
            dp_event.ZCDpEvent(0.125),
        ]
    )
    assert texts(from_dp_event(event)) == [
        "1000 gaussian sigma=1.1 rate=0.01",
        "1 laplace scale=10",
        "1 discrete-laplace scale=2 sensitivity=2",
        "1 laplace scale=2 size=5 population=50",
        "1 tree sigma=4 steps=8",
        "1 zcdp rho=0.125",
    ]
    assert from_dp_event(dp_event.NoOpDpEvent()) == ()


def test_several_gaussians_on_one_sample_are_one() -> None:
    inner = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(5.0), dp_event.GaussianDpEvent(3.75)])
    (one,) = from_dp_event(dp_event.PoissonSampledDpEvent(0.1, inner))
    assert one.kind == "gaussian"
    assert abs(dict(one.numbers)["mu"] - Fraction(1, 3)) < Fraction(1, 10**25)
    (twice,) = from_dp_event(
        dp_event.PoissonSampledDpEvent(0.1, dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(10), 4))
    )
    assert abs(dict(twice.numbers)["mu"] - Fraction(1, 5)) < Fraction(1, 10**25)


def check_figures(parts: list[Listed]) -> None:
    """Their upper bound, at a discretisation of 10⁻⁴, is not below ours from below, and not far above."""
    interval = distribution_of(parts).to_epsilon(1e-6)
    theirs = PLDAccountant().compose(to_dp_event(parts)).get_epsilon(1e-6)
    assert interval.lower - 1e-6 <= theirs <= interval.upper + 0.02


def test_both_accountants_state_the_same() -> None:
    check_figures(LIST)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "fault"),
    one_in(
        2,
        [
            ("gaussian", lambda f: lambda module, n: f(module, {**n, "sensitivity": n["sensitivity"] * 9 / 10})),
            ("laplace", lambda f: lambda module, n: f(module, {"scale": Fraction(20), "sensitivity": Fraction(1)})),
        ],
        many=True,
    ),
)
def test_twins(monkeypatch: pytest.MonkeyPatch, kind: str, fault: Callable[..., object]) -> None:
    monkeypatch.setitem(interchange.EVENT_MAKERS, kind, fault(interchange.EVENT_MAKERS[kind]))
    with pytest.raises(AssertionError):
        check_figures(LIST)


def test_what_is_written_is_read_again() -> None:
    parts = [*LIST, listed("tree", sigma=3, steps=9), listed("zcdp", rho=0.1)]
    again = from_dp_event(to_dp_event(parts))
    assert texts(again) == [
        *("200 gaussian sigma=1.1 rate=0.01", "3 laplace scale=10", "1 laplace scale=10", "2 gaussian sigma=4"),
        *("1 discrete-laplace scale=8 sensitivity=3", "1 tree sigma=3 steps=9", "1 zcdp rho=0.1"),
    ]
    (response,) = from_dp_event(to_dp_event([listed("randomized-response", epsilon=1, choices=4)]))
    assert response.kind == "randomized-response"
    assert 1 <= dict(response.numbers)["epsilon"] < 1 + Fraction(1, 10**12)


def test_a_tree_is_as_theirs() -> None:
    """Under their special replacement of a unit by none, at each number of steps."""
    for steps in (1, 2, 3, 8, 1000):
        event = dp_event.SingleEpochTreeAggregationDpEvent(2.0, steps)
        accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL).compose(event)
        (ours,) = from_dp_event(event)
        curve = lw.RenyiDP.gaussian(sigma=2, l2=1, orders=[8]) * steps.bit_length()
        assert ours.mechanism.curve().at(8) == curve.at(8)
        ordered = dict(zip(accountant._orders, accountant._rdp, strict=True))
        assert float(curve.at(8)) == pytest.approx(ordered[8])


def test_what_has_no_event_is_written_by_its_rho() -> None:
    (event, selection, pure) = to_dp_event(
        [
            listed("discrete-gaussian", sigma=2),
            listed("exponential", epsilon=1),
            listed("pure", epsilon=1),
        ]
    ).events
    assert event == dp_event.ZCDpEvent(0.125)
    assert selection == dp_event.ZCDpEvent(0.125)
    assert pure.rho == pytest.approx(math.tanh(0.5))


def mapped(measurement: Any, distance: int = 1) -> Any:
    return measurement.map(distance)


def test_measurements_of_opendp() -> None:
    laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=10.0)
    gaussian = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=4.0)
    approx = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    assert isinstance(from_opendp(laplace, 1), lw.PureDP)
    assert float(from_opendp(laplace, 1).epsilon) == mapped(laplace) == 0.1
    assert from_opendp(gaussian, 2) == lw.ZeroConcentratedDP(Fraction(1, 8))
    assert from_opendp(approx, 1) == lw.ApproxDP(*map(Fraction, mapped(approx)))
    parts = [listed(from_opendp(laplace, 1), 10), listed(from_opendp(gaussian, 1), 4)]
    assert [part.kind for part in parts] == ["pure", "zcdp"]
    said = {one.method: one for one in statements_of(parts, delta=1e-6)}
    assert said["zCDP"].epsilon is not None
    assert "no law of a loss" in said["loss distribution"].refused
    with pytest.raises(InvalidParameter, match="make_fix_delta"):
        from_opendp(dp.c.make_zCDP_to_approxDP(gaussian), 1)


def check_opendp(read: Callable[[Any, int], Any]) -> None:
    """Exactly what OpenDP's map states, which is rounded up, at each distance."""
    for make in (dp.m.make_laplace, dp.m.make_gaussian):
        measurement = make(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=10.0)
        for distance in (1, 2, 3):
            assert read(measurement, distance).amount >= Fraction(mapped(measurement, distance))


def test_a_loss_of_opendp_is_at_least_what_it_states() -> None:
    check_opendp(from_opendp)


@pytest.mark.parametrize(
    "fault",
    [
        lambda measurement, distance: from_opendp(measurement, 1),
        lambda measurement, distance: lw.PureDP(Fraction(str(mapped(measurement, distance)))),
    ],
    ids=["another distance", "the shortest decimal"],
)
def test_twins_of_opendp_are_caught(fault: Callable[[Any, int], Any]) -> None:
    with pytest.raises(AssertionError):
        check_opendp(fault)


def test_curves_of_opendp() -> None:
    class Curved:
        output_measure = "RenyiDivergence"

        def map(self, _d_in: int) -> Callable[[float], float]:
            return lambda order: order / 8

    loss = from_opendp(Curved(), 1, orders=[Fraction(2), Fraction(8)])
    assert loss == lw.RenyiDP({2: 0.25, 8: 1})
    assert listed(loss, 3).mechanism.curve() == loss


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: from_dp_event(dp_event.NonPrivateDpEvent()), "event NonPrivate is not"),
        (lambda: from_dp_event(dp_event.UnsupportedDpEvent()), "event Unsupported is not"),
        (lambda: from_dp_event("training"), "event str is not"),
        (lambda: from_dp_event(dp_event.ZCDpEvent(0.1, 0.2)), "with an xi"),
        (lambda: from_dp_event(dp_event.RandomizedResponseDpEvent(0, 3)), "above 0 and below 1"),
        (
            lambda: from_dp_event(
                dp_event.PoissonSampledDpEvent(0.1, dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1)))
            ),
            "PoissonSampled on a sample",
        ),
        (
            lambda: from_dp_event(
                dp_event.PoissonSampledDpEvent(0.1, dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(1)]))
            ),
            "if each is Gaussian noise",
        ),
        (lambda: to_dp_event([listed("approx", epsilon=1, delta=1e-9)]), "no event"),
        (lambda: to_dp_event([listed("discrete-gaussian", sigma=2, rate=0.1)]), "no event"),
        (lambda: to_dp_event([listed(lw.RenyiDP({2: 1}))]), "no event"),
        (lambda: to_dp_event([listed("laplace", epsilon=1, neighbouring="add_remove")]), "names a relation"),
        (lambda: listed(lw.PureDP(1), rate=0.1), "takes no numbers and no sample"),
        (lambda: listed(lw.ApproximateGaussianDP(1, 1e-9)), "is no loss of one"),  # type: ignore[arg-type]
        (lambda: listed(lw.RenyiDP({2: 1})).mechanism.pair(), "no law of a loss"),
    ],
)
def test_what_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        make()


def test_any_loss_is_a_part_of_a_list() -> None:
    parts = [listed(loss, 2) for loss in (lw.PureDP(1), lw.GaussianDP(1), lw.ApproxDP(1, 1e-9))]
    assert texts(tuple(parts)) == ["2 pure epsilon=1", "2 gaussian μ = 1", "2 approx epsilon=1 delta=0.000000001"]
    gaussian = distribution_of([parts[1]]).to_epsilon(1e-6)
    assert gaussian.lower <= (2 * lw.GaussianDP(1)).to_epsilon(delta=1e-6) <= gaussian.upper + 1e-9
