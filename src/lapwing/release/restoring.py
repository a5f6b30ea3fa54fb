"""An answer that the ledger keeps, read again: whether it serves a question that is asked now, and what it holds.

What was stored once is read for ever, in every format that `payload` has written.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import chain
from typing import Any
from zlib import decompress
from zlib import error as zlib_error

import numpy as np

from lapwing.errors import InvalidParameter, LedgerFault
from lapwing.exact.arrays import ROOM, IntArray, integer_array
from lapwing.ledger.entries import StoredAnswer
from lapwing.mechanisms.additive import CHOICES, NoiseLaw
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.merged_gaussian import MergedGaussian
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.mechanisms.partitions import KeySelection
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.privacy.measures import Loss
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.one_noise import with_two_noises
from lapwing.query.pricing.quote import MECHANISMS, Quote
from lapwing.query.pricing.selection_mechanisms import KEY_SELECTIONS
from lapwing.release.cells import cells_of, columns_of
from lapwing.release.payload import AnswerContent, ChosenMeasure, format_of
from lapwing.release.refinement import as_accurate
from lapwing.release.request import Release


def stored_answer(priced: Quote, kept: Sequence[StoredAnswer]) -> Release | None:
    """Return an answer that was bought before and is at least as accurate as asked in every number, if there is one.

    The loss alone does not tell: two answers of one price may have split it differently.
    """
    before = with_two_noises(priced)
    for one in kept:
        answer = restored(priced.question, one, priced.loss)
        if _serves(answer, priced) or (before is not None and _serves(answer, before)):
            return answer
    return None


def _serves(answer: Release, priced: Quote) -> bool:
    """Tell whether a stored answer is at least as accurate as a quote's in every number, and chose as well."""
    pairs = zip(answer.mechanisms, priced.terms, strict=True)
    numbers = all(any(as_accurate(bought, asked) for asked in term.accepted) for bought, term in pairs)
    return numbers and _selects_as_well(answer, priced) and _chooses_as_well(answer, priced)


def restored(question: Question, stored: StoredAnswer, asked: Loss) -> Release:
    """Return what the ledger kept of an answer."""
    content = read(question, stored.payload)
    keys = content.keys if content.keys is not None else columns_of(cells_of(question), len(question.keys))
    return Release(
        question=question,
        mechanisms=content.mechanisms,
        selection=content.selection,
        keys=keys,
        values=content.values,
        sequence=stored.sequence,
        cost=asked.nothing(),
        stored=True,
        choice=content.choice,
    )


def _chooses_as_well(released: Release, priced: Quote) -> bool:
    """Tell whether a stored choice was made with no more noise than is asked for."""
    if priced.choosing is None:
        return True
    return released.choice is not None and released.choice.mechanism.scale <= priced.choosing.mechanism.scale


def _selects_as_well(released: Release, priced: Quote) -> bool:
    """Tell whether a stored answer selected its keys with no more noise and no less delta than is asked for."""
    if priced.key_selection is None:
        return True
    return released.selection is not None and released.selection.selects_as_well_as(priced.key_selection.mechanism)


# ---- what a payload says ---------------------------------------------------------------------------------------------


def read(question: Question, payload: str) -> AnswerContent:
    """Read what `payload.written` wrote.

    Raises:
        LedgerFault: If it is not an answer to this question.
    """
    try:
        record = json.loads(payload)
        if record["format"] != format_of(question) or record["measures"] != [
            str(measure) for measure in question.measures
        ]:
            raise _unknown()
        return _content(record)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidParameter, zlib_error):
        raise _unknown() from None


def _unknown() -> LedgerFault:
    return LedgerFault("This version of Lapwing did not write this stored result, and cannot read it; ask the curator.")


def _content(record: Mapping[str, Any]) -> AnswerContent:
    keys = tuple(tuple(map(_constant_of, column)) for column in record["keys"]) if "keys" in record else None
    name, *parameters = record.get("selection", [None])
    return AnswerContent(
        mechanisms=tuple(_noise(*parts) for parts in record["mechanisms"]),
        values=tuple(_integers(values) for values in record["values"]),
        selection=_SELECTIONS[name](*parameters) if parameters else None,
        keys=keys,
        choice=_choice_of(*record["choice"]) if "choice" in record else None,
    )


def _noise(name: str, *parameters: str) -> NoiseLaw:
    if name in CHOICES:
        from lapwing.query.pricing.choices import KINDS  # here: of few questions is anything chosen

        return KINDS[name].from_record(parameters)
    return _NOISES[name].from_record(parameters)


def _choice_of(place: int, *parameters: Any) -> ChosenMeasure:
    mechanism = GeneralisedExponential.from_record(*parameters)
    if place not in range(len(mechanism.sensitivities)):
        raise _unknown()
    return ChosenMeasure(place=place, mechanism=mechanism)


def _integers(record: Any) -> IntArray:
    """Read the integers of one measure."""
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
    NoiseAboveThreshold.name: NoiseAboveThreshold,
    ReconstructedGaussian.name: ReconstructedGaussian,
}
_SELECTIONS: Mapping[str, Callable[..., KeySelection]] = {kind.name: kind.from_record for kind in KEY_SELECTIONS}
"""What a stored answer may name; what was stored once is read for ever."""


_READERS: Mapping[str, Callable[[Any], Constant]] = {
    "plain": lambda value: value,
    "number": Fraction,
    "time": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def _constant_of(record: Sequence[Any]) -> Constant:
    kind, value = record
    return _READERS[kind](value)
