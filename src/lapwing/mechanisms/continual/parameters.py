"""What the mechanisms for sums over time have in common: their parameters, what comes in, and windows."""

from collections.abc import Sequence
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array
from lapwing.mechanisms.continual.mixtures import Floats
from lapwing.privacy.amounts import Number


def require_ticks(ticks: int, window: int | None) -> None:
    """Refuse what is no number of ticks, or no window among them."""
    if isinstance(ticks, bool) or not isinstance(ticks, int) or not 1 <= ticks <= 1 << 30:
        raise InvalidParameter(f"ticks is {ticks!r:.60}; it must be a whole number from 1 to 2^30.")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= ticks):
        raise InvalidParameter(f"window is {window!r:.60}; it must be a whole number from 1 to the number of ticks.")


def norm_of(norm: Number | Fraction) -> Fraction:
    """Return how much one event changes, in steps."""
    value = Fraction(norm) if isinstance(norm, int | Fraction) else Fraction(str(norm))
    if value < 1:
        raise InvalidParameter(f"norm is {norm}; an event changes whole steps, so it is at least 1.")
    return value


def changes_of(changes: Sequence[int] | IntArray, cells: int, tick: int, ticks: int) -> IntArray:
    """Return the changes of a tick, with the number of cells and before the end that they must have."""
    x = integer_array(changes)
    if x.shape != (cells,):
        raise InvalidParameter(f"Changes of shape {x.shape} were given; there are {cells} cells.")
    if tick >= ticks:
        raise InvalidParameter(f"All {ticks} ticks were released; begin another stream, which costs again.")
    return x


def in_window(so_far: Floats, earlier: list[Floats], window: int | None) -> Floats:
    """Return what came in the last `window` ticks, of the sums so far; `earlier` holds those of the window."""
    if window is None:
        return so_far
    earlier.append(so_far)
    return so_far if len(earlier) <= window else so_far - earlier.pop(0)
