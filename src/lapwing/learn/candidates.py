"""What a candidate for a choice must be, seen before anything is charged.

The theorems on choices have premises on candidates. A try is a draw from the same law whatever other tries found
(`random_stopping`); a prediction is a function of its row and of what was released (`model_selection`). A candidate
that keeps state which its copies share breaks the first, and one that keeps what it predicts would carry rows into what
is released. So

- each try trains a deep copy of a candidate that nobody ever trained, and a candidate is refused whose copies share
  something that can change;
- rows are predicted in other processes, by copies of the model that end with them (`predictions`).

What training keeps elsewhere, in a module, a class or a function's own variables, is seen by nothing here: it breaks
the promise.

Which candidates fail on the rows is a function of the rows, and never told. What fails whatever the rows are is found
by training up to the first charge: parameters, columns, a loss of another kind, an error in what comes before it.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from lapwing.errors import InvalidParameter, LapwingError
from lapwing.learn.paid_before import WouldBeCharged

_FIXED: Final = (
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type(None),
    type,
    Enum,
    Fraction,
    Decimal,
    np.dtype,
    np.generic,
    FunctionType,
    BuiltinFunctionType,
    ModuleType,
)
"""What cannot change, and code, whose own variables are not looked at."""
_GROUPS: Final = (tuple, frozenset)


def require_ready(place: int, candidate: Any, train: Callable[[Any], None], *, tried: str) -> None:
    """Refuse a candidate that cannot be copied, asked or trained, before anything is charged or read.

    Args:
        train: In a session in which the first charge raises `WouldBeCharged`.
        tried: What it is to be, for errors.

    Raises:
        LapwingError: What the candidate raises.
    """
    try:
        one, other = copy.deepcopy(candidate), copy.deepcopy(candidate)
    except Exception as error:
        raise _refused(place, f"be copied: {type(error).__name__}.") from None
    shared = shared_state(one, other)
    if shared is not None:
        raise _refused(
            place,
            f"be copied, because its copies share a {type(shared).__name__}, and one copy could read what another "
            f"left there. Give each copy its own.",
        )
    if not callable(getattr(candidate, "predict", None)):
        raise _refused(place, f"be {tried}: it has no method predict.")
    said = "it was trained on nothing."
    try:
        train(one)
    except WouldBeCharged:
        return
    except InvalidParameter as error:
        said = str(error).removesuffix("Nothing was charged.").rstrip()
    except LapwingError:
        raise
    except Exception as error:  # the candidate's own fault, which can be told: no row was read
        said = f"{type(error).__name__}: {error!s:.200}."
    raise _refused(place, f"be {tried}: {said}") from None


def shared_state(one: Any, other: Any) -> object | None:
    """Return something that can change and is reached from both of two objects, or None."""
    reached = {id(part): part for part in _changeable(one)}
    return next((part for part in _changeable(other) if id(part) in reached), None)


def _changeable(root: Any) -> Iterator[Any]:
    """Go through all that an object holds and that can change, itself first."""
    seen, left = dict[int, Any](), [root]
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, _FIXED):
            continue
        seen[id(part)] = part  # kept, so that no other object gets its number
        if isinstance(part, MethodType):
            left.append(part.__self__)
            continue
        if not isinstance(part, _GROUPS):
            yield part
        if isinstance(part, Mapping):
            left += [*part.keys(), *part.values()]
        elif isinstance(part, (list, set, *_GROUPS)):
            left += part
        left += getattr(part, "__dict__", {}).values()
        slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
        left += [getattr(part, name) for name in slots if hasattr(part, name)]


def _refused(place: int, why: str) -> InvalidParameter:
    return InvalidParameter(f"Candidate {place + 1} cannot {why} Nothing was charged.")
