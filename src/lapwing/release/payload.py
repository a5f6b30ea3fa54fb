"""The ledger's copy of an answer: the released integers, the mechanisms that made them, the selected keys.

Format 1 has no selected keys and one number a cell; format 2 has them as well; format 3 has the place of a measure that
was chosen, and no numbers. All are read, in `restoring`.
"""

import json
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Final
from zlib import compress

import numpy as np

from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.partitions import KeySelection
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan.plan import Question

if TYPE_CHECKING:
    from lapwing.release.request import Release

PLAIN: Final = 1
WITH_KEYS: Final = 2
CHOICE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMeasure:
    """Which measure of a question was chosen, by its place among them, and what chose it."""

    place: int
    mechanism: GeneralisedExponential


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerContent:
    """What a stored answer holds; `keys` are the columns of the cells' private and public keys, if any are private."""

    mechanisms: tuple[NoiseLaw, ...]
    values: tuple[IntArray, ...]
    selection: KeySelection | None = None
    keys: tuple[tuple[Constant, ...], ...] | None = None
    choice: ChosenMeasure | None = None


def payload_of(released: "Release") -> str:
    """Write an answer for the ledger."""
    content = AnswerContent(
        mechanisms=released.mechanisms,
        values=released.values,
        selection=released.selection,
        keys=released.keys if released.question.private_keys else None,
        choice=released.choice,
    )
    return written(released.question, content)


def written(question: Question, content: AnswerContent) -> str:
    """Write what an answer to a question holds."""
    record: dict[str, object] = {
        "format": format_of(question),
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


def format_of(question: Question) -> int:
    """Return the format in which answers to a question are kept."""
    if question.choosing:
        return CHOICE
    return WITH_KEYS if question.private_keys else PLAIN


def _packed(values: IntArray) -> object:
    """Write one integer a cell as a list; a vector a cell with its shape, squeezed where it is of 64-bit integers."""
    if values.ndim == 1:
        return values.tolist()
    record: dict[str, object] = {"shape": values.shape}
    if values.dtype == np.int64:
        squeezed = compress(values.astype("<i8").tobytes(), level=1)
        return record | {"zlib": b64encode(squeezed).decode()}
    return record | {"integers": values.reshape(-1).tolist()}


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
