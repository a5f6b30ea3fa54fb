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
from itertools import chain
from typing import Any, Final
from zlib import compress, decompress
from zlib import error as zlib_error

import numpy as np

from lapwing.errors import InvalidParameter, LedgerFault
from lapwing.exact.arrays import ROOM, IntArray, integer_array
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.merged_gaussian import MergedGaussian
from lapwing.mechanisms.partitions import KeySelection
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan import Question
from lapwing.query.quote import MECHANISMS
from lapwing.query.selections import KEY_SELECTIONS

PLAIN: Final = 1
WITH_KEYS: Final = 2
CHOICE: Final = 3


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
        "mechanisms": [[mechanism.name, *mechanism.record()] for mechanism in content.mechanisms],
        "values": [_packed(values) for values in content.values],
    }
    if content.keys is not None and content.selection is not None:
        record |= {
            "keys": [[_constant(value) for value in column] for column in content.keys],
            "selection": [content.selection.name, *content.selection.record()],
        }
    if content.choice is not None:
        record["choice"] = [content.choice.place, *content.choice.mechanism.record()]
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
    name, *parameters = record.get("selection", [None])
    return Content(
        mechanisms=tuple(_NOISES[noise].from_record(numbers) for noise, *numbers in record["mechanisms"]),
        values=tuple(_integers(values) for values in record["values"]),
        selection=_SELECTIONS[name](*parameters) if parameters else None,
        keys=keys,
        choice=_choice_of(*record["choice"]) if "choice" in record else None,
    )


def _choice_of(place: int, *parameters: Any) -> Choice:
    mechanism = GeneralisedExponential.from_record(*parameters)
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


_NOISES: Mapping[str, type[NoiseLaw]] = {
    **{kind.name: kind for kind in chain(*MECHANISMS.values())},
    MergedGaussian.name: MergedGaussian,
}
_SELECTIONS: Mapping[str, Callable[..., KeySelection]] = {kind.name: kind.from_record for kind in KEY_SELECTIONS}
"""What a stored answer may name; what was stored once is read for ever."""


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
