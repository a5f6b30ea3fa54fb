"""From a pair of laws cut into pieces to atoms: a pair above it and a pair below it.

A piece is a part of the outcomes with its probabilities p under P and q under Q, on which the loss lies in
[low, high]. Order pairs by their hockey-stick curves, (P, Q) ≤ (P', Q') if H(x) = ∫ max(0, dP − x·dQ) ≤ H'(x) for all
x ≥ 0. This is what composition keeps: H of (P × R, Q × S) at x is ∫ r·H(x·s/r), r and s the densities of R and S. So
it suffices to compare single pairs, piece by piece, and nothing here need be normalised.

Up (`spread`): move the piece to its ends so that p and q are kept. Inside, max(0, p − x·q) is convex in the ratio q/p,
so spreading it raises every H(x) (Jensen). Then raise masses and positions a little: max(0, p − x·q) with q = p·e^(−l)
rises with p and with l. This is the "connect the dots" of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022.

Down (`merge`): forget where in the piece the outcome is. Its loss becomes log(p/q), and every H(x) falls, as
max(0, ·) is convex. Then lower masses and positions a little.

Both err by the second order in the piece's width.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from lapwing.exact.bounds import Ball, Enclosure, enclose, enclose_tightly, log
from lapwing.privacy.atoms import AtomLaw

_BITS = 200
PIECE_ERROR = Fraction(1, 1 << 190)
"""The relative error allowed to a piece's p and q."""

_SLACK = Fraction(1, 1 << 100)
_NARROW = Fraction(1, 1 << 60)
_POSITION_BITS = 128


class Piece(NamedTuple):
    """Some outcomes: p and q within a relative PIECE_ERROR, all losses in [low, high], None for an infinite end."""

    p: Fraction
    q: Fraction
    low: Fraction | None
    high: Fraction | None


def spread(pieces: Iterable[Piece]) -> AtomLaw:
    """Return a law above the pair's.

    To low and high go masses a and b with a + b = p and a·e^(−low) + b·e^(−high) = q, so
    b = (p − q·e^low)/(1 − e^(low − high)). An infinite high takes b = p − q·e^low; to an infinite low goes only mass
    of Q, so that a = 0. The errors of p and q change a and b by less than p·2⁻¹⁸⁷/(1 − e^(−2⁻⁶⁰)) < p·2⁻¹²⁰, and the
    balls' own by as little; each mass is raised by p·2⁻¹⁰⁰. A piece narrower than 2⁻⁶⁰ moves to its high end.
    """
    masses: dict[Fraction, Fraction] = {}
    infinite = Fraction(0)
    for p, q, low, high in pieces:
        if high is not None and (low is None or high - low < _NARROW):
            masses[high] = masses.get(high, Fraction(0)) + p * (1 + _SLACK)
            continue
        if low is None:
            infinite += p * (1 + _SLACK)
            continue
        above = _mass_above(p, q, low, high)
        below = p - above
        if high is None:
            infinite += above + p * _SLACK
        else:
            masses[high] = masses.get(high, Fraction(0)) + above + p * _SLACK
        masses[low] = masses.get(low, Fraction(0)) + below + p * _SLACK
    return law_of_masses(masses, infinite, upwards=True)


def merge(pieces: Iterable[Piece]) -> AtomLaw:
    """Return a law below the pair's: p at log(p/q), each lowered by 2⁻¹⁰⁰ (p in proportion).

    A piece without a high end goes to its low end. That is below log(p/q), and what lies above all finite losses of
    `spread` would dominate the moments at a large tilt.
    """
    masses: dict[Fraction, Fraction] = {}
    for p, q, low, high in pieces:
        stays = low is not None and (high is None or low == high)
        position = low if stays and low is not None else log(p / q, bits=_POSITION_BITS).lower - _SLACK
        masses[position] = masses.get(position, Fraction(0)) + p * (1 - _SLACK)
    return law_of_masses(masses, Fraction(0), upwards=False)


def swapped(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of (Q, P)."""
    return [Piece(q, p, None if high is None else -high, None if low is None else -low) for p, q, low, high in pieces]


def thinned(pieces: Iterable[Piece], rate: Fraction) -> list[Piece]:
    """Return the pieces of ((1 − rate)·Q + rate·P, Q), whose loss log(1 − rate + rate·e^l) rises with l."""
    ends: dict[Fraction, Enclosure] = {}

    def end(loss: Fraction | None, *, upper: bool) -> Fraction | None:
        if loss is None:
            return log(1 - rate, bits=_POSITION_BITS).lower if rate < 1 and not upper else None
        if loss not in ends:
            ends[loss] = enclose_tightly(lambda at, r: (r * at.expm1()).log1p(), loss, rate, bits=_POSITION_BITS)
        return ends[loss].upper if upper else ends[loss].lower

    return [
        Piece((1 - rate) * q + rate * p, q, end(low, upper=False), end(high, upper=True)) for p, q, low, high in pieces
    ]


def _mass_above(p: Fraction, q: Fraction, low: Fraction, high: Fraction | None) -> Fraction:
    def inner(p: Ball, q: Ball, low: Ball) -> Ball:
        return p - q * low.exp()

    def between(p: Ball, q: Ball, low: Ball, high: Ball) -> Ball:
        return inner(p, q, low) / -(low - high).expm1()

    # The difference may vanish, so its precision is counted from p.
    bounds = (
        enclose(inner, Fraction(1), q / p, low, bits=_BITS + 64)
        if high is None
        else enclose(between, Fraction(1), q / p, low, high, bits=_BITS + 64)
    )
    return p * min(Fraction(1), max(Fraction(0), bounds.upper))


def law_of_masses(masses: dict[Fraction, Fraction], infinite: Fraction, *, upwards: bool) -> AtomLaw:
    """Return the law of masses at losses; those nearer than 2⁻⁶⁰ to the one before are moved onto it, up or down."""
    atoms: list[tuple[Fraction, Fraction]] = []
    for position in sorted(masses, reverse=upwards):
        mass = masses[position]
        if atoms and abs(position - atoms[-1][0]) < _NARROW:
            atoms[-1] = (atoms[-1][0], atoms[-1][1] + mass)
        elif mass > 0:
            atoms.append((position, mass))
    return AtomLaw(tuple(at for at, _ in atoms), tuple(m for _, m in atoms), infinite)


def tight(formula: Callable[..., Ball], *arguments: Fraction) -> Fraction:
    """Return a formula's value within a relative PIECE_ERROR."""
    return enclose_tightly(formula, *arguments, bits=_BITS).upper
