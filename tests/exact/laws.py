"""The laws that tables are tested with, each beside its independent twin."""

from fractions import Fraction
from typing import NamedTuple

from lapwing.exact.gaussian import RoundedNormal
from lapwing.exact.laplace import GeometricBlock, SignedGeometric
from lapwing.exact.law import Law
from lapwing.exact.normal import SignedGrid
from tests.exact import independent
from tests.exact.independent import Cumulative


class Case(NamedTuple):
    law: Law
    cumulative: Cumulative


def laplace(scale: Fraction, shift: int = 0) -> Case:
    return Case(SignedGeometric(scale=scale, shift=shift), independent.signed_geometric(scale, shift))


def block(rate: Fraction, width: int) -> Case:
    return Case(GeometricBlock(rate=rate, width=width), independent.geometric_block(rate, width))


def normal(sigma: Fraction) -> Case:
    return Case(RoundedNormal(sigma=sigma), independent.rounded_normal(sigma))


GRID = Case(SignedGrid(), independent.signed_grid)
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
    "normal 2^-30": normal(TINY),
    "normal 1/4": normal(Fraction(1, 4)),
    "normal 1": normal(Fraction(1)),
    "normal 100-bit": normal(AWKWARD),
    "normal 40": normal(Fraction(40)),
    "grid": GRID,
}
