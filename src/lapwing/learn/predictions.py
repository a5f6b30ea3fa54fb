"""What a model predicts of rows that were read: private, and total on whatever the model does.

Theory of operation. A score adds up what each row adds, within bounds. For that to be so, a prediction must be a
function of its unit's rows and of released numbers: to the last bit, and for every content of the rows.

*A caller's model* is asked of one unit at a time, each time in a process of its own that starts from the same state
(`isolation`). Where it raises, dies, or does not return a prediction for each row, none of the unit's rows has one; a
single prediction that is NaN, or none of the classes, is none for that row. Who scores takes the worst for these.

*Our own models* predict all rows at once, in this process. Each is proven row-local, bit for bit:

- features are made of a row by a subtraction, a division and a comparison each (`columns.Feature.of`). These are
  correctly rounded by IEEE 754, so that they have one result, whatever instructions a library takes for them;
- `linear`, `logistic`, `pate.LeastSquares`: `parameters.times` adds up products, column by column, each step correctly
  rounded. A matrix product has no such proof, and differs (`tests/learn/test_predictions.py` counts how often);
- `naive_bayes`: differences, squares and quotients, column by column, or entries of a table; `argmax` compares;
- `tree`, `additive`: whole numbers, compared and looked up;
- `deep`: a compiled loop that takes one row after the other, in one shape (`deep.networks.row_scores`), of networks
  that call nothing back.

None of them raises by what a row holds. Numbers are finite, between bounds, and never NaN (`columns_of`); a category
that is not listed is None, which a model of numbers refuses, and it is found out before the charge: the row that it is
tried on has None. A model is ours if it is of one of our types, and holds nothing but what our own code puts there:
numbers, texts, arrays of numbers, and our own values. If anything else is in it, it is a caller's, and so is the model.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np

from lapwing.engines import FAILED
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.learn.columns import Category, Feature, Floats
from lapwing.learn.unit_rows import GRID, Integers, UnitRows, UnitRowsRequest
from lapwing.machine.isolation import Isolated

Own = TypeVar("Own", bound=type)
Check = Callable[[Any], bool]
_OWN_TYPES: Final = dict[type, Check]()
_PLAIN: Final = (type(None), bool, int, float, str, Fraction, np.float64, np.int64)
_NUMERIC: Final = "biuf"
_NOT_FINITE: Final = "it does not predict a finite number"
_NOT_USED: Final = "cost_"
"""What no prediction is made of."""


class Model(Protocol):
    """What predicts: of a caller, whatever it does; it is asked of the rows of one unit at a time."""

    def predict(self, data: Any, /) -> Any:
        """Return a prediction for each row."""
        ...


class Predicting(Protocol):
    """Predicts private rows."""

    def __call__(self, units: UnitRows, /) -> Floats:
        """Return of each row the place of the class that it is told, or a number; NaN where there is none."""
        ...


def row_local(own: Own, check: Check | None = None) -> Own:
    """Register a type of ours: of models whose predictions are proven above, or of values that such a model holds.

    Args:
        check: Tells whether what a model of this type predicts with is ours; None looks at its fields.
    """
    _OWN_TYPES[own] = check or _holds_plain_values
    return own


def is_row_local(model: Any) -> bool:
    """Tell whether a model is one of ours, and nothing in it is a caller's."""
    check = _OWN_TYPES.get(type(model))
    return check is not None and check(model)


def _holds_plain_values(own: Any) -> bool:
    """Look at what fitting put into a model, or at all that a value holds; another attribute would be a caller's."""
    made = fields(own)
    if not vars_of(own) <= {one.name for one in made}:
        return False
    used = [one.name for one in made if not one.init] or [one.name for one in made]
    return all(_is_plain(getattr(own, name)) for name in used if name != _NOT_USED)


def vars_of(own: Any) -> set[str]:
    """Return the names of the attributes that an object has for itself; one with slots has none beside its fields."""
    return set(getattr(own, "__dict__", {}))


def _is_plain(part: Any) -> bool:
    kind = type(part)
    if kind in _PLAIN:
        return True
    if kind is np.ndarray:
        return part.dtype.kind in _NUMERIC
    if kind in (tuple, list):
        return all(map(_is_plain, part))
    if kind is dict:
        return all(_is_plain(one) and _is_plain(other) for one, other in part.items())
    return is_row_local(part)


row_local(Feature)


# ---- asking ----------------------------------------------------------------------------------------------------------


@contextmanager
def predicting(model: Model, what: UnitRowsRequest, names: Sequence[str]) -> Iterator[Predicting]:
    """Return what predicts rows by a model, which is ours or is asked unit by unit."""
    if is_row_local(model):
        yield lambda units: _at_once(model, units, what, names)
        return
    with Isolated(_asked(model, what)) as isolated:
        yield lambda units: _unit_by_unit(isolated, units, what, names)


def require_predictions(model: Model, what: UnitRowsRequest, names: Sequence[str]) -> None:
    """Refuse a model that cannot predict such rows: it tries one that nobody has.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    nobody = UnitRows(
        features=np.zeros((1, len(what.features)), dtype=np.int64),
        target=np.zeros(1, dtype=np.int64),
        starts=np.zeros(1, dtype=np.int64),
    )
    data = columns_of(nobody, what, names)
    if is_row_local(model):
        why = _own_reason(model, data, what)
    else:
        with Isolated(_asked(model, what, finite=True)) as isolated:
            why = isolated.trial(data, 1)
    if why is not None:
        raise InvalidParameter(
            f"The model cannot predict from {', '.join(names)}: {why.rstrip('.')}. Nothing was charged."
        )


def _own_reason(model: Model, data: Any, what: UnitRowsRequest) -> str | None:
    """Return why a model of ours predicts nothing.

    Raises:
        InvalidParameter: As the model does.
    """
    try:
        told = _told(type(model).predict(model, data), what)
    except InvalidParameter:
        raise
    except Exception as error:
        return type(error).__name__
    return None if what.target is None or math.isfinite(told[0]) else _NOT_FINITE


def _at_once(model: Model, units: UnitRows, what: UnitRowsRequest, names: Sequence[str]) -> Floats:
    found = None
    try:
        with np.errstate(all="ignore"):
            found = _told(type(model).predict(model, columns_of(units, what, names)), what)
    except Exception:  # by no row, as is proven above: by the memory that so many of them take
        found = None
    if found is None or found.shape != units.target.shape:
        raise EngineFault(FAILED)
    return found


def _unit_by_unit(isolated: Isolated, units: UnitRows, what: UnitRowsRequest, names: Sequence[str]) -> Floats:
    found = np.full(units.target.size, np.nan)
    for start, size in zip(units.starts.tolist(), units.sizes.tolist(), strict=True):
        own = slice(start, start + size)
        found[own] = isolated.ask(_columns(units.features[own], what, names), size)
    return found


def _asked(model: Model, what: UnitRowsRequest, *, finite: bool = False) -> Callable[[Any], Floats]:
    """Return what asks a model of the rows of one unit.

    Args:
        finite: Whether to insist on a number for each.
    """

    def ask(data: Any) -> Floats:
        told = _told(model.predict(data), what)
        if finite and what.target is not None and not np.isfinite(told).all():
            raise ValueError(_NOT_FINITE)
        return told

    return ask


def _told(predicted: Any, what: UnitRowsRequest) -> Floats:
    """Return predictions as places of classes, NaN where it is none of them; or as numbers."""
    if what.target is not None:
        return np.asarray(predicted, dtype=np.float64)
    return np.array([_place(one, what.classes) for one in predicted], dtype=np.float64)


def _place(one: Any, classes: Sequence[Category]) -> float:
    return next((float(place) for place, other in enumerate(classes) if bool(one == other)), math.nan)


# ---- rows as a model takes them --------------------------------------------------------------------------------------


def columns_of(units: UnitRows, what: UnitRowsRequest, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of columns, as a model takes them, of rows that were read: private."""
    return _columns(units.features, what, names)


def _columns(matrix: Integers, what: UnitRowsRequest, names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: _values(name, matrix, what) for name in names}


def _values(name: str, matrix: Integers, what: UnitRowsRequest) -> list[Any]:
    places = [place for place, feature in enumerate(what.features) if feature.column == name]
    own = [what.features[place] for place in places]
    if own[0].category is None:
        steps = matrix[:, places[0]] / GRID
        return cast("list[Any]", (float(own[0].centre) + float(own[0].spread) * steps).tolist())
    there = matrix[:, places] > 0
    named, listed = [feature.category for feature in own], (there.sum(axis=1) > 0).tolist()
    return [named[place] if one else None for place, one in zip(there.argmax(axis=1).tolist(), listed, strict=True)]


# ---- what a prediction adds to a score -------------------------------------------------------------------------------


def right_rows(predicted: Floats, target: Integers) -> Integers:
    """Return 1 of each row whose class is told rightly, else 0: also where there is no prediction."""
    return cast(Integers, (predicted == target).astype(np.int64))


def scaled_errors(predicted: Floats, target: Integers, aim: Feature) -> Integers:
    """Return each row's error without its sign, in parts of 1/GRID of the target's spread, from 0 to 2·GRID.

    Where there is no prediction it is 2·GRID, the largest that any row can have.
    """
    with np.errstate(all="ignore"):
        scaled = (predicted - float(aim.centre)) / float(aim.spread)
    known = ~np.isnan(scaled)
    near = np.rint(np.clip(np.where(known, scaled, 0.0), -1, 1) * GRID).astype(np.int64)
    return cast(Integers, np.where(known, np.abs(near - target), 2 * GRID))
