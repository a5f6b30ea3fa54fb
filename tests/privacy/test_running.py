"""Running intervals contain the truth after every charge, meet those of the whole list, and charge every rounding."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import Random

import pytest
from mpmath import mp, mpc, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import certified_curve, running
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discs import Discs
from lapwing.privacy.inversion import FourierWindow, Inversion
from lapwing.privacy.loss_laws import GaussianLaw, LaplaceLaw, Nodes
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from lapwing.privacy.running import IF_FIXED, nothing_yet
from tests.support.effort import only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.exact_composition import Lattice
from tests.support.privacy.intervals import check_delta, check_epsilon, forget
from tests.support.privacy.oracle import real

MILLIONTH = Fraction(1, 10**6)
WIDTH = Fraction(1, 1000)
STEP = Fraction(1, 50)


@pytest.fixture(autouse=True)
def fresh() -> None:
    forget()


def check_responses() -> None:
    """Randomized responses on one lattice, against the exact law of all so far."""
    source, loss = Random("running responses"), nothing_yet(MILLIONTH, width=WIDTH)
    law: Lattice = {0: exact.fixed(mpf(1))}
    for charge in range(60):
        steps = source.choice((1, 2, 5))
        loss = loss.charge(RandomizedResponsePair(steps * STEP))
        law = exact.convolve(law, exact.response(steps, STEP))
        if charge % 4 == 3:
            check_epsilon(loss.epsilon, partial(exact.lattice_delta, law, STEP), MILLIONTH, width=1e-3)


def check_gaussians(width: Fraction = WIDTH, delta: Fraction = MILLIONTH) -> None:
    loss, total = nothing_yet(delta, width=width), Fraction(0)
    for charge in range(300):
        mu_squared = Fraction(1, 400 + charge)
        loss, total = loss.charge(GaussianPair(mu_squared)), total + mu_squared
        if charge % 10 == 9:
            check_epsilon(loss.epsilon, partial(oracle.gdp_delta, total), delta, width=float(width))


def test_exact_laws_after_every_charge() -> None:
    check_responses()
    check_gaussians()


@pytest.mark.long
def test_a_window_is_kept_for_many_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, anew = running._anew, []

    def counted(delta: Fraction, width: Fraction, charged: certified_curve.Parts) -> running.RunningLoss:
        anew.append(len(charged))
        return honest(delta, width, charged)

    monkeypatch.setattr(running, "_anew", counted)
    check_gaussians()
    assert len(anew) <= 12


def mixed(kinds: list[Pair], count: int) -> list[tuple[Pair, int]]:
    source = Random("a growing list")
    return [(source.choice(kinds), source.choice((1, 1, 1, 7))) for _ in range(count)]


LISTS: dict[str, list[Pair]] = {
    "mixed": [LaplacePair(STEP), GaussianPair(STEP**2), RandomizedResponsePair(STEP, 5), LaplacePair(Fraction(1, 3))],
    "with a δ": [ApproximatePair(STEP, Fraction(1, 10**9)), BoundedRangePair(2 * STEP)],
    "beyond δ": [ApproximatePair(STEP, Fraction(1, 10**7)), LaplacePair(STEP)],
    "both directions": [SubsampledPair(RandomizedResponsePair(Fraction(1)), Fraction(1, 5)), LaplacePair(STEP)],
}


@pytest.mark.parametrize("name", only([0], LISTS))
@pytest.mark.parametrize("delta", only([0], [MILLIONTH, Fraction(1, 10)]), ids=str)
def test_they_meet_the_intervals_of_the_whole_list(name: str, delta: Fraction) -> None:
    loss = nothing_yet(delta, width=WIDTH)
    for charge, (pair, count) in enumerate(mixed(LISTS[name], 40)):
        loss = loss.charge(pair, count)
        if charge % 8 in (0, 5):
            lower, upper = loss.loss().to_epsilon(delta)
            assert max(lower, loss.epsilon.lower) <= min(upper, loss.epsilon.upper)
            assert loss.epsilon.upper - loss.epsilon.lower <= 1e-3 or loss.epsilon == (lower, upper)


@pytest.mark.long
@pytest.mark.parametrize("charges", [10, pytest.param(30, marks=pytest.mark.long)])
def test_pairs_that_are_cut_into_cells(charges: int) -> None:
    pair = SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 100))
    loss = nothing_yet(MILLIONTH, width=Fraction(1, 100))
    for charge in range(charges):
        loss = loss.charge(pair, 3)
        if charge % 10 == 9:
            lower, upper = loss.loss().to_epsilon(MILLIONTH)
            assert max(lower, loss.epsilon.lower) <= min(upper, loss.epsilon.upper)
            assert loss.epsilon.upper - loss.epsilon.lower <= 1e-2


def test_nothing_and_next_to_nothing() -> None:
    loss = nothing_yet(Fraction(1, 2))
    assert loss.epsilon == (0, 0)
    assert loss.holds == IF_FIXED
    for _ in range(5):
        loss = loss.charge(LaplacePair(STEP))
        assert loss.epsilon == (0, 0)
    pure = nothing_yet(0).charge(LaplacePair(STEP)).charge(RandomizedResponsePair(STEP), 2)
    assert pure.epsilon.lower <= 3 * STEP <= pure.epsilon.upper
    assert pure.charge(GaussianPair(STEP)).epsilon == (math.inf, math.inf)


def noisy(self: Discs, other: Discs) -> Discs:
    """A product whose rounding errs far more than a double's, downwards."""
    product = honest_product(self, other)
    return Discs(product.centres * (1 - ERROR), product.radius + charged * 1.1 * ERROR * product.bound, product.bound)


honest_product = Discs.__mul__
charged = 1.0
ERROR = 2.0**-17


def check_grown() -> None:
    """A Gaussian on one window, taken 400 times one after the other: errors add up to 0.3 %."""
    grown = Inversion.of(((GaussianLaw(Fraction(1, 400)), 1),), FourierWindow(Nodes(2.0, 0.2, 300), 0.0, 6.0))
    for _ in range(399):
        grown = grown.times(((GaussianLaw(Fraction(1, 400)), 1),))
    found = certified_curve.Interval(float(grown.below(2.0)), float(grown.above(2.0)))
    check_delta(found, oracle.gdp_delta(Fraction(1), Fraction(2)))


def test_twin_accumulated_rounding_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic of 17 bits: charged, the bounds hold; not charged, they are wrong, as are the intervals."""
    check_grown()
    monkeypatch.setattr(Discs, "__mul__", noisy)
    check_grown()
    monkeypatch.setattr(f"{__name__}.charged", 0.0)
    forget()
    with pytest.raises(AssertionError):
        check_grown()
    with pytest.raises(AssertionError):
        check_gaussians(width=Fraction(1, 10**5), delta=Fraction(1, 10))


def test_twin_law_not_multiplied_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part that `times` carries along has teeth: left as it was, a bound fails."""
    honest = Inversion.times
    monkeypatch.setattr(Inversion, "times", lambda self, laws: self if self.scale else honest(self, laws))
    with pytest.raises(AssertionError):
        check_gaussians()


@pytest.mark.long
def test_the_errors_of_a_longer_list_are_those_of_the_list() -> None:
    """Multiplied in one by one, each part of a bound is at least what it is for the list at once, and hardly more."""
    laws = ((LaplaceLaw(Fraction(1, 3)), 2), (GaussianLaw(Fraction(1, 50)), 3), (LaplaceLaw(Fraction(2)), 1))
    for window in (FourierWindow(Nodes(1.5, 0.25, 90), 0.0, 4.0), FourierWindow(Nodes(1.5, 0.25, 90), 0.2, 4.0)):
        once, grown = Inversion.of(laws, window), Inversion.of(laws[:1], window)
        for law in laws[1:]:
            grown = grown.times((law,))
        true = moments(laws, mpf(4))
        assert grown.log_copies_above - Inversion._empty(window).log_copies_above >= mp.log(true)
        assert grown.most >= 1
        assert grown.upper_tail >= 0.999999 * true_tail(laws, grown)
        assert once.upper_tail >= 0.999999 * true_tail(laws, once)
        for name in ("upper_tail", "lower_tail", "copies_below", "log_copies_above", "most"):
            assert getattr(grown, name) == pytest.approx(getattr(once, name), rel=1e-9)
        assert grown.scale == once.scale
        difference = abs(grown.upper.centres - once.upper.centres).max()
        assert difference <= grown.upper.radius + once.upper.radius <= 1e-12


def moments(laws: tuple[tuple[LaplaceLaw | GaussianLaw, int], ...], z: mpc) -> mpc:
    total = mpf(1)
    for law, count in laws:
        if isinstance(law, GaussianLaw):
            one = mp.exp(z * (z + 1) * real(law.mu_squared) / 2)
        else:
            e, g = real(law.epsilon), 1 / (2 * z + 1)
            one = (mp.exp(z * e) * (1 + g) + mp.exp(-(1 + z) * e) * (1 - g)) / 2
        total *= one**count
    return total


def true_tail(laws: tuple[tuple[LaplaceLaw | GaussianLaw, int], ...], inversion: Inversion) -> float:
    """What the laws leave of the tail that an empty list would have: the largest moment beyond the nodes."""
    nodes = inversion.window.nodes
    last = nodes.step * nodes.size
    sizes = [abs(moments(laws, mpc(nodes.tilt, last * (1 + n / 50)))) for n in range(100)]
    return Inversion._empty(inversion.window).upper_tail * float(max(sizes) * mp.exp(-real(inversion.scale)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nothing_yet(1),
        lambda: nothing_yet(-1),
        lambda: nothing_yet(MILLIONTH, width=0),
        lambda: nothing_yet(MILLIONTH, width=2),
        lambda: nothing_yet(MILLIONTH).charge(LaplacePair(STEP), 0),
    ],
)
def test_invalid_parameters(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()
