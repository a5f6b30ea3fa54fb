"""The law of a loss against exact laws: integer convolution and closed forms; planted bugs leave the bounds."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate
from random import Random

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Enclosure
from lapwing.privacy import survival
from lapwing.privacy.certified_curve import Curve, Interval
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteLaplacePair
from lapwing.privacy.listing import listed
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.loss_points import distribution_of, losses_of
from lapwing.privacy.pairs import ApproximatePair, Direction, GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from tests.support.effort import only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy.exact_composition import BITS, Lattice
from tests.support.privacy.oracle import normal, real

TENTH = Fraction(1, 10)
THIN = Fraction(1, 10**9)

COARSE = 1e-2

Chance = Callable[[Fraction], tuple[mpf, mpf]]
"""P(L > t) and P(L ≥ t)."""


def on_lattice(law: Lattice, step: Fraction) -> Chance:
    atoms = sorted(law)
    tails = [*accumulate((law[at] for at in reversed(atoms)), initial=0)][::-1]
    """The mass of all atoms from each one on."""

    def chance(loss: Fraction) -> tuple[mpf, mpf]:
        above, at_least = (tails[side(atoms, loss / step)] for side in (bisect_right, bisect_left))
        with mp.workdps(120):
            return mpf(above) / mpf(2) ** BITS, mpf(at_least) / mpf(2) ** BITS

    return chance


def gaussian(mu_squared: Fraction) -> Chance:
    """L ~ N(μ²/2, μ²)."""

    def chance(loss: Fraction) -> tuple[mpf, mpf]:
        both = normal((real(mu_squared) / 2 - real(loss)) / mp.sqrt(real(mu_squared)))
        return both, both

    return chance


def laplace(epsilon: Fraction) -> Chance:
    """Half of it is at ε; below, L = ε − 2u with u exponential, up to u = ε."""

    def chance(loss: Fraction) -> tuple[mpf, mpf]:
        if abs(loss) > epsilon:
            return mpf(loss < 0), mpf(loss < 0)
        inside = 1 - mp.exp((real(loss) - real(epsilon)) / 2) / 2
        return (mpf(0) if loss == epsilon else inside), (mpf(1) if loss == -epsilon else inside)

    return chance


def sampled_gaussian(mu: Fraction, rate: Fraction, direction: Direction) -> Chance:
    def chance(loss: Fraction) -> tuple[mpf, mpf]:
        m, r = real(mu), real(rate)

        def crossing(ratio: mpf) -> mpf:
            return (mp.log((ratio - 1 + r) / r) + m**2 / 2) / m

        ratio = mp.exp(real(loss) if direction == "remove" else -real(loss))
        if ratio <= 1 - r:
            both = mpf(direction == "remove")
        elif direction == "remove":
            both = (1 - r) * normal(-crossing(ratio)) + r * normal(m - crossing(ratio))
        else:
            both = normal(crossing(ratio))
        return both, both

    return chance


def check(found: Sequence[Interval], losses: Sequence[Fraction], chance: Chance) -> None:
    with mp.workdps(120):
        for (lower, upper), loss in zip(found, losses, strict=True):
            above, at_least = chance(loss)
            slack = mpf(10) ** -100  # of the oracle
            assert mpf(lower) <= above + slack
            assert at_least <= mpf(upper) + slack


def responses(steps: int, count: int, choices: int = 2) -> tuple[LossDistribution, Chance]:
    law = compose([(RandomizedResponsePair(steps * TENTH, choices), count)], width=COARSE)
    return law, on_lattice(exact.composed([(exact.response(steps, TENTH, choices), count)]), TENTH)


def discrete_laplaces(sensitivity: int, count: int) -> tuple[LossDistribution, Chance]:
    law = compose([(DiscreteLaplacePair(Fraction(10), sensitivity), count)], width=COARSE)
    return law, on_lattice(exact.composed([(exact.discrete_laplace(TENTH, sensitivity), count)]), TENTH)


def mixed() -> tuple[LossDistribution, Chance]:
    parts: list[tuple[Pair, int]] = [
        (RandomizedResponsePair(2 * TENTH, 3), 12),
        (DiscreteLaplacePair(Fraction(10), 4), 7),
    ]
    law = [(exact.response(2, TENTH, 3), 12), (exact.discrete_laplace(TENTH, 4), 7)]
    return compose(parts, width=COARSE), on_lattice(exact.composed(law), TENTH)


LATTICES: dict[str, Callable[[], tuple[LossDistribution, Chance]]] = {
    "one response": partial(responses, 10, 1),
    "three choices": partial(responses, 5, 1, 3),
    "30 responses": partial(responses, 3, 30),
    "100 responses": partial(responses, 1, 100),
    "40 of five choices": partial(responses, 4, 40, 5),
    "one discrete Laplace": partial(discrete_laplaces, 7, 1),
    "20 discrete Laplace": partial(discrete_laplaces, 3, 20),
    "mixed": mixed,
}

SMOOTH: dict[str, Callable[[], tuple[LossDistribution, Chance]]] = {
    "gaussian": lambda: (compose([(GaussianPair(Fraction(1)), 1)]), gaussian(Fraction(1))),
    "many gaussians": lambda: (compose([(GaussianPair(Fraction(1, 100)), 900)]), gaussian(Fraction(9))),
    "faint gaussian": lambda: (compose([(GaussianPair(Fraction(1, 10**4)), 1)]), gaussian(Fraction(1, 10**4))),
    "laplace": lambda: (compose([(LaplacePair(Fraction(2)), 1)]), laplace(Fraction(2))),
}


@cache
def example(name: str) -> tuple[LossDistribution, Chance]:
    """Return a loss distribution beside its law by another way; made when first asked for."""
    return (LATTICES | SMOOTH)[name]()


@pytest.mark.parametrize("name", only([0, 5], LATTICES))
def test_atoms(name: str) -> None:
    law, chance = example(name)
    random = Random(name)
    most = max(n for n in range(2000) if chance(Fraction(n, 10))[1])
    atoms = [Fraction(random.randint(-most, most), 10) for _ in range(5)]
    losses = [*atoms, *(at + random.choice((THIN, -THIN, TENTH / 3)) for at in atoms), Fraction(most, 10)]
    found = law.survival(losses)
    check(found, losses, chance)
    assert law.survival([1000]) == (Interval(0.0, 0.0),)
    if name.startswith(("one", "three")):  # summed atom by atom
        gaps = [i.upper - i.lower for i, loss in zip(found, losses, strict=True) if loss not in atoms]
        assert max(gaps[:5]) < 1e-14


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", only([0, 3], SMOOTH))
def test_densities(name: str, every: int) -> None:
    law, chance = example(name)
    spread = Fraction(math.sqrt(float(sum(pair.mu_squared for pair, _ in law.parts if isinstance(pair, GaussianPair)))))
    losses = [Fraction(n, 3) * (spread or Fraction(1, 3)) for n in range(-12, 31, every)]
    found = law.survival(losses)
    check(found, losses, chance)
    for interval, loss in zip(found, losses, strict=True):
        assert interval.upper - interval.lower <= 0.1 * interval.upper or abs(loss) == 2


@pytest.mark.long
@pytest.mark.parametrize("direction", only([1], ["remove", "add"]))
def test_both_directions_of_a_sample(direction: Direction) -> None:
    mu, rate = Fraction(1), TENTH
    law = compose([(SubsampledPair(GaussianPair(mu**2), rate), 1)], width=0.02)
    losses = [Fraction(n, 25) for n in range(-10, 20)]
    found = law.survival(losses, direction=direction)
    check(found, losses, sampled_gaussian(mu, rate, direction))
    assert all(i.upper - i.lower < 0.2 for i in found)


def test_what_may_be_told_is_an_infinite_loss() -> None:
    delta = Fraction(1, 1000)
    law = compose([(ApproximatePair(Fraction(1), delta), 5)])
    told = 1 - (1 - float(delta)) ** 5
    for interval in law.survival([5, 6, 10**90]):
        assert interval.lower <= told * (1 + 1e-12)
        assert interval.upper >= told * (1 - 1e-12)
    assert law.survival([6])[0].upper < told * (1 + 1e-12)


def test_nothing_loses_nothing() -> None:
    assert compose([]).survival([-1, 0, 1]) == (Interval(1.0, 1.0), Interval(0.0, 1.0), Interval(0.0, 0.0))


def test_one_by_one_and_together_hold_alike() -> None:
    law, chance = example("mixed")
    losses = [Fraction(n, 7) for n in (-20, 3, 31)]
    for loss in losses:
        check(law.survival([loss]), [loss], chance)
    assert law.survival([]) == ()


@pytest.mark.long
@pytest.mark.parametrize("loss", [Fraction(10) ** 100, -(Fraction(10) ** 100), Fraction(1, 10**90)])
def test_losses_of_any_size(loss: Fraction) -> None:
    for law, chance in (example("gaussian"), example("30 responses")):
        check(law.survival([loss]), [loss], chance)


def test_wrong_questions_are_refused() -> None:
    law = example("gaussian")[0]
    with pytest.raises(InvalidParameter, match="remove or add"):
        law.survival([1], direction="replace")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="loss is nan"):
        law.survival([math.nan])


def slope_forgotten(first: Fraction, second: Fraction, h: Fraction) -> Enclosure:
    return Enclosure(first, first)


def wrong_axis(first: Fraction, second: Fraction, h: Fraction) -> Enclosure:
    """Say where the secant meets x = 1."""
    q = Fraction(math.exp(-h))
    return Enclosure((first - second) / (1 - q), (first - second) / (1 - q))


@pytest.mark.long
@pytest.mark.parametrize("name", ["30 responses", "gaussian"])
@pytest.mark.parametrize("bug", [slope_forgotten, wrong_axis])
def test_a_ramp_that_is_wrong_is_caught(
    name: str, bug: Callable[[Fraction, Fraction, Fraction], Enclosure], monkeypatch: pytest.MonkeyPatch
) -> None:
    law, chance = example(name)
    losses = [Fraction(n, 3) for n in range(-3, 6)]
    monkeypatch.setattr(survival, "_ramp", bug)
    with pytest.raises(AssertionError):
        check(law.survival(losses), losses, chance)


@pytest.mark.parametrize("name", only([0], ["mixed", "gaussian"]))
def test_bounds_on_the_wrong_side_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With δ taken from above where it must be from below, and the other way round."""
    law, chance = example(name)
    losses = [Fraction(n, 3) + THIN for n in range(-3, 12)]
    between = survival._between_ramps

    def turned(curve: Curve, loss: Fraction) -> Enclosure:
        class Turned:
            above, below = curve.below, curve.above

        return between(Turned(), loss)  # type: ignore[arg-type]

    monkeypatch.setattr(survival, "_between_ramps", turned)
    with pytest.raises(AssertionError):
        check(law.survival(losses), losses, chance)


@pytest.mark.long
def test_a_list_has_a_law_in_each_direction() -> None:
    points = losses_of([listed("gaussian", mu=1, rate=0.1)], [0, 0.1], width=0.01)
    assert [(point.direction, point.loss) for point in points] == [
        *(("remove", 0.0), ("remove", 0.1)),
        *(("add", 0.0), ("add", 0.1)),
    ]
    for point in points:
        true = sampled_gaussian(Fraction(1), TENTH, point.direction)
        check([Interval(point.lower, point.upper)], [Fraction(str(point.loss))], true)
    assert {point.direction for point in losses_of([listed("laplace", epsilon=1)], [0])} == {"remove"}


def test_a_list_without_a_law_says_so() -> None:
    with pytest.raises(InvalidParameter, match="bounded range"):
        losses_of([listed("exponential", epsilon=1)], [0])
    assert distribution_of([listed("gaussian", mu=1)]) == example("gaussian")[0]
