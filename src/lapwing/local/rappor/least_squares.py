"""Least squares with amounts that are not negative, and with a penalty for each: NNLS and the non-negative LASSO."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter

_SLACK: Final = 1e-11
TRIES: Final = 3
"""How often in a row an exchange of all places may not help."""
_MOST_TURNS: Final = 100_000
_STEPS: Final = 200

Floats = NDArray[np.float64]


def nonnegative(gram: Floats, target: Floats, tries_in_a_row: int = TRIES) -> Floats:
    """Return the x ≥ 0 with the least ½xᵀAx − bᵀx, for a positive definite A; NNLS has A = XᵀX and b = Xᵀy.

    With b − λ in the place of b it is the non-negative LASSO, as Σ|x| = Σx. It is where x ≥ 0, y = Ax − b ≥ 0, and one
    of x and y is 0 in each place. Block principal pivoting guesses where x is above 0, solves for those, and exchanges
    all places that break the conditions. When that has not helped three times in a row, only the last such place is
    exchanged, and so it ends.

    Args:
        tries_in_a_row: How often in a row an exchange of all places may not help.

    Raises:
        InvalidParameter: If A is not positive definite.

    Source:
        Júdice and Pires 1994; Kim and Park 2011.
    """
    free = np.zeros(target.size, dtype=np.bool_)
    fewest, tries = target.size + 1, tries_in_a_row
    scale = float(np.abs(target).max(initial=0)) or 1.0
    for _ in range(_MOST_TURNS):
        amounts = _solved(gram, target, free)
        slack = gram @ amounts - target
        wrong = np.where(free, amounts * gram.diagonal() < -_SLACK * scale, slack < -_SLACK * scale)
        count = int(wrong.sum())
        if not count:
            return np.maximum(amounts, 0)
        if count < fewest:
            fewest, tries = count, tries_in_a_row
        elif tries:
            tries -= 1
        else:
            wrong = np.arange(target.size) == np.flatnonzero(wrong)[-1]
        free ^= wrong
    raise InvalidParameter("The candidates are too alike to tell them apart.")  # pragma: no cover


def _solved(gram: Floats, target: Floats, free: NDArray[np.bool_]) -> Floats:
    amounts = np.zeros(target.size)
    if free.any():
        amounts[free] = inverted(gram[np.ix_(free, free)], target[free])
    return amounts


def inverted(gram: Floats, target: Floats | None = None) -> Floats:
    """Return A⁻¹b for a positive definite A, or A⁻¹.

    Raises:
        InvalidParameter: If it is not, or nearly not.
    """
    try:
        least = float(np.linalg.cholesky(gram).diagonal().min(initial=np.inf)) ** 2
    except np.linalg.LinAlgError:
        least = 0.0
    if least < _SLACK * float(gram.diagonal().max(initial=0)):
        raise InvalidParameter("Some candidates look the same in every cohort; take more cohorts, or fewer candidates.")
    return np.asarray(np.linalg.solve(gram, np.eye(len(gram)) if target is None else target), dtype=np.float64)


def shares(gram: Floats, target: Floats) -> Floats:
    """Return the x ≥ 0 with Σx ≤ 1 and the least ½xᵀAx − bᵀx.

    If the sum without that bound is above 1, it is 1 at the optimum, which is then the LASSO of one penalty μ ≥ 0: the
    multiplier of the bound. The sum falls continuously as μ grows, and is linear in μ between changes of the support;
    so Newton's step finds the end, and halving helps where the support changes.
    """
    amounts, penalty = nonnegative(gram, target), 0.0
    low, high = 0.0, float(target.max(initial=0))
    for _ in range(_STEPS):
        excess = float(amounts.sum()) - 1
        if (excess <= 0 and not penalty) or abs(excess) < _SLACK:
            break
        low, high = (penalty, high) if excess > 0 else (low, penalty)
        support = amounts > 0
        slope = _solved(gram, support.astype(np.float64), support).sum()
        step = penalty + excess / slope if slope else low
        penalty = step if low < step < high else (low + high) / 2
        amounts = nonnegative(gram, target - penalty)
    return amounts
