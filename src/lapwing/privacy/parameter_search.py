"""From a promise to the parameter that keeps it: the noise, the rate, or the number of uses of any list."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative, probability
from lapwing.privacy.listing import Listed
from lapwing.privacy.loss_distribution import LossDistribution
from lapwing.privacy.loss_points import distribution_of
from lapwing.privacy.pairs import positive
from lapwing.privacy.renyi import RenyiDP

Stating = LossDistribution | RenyiDP | Sequence[Listed]
"""What states an ε at a δ; a sequence of listed mechanisms does by its loss distribution."""

_MOST_DOUBLINGS = 40
_BEYOND = Fraction(10**6)
"""An ε that is infinite is counted as so much above the promise, where points between are guessed."""


def calibrate(
    build: Callable[[Fraction], Stating],
    *,
    epsilon: Number,
    delta: Number,
    start: Number = 1,
    digits: int = 4,
    whole: bool = False,
) -> Fraction:
    """Return the parameter at which a list keeps a promise most closely.

    If the list's ε falls as the parameter grows, as with σ, it is the least that keeps the promise. If it rises, as
    with a rate or a number of steps, it is the largest. It has `digits` significant digits, or is a whole number.

    Guarantee:
        The list that `build` makes of the result states at most `epsilon` at `delta`, by its upper end.

    Args:
        build: The list with a parameter, a fraction above 0.
        epsilon: ≥ 0.
        delta: Above 0, below 1.
        start: Where to begin, at best within a few doublings.
        digits: From 1 to 9.
        whole: Whether the parameter is a number of uses.

    Raises:
        InvalidParameter: For a number outside, or if the ε at twice the start equals the one at the start. If no
            parameter within 2⁴⁰ times the start keeps the promise, or all do; and any error of `build`.
    """
    wanted, share = non_negative(epsilon, "epsilon"), probability(delta, "delta")
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 9:
        raise InvalidParameter(f"digits is {digits!r:.60}; it must be a whole number from 1 to 9.")
    first = Fraction(max(1, round(exact(start, "start")))) if whole else positive(start, "start")
    stated: dict[Fraction, Fraction] = {}

    def excess(parameter: Fraction) -> Fraction:
        """Return by how much the list is above the promise."""
        if parameter not in stated:
            stated[parameter] = _epsilon_of(build(parameter), share) - wanted
        return stated[parameter]

    if excess(2 * first) == excess(first):
        raise InvalidParameter(
            f"The list states the same at the parameters {short(first)} and {short(2 * first)}. It must depend on the "
            "parameter: start elsewhere, or use the parameter in the list."
        )
    rises = excess(2 * first) > excess(first)
    kept, broken = _bracket(excess, first, rises=rises, whole=whole)
    unit = Fraction(1) if whole else Fraction(10) ** (math.floor(math.log10(max(kept, broken))) + 1 - digits)
    inwards = math.floor if rises else math.ceil
    good, bad = inwards(kept / unit), (math.ceil if rises else math.floor)(broken / unit)
    while abs(good - bad) > 1:
        low, high = excess(kept), excess(broken)
        gap = Fraction(1, 2) if len(stated) % 3 == 0 else -low / (high - low)
        place = good + round((bad - good) * gap)
        place = min(max(place, min(good, bad) + 1), max(good, bad) - 1)
        if excess(place * unit) <= 0:
            good, kept = place, place * unit
        else:
            bad, broken = place, place * unit
    if excess(good * unit) > 0:
        raise InvalidParameter("The list's epsilon both falls and rises with the parameter; choose another parameter.")
    return good * unit


def _bracket(
    excess: Callable[[Fraction], Fraction], first: Fraction, *, rises: bool, whole: bool
) -> tuple[Fraction, Fraction]:
    """Return a parameter that keeps the promise and one that does not, one twice the other where there is no less."""
    is_kept = excess(first) <= 0
    factor = Fraction(2) if is_kept == rises else Fraction(1, 2)
    near = first
    for _ in range(_MOST_DOUBLINGS):
        far = near * factor
        if whole and far < 1:
            raise InvalidParameter(
                "A single use is above the promise; allow a larger epsilon or delta, or take more noise."
                if rises
                else f"The promise already holds with {short(near)}; no smaller whole number is left to try."
            )
        far = Fraction(math.ceil(far)) if whole else far
        if (excess(far) <= 0) != is_kept:
            return (near, far) if is_kept else (far, near)
        near = far
    what = "every parameter keeps" if is_kept else "no parameter keeps"
    raise InvalidParameter(
        f"From {short(first)} to {short(near)} {what} the promise; start elsewhere, or promise something else."
    )


def _epsilon_of(stating: Stating, delta: Fraction) -> Fraction:
    """Return the upper end of the ε that is stated."""
    if isinstance(stating, RenyiDP):
        epsilon = stating.to_epsilon(delta=delta)
    else:
        loss = stating if isinstance(stating, LossDistribution) else distribution_of(stating)
        epsilon = loss.to_epsilon(delta).upper
    return Fraction(epsilon) if math.isfinite(epsilon) else _BEYOND
