"""Numbers counted in whole steps of a public grid, so that noise is added to integers and never to floats.

Theory of operation. A number x becomes an integer: x is moved into the bounds, divided by the step, rounded half up
and moved into the whole steps within the bounds. Every value has a number of steps, so nothing can fail on data. The
arithmetic is exact; a float counts as the binary fraction that it is. The array path divides in floating point, but
decides only what its error bound proves, and leaves the rest to fractions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import ClassVar, final, overload

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.floats import float_down, float_up
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.parameters import Rational, integers, positive, rational, whole_number

Value = int | float | Decimal | Fraction | None
Array = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int64] | NDArray[np.object_]

_INT64 = range(-(1 << 63), 1 << 63)
# Quotients up to here are floats whose fractional part is known well enough to be worth a look.
_MOST_QUOTIENT = 2.0**49
_RELATIVE_ERROR = 2.0**-50
_FARTHEST = 3000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPoint:
    """A grid of the multiples of a step between two bounds, and the way there and back.

    Guarantee:
        None by itself. It makes sensitivities true: any row becomes one of the integers `lowest` to `highest`, a
        function of only that row.

    Args:
        step: Above 0.
        lower: Public bounds, with a multiple of the step between them; bounds that were read off the data are outside
            any guarantee.
        upper: As `lower`.
        missing: The value of NaN and None. By default it is the number within the bounds nearest to 0: they add
            nothing to a sum if 0 is within the bounds. All four are int, Fraction or Decimal.
    """

    name: ClassVar[str] = "fixed point"
    step: Fraction
    lower: Fraction
    upper: Fraction
    missing: Fraction | None = None

    def __post_init__(self) -> None:
        step, lower, upper = positive(self.step, "step"), rational(self.lower, "lower"), rational(self.upper, "upper")
        if math.ceil(lower / step) > math.floor(upper / step):
            raise InvalidParameter(
                f"No multiple of the step {step} lies from lower = {lower} to upper = {upper}: "
                "give a finer step, or lower below upper."
            )
        missing = min(max(Fraction(0), lower), upper) if self.missing is None else rational(self.missing, "missing")
        for name, value in (("step", step), ("lower", lower), ("upper", upper), ("missing", missing)):
            object.__setattr__(self, name, value)

    @property
    def lowest(self) -> int:
        """The least number of steps: ⌈lower/step⌉."""
        return math.ceil(self.lower / self.step)

    @property
    def highest(self) -> int:
        """The greatest number of steps: ⌊upper/step⌋."""
        return math.floor(self.upper / self.step)

    @overload
    def steps(self, values: Value) -> int: ...
    @overload
    def steps(self, values: Array | Sequence[Value]) -> IntArray: ...
    def steps(self, values: Value | Array | Sequence[Value]) -> int | IntArray:
        """Return each value as a whole number of steps: clamped, divided, rounded half up, clamped again.

        Rounding is monotone and `lowest` and `highest` are whole, so this is round(x/step) moved into them, for every
        x between −∞ and ∞. NaN and None count as `missing`; −0.0 is 0.

        Args:
            values: A number, an array of floats, integers or numbers, or a list of numbers.

        Returns:
            An int for a number, else an array of the same shape: int64 if the grid fits it, else Python ints.

        Raises:
            InvalidParameter: For a type that is not a number, with any value; bools and strings are not numbers.
        """
        if isinstance(values, np.ndarray):
            return self._of_array(values)
        if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview):
            return self._array([self._of_one(value) for value in values])
        return self._of_one(values)  # type: ignore[arg-type]  # text is refused there

    @overload
    def values(self, steps: int) -> Fraction: ...
    @overload
    def values(self, steps: IntArray | Sequence[int]) -> list[Fraction]: ...
    def values(self, steps: int | IntArray | Sequence[int]) -> Fraction | list[Fraction]:
        """Return numbers of steps, such as noisy sums, as exact multiples of the step; of several, a flat list."""
        numbers = [int(n) * self.step for n in _flat(steps)]
        return numbers[0] if isinstance(steps, Integral) else numbers

    @overload
    def decimals(self, steps: int) -> Decimal: ...
    @overload
    def decimals(self, steps: IntArray | Sequence[int]) -> list[Decimal]: ...
    def decimals(self, steps: int | IntArray | Sequence[int]) -> Decimal | list[Decimal]:
        """Return numbers of steps as decimals, exactly; of several, a flat list.

        Raises:
            InvalidParameter: If the step is no finite decimal, such as 1/3.
        """
        places = _decimal_places(self.step)
        unit = int(self.step * 10**places)
        # From text, because arithmetic on decimals rounds to the digits of the context.
        numbers = [Decimal(f"{int(n) * unit}e-{places}") for n in _flat(steps)]
        return numbers[0] if isinstance(steps, Integral) else numbers

    @overload
    def floats(self, steps: int) -> float: ...
    @overload
    def floats(self, steps: IntArray | Sequence[int]) -> NDArray[np.float64]: ...
    def floats(self, steps: int | IntArray | Sequence[int]) -> float | NDArray[np.float64]:
        """Return the float nearest to each number of steps: post-processing, for display and for further use."""
        numbers = [float(int(n) * self.step) for n in _flat(steps)]
        if isinstance(steps, Integral):
            return numbers[0]
        shape = steps.shape if isinstance(steps, np.ndarray) else (len(numbers),)
        return np.array(numbers, dtype=np.float64).reshape(shape)

    def sum_sensitivity(self, rows: int = 1, *, neighbouring: str = "add_remove") -> Sensitivity:
        """Return how far the sum of the steps of all rows moves if each unit has at most this many rows.

        A unit's rows add up to a number from min(0, rows·lowest) to max(0, rows·highest). Adding or removing the unit
        moves the sum by that number, replacing it by the difference of two such numbers.
        """
        rows = whole_number(rows, "rows", least=1)
        if neighbouring not in ("add_remove", "replace_one"):
            raise InvalidParameter(f"neighbouring is {neighbouring!r}; it must be 'add_remove' or 'replace_one'.")
        least, most = rows * min(0, self.lowest), rows * max(0, self.highest)
        return Sensitivity.from_l1(max(-least, most) if neighbouring == "add_remove" else most - least)

    def sensitivity(
        self,
        *,
        entries: int,
        l1: Rational | None = None,
        l2: Rational | None = None,
        linf: Rational | None = None,
    ) -> Sensitivity:
        """Return how far the steps of a real vector move that moves by at most a known distance: rounding is paid for.

        If an entry moves by x steps, its whole steps move by at most ⌈x⌉, because ⌊u⌋ − ⌊v⌋ is an integer below u − v +
        1. Clamping brings numbers no further apart. So an entry that moves at all moves by 1 + e with an integer e ≥ 0,
        e < x. Let R be the bound in steps, above 0, and d = `entries` the most entries that move.

        - linf: e ≤ ⌈R⌉ − 1.
        - l1: Σe < R, so E = Σe ≤ ⌈R⌉ − 1, Σ(1 + e) ≤ d + E, and Σ(1 + e)² ≤ d + 2E + E².
        - l2: Σe² < R², so Q = Σe² ≤ ⌈R²⌉ − 1, E = Σe ≤ min(⌊√(dQ)⌋, Q), Σ(1 + e) ≤ d + E, Σ(1 + e)² ≤ d + 2E + Q.

        No entry moves by more than `highest` − `lowest`, which bounds all of these too.

        Args:
            entries: Of the vector, or the most that move, if fewer.
            l1: One of them, the most that the vector moves in that norm, in units of the values.
            l2: As `l1`.
            linf: As `l1`.
        """
        entries = whole_number(entries, "entries", least=1)
        bounds = {name: bound for name, bound in (("l1", l1), ("l2", l2), ("linf", linf)) if bound is not None}
        if len(bounds) != 1:
            raise InvalidParameter(f"{len(bounds)} bounds are given; give exactly one of l1, l2 and linf.")
        ((norm, bound),) = bounds.items()
        reach = rational(bound, norm) / self.step
        if reach < 0:
            raise InvalidParameter(f"{norm} is {bound}; it must be 0 or more.")
        widest = Sensitivity.from_linf(self.highest - self.lowest, entries=entries)
        moved = _moved(norm, reach, entries) if reach else Sensitivity.from_l1(0)
        return Sensitivity(l1=min(moved.l1, widest.l1), l2_squared=min(moved.l2_squared, widest.l2_squared))

    def _of_one(self, value: Value) -> int:
        number = _read(value)
        if number is None:
            number = self.missing if self.missing is not None else self.lower
        elif isinstance(number, float):
            return self.highest if number > 0 else self.lowest
        return min(max(math.floor(number / self.step + Fraction(1, 2)), self.lowest), self.highest)

    def _of_array(self, values: Array) -> IntArray:
        kind, flat = values.dtype, values.reshape(-1)
        if kind.kind == "f" and kind.itemsize <= 8:
            return self._of_floats(flat.astype(np.float64)).reshape(values.shape)
        if kind.kind == "i" or (kind.kind == "u" and kind.itemsize < 8):
            return self._of_integers(flat.astype(np.int64)).reshape(values.shape)
        if kind != np.object_ and kind.kind != "u":
            raise InvalidParameter(f"The values are of type {kind}; give floats, integers or numbers.")
        return self._array([self._of_one(value) for value in flat.tolist()]).reshape(values.shape)

    def _of_integers(self, values: NDArray[np.int64]) -> IntArray:
        """Round x·q/p half up as ⌊(2qx + p)/2p⌋, step = p/q, in int64 where that fits."""
        p, q = self.step.numerator, self.step.denominator
        low, high = math.floor(self.lower), math.ceil(self.upper)
        if 2 * q * max(abs(low), abs(high)) + 2 * p not in _INT64:
            return self._array([self._of_one(value) for value in values.tolist()])
        return np.clip((2 * q * np.clip(values, low, high) + p) // (2 * p), self.lowest, self.highest)

    def _of_floats(self, values: NDArray[np.float64]) -> IntArray:
        """Round in floating point where that is proven to be right, and in fractions where it is not.

        x is moved into floats just outside the bounds, which changes no result. The quotient t of x by the float s
        next to the step is within 2⁻⁵⁰·|t| + 2⁻¹⁰⁰⁰ of x/step: s, and the division, are within 2⁻⁵³ of the true
        value, relatively, where no number is too small, and the latter bounds what a tiny t misses. So round(x/step)
        is round(t) if no half-odd number is within that distance of t. The fractional part of t ≤ 2⁴⁹ is exact up to
        one rounding of a number near 1, and that never crosses ½.
        """
        step = float(self.step)
        if not 2.0**-500 < step < 2.0**500 or max(-self.lowest, self.highest) > _MOST_QUOTIENT:
            return self._array([self._of_one(value) for value in values.tolist()])
        missing = np.isnan(values)
        inside = np.clip(np.where(missing, 0.0, values), float_down(self.lower), float_up(self.upper))
        quotient = inside / step
        whole = np.floor(quotient)
        part = quotient - whole
        steps = whole.astype(np.int64) + (part >= 0.5)
        if not _is_power_of_two(self.step):
            unsure = np.abs(part - 0.5) <= _RELATIVE_ERROR * (np.abs(quotient) + 1)
            doubtful, where = np.unique(inside[unsure], return_inverse=True)
            exact = np.array([self._of_one(value) for value in doubtful.tolist()], dtype=np.int64)
            steps[unsure] = exact[where]
        steps[missing] = self._of_one(None)
        return np.clip(steps, self.lowest, self.highest)

    def _array(self, steps: Iterable[int]) -> IntArray:
        if self.lowest in _INT64 and self.highest in _INT64:
            return np.array(list(steps), dtype=np.int64)
        return np.array(list(steps), dtype=np.object_)


def _moved(norm: str, reach: Fraction, entries: int) -> Sensitivity:
    """Return what `FixedPoint.sensitivity` says of a vector that moves by at most `reach` > 0 steps in a norm."""
    if norm == "linf":
        return Sensitivity.from_linf(math.ceil(reach), entries=entries)
    if norm == "l1":
        beyond = math.ceil(reach) - 1
        squared = beyond**2
    else:
        squared = math.ceil(reach**2) - 1
        beyond = min(math.isqrt(entries * squared), squared)
    return Sensitivity(l1=entries + beyond, l2_squared=entries + 2 * beyond + squared)


def _read(value: Value) -> Fraction | float | None:
    """Return a finite number as a fraction, an infinity as a float, and None for NaN and None."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral | Fraction | Decimal | float | np.floating):
        raise InvalidParameter(f"The values have a {type(value).__name__} among them; give numbers only.")
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if isinstance(value, Integral | Fraction):
        return Fraction(value)
    return Fraction(float(value)) if math.isfinite(value) else None if math.isnan(value) else float(value)


def _of_decimal(value: Decimal) -> Fraction | float | None:
    """Read a decimal; one beyond 10^±3000 is as good as infinite, or 0: no bound or step is so large or so fine."""
    if value.is_nan():
        return None
    if value.is_infinite() or (value and value.adjusted() > _FARTHEST):
        return -math.inf if value.is_signed() else math.inf
    return Fraction(value) if value and value.adjusted() >= -_FARTHEST else Fraction(0)


def _is_power_of_two(x: Fraction) -> bool:
    return x.numerator & (x.numerator - 1) == 0 and x.denominator & (x.denominator - 1) == 0


def _decimal_places(step: Fraction) -> int:
    rest, places = step.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        raise InvalidParameter(f"The step {step} is no finite decimal; ask for values or floats instead.")
    return places


def _flat(steps: int | IntArray | Sequence[int]) -> IntArray:
    """Return numbers of steps, one or several, as a row."""
    if isinstance(steps, np.ndarray):
        return integers(steps.reshape(-1), "The steps")
    return integers(steps if isinstance(steps, Sequence) else [steps], "The steps")
