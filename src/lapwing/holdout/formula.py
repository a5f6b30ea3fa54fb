"""A question as a formula of columns: what a caller's function does with them, recorded without a single row.

Theory of operation. `recorded` hands the function something in the place of the rows that has no values. What is done
with it is written down: columns taken, arithmetic, comparisons. If the function returns such a formula, Lapwing
computes it of all people at once, and the function never meets one. If it does anything else, it is no formula, which
depends on the function and on the types of columns alone; then the function is asked of each person (`values`).

Guarantee:
    A formula's value of a person is a function of that person's row, to the last bit, and it has one whatever the row
    holds. Only operations are recorded that are correctly rounded by IEEE 754, or exact, element by element: they have
    one result, whatever instructions NumPy takes for them, and none raises (a division by zero has a value, too). Sums
    over a person's columns are made in order, and never by a product of matrices. Constants may differ from column to
    column, never from person to person.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

Array = NDArray[Any]

_NUMBERS: Final = "biuf"
_EXACT: Final = frozenset(
    name
    for names in (
        "add subtract multiply divide square sqrt remainder fmod negative positive absolute sign",
        "minimum maximum fmin fmax floor ceil trunc rint isnan isinf isfinite signbit",
        "less less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor logical_not",
        "bitwise_and bitwise_or bitwise_xor invert right_shift",
    )
    for name in names.split()
)
"""Ufuncs of NumPy that are correctly rounded or exact, and total on numbers."""
_DIMENSIONS: Final = 2


class _NoFormulaError(TypeError):
    """It is done what no formula does: raised in the caller's function, and seen by nobody else."""


@final
@dataclass(slots=True)
class _Misuse:
    """Whether something was done that is no formula: a function may catch what it raised."""

    failed: bool = False

    def refuse(self) -> NoReturn:
        self.failed = True
        raise _NoFormulaError("This is not a formula of columns.")


@final
@dataclass(eq=False, repr=False, slots=True)
class Formula(NDArrayOperatorsMixin):
    """Numbers of each person: one (`dimensions` 1), or several side by side (2). Rows are its first axis."""

    record: _Misuse
    compute: Callable[[Any], Array]
    dimensions: int

    def __getitem__(self, key: Any) -> "Formula":
        """Take a column by name, or columns by their places after all rows."""
        if isinstance(key, str) and self.dimensions == 0:
            return self._then(lambda data: _column(data, key), 1)
        if self.dimensions == 1 and _is_all_then(key) and key[1] is None:
            return self._then(lambda data: self.compute(data)[:, None], 2)
        if self.dimensions == _DIMENSIONS and _is_all_then(key) and _is_place(key[1]):
            place = key[1]
            one = isinstance(place, int | np.integer)
            return self._then(lambda data: self.compute(data)[:, place], 1 if one else 2)
        return self.record.refuse()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> "Formula":
        if method != "__call__" or more or any(isinstance(one, Formula) and not one._has_values for one in inputs):
            self.record.refuse()
        if ufunc is np.matmul:
            return self._weighted(*inputs)
        name = ufunc.__name__
        if name == "power" and type(inputs[1]) is int and inputs[1] == 2:
            name, inputs = "square", inputs[:1]
        elif getattr(np, name, None) is not ufunc:
            self.record.refuse()
        if name not in _EXACT:
            self.record.refuse()
        operation: Any = getattr(np, name)
        dimensions = self._common(inputs)
        parts = [_part(one) for one in inputs]
        return self._then(lambda data: operation(*(part(data) for part in parts)), dimensions)

    def __array_function__(self, function: Any, types: Any, inputs: Any, more: Any) -> "Formula":
        if function not in (np.where, np.clip) or more or len(inputs) != 3:
            self.record.refuse()
        dimensions = self._common(inputs)
        parts = [_part(one) for one in inputs]
        return self._then(lambda data: np.asarray(function(*(part(data) for part in parts))), dimensions)

    def astype(self, kind: Any) -> "Formula":
        """Return its numbers as another type; what a whole number cannot hold is 0."""
        wanted = np.dtype(kind)
        if wanted.kind not in _NUMBERS or not self._has_values:
            self.record.refuse()
        return self._then(lambda data: _as_type(self.compute(data), wanted), self.dimensions)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.record.refuse()

    def __bool__(self) -> NoReturn:
        self.record.refuse()

    def __len__(self) -> NoReturn:
        self.record.refuse()

    def __iter__(self) -> NoReturn:
        self.record.refuse()

    def __hash__(self) -> NoReturn:
        self.record.refuse()

    def __str__(self) -> NoReturn:
        self.record.refuse()

    __repr__ = __format__ = __float__ = __int__ = __index__ = __reduce_ex__ = __array__

    def __getattr__(self, name: str) -> Any:
        self.record.refuse()

    @property
    def _has_values(self) -> bool:
        return self.dimensions > 0

    def _then(self, compute: Callable[[Any], Array], dimensions: int) -> "Formula":
        return Formula(self.record, compute, dimensions)

    def _common(self, inputs: Any) -> int:
        """Return the dimensions of a result: of formulas with as many, and constants that are alike for all people."""
        dimensions = {one.dimensions for one in inputs if isinstance(one, Formula)}
        if len(dimensions) != 1:
            self.record.refuse()
        (common,) = dimensions
        for one in inputs:
            if not isinstance(one, Formula):
                shape = np.shape(one)
                if np.asarray(one).dtype.kind not in _NUMBERS or len(shape) >= common + (shape[:1] == (1,)):
                    self.record.refuse()
        return common

    def _weighted(self, first: Any, second: Any) -> "Formula":
        """Return the sum of a person's numbers with public weights, added up in order."""
        if not isinstance(first, Formula) or first.dimensions != _DIMENSIONS or isinstance(second, Formula):
            self.record.refuse()
        weights = np.array(second)
        if weights.ndim != 1 or weights.dtype.kind not in _NUMBERS or not weights.size:
            self.record.refuse()
        return self._then(lambda data: _in_order(first.compute(data), weights), 1)


def recorded(question: Callable[[Any], Any], data: Any) -> Callable[[], Array] | None:
    """Return what computes a question of all people, if it is a formula of numbers; else None.

    Which of both it is depends on the question, and on the types and names of columns: on nothing that a person holds.
    """
    record = _Misuse()
    dimensions = _dimensions_of(data)
    if dimensions is None:
        return None
    try:
        found = question(Formula(record, lambda of: of, dimensions))
        if record.failed or type(found) is not Formula or found.record is not record or found.dimensions != 1:
            return None
        with np.errstate(all="ignore"):
            nobody = found.compute(data[:0] if isinstance(data, np.ndarray) else data.iloc[:0])
    except BaseException:  # of the function, which has seen nobody
        return None
    if nobody.shape != (0,) or nobody.dtype.kind not in _NUMBERS:
        return None
    return lambda: _computed(found, data)


def _computed(formula: Formula, data: Any) -> Array:
    with np.errstate(all="ignore"):
        return formula.compute(data)


def _dimensions_of(data: Any) -> int | None:
    """Return the dimensions of rows that formulas can be of: arrays of numbers, and pandas; 0 of columns with names."""
    if type(data) is np.ndarray:
        if data.dtype.names:
            return 0 if data.ndim == 1 else None
        return data.ndim if data.dtype.kind in _NUMBERS and data.ndim <= _DIMENSIONS else None
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return 0
    return None


def _column(data: Any, name: str) -> Array:
    """Return a column of numbers.

    Raises:
        TypeError: For another type.
    """
    if isinstance(data, np.ndarray):
        found = data[name]
    else:
        kind = data.dtypes[name]
        if type(kind).__module__.partition(".")[0] != "numpy":
            raise TypeError
        found = data[name].to_numpy()
    if found.dtype.kind not in _NUMBERS or found.ndim != 1:
        raise TypeError
    return np.asarray(found)


def _is_all_then(key: Any) -> bool:
    return type(key) is tuple and len(key) == 2 and type(key[0]) is slice and key[0] == slice(None)


def _is_place(place: Any) -> bool:
    """Tell whether it takes columns: a place, a slice, or a list of places."""
    if isinstance(place, int | np.integer) and not isinstance(place, bool):
        return True
    if type(place) is slice:
        return True
    if type(place) in (list, np.ndarray):
        places = np.asarray(place)
        return places.ndim == 1 and places.dtype.kind in "iu"
    return False


def _part(value: Any) -> Callable[[Any], Any]:
    """Return what computes a formula, or a constant as it is now."""
    if isinstance(value, Formula):
        return value.compute
    kept = value.copy() if isinstance(value, np.ndarray) else value
    return lambda _: kept


def _in_order(numbers: Array, weights: Array) -> Array:
    if numbers.shape[1] != weights.size:
        raise TypeError
    total = numbers[:, 0] * weights[0]
    for place in range(1, weights.size):
        total = total + numbers[:, place] * weights[place]
    return np.asarray(total)


def _as_type(numbers: Array, wanted: "np.dtype[Any]") -> Array:
    if numbers.dtype.kind == "f" and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        inside = (numbers >= float(limits.min)) & (numbers < float(limits.max))  # NaN is not
        return np.where(inside, numbers, 0).astype(wanted)
    return numbers.astype(wanted)
