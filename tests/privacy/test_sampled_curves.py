"""Rényi divergences on a sample from those without it: never below what mechanisms have, and near other bounds."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import sampled_curves
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair
from lapwing.privacy.pairs import LaplacePair
from lapwing.privacy.renyi import RenyiDP
from tests.support.effort import one_in, only, some
from tests.support.privacy.oracle import real

Atoms = list[tuple[mpf, mpf]]
"""(p, q) of each outcome."""

TENTH, HUNDREDTH = Fraction(1, 10), Fraction(1, 100)


def moment(atoms: Atoms, order: Fraction) -> mpf:
    """The larger of both directions."""
    a = real(order)
    return max(mp.fsum(p**a * q ** (1 - a) for p, q in way) for way in (atoms, [(q, p) for p, q in atoms]))


def response(epsilon: Fraction) -> Atoms:
    e = mp.exp(real(epsilon))
    return [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]


def uneven() -> Atoms:
    """A pair whose directions differ much."""
    return [(mpf("0.001"), mpf("0.02")), (mpf("0.9"), mpf("0.5")), (mpf("0.099"), mpf("0.48"))]


def discrete_gaussian(variance: Fraction) -> Atoms:
    def law(x: int) -> mpf:
        return mp.exp(-mpf(x * x) / (2 * real(variance)))

    total = mp.fsum(law(x) for x in range(-300, 301))
    return [(law(x - 1) / total, law(x) / total) for x in range(-280, 281)]


MECHANISMS: dict[str, Callable[[], Atoms]] = {
    "response": lambda: response(Fraction(1)),
    "uneven": uneven,
    "noise": lambda: discrete_gaussian(Fraction(4)),
}
ORDERS = [Fraction(order) for order in ("1.5", "2", "2.5", "3", "4", "7.25", "16", "32")]
ALL_ORDERS = sorted({*ORDERS, *(Fraction(order) for order in range(2, 33))})


def curve_of(atoms: Atoms, orders: list[Fraction]) -> RenyiDP:
    found = {order: mp.log(moment(atoms, order)) / (real(order) - 1) for order in orders}
    return RenyiDP({order: Fraction(mp.nstr(loss * (1 + mpf(10) ** -18), 25)) for order, loss in found.items()})


def check_poisson(name: str, rate: Fraction) -> None:
    """At least the larger direction; the one of a unit that leaves is attained at whole orders."""
    atoms, q = MECHANISMS[name](), real(rate)
    curve = curve_of(atoms, ALL_ORDERS)
    for order, loss in curve.subsampled(rate).restricted(ORDERS).points:
        for way in (atoms, [(b, a) for a, b in atoms]):
            sampled = [((1 - q) * b + q * a, b) for a, b in way]
            assert mp.log(moment(sampled, order)) / (real(order) - 1) <= real(loss) * (1 + mpf(10) ** -15)


def check_subset(name: str, rate: Fraction) -> None:
    """A third law for what else may be in the unit's place: the first, the second, or one between both."""
    atoms, q = MECHANISMS[name](), real(rate)
    curve = curve_of(atoms, ALL_ORDERS)
    found = curve.subsampled(size=rate.numerator, population=rate.denominator).restricted(ORDERS)
    for third in (mpf(0), mpf("0.5"), mpf(1)):
        places = [(a, b, third * a + (1 - third) * b) for a, b in atoms]
        sampled = [((1 - q) * c + q * a, (1 - q) * c + q * b) for a, b, c in places]
        for order, loss in found.points:
            assert mp.log(moment(sampled, order)) / (real(order) - 1) <= real(loss) * (1 + mpf(10) ** -15)


@pytest.mark.parametrize("name", only([0, 1], MECHANISMS))
@pytest.mark.parametrize("rate", one_in(3, [Fraction(1, 1000), TENTH, Fraction(9, 10)]))
def test_no_mechanism_loses_more(name: str, rate: Fraction) -> None:
    check_poisson(name, rate)
    check_subset(name, rate)


def check_all() -> None:
    for name, rate in (("response", 1 - TENTH), ("uneven", TENTH), ("noise", TENTH)):
        check_poisson(name, rate)
        check_subset(name, rate)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("_poisson", lambda f: lambda q, e: f(1 - q, e)),
        ("_poisson", lambda f: lambda q, e: f(q * 9 / 10, e)),
        ("_poisson", lambda f: lambda q, e: f(q, [*e[:-1], e[-1] / 2])),
        ("chord", lambda f: lambda logs, order: f(logs, order) * 9 / 10),
        ("_subset", lambda f: lambda q, e: f(q * 9 / 10, e)),
        ("_subset", lambda f: lambda q, e: 1 + (f(q, e) - 1) / 4),
    ],
    ids=[
        "1 − rate",
        "a smaller rate",
        "half of a divergence",
        "below the chord",
        "a smaller subset",
        "Poisson's square",
    ],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., object]) -> None:
    monkeypatch.setattr(sampled_curves, name, fault(getattr(sampled_curves, name)))
    with pytest.raises(AssertionError):
        check_all()


def zhu_and_wang(curve: RenyiDP, q: mpf, order: int) -> mpf:
    """Theorem 5 of Zhu and Wang 2019, from which ours may differ by less than the factor of 3 in it."""
    moments = {n: mp.exp((n - 1) * real(curve.at(n))) for n in range(2, order + 1)}
    total = (1 - q) ** (order - 1) * (order * q - q + 1)
    total += mp.binomial(order, 2) * q**2 * (1 - q) ** (order - 2) * moments[2]
    total += 3 * mp.fsum(
        mp.binomial(order, n) * (1 - q) ** (order - n) * q**n * moments[n] for n in range(3, order + 1)
    )
    return mp.log(total) / (order - 1)


def wang_and_others(curve: RenyiDP, q: mpf, order: int) -> mpf:
    """Theorem 9 of Wang, Balle and Kasiviswanathan 2019, for a mechanism without an ε."""
    moments = {n: mp.exp((n - 1) * real(curve.at(n))) for n in range(2, order + 1)}
    total = 1 + q**2 * mp.binomial(order, 2) * min(4 * (moments[2] - 1), 2 * moments[2])
    total += mp.fsum(2 * q**n * mp.binomial(order, n) * moments[n] for n in range(3, order + 1))
    return mp.log(total) / (order - 1)


@pytest.mark.parametrize("sigma", [1, 2, 5])
def test_at_most_what_was_published(sigma: int) -> None:
    curve = RenyiDP.gaussian(sigma=sigma, orders=range(2, 65))
    q = mpf(1) / 100
    poisson, subset = curve.subsampled(HUNDREDTH), curve.subsampled(size=1, population=100)
    for order in (2, 3, 8, 32, 64):
        assert real(poisson.at(order)) <= zhu_and_wang(curve, q, order) * (1 + mpf(10) ** -12)
        assert real(subset.at(order)) <= wang_and_others(curve, q, order) * (1 + mpf(10) ** -12)


def test_orders_that_a_curve_does_not_have_are_read_off_its_chords() -> None:
    whole = RenyiDP.gaussian(sigma=2, orders=range(2, 65))
    few = whole.restricted([2, 16, 64]).subsampled(TENTH)
    for order, loose in few.points:
        assert whole.subsampled(TENTH).at(order) <= loose


@pytest.mark.parametrize("number", one_in(2, [{"rate": HUNDREDTH}, {"size": 1, "population": 100}]))
def test_a_pair_makes_it_smaller_and_a_rate_of_one_leaves_it(number: dict[str, Any]) -> None:
    epsilon = Fraction(1, 2)
    whole = RenyiDP.laplace(scale=2, orders=[Fraction(5, 4), *range(2, 17), 64, 512])
    alone = whole.subsampled(**number)
    paired = whole.subsampled(**number, pair=LaplacePair(epsilon))
    room = 1 + Fraction(1, 10**9)  # at whole orders of a Poisson sample both are the same
    assert all(a <= b * room for (_, a), (_, b) in zip(paired.points, alone.points, strict=True))
    assert paired.at(Fraction(5, 4)) < alone.at(Fraction(5, 4))
    assert whole.subsampled(1) == whole == whole.subsampled(size=5, population=5)


@pytest.mark.parametrize("order", one_in(3, [2, 8, 20, 30, 40, 64]))
def test_discrete_gaussian_noise_on_a_sample_has_its_tails(order: int) -> None:
    """Its divergence of a high order lies beyond 14 standard deviations, where its pair is cut off."""
    q = mpf(9) / 10
    atoms = discrete_gaussian(Fraction(4))
    true = mp.log(moment([((1 - q) * b + q * a, b) for a, b in atoms], Fraction(order))) / (order - 1)
    whole = RenyiDP.gaussian(sigma=2)
    found = real(whole.subsampled(Fraction(9, 10), pair=DiscreteGaussianPair(Fraction(4))).at(order))
    assert true <= found <= true * (1 + mpf(10) ** -6) + mpf(10) ** -9


def gaussian_on_a_subset(mu: mpf, q: mpf, order: mpf) -> mpf:
    """1 + ∫ over x > μ/2 of (w^α + w^(1−α) − w − 1)·φ."""
    far = int(mu * order) + 14

    def excess(x: mpf) -> mpf:
        w = 1 - q + q * mp.exp(mu * x - mu**2 / 2)
        return (w**order + w ** (1 - order) - w - 1) * mp.npdf(x)

    return mp.log1p(mp.quad(excess, [mu / 2, *range(1 + int(mu / 2), far, 2), far])) / (order - 1)


def check_gaussian_on_a_subset() -> None:
    for sigma, size, order in some(
        2, ((Fraction("1.1"), 1, "2"), (Fraction(2), 20, "7.3"), (Fraction("0.7"), 5, "1.25"))
    ):
        curve = RenyiDP.gaussian(sigma=sigma, size=size, population=100, orders=[Fraction(order)])
        true = gaussian_on_a_subset(1 / real(sigma), mpf(size) / 100, mpf(order))
        assert true <= real(curve.at(Fraction(order))) <= true * (1 + mpf(10) ** -9)


@pytest.mark.long
def test_gaussian_noise_on_a_subset() -> None:
    check_gaussian_on_a_subset()


@pytest.mark.long
def test_twin_replacement_as_poisson(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Poisson sample's curve, which is for a unit added or removed, is smaller."""
    from lapwing.privacy import renyi

    monkeypatch.setattr(renyi, "SubsetPair", lambda pair, size, of: SubsampledPair(pair, Fraction(size, of)))
    with pytest.raises(AssertionError):
        check_gaussian_on_a_subset()


@pytest.mark.long
def test_the_large_orders_of_noise_on_a_subset() -> None:
    """By both directions of a Poisson sample, not much above one of them; rising with the order and with the subset."""
    small, large = (RenyiDP.gaussian(sigma=1, size=size, population=1000) for size in (10, 20))
    poisson = RenyiDP.gaussian(sigma=1, rate=HUNDREDTH)
    for order in (16, 64, 512):
        assert poisson.at(order) <= small.at(order) <= poisson.at(order) * (1 + Fraction(1, 10**6))
    assert all(a <= b for (_, a), (_, b) in zip(small.points, large.points, strict=True))
    for (_, a), (_, b) in pairwise(small.points):
        assert a <= b * (1 + Fraction(1, 10**9))


def test_what_is_refused() -> None:
    curve = RenyiDP.gaussian(sigma=1, orders=[2])
    for numbers in ({}, {"size": 1}, {"rate": TENTH, "size": 1, "population": 2}, {"population": 3}):
        with pytest.raises(InvalidParameter, match="Do not give both"):
            curve.subsampled(**numbers)
    with pytest.raises(InvalidParameter, match="above the population"):
        curve.subsampled(size=3, population=2)
