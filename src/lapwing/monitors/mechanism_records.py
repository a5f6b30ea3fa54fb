"""Mechanisms of streams as JSON, exactly: a monitor goes on with those that it was made with."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.participation import Participation
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.mechanisms.continual.tree import ContinualLaplace, SubtractiveTree


def record_of(mechanism: ContinualMechanism) -> dict[str, object]:
    """Return the parameters of a mechanism but for the participation, which the definition says."""
    if isinstance(mechanism, ContinualGaussian):
        matrix = mechanism.matrix
        return {
            "ticks": matrix.ticks,
            "window": matrix.window,
            "decays": [str(decay) for decay in matrix.decays],
            "sigma": str(mechanism.sigma),
        }
    tree = mechanism.tree
    return {
        "ticks": tree.ticks,
        "window": tree.window,
        "branches": tree.branches,
        "levels": tree.levels,
        "scale": str(mechanism.scale),
    }


def mechanism_from(record: Mapping[str, Any], participation: Participation, norm: Fraction) -> ContinualMechanism:
    """Return the mechanism that `record_of` was written of."""
    if "sigma" in record:
        decays = tuple(map(Fraction, record["decays"]))
        matrix = BufferedToeplitz(record["ticks"], record["window"], decays)
        return ContinualGaussian(matrix=matrix, participation=participation, norm=norm, sigma=Fraction(record["sigma"]))
    tree = SubtractiveTree(record["ticks"], record["window"], record["branches"], record["levels"])
    return ContinualLaplace(tree=tree, participation=participation, norm=norm, scale=Fraction(record["scale"]))
