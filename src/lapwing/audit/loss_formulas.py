"""The loss of a stored mechanism, by formulas of the audit's own.

Nothing here calls the code that prices queries. A unit can move a vector by some distance. Each function returns a
lower bound on the loss of releasing that vector with this noise. So a charge below the bound is too small.

The amounts add up: ε in pure ledgers, μ² in gdp, ρ in zcdp. Numbers from exact formulas are fractions. The others are
floats, and are made smaller by `SLACK`, which is more than their rounding.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from statistics import NormalDist
from typing import Final, final

SLACK: Final = Fraction(1, 10**9)
"""The part of an amount that floating point may be off by."""
ORDERS: Final = (1.000001, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Orders of the Rényi divergences that are tried in a zcdp ledger."""
PLACES: Final = 64
"""Thresholds that are tried in a gdp ledger."""
WRAPPED: Final = "noise above a threshold"
TOGETHER: Final = "reconstructed Gaussian"
"""The noise of tables that were measured together: all charges of their batch pay for it."""
_NORMAL: Final = NormalDist()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LargestMovement:
    """How far one unit can move a vector of integers.

    Args:
        l1: In L1, in steps.
        l2_squared: In L2, squared.
        cells: The most cells among which the L1 distance must be divided; with 1 it can be in one cell.
    """

    l1: int
    l2_squared: int
    cells: int = 1


def least_amount(law: Sequence[object], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return what a release with a stored law loses at least, None if the audit has no formula for it.

    Args:
        law: Its name and parameters, as stored.
    """
    name, *parameters = law
    formula = _FORMULAS.get(str(name))
    return None if formula is None else formula([str(one) for one in parameters], movement, kind)


# ---- additive noise --------------------------------------------------------------------------------------------------


def _gaussian(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """N(0, σ²) rounded: μ² = Δ₂²/σ², and ρ is half of it; no pure loss is finite."""
    square = Fraction(parameters[0]) ** 2
    mu_squared = Fraction(movement.l2_squared) / square
    return {"gdp": mu_squared, "zcdp": mu_squared / 2}.get(kind, Fraction(10) ** 100)


def _reconstructed(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of one cell of a table that several measurements were put together to.

    The cell is N(0, σ²) from its value, and a function of all measurements. So these lose at least what it does, where
    one unit moves this cell by as much as it can.
    """
    moved = movement.l1 // movement.cells
    return _gaussian(parameters, LargestMovement(l1=moved, l2_squared=moved**2), kind)


def _laplace(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """P(x) ∝ e^(−|x|/scale): ε = Δ₁/scale. In the other ledgers the loss of one cell that moves as far as it can.

    A vector whose L1 distance is divided among n cells has n numbers that move by Δ₁/n at least one of them, so the
    cell that is looked at moves by that, rounded down.
    """
    scale = Fraction(parameters[0])
    if kind == "pure":
        return movement.l1 / scale
    shift = movement.l1 // movement.cells
    rate = float(1 / scale)
    amount = _laplace_mu(rate, shift) ** 2 if kind == "gdp" else _laplace_rho(rate, shift)
    return Fraction(amount) * (1 - SLACK)


def _laplace_mu(rate: float, shift: int) -> float:
    """Return the least μ of X + shift against X: the trade-off is piecewise linear, so its corners decide.

    A corner is the test "at most n". It gives μ ≥ Φ⁻¹(P(X ≤ n)) − Φ⁻¹(P(X ≤ n − shift)).
    """
    reach = min(shift + 20 / rate, 2.0**60)
    places = {shift // 2 + round((part / PLACES - 0.5) * reach) for part in range(PLACES + 1)} | {shift // 2, -1, 0}
    return max((_score(rate, place) - _score(rate, place - shift) for place in places), default=0.0)


def _score(rate: float, place: int) -> float:
    """Return Φ⁻¹(P(X ≤ place)) for P(x) ∝ e^(−rate·|x|), from the smaller tail so that nothing rounds to 1."""
    tail = math.exp(-min(rate * abs(place + (place >= 0)), 650.0)) / (1 + math.exp(-rate))
    return -_NORMAL.inv_cdf(tail) if place >= 0 else _NORMAL.inv_cdf(tail)


def _laplace_rho(rate: float, shift: int) -> float:
    """Return the largest D_α/α over some orders α, of X + shift against X."""
    return max(_laplace_renyi(rate, shift, order) / order for order in ORDERS)


def _laplace_renyi(rate: float, shift: int, order: float) -> float:
    """Return D_α: three geometric sums, left of 0, between 0 and the shift, and from the shift on."""
    if shift == 0:
        return 0.0
    head = math.log(math.tanh(rate / 2))  # of (1 − q)/(1 + q)
    edge = math.log(-math.expm1(-rate))
    ends = [head - edge + rate * shift * (order - 1), head - edge - rate * shift * order]
    middle = _log_geometric(-rate * (2 * order - 1), shift - 1)
    parts = [*ends, *([] if middle is None else [head + rate * shift * (order - 1) + middle])]
    most = max(parts)
    return (most + math.log(sum(math.exp(part - most) for part in parts))) / (order - 1)


def _log_geometric(slope: float, count: int) -> float | None:
    """Return the logarithm of Σ e^(slope·x) over x from 1 to count, for slope < 0."""
    if count < 1:
        return None
    return slope + math.log(-math.expm1(slope * count)) - math.log(-math.expm1(slope))


# ---- choices ---------------------------------------------------------------------------------------------------------


def bounded_range(eta: Fraction, kind: str) -> Fraction:
    """Return the loss of a choice whose log-ratios range over η: ε = η, ρ = η²/8, and μ = 2Φ⁻¹(1/(1 + e^(−η/2)))."""
    if kind == "pure":
        return eta
    if kind == "zcdp":
        return eta**2 / 8
    mu = 2 * _NORMAL.inv_cdf(1 / (1 + math.exp(-min(float(eta), 60) / 2)))
    return Fraction(mu) ** 2 * (1 - SLACK)


def chosen_measure(scale: str, kind: str) -> Fraction:
    """Return the loss of the choice among measures: scores in units of their sensitivities range over 2/scale."""
    return bounded_range(2 / Fraction(scale), kind)


def _quantile(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of choosing a value by its rank: a row moves ranks by 2·max(q, 1 − q), or by 1 at an end."""
    quantile, _, scale = parameters
    share = Fraction(quantile)
    width = 2 * max(share, 1 - share) if 0 < share < 1 else Fraction(1)
    return bounded_range((movement.l1 // movement.cells) * width / Fraction(scale), kind)


def _quantiles(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of several quantiles, level after level, and of the noisy numbers of rows if there are any."""
    listed, _, way, noise, ratio, scale = parameters
    shares, rows = [Fraction(one) for one in listed.split()], movement.l1 // movement.cells
    widths = [_width(share) for share in shares] if way == "apart" else _widths_by_halves([0, *shares, 1])
    total = sum((bounded_range(rows * width / Fraction(scale), kind) for width in widths), Fraction(0))
    formula = {"": None, "laplace": _laplace, "gaussian": _gaussian}[noise]
    if formula is None:
        return total
    counted = formula([str(Fraction(ratio) * Fraction(scale))], LargestMovement(l1=rows, l2_squared=rows**2), kind)
    return None if counted is None else total + counted


def _width(share: Fraction) -> Fraction:
    """Return how far a row moves distances from a rank; from an end of several, it is up or down by 1."""
    return 2 * max(share, 1 - share) if 0 < share < 1 else Fraction(2)


def _widths_by_halves(ends: Sequence[Fraction | int]) -> list[Fraction]:
    """Return the largest width of each level: the rank nearest to the middle of a part cuts it in two.

    Choices of one level are of different rows, so only the widest counts.

    Args:
        ends: The first rank of a part, the ranks to choose in it, and the last.
    """
    first, *inside, last = ends
    if not inside:
        return []
    middle = (first + last) / Fraction(2)
    place = min(range(len(inside)), key=lambda one: (abs(inside[one] - middle), one)) + 1
    own = _width((ends[place] - first) / Fraction(last - first))
    parts = zip_longest(_widths_by_halves(ends[: place + 1]), _widths_by_halves(ends[place:]), fillvalue=Fraction(0))
    return [own, *map(max, parts)]


def _largest(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of choosing the largest cells, one after another: each choice moves by one cell's distance."""
    law, count, _, _, scale = parameters
    eta = Fraction(movement.l1 // movement.cells) / Fraction(scale)
    if law == "permute-and-flip":
        return eta if kind == "pure" else None
    return int(count) * bounded_range(eta, kind)


def _sparse(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the share of one number in ε = Δ/t + Δ/s, with thresholds' noise t and numbers' noise s: at least that.

    Numbers that move in two directions lose 2Δ/s. The rows of a sum say it, so it is read from what is stored.
    """
    place, thresholds, one_way, ratio, scale = parameters
    listed = json.loads(thresholds)
    most = max(int(moved) for _, _, moved in listed)
    if kind != "pure" or not 0 <= int(place) < len(listed):
        return None
    ways = 1 if one_way == "1" else 2
    whole = most / (Fraction(ratio) * Fraction(scale)) + ways * most / Fraction(scale)
    return whole / len(listed)


def _wrapped(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of noise on numbers of which only large ones are shown: that of the noise itself."""
    law, _, _, *rest = parameters
    return least_amount([law, *rest], movement, kind)


# ---- private keys ----------------------------------------------------------------------------------------------------


def selection_amount(law: Sequence[object], kind: str) -> tuple[Fraction | None, Fraction]:
    """Return what a stored choice of private keys loses at least, and its δ.

    Weights of one unit have length 1: Gaussian noise on them loses μ² = 1/σ². Keys are private only where a unit is
    added or removed. Where the noisy counts themselves select, the counts have lost it already.
    """
    name, *parameters = [str(one) for one in law]
    if name == "weighted Gaussian":
        return _gaussian(parameters[:1], LargestMovement(l1=1, l2_squared=1), kind), Fraction(parameters[1])
    if name == "truncated geometric":
        return (Fraction(parameters[0]) if kind == "pure" else None), Fraction(parameters[1])
    return (Fraction(0) if name == "thresholding" else None), Fraction(parameters[0]) if parameters else Fraction(0)


_FORMULAS: Final[Mapping[str, Callable[[Sequence[str], LargestMovement, str], Fraction | None]]] = {
    "rounded Gaussian": _gaussian,
    "merged Gaussians": _gaussian,
    "discrete Laplace": _laplace,
    TOGETHER: _reconstructed,
    "exponential mechanism for a quantile": _quantile,
    "exponential mechanism for quantiles": _quantiles,
    "choice of the largest": _largest,
    "sparse vector": _sparse,
    WRAPPED: _wrapped,
}
