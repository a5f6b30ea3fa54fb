"""How much of a price each residual of a workload of marginals gets: a convex problem, solved in floating point.

Nothing here is private or must be exact: whatever comes out is measured exactly by `residual_marginals`, which makes
it keep its price. The problem: residuals r have precisions q_r ≥ 0 that cost g_r each, Σ g_r·q_r ≤ 1; marginal w has
the variance v_w = Σ_r k_wr/q_r. Wanted is the least t with v_w ≤ t·b_w for all w.

For weights λ_w on the marginals, Σ_w λ_w·v_w is least, by Cauchy and Schwarz, at q_r ∝ √(h_r/g_r) with
h_r = Σ_w λ_w·k_wr, where it is f(λ) = (Σ_r √(g_r·h_r))². Where Σ λ_w·b_w = 1, f(λ) ≤ t for every t that can be had
(weak duality), and max_w v_w/b_w at those precisions is such a t. So their quotient says how far from the best it is.
Weights are multiplied by v_w/b_w at each step (Silvey, Titterington and Torsney 1978; Yu 2010 on its convergence).

With the weights fixed, the same step is the whole solution: the least of the sum Σ_w λ_w·v_w.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS: Final = 2_000
_CLOSE: Final = 1.002
"""Where the worst ratio is within this factor of the best that is possible, it is good enough."""


def precisions_for(cost: Floats, variance: Floats, beside: Floats) -> tuple[Floats, float]:
    """Return a precision for each residual that costs 1 in all, and a factor within which it is the best.

    Args:
        cost: Of a precision of 1, by residual.
        variance: A row a marginal, of a residual with a precision of 1.
        beside: What the variance of each marginal is compared with.
    """
    relative = variance / beside[:, np.newaxis]
    weights = np.full(len(beside), 1 / len(beside))
    best, ratio = np.zeros_like(cost), float("inf")
    bound = 0.0
    for _ in range(_STEPS):
        precisions, least = precisions_for_sum(cost, relative, weights)
        ratios = relative @ (1 / precisions)
        bound = max(bound, least)
        if ratios.max() < ratio:
            best, ratio = precisions, float(ratios.max())
        if ratio <= _CLOSE * bound:
            break
        # No weight may vanish, as a residual that nobody needs would be measured with no precision.
        weights = np.maximum(weights * ratios, 1e-9 * (weights * ratios).max())
        weights /= weights.sum()
    return best, ratio / bound


def precisions_for_sum(cost: Floats, variance: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return the precisions that cost 1 in all and make the weighted sum of variances the least, and that sum.

    Args:
        cost: As of `precisions_for`; so is `variance`.
        weights: Of each marginal, above 0.
    """
    roots = np.sqrt(cost * (weights @ variance))
    precisions: Floats = roots / cost / roots.sum()
    return precisions, float(roots.sum()) ** 2
