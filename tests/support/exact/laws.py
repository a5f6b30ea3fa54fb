"""The laws that tables are tested with, each beside its independent twin."""

from fractions import Fraction
from typing import NamedTuple

from lapwing.exact.geometric import Geometric, GeometricBlock
from lapwing.exact.laplace import SignedGeometric
from lapwing.exact.rounded_normal import RoundedNormal
from lapwing.exact.signed_weights import SignedWeights
from lapwing.exact.tables import IntegerLaw
from tests.support.exact import independent
from tests.support.exact.independent import Cumulative


class Case(NamedTuple):
    law: IntegerLaw
    cumulative: Cumulative


def laplace(scale: Fraction, shift: int = 0) -> Case:
    return Case(SignedGeometric(scale=scale, shift=shift), independent.signed_geometric(scale, shift))


def block(rate: Fraction, width: int) -> Case:
    return Case(GeometricBlock(rate=rate, width=width), independent.geometric_block(rate, width))


def geometric(rate: Fraction) -> Case:
    return Case(Geometric(rate=rate), independent.geometric(rate))


def normal(variance: Fraction) -> Case:
    return Case(RoundedNormal(variance=variance), independent.rounded_normal(variance))


def discrete_normal(variance: Fraction) -> Case:
    rate = 1 / (2 * variance)
    return Case(SignedWeights(rate=rate, zeros=1), independent.signed_weights(rate, 1))


def heights(rate: Fraction) -> Case:
    return Case(SignedWeights(rate=rate, zeros=2), independent.signed_weights(rate, 2))


TINY = Fraction(1, 1 << 30)
AWKWARD = Fraction(1_267_650_600_228_229_401_496_703_205_653, 515_377_520_732_011_331_036_461_129_765)

CASES = {
    "laplace 2^-30": laplace(TINY),
    "laplace 1/3": laplace(Fraction(1, 3)),
    "laplace 1": laplace(Fraction(1)),
    "laplace 100-bit": laplace(AWKWARD),
    "laplace 40": laplace(Fraction(40)),
    "top of 333/8": laplace(Fraction(333), 4),
    "top of 2^80": laplace(Fraction(1 << 80), 75),
    "block near uniform": block(Fraction(1, 1 << 80), 3),
    "block of 2^40": block(Fraction(1 << 18, 1 << 40), 8),
    "block of 1/7": block(Fraction(1, 7), 10),
    "geometric 2^30": geometric(1 / TINY),
    "geometric 1": geometric(Fraction(1)),
    "geometric 100-bit": geometric(AWKWARD),
    "geometric 1/40": geometric(Fraction(1, 40)),
    "normal 2^-30": normal(TINY**2),
    "normal 1/4": normal(Fraction(1, 16)),
    "normal 1": normal(Fraction(1)),
    "normal √2": normal(Fraction(2)),
    "normal 100-bit": normal(AWKWARD),
    "normal 40": normal(Fraction(1600)),
    "discrete normal 2^-30": discrete_normal(TINY**2),
    "discrete normal 1/3": discrete_normal(Fraction(1, 9)),
    "discrete normal 1": discrete_normal(Fraction(1)),
    "discrete normal 100-bit": discrete_normal(AWKWARD),
    "discrete normal 64": discrete_normal(Fraction(1 << 12)),
    "heights of 64": heights(Fraction(1, 1 << 13)),
    "heights of 100 bits": heights(1 / (AWKWARD * 900)),
    "heights of 32": heights(Fraction(1, (1 << 11) + 1)),
}
