"""Transforms of laws that are sums over points of a quadrature: M(z) = Σ weight·e^(zL) at many z, with its error.

A law with an analytic density is a sum over few points, up to an error that falls exponentially with their number. A
law states them with what they miss (`Points`); `transform_of` sums them at all nodes.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from lapwing.exact.elementary import TURN_ERROR, turn
from lapwing.privacy.discs import UNIT, ComplexArray, Discs, up
from lapwing.privacy.loss_laws import FloatArray, Nodes, Transform

MOST_POINTS: Final = 1 << 20
MOST_WORK: Final = 1 << 26
"""Points times nodes: about half a second."""

DIGITS: Final = 42.0
"""A quadrature's error is to be about e^(−DIGITS) of M."""


class Points(NamedTuple):
    """Losses within their errors, with weights, and a bound on what the sum misses, with the weights' errors."""

    losses: FloatArray
    errors: FloatArray
    weights: FloatArray
    missing: float


@runtime_checkable
class QuadratureLaw(Protocol):
    """A law whose transform is a sum over points."""

    def is_feasible(self, nodes: Nodes) -> bool:
        """Tell whether a transform on the nodes takes less than about a second."""


def transform_of(points_within: Callable[[float, Fraction], Points], nodes: Nodes, scale: Fraction) -> Transform:
    """Return the sum over points, baby step by giant step: node a + b·A is a product of an entry of each.

    A phase is e^(is·L) for the loss L of a point as it was computed, which is off by at most its error times s. An
    entry of either table is within TURN_ERROR of e^(i·angle), and the angle within 4u of itself.

    Args:
        points_within: Of a bound on |Im z| and the scale, the points over e^scale.
    """
    span = nodes.step * nodes.size * (1 + 4 * UNIT)
    losses, errors, weights, missing = points_within(span, scale)
    steps = math.isqrt(nodes.size - 1) + 1
    baby = turn(np.multiply.outer(np.arange(steps) * nodes.step, losses))
    giant = turn(np.multiply.outer(np.arange(-(-nodes.size // steps)) * (steps * nodes.step), losses))
    centres, roundings = _products(giant * weights, baby)
    total = float(weights.sum()) * (1 + (len(weights) + 4) * UNIT)
    blurred = span * float((weights * (errors + 4 * UNIT * np.abs(losses))).sum())
    radius = missing + 1.01 * blurred + total * (roundings * UNIT + 2.01 * TURN_ERROR)
    return Transform(Discs(centres[: nodes.size], up(radius), up(total + missing)), scale)


def _products(giant: ComplexArray, baby: ComplexArray) -> tuple[ComplexArray, float]:
    """Return Σ over points of giant·baby for each pair of rows, and its error in units of u·Σ|giant|, for |baby| ≤ 1.

    The points are summed block by block by real matrix products, which err in any order of summation by at most
    (block + 1)·u of the sum of sizes, and the blocks by halves. A coordinate is the sum of two such, so has one step
    more, and at most √2 times the sum of sizes; rounding the weights' products adds 1. Two coordinates make it √2 more.
    """
    count = giant.shape[1]
    blocks = 1 << max(0, min(5, (count // 8).bit_length() - 1))
    block = -(-count // blocks)

    def cut(rows: FloatArray) -> FloatArray:
        padded = np.zeros((len(rows), blocks * block))
        padded[:, :count] = rows
        return padded.reshape(len(rows), blocks, block).transpose(1, 0, 2)

    def product(left: FloatArray, right: FloatArray) -> FloatArray:
        parts = cut(left) @ cut(right).transpose(0, 2, 1)
        while len(parts) > 1:
            parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
        return np.asarray(parts[0])

    sums = np.empty((len(giant), len(baby)), dtype=np.complex128)
    sums.real = product(giant.real, baby.real) - product(giant.imag, baby.imag)
    sums.imag = product(giant.real, baby.imag) + product(giant.imag, baby.real)
    return sums.reshape(-1), 2.01 * (block + blocks.bit_length() + 3)
