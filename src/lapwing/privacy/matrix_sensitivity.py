"""The sensitivity of Gaussian noise that is correlated by a matrix, as in training with banded or tree noise.

A mechanism releases C·X + Z, where row t of X is a vector that the units of step t add up to, Z is independent Gaussian
noise, and C is lower triangular. As C·X determines all that is released, also where each X depends on what was released
before, its loss is that of one Gaussian mechanism (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1). Let
one unit add vectors x_i of L2 norm at most 1 in the steps i of a pattern: at most so many steps, each at least
`separation` after the one before. With G = CᵀC,

    ‖C·X‖² = Σ_ij G_ij·⟨x_i, x_j⟩ ≤ Σ_i Σ_j |G_ij|,  over i and j of the pattern.

For each i the inner sum is at most |G_ii| and the largest sum over any other steps of such a pattern that are at least
`separation` from i; these sums are the steps' weights, and the largest sum of weights over a pattern bounds all. Both
maxima are found exactly, by dynamic programming over the steps. Where the matrix has at most `separation` bands, no two
steps of a pattern meet, and the bound is attained; for others it may be above what is (Choquette-Choo, Dvijotham,
Pillutla, Ganesh, Steinke and Thakurta 2023, Multi-Epoch Matrix Factorization Mechanisms, Section 2, on patterns).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import square_root_up
from lapwing.privacy.discs import UNIT
from lapwing.privacy.pairs import whole

MOST_STEPS: Final = 4096

FloatArray = NDArray[np.float64]


def sensitivity_of_matrix(
    encoder: ArrayLike | Sequence[Sequence[float]], *, participations: int = 1, separation: int = 1
) -> Fraction:
    """Return the L2 sensitivity of C·X towards a unit that adds vectors of norm at most 1, rounded up.

    `listed("gaussian", sigma=σ, sensitivity=…)` is then the mechanism, for the relation under which a unit's vector has
    that norm: clipped to 1 and added or removed.

    Args:
        encoder: C, lower triangular, a row and a column for each step, at most MOST_STEPS.
        participations: In how many steps a unit is at most.
        separation: After how many steps it may be in one again, at least 1.

    Raises:
        InvalidParameter: For another matrix, or numbers below 1.
    """
    matrix = np.asarray(encoder, dtype=np.float64)
    whole(participations, "participations", 1)
    whole(separation, "separation", 1)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not 1 <= len(matrix) <= MOST_STEPS:
        raise InvalidParameter(
            f"The encoder has the shape {matrix.shape}; it must be square, with at most {MOST_STEPS:,} rows."
        )
    if not np.isfinite(matrix).all() or np.triu(matrix, 1).any():
        raise InvalidParameter("The encoder must be lower triangular, with finite numbers: what is later adds nothing.")
    steps = len(matrix)
    # A product of sums errs by at most (steps + 2)·u of the sum of sizes; the factor also covers those sizes' error.
    sizes = np.abs(matrix).T @ np.abs(matrix)
    products = np.abs(matrix.T @ matrix) + 1.01 * (steps + 4) * UNIT * sizes
    places = np.arange(steps)
    apart = np.abs(places[:, None] - places[None, :]) >= separation
    most = min(participations, -(-steps // separation))
    others = _largest(np.where(apart, products, 0.0), most - 1, separation)
    total = float(_largest((np.diag(products) + others)[None, :], most, separation)[0])
    # Each of the two sums has at most `most` + 1 terms, all ≥ 0.
    return square_root_up(Fraction(total * (1 + 4 * (most + 4) * UNIT)))


def _largest(weights: FloatArray, most: int, separation: int) -> FloatArray:
    """Return for each row the largest sum of at most `most` of its numbers ≥ 0 that are `separation` apart."""
    rows, steps = weights.shape
    best = np.zeros((rows, steps + 1))
    for _ in range(most):
        longer = np.zeros((rows, steps + 1))
        for place in range(steps):
            before = best[:, max(0, place + 1 - separation)]
            np.maximum(longer[:, place], before + weights[:, place], out=longer[:, place + 1])
        best = longer
    return best[:, steps]
