"""What the ledger keeps of an answer: the released integers, the mechanisms that made them, the selected keys.

Format 1 has no selected keys and one number a cell; format 2 has them as well; format 3 has the place of a measure that
was chosen, and no numbers. All are read.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Final
from zlib import compress, decompress
from zlib import error as zlib_error

import numpy as np

from lapwing.errors import InvalidParameter, LedgerFault
from lapwing.exact.arrays import ROOM, IntArray, integer_array
from lapwing.mechanisms import (
    DiscreteLaplace,
    GeneralisedExponential,
    RoundedGaussian,
    TruncatedGeometric,
    WeightedGaussian,
)
from lapwing.mechanisms.additive import MergedGaussian, NoiseLaw
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan import Question

PLAIN: Final = 1
WITH_KEYS: Final = 2
CHOICE: Final = 3

KeySelection = WeightedGaussian | TruncatedGeometric


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which measure of a question was chosen, by its place among them, and what chose it."""

    place: int
    mechanism: GeneralisedExponential


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a stored answer holds; `keys` are the columns of the cells' private and public keys, if any are private."""

    mechanisms: tuple[NoiseLaw, ...]
    values: tuple[IntArray, ...]
    selection: KeySelection | None = None
    keys: tuple[tuple[Constant, ...], ...] | None = None
    choice: Choice | None = None


def written(question: Question, content: Content) -> str:
    """Write an answer for the ledger."""
    record: dict[str, object] = {
        "format": _format(question),
        "measures": [str(measure) for measure in question.measures],
        "mechanisms": [_mechanism(mechanism) for mechanism in content.mechanisms],
        "values": [_packed(values) for values in content.values],
    }
    if content.keys is not None and content.selection is not None:
        record |= {
            "keys": [[_constant(value) for value in column] for column in content.keys],
            "selection": _selection(content.selection),
        }
    if content.choice is not None:
        chosen = content.choice.mechanism
        record["choice"] = [content.choice.place, str(chosen.scale), str(chosen.margin), *chosen.sensitivities]
    return json.dumps(record, separators=(",", ":"))


def read(question: Question, payload: str) -> Content:
    """Read what `written` wrote.

    Raises: LedgerFault if it is not an answer to this question.
    """
    try:
        record = json.loads(payload)
        if record["format"] != _format(question) or record["measures"] != [
            str(measure) for measure in question.measures
        ]:
            raise _unknown()
        return _content(record)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidParameter, zlib_error):
        raise _unknown() from None


def _format(question: Question) -> int:
    if question.choosing:
        return CHOICE
    return WITH_KEYS if question.private_keys else PLAIN


def _unknown() -> LedgerFault:
    return LedgerFault("A stored answer is not one that this version of Lapwing wrote; ask the curator.")


def _content(record: Mapping[str, Any]) -> Content:
    keys = tuple(tuple(map(_constant_of, column)) for column in record["keys"]) if "keys" in record else None
    return Content(
        mechanisms=tuple(_MECHANISMS[name](*map(Fraction, numbers)) for name, *numbers in record["mechanisms"]),
        values=tuple(_integers(values) for values in record["values"]),
        selection=_selection_of(record["selection"]) if "selection" in record else None,
        keys=keys,
        choice=_choice_of(*record["choice"]) if "choice" in record else None,
    )


def _choice_of(place: int, scale: str, margin: str, *sensitivities: int) -> Choice:
    mechanism = GeneralisedExponential(
        scale=Fraction(scale), margin=Fraction(margin), sensitivities=tuple(sensitivities)
    )
    if place not in range(len(mechanism.sensitivities)):
        raise _unknown()
    return Choice(place=place, mechanism=mechanism)


def _packed(values: IntArray) -> object:
    """Write one integer a cell as a list; a vector a cell with its shape, squeezed where it is of 64-bit integers."""
    if values.ndim == 1:
        return values.tolist()
    record: dict[str, object] = {"shape": values.shape}
    if values.dtype == np.int64:
        squeezed = compress(values.astype("<i8").tobytes(), level=1)
        return record | {"zlib": b64encode(squeezed).decode()}
    return record | {"integers": values.reshape(-1).tolist()}


def _integers(record: Any) -> IntArray:
    """Read what `_packed` wrote."""
    if not isinstance(record, dict):
        return integer_array(record, below=ROOM)
    if "zlib" in record:
        values: IntArray = np.frombuffer(decompress(b64decode(record["zlib"])), dtype="<i8").astype(np.int64)
    else:
        values = np.array(record["integers"], dtype=object)
    return values.reshape(record["shape"])


def _mechanism(mechanism: NoiseLaw) -> list[str]:
    match mechanism:
        case DiscreteLaplace():
            return [mechanism.name, str(mechanism.scale)]
        case RoundedGaussian():
            return [mechanism.name, str(mechanism.sigma)]
        case MergedGaussian():
            return [mechanism.name, str(mechanism.sigma), str(mechanism.slack)]


_MECHANISMS: Mapping[str, Callable[..., NoiseLaw]] = {
    DiscreteLaplace.name: lambda scale: DiscreteLaplace(scale=scale),
    RoundedGaussian.name: lambda sigma: RoundedGaussian(sigma=sigma),
    MergedGaussian.name: lambda sigma, slack: MergedGaussian(sigma=sigma, slack=slack),
}


def _selection(mechanism: KeySelection) -> list[object]:
    first = mechanism.sigma if isinstance(mechanism, WeightedGaussian) else mechanism.epsilon
    return [mechanism.name, str(first), str(mechanism.delta), mechanism.max_keys, mechanism.minimum]


def _selection_of(record: Sequence[Any]) -> KeySelection:
    name, first, delta, max_keys, minimum = record
    if name == WeightedGaussian.name:
        return WeightedGaussian(sigma=Fraction(first), delta=Fraction(delta), max_keys=max_keys, minimum=minimum)
    return TruncatedGeometric(epsilon=Fraction(first), delta=Fraction(delta), max_keys=max_keys, minimum=minimum)


# A key's value with its type: JSON has no dates and no fractions.


def _constant(value: Constant) -> list[object]:
    match value:
        case bool() | str() | None:
            return ["plain", value]
        case Fraction():
            return ["number", str(value)]
        case datetime():
            return ["time", value.isoformat()]
        case _:
            return ["date", value.isoformat()]


_READERS: Mapping[str, Callable[[Any], Constant]] = {
    "plain": lambda value: value,
    "number": Fraction,
    "time": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def _constant_of(record: Sequence[Any]) -> Constant:
    kind, value = record
    return _READERS[kind](value)
