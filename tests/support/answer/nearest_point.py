"""The nearest point of a cone {x: Ax ≤ 0, Ex = 0}, found in another way than Lapwing's: by non-negative least squares.

The point x less its nearest point is the nearest point to x of the polar cone, which is all non-negative combinations
of the rows of A, and all combinations of those of E (Moreau).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Floats = NDArray[np.float64]


def nearest_point(released: Floats, deviations: Floats, at_most: Floats, equal: Floats | None = None) -> Floats:
    """Return the point nearest to `released`, distances counted in deviations."""
    rows = at_most if equal is None else np.concatenate([at_most, equal, -equal])
    coefficients, _ = nnls((rows * deviations).T, released / deviations, maxiter=100_000)
    found: Floats = released - deviations * (coefficients @ (rows * deviations))
    return found
