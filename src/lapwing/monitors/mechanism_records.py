"""Mechanisms of streams as JSON, exactly: a monitor goes on with those that it was made with."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lapwing.mechanisms.continual.banded import BandedToeplitz
from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.honaker import HonakerTree
from lapwing.mechanisms.continual.participation import Participation
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.mechanisms.continual.tree import ContinualLaplace, SubtractiveTree


def record_of(mechanism: ContinualMechanism) -> dict[str, object]:
    """Return the parameters of a mechanism but for the participation, which the definition says."""
    if isinstance(mechanism, ContinualGaussian):
        matrix = mechanism.matrix
        banded = isinstance(matrix, BandedToeplitz)
        numbers = matrix.coefficients if isinstance(matrix, BandedToeplitz) else matrix.decays
        return {
            "ticks": matrix.ticks,
            "window": matrix.window,
            "band" if banded else "decays": [str(number) for number in numbers],
            "sigma": str(mechanism.sigma),
        }
    tree = mechanism.tree
    return {
        "subtracts": isinstance(tree, SubtractiveTree),
        "ticks": tree.ticks,
        "window": tree.window,
        "branches": tree.branches,
        "levels": tree.levels,
        "scale": str(mechanism.scale),
    }


def mechanism_from(record: Mapping[str, Any], participation: Participation, norm: Fraction) -> ContinualMechanism:
    """Return the mechanism that `record_of` was written of."""
    if "sigma" in record:
        numbers = tuple(map(Fraction, record["band" if "band" in record else "decays"]))
        kind = BandedToeplitz if "band" in record else BufferedToeplitz
        matrix = kind(record["ticks"], record["window"], numbers)
        return ContinualGaussian(matrix=matrix, participation=participation, norm=norm, sigma=Fraction(record["sigma"]))
    shape = SubtractiveTree if record["subtracts"] else HonakerTree
    tree = shape(record["ticks"], record["window"], record["branches"], record["levels"])
    return ContinualLaplace(tree=tree, participation=participation, norm=norm, scale=Fraction(record["scale"]))
