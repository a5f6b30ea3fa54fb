"""The least of a function that falls and then rises, on integers."""

from collections.abc import Callable
from fractions import Fraction


def least(cost: Callable[[int], Fraction], guess: int, allowed: range) -> int:
    """Return where a cost is least, going downhill from a guess by steps that shrink to 1; of equals the first met."""
    here = min(max(guess, allowed.start), allowed.stop - 1)
    best, step = cost(here), max(1, here // 2)
    while step:
        for there in (here - step, here + step):
            if there in allowed and (found := cost(there)) < best:
                here, best = there, found
                break
        else:
            step //= 2
    return here
