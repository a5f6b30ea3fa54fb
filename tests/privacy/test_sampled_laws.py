"""Laws of noise on a Poisson sample: transforms and decay against quadrature in mpmath, curves from two accountants."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp, mpc, mpf

from lapwing.privacy import combined_pairs, loss_laws, quadrature, sampled_gaussian
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.loss_laws import Nodes, decay_of
from lapwing.privacy.pairs import BoundedRangePair, CutPair, Direction, GaussianPair, LaplacePair, Pair
from lapwing.privacy.quadrature import Points
from lapwing.privacy.sampled_gaussian import SampledGaussianLaw
from lapwing.privacy.sampled_laplace import SampledLaplaceLaw
from tests.support.effort import one_in, only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy.intervals import check_delta, forget
from tests.support.privacy.oracle import real

Law = SampledGaussianLaw | SampledLaplaceLaw
MILLIONTH = Fraction(1, 10**6)
TENTH = Fraction(1, 10)


@pytest.fixture(autouse=True)
def fresh() -> None:
    forget()


def weight(law: Law, k: mpc) -> Callable[[mpf], mpc]:
    """w^k at a loss of the mechanism without the sample."""
    q = real(law.rate)
    return lambda loss: mp.exp(k * mp.log(1 - q + q * mp.exp(loss)))


@cache
def moment(law: Law, tilt: float, height: float) -> mpc:
    """M(tilt + i·height), from the density."""
    with mp.workdps(30):
        z = mpc(tilt, height)
        of = weight(law, z + 1 if law.direction == "remove" else -z)
        if isinstance(law, SampledGaussianLaw):
            mu, far = mp.sqrt(real(law.mu_squared)), (tilt + 1) * math.sqrt(law.mu_squared)
            low, high = (-12.0, far + 12) if law.direction == "remove" else (-far - 12, 12.0)
            cuts = np.linspace(low, high, 2 * math.ceil(high - low)).tolist()
            return mp.quad(lambda x: mp.npdf(x) * of(mu * x - mu**2 / 2), cuts)
        e = real(law.epsilon)
        c = mpf(1) / 4 if law.has_atoms else 1 / (2 * (1 - mp.exp(-e)))
        inner = mp.quad(lambda x: c * mp.exp(-(x + e) / 2) * of(x), [-e + e * n / 8 for n in range(17)])
        return inner + (mp.exp(-e) / 2 * of(e) + of(-e) / 2 if law.has_atoms else 0)


CASES: dict[str, tuple[Callable[[Direction], Law], Nodes]] = {
    "training": (lambda way: SampledGaussianLaw(Fraction("0.826"), Fraction(1, 100), way), Nodes(5.3, 0.9, 60)),
    "large sample": (lambda way: SampledGaussianLaw(Fraction(1), Fraction(3, 10), way), Nodes(2.0, 1.3, 40)),
    "little noise": (lambda way: SampledGaussianLaw(Fraction(100), Fraction(1, 100), way), Nodes(1.0, 1.0, 30)),
    "large tilt": (lambda way: SampledGaussianLaw(Fraction(1), Fraction(1, 100), way), Nodes(40.0, 1.0, 30)),
    "rare": (lambda way: SampledGaussianLaw(Fraction(1), MILLIONTH, way), Nodes(8.0, 5.0, 30)),
    "nearly all": (lambda way: SampledGaussianLaw(Fraction(1), 1 - Fraction(1, 10**4), way), Nodes(3.0, 1.0, 20)),
    "Laplace": (lambda way: SampledLaplaceLaw(Fraction(1, 2), Fraction(1, 100), way, True), Nodes(5.3, 4.0, 60)),
    "wide Laplace": (lambda way: SampledLaplaceLaw(Fraction(20), Fraction(1, 100), way, True), Nodes(0.3, 1.0, 30)),
    "half": (lambda way: SampledLaplaceLaw(Fraction(1, 100), Fraction(1, 2), way, True), Nodes(20.0, 30.0, 200)),
    "range": (lambda way: SampledLaplaceLaw(Fraction(1), Fraction(3, 10), way, False), Nodes(2.0, 1.3, 40)),
    "wide range": (lambda way: SampledLaplaceLaw(Fraction(4), Fraction(1, 1000), way, False), Nodes(3.0, 1.0, 30)),
}
WAYS: tuple[Direction, ...] = ("remove", "add")


def check_transform(law: Law, nodes: Nodes) -> None:
    discs, scale = law.transform(nodes)
    assert discs.radius <= 1e-10
    for n in (0, 1, nodes.size // 3, nodes.size - 1):
        true = moment(law, nodes.tilt, n * nodes.step) * mp.exp(-real(scale))
        assert abs(mpc(complex(discs.centres[n])) - true) <= discs.radius
        assert abs(true) <= discs.bound


@pytest.mark.parametrize("way", one_in(2, WAYS))
@pytest.mark.parametrize("name", only([8], CASES))
def test_transforms_hold_what_they_say(name: str, way: Direction) -> None:
    make, nodes = CASES[name]
    check_transform(make(way), nodes)


@pytest.mark.long
@pytest.mark.parametrize("way", one_in(3, WAYS))
@pytest.mark.parametrize("name", CASES)
def test_the_decay_is_a_bound_from_there_on(name: str, way: Direction) -> None:
    """At every s beyond, also far beyond: of the transform, whose errors are known."""
    make, nodes = CASES[name]
    law = make(way)
    for factor in (0.1, 1.0, 10.0):
        row = Nodes(nodes.tilt, nodes.step * factor, 200)
        discs, _ = law.transform(row)
        shares = (np.abs(discs.centres) - discs.radius) / (abs(discs.centres[0]) + discs.radius)
        for n in (1, 2, 5, 20, 100):
            assert math.log(max(shares[n:].max(), 1e-300)) <= law.log_decay(row.tilt, n * row.step)


def test_the_decay_is_of_use() -> None:
    """A thousand steps of training are as good as nothing where one is nearly whole."""
    law = SampledGaussianLaw(Fraction("0.826"), Fraction(1, 100), "remove")
    assert 10_000 * law.log_decay(5.0, 60.0) < -20
    assert law.log_decay(5.0, 1e5) < -4
    assert loss_laws.LaplaceLaw(Fraction(2)).log_decay(1.0, 50.0) < -0.05
    assert loss_laws.BoundedRangeLaw(Fraction(2)).log_decay(1.0, 50.0) < -3


@pytest.mark.parametrize("law", [loss_laws.LaplaceLaw(Fraction(2)), loss_laws.BoundedRangeLaw(Fraction(2))])
def test_the_decay_of_laws_without_a_sample(law: loss_laws.LaplaceLaw | loss_laws.BoundedRangeLaw) -> None:
    for tilt in (0.1, 1.0, 8.0):
        discs, _ = law.transform(Nodes(tilt, 0.05, 4000))
        shares = (np.abs(discs.centres) - discs.radius) / (abs(discs.centres[0]) + discs.radius)
        for n in (1, 10, 100, 1000, 3900):
            assert math.log(shares[n:].max()) <= law.log_decay(tilt, n * 0.05)


def test_decay_of_normal_laws_by_their_variation() -> None:
    """N(0, 1) has a density of variation 2/√(2π), and r(s) = e^(−s²/2)."""
    variation = 2 / math.sqrt(2 * math.pi)
    for s in (0.001, 0.01, 0.1, 0.5, 0.8, 1.0, 1.2, 2.0, 5.0, 1e3):
        bound = decay_of(0.0, variation, s)
        assert bound >= -s * s / 2
        assert bound <= (-0.19 if s <= 0.1 else -0.08) * s * s or s > 1
        assert bound <= math.log(variation / s) + 1e-12 or s < 1
    assert decay_of(1.0, 1.0, 5.0) == decay_of(0.0, math.inf, 5.0) == 0


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    one_in(
        5,
        [
            (sampled_gaussian, "expm1", lambda f: lambda x: f(x) * (1 + 1e-9)),
            (sampled_gaussian, "log1p", lambda f: lambda x: f(x) * (1 + 1e-9)),
            (sampled_gaussian, "step_for", lambda f: lambda *of: f(*of)._replace(h=2 * f(*of).h)),
            (sampled_gaussian, "ends", lambda f: lambda *of: (f(*of)[0] + 4, f(*of)[1] - 4)),
            (quadrature, "turn", lambda f: lambda x: f(x * (1 + 1e-9))),
        ],
        many=True,
    ),
    ids=["expm1", "log1p", "half the points", "ends too near", "angles"],
)
def test_twins_of_the_quadrature(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, fault: Callable[..., Callable[..., object]]
) -> None:
    """Each leaves the stated radius, or makes it plainly larger where what it spoils is bounded afterwards."""
    make, nodes = CASES["training"]
    usual = make("remove").transform(nodes).discs.radius
    monkeypatch.setattr(module, name, fault(getattr(module, name)))
    try:
        check_transform(make("remove"), nodes)
    except (AssertionError, ArithmeticError):
        return
    assert make("remove").transform(nodes).discs.radius > 100 * usual


@pytest.mark.parametrize("fault", ["one panel", "an atom left out"])
def test_twins_of_the_panels(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    make, nodes = CASES["half"]
    law = make("remove")
    assert isinstance(law, SampledLaplaceLaw)
    if fault == "one panel":
        monkeypatch.setattr(SampledLaplaceLaw, "_panels", lambda *of: 1)
        assert law.transform(nodes).discs.radius > 1e-3
        return
    law = replace(law, has_atoms=False)
    with pytest.raises(AssertionError):
        check_transform_as(law, make("remove"), nodes)


def check_transform_as(law: Law, true: Law, nodes: Nodes) -> None:
    discs, scale = law.transform(nodes)
    for n in (1, 7):
        assert abs(
            mpc(complex(discs.centres[n])) - moment(true, nodes.tilt, n * nodes.step) * mp.exp(-real(scale))
        ) <= (discs.radius)


PAIRS: dict[str, tuple[Pair, int]] = {
    "training": (SubsampledPair(GaussianPair(1 / Fraction("1.1") ** 2), Fraction(1, 100)), 1000),
    "large sample": (SubsampledPair(GaussianPair(Fraction(1, 9)), Fraction(1, 2)), 20),
    "Laplace": (SubsampledPair(LaplacePair(Fraction(1, 2)), Fraction(1, 20)), 200),
    "range": (SubsampledPair(BoundedRangePair(Fraction(1, 2)), Fraction(1, 20)), 200),
}


@pytest.mark.long
@pytest.mark.parametrize("name", only([2], PAIRS))
def test_both_ways_to_a_curve_agree(name: str) -> None:
    """By quadrature, and by pieces: intervals of the same number."""
    pair, count = PAIRS[name]
    for delta in (Fraction(1, 1000), MILLIONTH**2):
        found, cut = (compose([(each, count)], width=TENTH**3).to_epsilon(delta) for each in (pair, CutPair(pair)))
        assert max(found.lower, cut.lower) <= min(found.upper, cut.upper)
        assert found.upper - found.lower <= 1e-3


@pytest.mark.long
def test_twins_of_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate for 1 − rate, one direction only, and errors rounded inwards: each is seen by the other way."""
    pair, count = PAIRS["training"]
    cut = compose([(CutPair(pair), count)]).to_epsilon(MILLIONTH)

    def overlaps() -> bool:
        forget()
        found = compose([(pair, count)]).to_epsilon(MILLIONTH)
        return max(found.lower, cut.lower) <= min(found.upper, cut.upper)

    assert overlaps()
    with monkeypatch.context() as patch:
        powers = SampledGaussianLaw._powers
        patch.setattr(SampledGaussianLaw, "_powers", lambda law, tilts: powers(replace(law, direction="add"), tilts))
        assert not overlaps()
    for change in (lambda rate: rate * 9 / 10, lambda rate: 1 - rate):
        with monkeypatch.context() as patch:
            patch.setattr(
                combined_pairs, "SampledGaussianLaw", lambda m, rate, way, c=change: SampledGaussianLaw(m, c(rate), way)
            )
            assert not overlaps()
    forget()


def test_one_use_in_both_directions() -> None:
    """Against the closed form, at many ε, in a list that is short enough to be cut."""
    rate, mu = Fraction(1, 5), Fraction(3, 2)
    loss = compose([(SubsampledPair(GaussianPair(mu**2), rate), 1)], width=Fraction(1, 100))
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
        remove, add = exact.subsampled_gaussian_deltas(real(mu), real(rate), real(epsilon))
        check_delta(loss.to_delta(epsilon), max(remove, add))


def test_the_largest_loss_of_a_unit_that_joins() -> None:
    """log 1/(1 − q) for Gaussian noise, less for Laplace noise, and never below what is lost."""
    for pair, most in (
        (GaussianPair(Fraction(1)), -mp.log1p(-real(TENTH))),
        (LaplacePair(Fraction(1)), -mp.log1p(real(TENTH) * mp.expm1(-1))),
    ):
        law = SubsampledPair(pair, TENTH).law("add", "upper", 512)
        assert law.most is not None
        assert 0 <= real(law.most) - most < 1e-30
    epsilon = compose([(SubsampledPair(LaplacePair(Fraction(1)), TENTH), 3)]).to_epsilon(0)
    true = 3 * mp.log1p(real(TENTH) * mp.expm1(1))
    assert mpf(epsilon.lower) <= true <= mpf(epsilon.upper)
    assert epsilon.upper - epsilon.lower < 1e-14


def test_points_state_their_own_errors() -> None:
    """Losses within their errors, and weights within the share of what is missing."""
    law = SampledGaussianLaw(Fraction("0.826"), Fraction(1, 100), "remove")
    points = law._points(5.3, 60.0, Fraction(0))
    assert isinstance(points, Points)
    assert 0 < points.errors.max() < 1e-13
    assert 0 < points.missing < 1e-12 * points.weights.sum()
