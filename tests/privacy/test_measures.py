import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import (
    GRID,
    PRIVACY_MEASURES,
    ApproxDP,
    ApproximateGaussianDP,
    GaussianDP,
    Loss,
    PureDP,
    ZeroConcentratedDP,
    from_record,
)
from tests.support import mechanism_cases
from tests.support.privacy import oracle

measures = st.sampled_from(mechanism_cases.MEASURES)
amounts = st.fractions(min_value=0, max_value=100, max_denominator=10**6)
some_losses = st.builds(lambda measure, amount: measure.from_amount(amount), measures, amounts)


@given(measures, amounts, amounts, amounts)
def test_composition_is_addition(measure: type[PureDP], a: Fraction, b: Fraction, c: Fraction) -> None:
    x, y, z = (measure.from_amount(amount) for amount in (a, b, c))
    zero = measure.from_amount(0)
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x + zero == x == 1 * x
    assert 3 * x == x + x + x == x * 3
    assert 0 * x == zero
    assert (x <= y) == (a <= b)
    assert (x < y) == (y > x) == (not x >= y)
    assert x <= x + y


@given(some_losses, st.integers(min_value=1, max_value=5), st.integers(min_value=1, max_value=5))
def test_groups(loss: Loss, j: int, k: int) -> None:
    power = 1 if loss.kind == "pure" else 2
    assert loss.for_group(k).amount == k**power * loss.amount
    assert loss.for_group(j).for_group(k) == loss.for_group(j * k)
    assert loss.for_group(1) == loss


@given(some_losses)
def test_records_copies_and_texts(loss: Loss) -> None:
    assert from_record(loss.to_record()) == loss
    names = {"PureDP": PureDP, "GaussianDP": GaussianDP, "ZeroConcentratedDP": ZeroConcentratedDP, "Fraction": Fraction}
    assert eval(repr(loss), names) == loss
    assert pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss) == loss
    assert hash(from_record(loss.to_record())) == hash(loss)
    assert 0 <= loss.rounded_up().amount - loss.amount < GRID


@pytest.mark.parametrize("mu", [5e-324, 1e-210, 1e50, Fraction(1, 3**2500)])
def test_the_smallest_and_greatest_mu_have_records(mu: float | Fraction) -> None:
    loss = GaussianDP(mu)
    assert from_record(loss.to_record()) == loss
    assert from_record((loss + GaussianDP(0)).rounded_up().to_record()) == loss.rounded_up()


@pytest.mark.parametrize("mu", [1e51, Fraction(1, 3**5000)])
def test_a_mu_whose_square_is_outside_is_refused(mu: float | Fraction) -> None:
    with pytest.raises(InvalidParameter, match="the square of mu is too large or too fine"):
        GaussianDP(mu)


def test_what_people_read() -> None:
    assert [repr(x) for x in (PureDP(0.1), GaussianDP(0.3), ZeroConcentratedDP(2), ApproxDP(1, 1e-6))] == [
        "PureDP(0.1)",
        "GaussianDP(0.3)",
        "ZeroConcentratedDP(2)",
        "ApproxDP(1, 1e-06)",
    ]
    assert (
        f"{PureDP(Fraction(1, 3))}, {2 * GaussianDP(0.3)}, {ZeroConcentratedDP(0)}" == "ε = 0.3334, μ = 0.4243, ρ = 0"
    )
    assert str(ApproxDP(1, 1e-6)) == "(ε = 1, δ = 1e-6)"
    assert GaussianDP(0.5).to_record() == {"measure": "gdp", "amount": "0.25"}
    assert repr(GaussianDP.from_mu_squared(Fraction(1, 3))) == "GaussianDP.from_mu_squared(Fraction('1/3'))"


@pytest.mark.parametrize("measure", [PureDP, GaussianDP, ZeroConcentratedDP])
@pytest.mark.parametrize("value", [-1, -1e-300, float("nan"), float("inf"), "1", True, None, Decimal("nan")])
def test_what_is_no_loss_is_refused(measure: type[PureDP], value: float) -> None:
    with pytest.raises(InvalidParameter):
        measure(value)
    with pytest.raises(InvalidParameter):
        measure.from_amount(value)


@pytest.mark.parametrize("arguments", [(-1, 0.1), (1, -0.1), (1, 1.5), (1, "0.1"), (True, 0.1)])
def test_what_is_no_approximate_loss_is_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(InvalidParameter):
        ApproxDP(*arguments)


def test_measures_do_not_mix() -> None:
    for a in PRIVACY_MEASURES.values():
        for b in PRIVACY_MEASURES.values():
            if a is not b:
                assert a(1) != b(1)
                with pytest.raises(InvalidParameter, match="do not add or compare"):
                    a(1) + b(1)
                with pytest.raises(InvalidParameter, match="do not add or compare"):
                    _ = a(1) <= b(1)
    with pytest.raises(InvalidParameter):
        PureDP(1) + 1  # type: ignore[operator]


@pytest.mark.parametrize("times", [1.5, -1, True, "2"])
def test_composition_counts_whole_times(times: int) -> None:
    with pytest.raises(InvalidParameter):
        times * PureDP(1)
    with pytest.raises(InvalidParameter):
        PureDP(1).for_group(times)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2, float("nan"), "1e-6", True])
@pytest.mark.parametrize("loss", [GaussianDP(1), ZeroConcentratedDP(1)])
def test_a_delta_outside_is_refused(loss: Loss, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        loss.to_epsilon(delta=delta)


@pytest.mark.parametrize("loss", mechanism_cases.losses(Fraction(1)))
@pytest.mark.parametrize("epsilon", [-1, float("inf"), "1"])
def test_an_epsilon_outside_is_refused(loss: Loss, epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        loss.to_delta(epsilon=epsilon)


def test_no_loss_costs_nothing() -> None:
    for loss in mechanism_cases.losses(Fraction(0)):
        assert loss.to_epsilon(delta=1e-6) == 0
        assert loss.to_delta(epsilon=0) == 0
        assert loss.for_group(7) == loss
        for kind in PRIVACY_MEASURES:
            assert loss.to_kind(kind).amount == 0


@given(measures, amounts, amounts, st.sampled_from([1e-9, 1e-6, 0.1]))
def test_a_larger_loss_never_converts_to_less(measure: type[PureDP], a: Fraction, b: Fraction, delta: float) -> None:
    x, y = (measure.from_amount(amount) for amount in sorted((a, b)))
    assert x.to_epsilon(delta=delta) <= y.to_epsilon(delta=delta)
    assert x.to_delta(epsilon=0.5) <= y.to_delta(epsilon=0.5)


def test_pure_loss_ignores_delta_and_is_exact_above_itself() -> None:
    assert PureDP(0.5).to_epsilon() == PureDP(0.5).to_epsilon(delta=1e-6) == 0.5
    assert PureDP(0.5).to_delta(epsilon=0.5) == 0
    assert 0 < PureDP(0.5).to_delta(epsilon=0.4) < PureDP(0.5).to_delta(epsilon=0)


def test_mu_is_rounded_up() -> None:
    assert GaussianDP(0.5).mu == 0.5
    mu = GaussianDP.from_mu_squared(2).mu
    assert mu == pytest.approx(2**0.5, rel=1e-15)
    assert Fraction(mu) ** 2 >= 2


def test_approximate_losses() -> None:
    loss = ApproxDP(0.5, 1e-6)
    assert loss + loss == 2 * loss == ApproxDP(1, 2e-6)
    assert ApproxDP(0, 0.7) + ApproxDP(0, 0.7) == 2 * ApproxDP(0, 0.7) == ApproxDP(0, 1)
    assert loss <= ApproxDP(0.5, 1e-5)
    assert not loss <= ApproxDP(0.4, 1e-5)
    assert not ApproxDP(0.4, 1e-5) <= loss
    assert ApproxDP(0.5, 1e-5) >= loss
    assert loss.to_epsilon(delta=1e-6) == 0.5
    assert loss.to_delta(epsilon=0.5) == pytest.approx(1e-6)
    assert loss.to_delta(epsilon=0.5) >= Fraction(1, 10**6)
    with pytest.raises(InvalidParameter, match="implies no ε"):
        loss.to_epsilon(delta=1e-7)
    assert loss.for_group(1) == loss
    assert ApproxDP(0, 1e-6).for_group(3) == ApproxDP(0, 3e-6)
    assert ApproxDP(3, 0.1).for_group(1000).delta == 1


def test_approximate_gaussian_losses() -> None:
    """(μ, δ) is (ε, δ + (1 − δ)·δ_μ(ε))-DP, rounded up; μ² and δ add; what it cannot say is refused."""
    loss = ApproximateGaussianDP(0.5, 1e-6)
    for epsilon in (0, 1, 2.5):
        inside = oracle.gdp_delta(Fraction(1, 4), Fraction(epsilon))
        whole = mpf(10) ** -6 + (1 - mpf(10) ** -6) * inside
        assert whole <= mpf(loss.to_delta(epsilon=epsilon)) <= whole * (1 + mpf(10) ** -14)
    left = Fraction(1, 10**6) / (1 - Fraction(1, 10**6))
    assert loss.to_epsilon(delta=2e-6) == GaussianDP(0.5).to_epsilon(delta=left)
    assert loss.to_delta(epsilon=loss.to_epsilon(delta=3e-6)) <= 3e-6
    assert loss + loss == ApproximateGaussianDP.of(GaussianDP.from_mu_squared(0.5), 2e-6)
    assert (ApproximateGaussianDP(9, 0.7) + ApproximateGaussianDP(0, 0.7)).to_delta(epsilon=0) == 1
    assert repr(loss) == "ApproximateGaussianDP.of(GaussianDP(0.5), 1e-06)"
    assert str(loss) == "(μ = 0.5, δ = 1e-6)"
    with pytest.raises(InvalidParameter, match="implies no ε"):
        loss.to_epsilon(delta=1e-6)
    with pytest.raises(InvalidParameter, match="do not add"):
        loss + ApproxDP(1, 1e-6)  # type: ignore[operator]
    for mu, delta in ((-1, 0), (float("nan"), 0), (1, 1.5), (1, -0.1)):
        with pytest.raises(InvalidParameter):
            ApproximateGaussianDP(mu, delta)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"measure": "gdp"},
        {"measure": "rdp", "amount": "1"},
        {"measure": "gdp", "amount": "-1"},
        {"measure": "gdp", "amount": "1", "more": "1"},
    ],
)
def test_other_records_do_not_read(record: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        from_record(record)


def test_known_faults_of_others() -> None:
    """A thousand losses that round up to too much each; a negative ε; a loss that is stated for another relation."""
    assert 1000 * PureDP(0.01235) == PureDP(12.35)
    assert (1000 * PureDP(0.01235).to_kind("zcdp")).to_epsilon(delta=1e-6) < 2.1
    for loss in mechanism_cases.losses(Fraction(1, 10**9)):
        assert loss.to_epsilon(delta=0.5) >= 0
    assert PureDP(1).for_group(2) == PureDP(2)
