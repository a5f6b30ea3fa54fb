"""The steps under the intervals, each against 60-digit arithmetic: discs, transforms, kernel, atoms above and below."""

from collections import defaultdict
from fractions import Fraction
from functools import cache
from math import comb
from random import Random

import numpy as np
import pytest
from mpmath import mp, mpc, mpf

from lapwing.privacy import discretisation, inversion
from lapwing.privacy.atoms import AtomCurve, AtomLaw
from lapwing.privacy.combined_pairs import MixturePair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.discretisation import Piece, merge, spread, swapped, thinned
from lapwing.privacy.discs import Discs, reciprocals, rotations
from lapwing.privacy.loss_laws import Nodes, log_moment_up, product, transform
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from tests.support.effort import is_long, one_in, only
from tests.support.privacy.oracle import real

E = Fraction(3, 10)
HALF = Fraction(1, 2)


def check_discs(discs: Discs, true: list[mpc]) -> None:
    for centre, z in zip(discs.centres, true, strict=True):
        assert abs(mpc(complex(centre)) - z) <= mpf(discs.radius)
        assert abs(z) <= mpf(discs.bound)


@pytest.mark.parametrize("turn", only([4], ["0", "1e-9", "0.1", "-2.9", "1234.5678"]))
def test_rotations(turn: str) -> None:
    discs = rotations(Fraction(turn), 3000)
    assert discs.radius <= 1e-14
    check_discs(discs, [mp.expj(n * real(Fraction(turn))) for n in range(3000)])


def test_products_sums_and_powers() -> None:
    turns, true = rotations(Fraction(1, 7), 50), [mp.expj(mpf(n) / 7) for n in range(50)]
    check_discs(turns * turns, [z**2 for z in true])
    check_discs(turns + turns, [2 * z for z in true])
    check_discs(turns - turns.conjugate(), [z - mp.conj(z) for z in true])
    check_discs(turns.scaled(0.3, 1e-16), [z * mpf(0.3) for z in true])
    for exponent in (1, 2, 7, 1000, 10**6):
        power = turns.power(exponent)
        check_discs(power, [z**exponent for z in true])
        assert power.radius <= exponent * 1e-14
    values, relative = reciprocals(np.array([3 + 4j, 1e-3 - 2j]), 0.0)
    for value, z in zip(values, (mpc(3, 4), mpc(mpf(1e-3), -2)), strict=True):
        assert abs(mpc(complex(value)) * z - 1) <= relative


def test_twin_a_rotation_by_plain_powers_is_caught() -> None:
    """Adding up the angle in floats loses more than the stated radius."""
    angles = np.cumsum(np.full(3000, 0.1)) - 0.1
    with pytest.raises(AssertionError):
        check_discs(
            Discs(np.exp(1j * angles), rotations(Fraction(1, 10), 3000).radius, 1.0),
            [mp.expj(mpf(n) / 10) for n in range(3000)],
        )


@cache
def laplace_masses(scale: mpf, sensitivity: int) -> dict[int, mpf]:
    """How likely the noise is to be so many steps closer to the one centre than to the other, summed over the noise."""
    r, masses = mp.exp(-1 / scale), defaultdict[int, mpf](mpf)
    for x in range(-500, 500):
        masses[abs(x - sensitivity) - abs(x)] += (1 - r) / (1 + r) * r ** abs(x)
    return masses


def moments(pair: Pair, z: mpc) -> mpc:
    """M(z) by sums and quadrature over the noise, not over the loss."""
    e = real(E)
    if isinstance(pair, GaussianPair):
        return mp.exp(z * (z + 1) * real(pair.mu_squared) / 2)
    if isinstance(pair, LaplacePair):
        inner = mp.quad(lambda u: mp.exp(-u + z * (e - 2 * u)) / 2, [0, e])
        return mp.exp(z * e) / 2 + mp.exp(-(1 + z) * e) / 2 + inner
    if isinstance(pair, RandomizedResponsePair):
        k = pair.choices
        return (mp.exp((z + 1) * e) + (k - 2) + mp.exp(-z * e)) / (mp.exp(e) + k - 1)
    if isinstance(pair, DiscreteLaplacePair):
        t = real(pair.scale)
        return mp.fsum(mass * mp.exp(z * closer / t) for closer, mass in laplace_masses(t, pair.sensitivity).items())
    if isinstance(pair, BoundedRangePair):
        return mp.quad(lambda at: mp.exp((at - e) / 2 + z * at) / 2 / (1 - mp.exp(-e)), [-e, 0, e])
    if isinstance(pair, ApproximatePair):
        return (1 - real(pair.delta)) * moments(RandomizedResponsePair(E), z)
    assert isinstance(pair, MixturePair)
    return mp.fsum(real(weight) * moments(part, z) for weight, part in pair.parts)


CLOSED: tuple[Pair, ...] = (
    GaussianPair(E),
    LaplacePair(E),
    RandomizedResponsePair(E),
    RandomizedResponsePair(E, 9),
    DiscreteLaplacePair(Fraction(10), 3),
    BoundedRangePair(E),
    ApproximatePair(E, Fraction(1, 10)),
    MixturePair(((HALF, LaplacePair(E)), (HALF, GaussianPair(E)))),
)


@pytest.mark.parametrize("pair", one_in(3, CLOSED), ids=str)
@pytest.mark.parametrize("tilt", [0.001, 3.0, 90.0])
@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.long)])
def test_transforms(pair: Pair, tilt: float, count: int) -> None:
    nodes = Nodes(tilt, 0.7, count)
    law = pair.law("remove", "upper", 1)
    discs, scale = transform(law, nodes)
    check_discs(discs, [moments(pair, mpc(tilt, n * mpf(0.7))) / mp.exp(real(scale)) for n in range(count)])
    assert discs.radius <= 1e-12
    assert real(log_moment_up(((law, 5),), tilt)) >= 5 * mp.log(moments(pair, mpc(tilt)).real) - mpf(10) ** -40


@pytest.mark.long
def test_products_of_laws() -> None:
    nodes = Nodes(4.0, 1.3, 30)
    rows: list[tuple[Pair, int]] = [(LaplacePair(E), 300), (RandomizedResponsePair(E), 10**5), (GaussianPair(E), 1)]
    discs, scale = product(tuple((pair.law("remove", "upper", 1), count) for pair, count in rows), nodes)
    true = [
        mp.fprod(moments(pair, mpc(4, n * mpf(1.3))) ** count for pair, count in rows) / mp.exp(real(scale))
        for n in range(30)
    ]
    check_discs(discs, true)


@pytest.mark.parametrize("half_width", [1e-3, 0.02, 0.25])
@pytest.mark.parametrize("tilt", [0.01, 5.0, 60.0])
def test_the_kernel(half_width: float, tilt: float) -> None:
    nodes = Nodes(tilt, 2.5, 40)
    kernel, w = inversion._kernel(nodes, half_width), mpf(half_width) / inversion.ORDER
    shift = -inversion.ORDER * mp.log(mp.sinh(w) / w)

    def value(z: mpc) -> mpc:
        return mp.exp(-shift * z) * (mp.sinh(z * w) / (z * w)) ** inversion.ORDER

    check_discs(kernel.discs, [value(mpc(tilt, 2.5 * n)) for n in range(40)])
    for n in (40, 43, 100, 5000):
        assert abs(value(mpc(tilt, 2.5 * n))) <= real(kernel.tail)
    assert abs(value(mpc(-1)) - 1) < mpf(10) ** -40  # E e^Y = 1


def excess(half_width: mpf, x: mpf) -> mpf:
    """E max(0, 1 − x·e^Y) − max(0, 1 − x), from the density of a mean of uniforms as a spline."""
    order = inversion.ORDER
    w = half_width / order
    shift = -order * mp.log(mp.sinh(w) / w)
    signed = [(-1) ** k * comb(order, k) for k in range(order + 1)]

    def density(v: mpf) -> mpf:
        """Of the sum of 16 uniforms on [−1, 1] at v (Irwin and Hall)."""
        s = (v + order) / 2
        terms = (signed[k] * (s - k) ** (order - 1) for k in range(int(s) + 1))
        return mp.fsum(terms) / mp.factorial(order - 1) / 2

    crossing = min(max((-mp.log(x) - shift) / w, -order), order)
    points = [-order + (crossing + order) * k / 6 for k in range(7)]
    below = mp.quad(lambda v: (1 - x * mp.exp(shift + w * v)) * density(v), points) if crossing > -order else mpf(0)
    return below - max(mpf(0), 1 - x)


@pytest.mark.long
@pytest.mark.parametrize("half_width", only([1], [0.02, 0.25]))
def test_the_wider_kernel_has_twice_the_excess(half_width: float) -> None:
    """The inequality that makes 2·D_a − D_b a lower bound; a ratio of 1.3 in place of 2.5 would not do."""
    with mp.workdps(25):
        a = mpf(half_width)
        for step in (-9, -4, -1, 0, 2, 5, 9) if is_long() else (-4, 0, 9):
            x = mp.exp(a * step / 8)
            narrow = excess(a, x)
            assert narrow >= -(mpf(10) ** -15)
            assert excess(a * mpf(inversion.RATIO), x) >= 2 * narrow - mpf(10) ** -15
        with pytest.raises(AssertionError):
            assert excess(a * mpf("1.3"), mpf(1)) >= 2 * excess(a, mpf(1))


def test_the_sign_in_the_proof() -> None:
    """k(−1) < 0 for all half-widths up to ¼, by the exact shifts."""
    for n in range(1, 251):
        a = mpf(n) / 1000
        b = a * mpf(inversion.RATIO)
        c, d = (-16 * mp.log(mp.sinh(h / 16) / (h / 16)) for h in (a, b))
        k = mp.exp(d - b) - 2 * mp.exp(c - a) + 1
        assert k < 0
        assert k <= a * (-mpf("0.5") + mpf("2.15") * a - mpf("2.27") * a**2 + mpf("1.63") * a**3)


# Atoms above and below


def curve(pieces: list[tuple[mpf, mpf]], x: mpf) -> mpf:
    return mp.fsum(max(mpf(0), p - x * q) for p, q in pieces)


def atoms(law: AtomLaw) -> list[tuple[mpf, mpf]]:
    listed = [(real(m), real(m) * mp.exp(-real(at))) for at, m in zip(law.positions, law.masses, strict=True)]
    return [*listed, (real(law.infinite), mpf(0))]


def random_pieces(source: Random) -> tuple[list[Piece], list[tuple[mpf, mpf]]]:
    """Pieces of a few outcomes each, and the outcomes."""
    pieces, outcomes = [], []
    for _ in range(4):
        inside = [(Fraction(source.random()), Fraction(source.random())) for _ in range(3)]
        p, q = sum((p for p, _ in inside), Fraction(0)), sum((q for _, q in inside), Fraction(0))
        losses = [mp.log(real(p) / real(q)) for p, q in inside]
        low, high = (Fraction(int(mp.floor(min(losses) * 100)), 100), Fraction(int(mp.ceil(max(losses) * 100)), 100))
        kind = source.randrange(4)
        pieces.append(Piece(p, q, None if kind == 0 else low, None if kind == 1 else high))
        outcomes += [(real(p), real(q)) for p, q in inside]
    return pieces, outcomes


def check_order(lower: AtomLaw, outcomes: list[tuple[mpf, mpf]], upper: AtomLaw) -> None:
    for n in range(-30, 31):
        x = mp.exp(mpf(n) / 7)
        assert curve(atoms(lower), x) <= curve(outcomes, x) <= curve(atoms(upper), x)
    assert curve(atoms(lower), mpf(0)) <= curve(outcomes, mpf(0)) <= curve(atoms(upper), mpf(0))


@pytest.mark.long
@pytest.mark.parametrize("number", [4, pytest.param(20, marks=pytest.mark.long)])
def test_spread_is_above_and_merge_below(number: int) -> None:
    source = Random("pieces")
    for _ in range(number):
        pieces, outcomes = random_pieces(source)
        check_order(merge(pieces), outcomes, spread(pieces))
        check_order(merge(swapped(pieces)), [(q, p) for p, q in outcomes], spread(swapped(pieces)))
        rate = Fraction(source.randrange(1, 10), 10)
        mixed = [((1 - real(rate)) * q + real(rate) * p, q) for p, q in outcomes]
        check_order(merge(thinned(pieces, rate)), mixed, spread(thinned(pieces, rate)))


def test_twin_above_and_below_swapped() -> None:
    pieces, outcomes = random_pieces(Random("swapped"))
    with pytest.raises(AssertionError):
        check_order(spread(pieces), outcomes, merge(pieces))


def test_twin_infinite_mass_dropped() -> None:
    pieces = [Piece(HALF, Fraction(1, 10), Fraction(0), None), Piece(HALF, Fraction(9, 10), None, Fraction(0))]
    outcomes = [(mpf(1) / 4, mpf(0)), (mpf(1) / 4, mpf(1) / 10), (mpf(1) / 2, mpf(9) / 10)]
    upper = spread(pieces)
    check_order(merge(pieces), outcomes, upper)
    with pytest.raises(AssertionError):
        check_order(merge(pieces), outcomes, AtomLaw(upper.positions, upper.masses))


def test_twin_mass_rounded_to_the_nearer_end() -> None:
    """Moving a piece whole to its nearer end is neither above nor below."""
    pieces, outcomes = random_pieces(Random("nearest"))
    nearest = merge(pieces)
    moved = AtomLaw(tuple(Fraction(round(at * 4), 4) for at in nearest.positions), nearest.masses)
    with pytest.raises(AssertionError):
        check_order(merge(pieces), outcomes, moved)


CUT: tuple[Pair, ...] = (
    GaussianPair(E),
    LaplacePair(E),
    BoundedRangePair(E),
    DiscreteGaussianPair(Fraction(100), 3),
    DiscreteLaplacePair(Fraction(10**5), 30000),
)


@pytest.mark.parametrize("pair", CUT, ids=str)
def test_pieces_are_the_pair(pair: Pair) -> None:
    """Masses sum to 1 on both sides, and log(p/q) is inside each piece."""
    pieces = pair.pieces(60)
    for side in (0, 1):
        assert abs(sum((piece[:2][side] for piece in pieces), Fraction(-1))) < discretisation.PIECE_ERROR * 4
    for p, q, low, high in pieces:
        loss, slack = mp.log(real(p)) - mp.log(real(q)), mpf(10) ** -30
        assert low is None or real(low) <= loss + slack
        assert high is None or loss <= real(high) + slack
    # The average loss between both laws, Σ(p − q)·loss, of the whole pair, from its closed form or its noise.
    true = {
        GaussianPair: real(E),
        LaplacePair: 2 * (mp.exp(-real(E)) - 1 + real(E)),
        DiscreteGaussianPair: mpf(9) / 100,
    }.get(type(pair))
    if true is not None:
        middle = mp.fsum(
            real(p - q) * (real(low) + real(high)) / 2
            for p, q, low, high in pieces
            if low is not None and high is not None
        )
        assert abs(middle - true) < 0.02 * true


def test_a_curve_of_atoms() -> None:
    law = AtomLaw((Fraction(-1), Fraction(0), E), (Fraction(1, 5), HALF, Fraction(3, 10)))
    found = AtomCurve.of(law)
    for epsilon in (-2.0, -1.0, -0.5, 0.0, 0.1, 0.3, 1.0):
        bounds = found.bounds(epsilon)
        true = curve(atoms(law), mp.exp(mpf(epsilon)))
        assert real(bounds.lower) <= true <= real(bounds.upper)
        assert real(bounds.upper - bounds.lower) < mpf(10) ** -40
