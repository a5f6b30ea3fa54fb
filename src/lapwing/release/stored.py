"""What the ledger keeps of answers: served again for nothing, or sharpened for the difference."""

import json
from dataclasses import dataclass
from hashlib import sha256

from lapwing.ledger.ledger import Ledger
from lapwing.ledger.records import StoredAnswer
from lapwing.mechanisms import TruncatedGeometric, WeightedGaussian
from lapwing.privacy.measures import Loss
from lapwing.query.calibrate import Priced
from lapwing.query.keys import Key
from lapwing.query.plan import Question
from lapwing.query.relations.images import MAX_VALUES
from lapwing.release import payload
from lapwing.release.cells import cells_of, columns_of
from lapwing.release.refinement import Refinement, as_accurate, is_refinable, refinement
from lapwing.release.released import Released


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a question takes: an answer of its own, or what a stored one lacks."""

    bought: Priced
    further: "Sharpening | None" = None


def offered(priced: Priced, ledger: Ledger) -> Released | Offer:
    """Return the stored answer to a question, or what is to be bought."""
    stored = stored_answer(priced, ledger)
    if stored is not None:
        return stored
    further = sharpening(priced, ledger)
    return Offer(bought=priced if further is None else further.refinement.priced, further=further)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpening:
    """A stored answer, and what is still to be bought to make it as accurate as is wanted."""

    stored: Released
    refinement: Refinement


def sharpening(priced: Priced, ledger: Ledger) -> Sharpening | None:
    """Return the stored answer that takes the least to be sharpened, if that costs less than an answer afresh."""
    if not is_refinable(priced):  # reading many keys to no end takes longer than to answer
        return None
    found = []
    for answer in ledger.answers(key_of(priced.question)):
        stored = restored(priced.question, answer, priced.loss)
        needed = refinement(priced, stored.mechanisms)
        if needed is not None and needed.priced.loss < priced.loss:
            found.append(Sharpening(stored=stored, refinement=needed))
    return min(found, key=lambda further: further.refinement.priced.loss.amount, default=None)


def key_of(question: Question) -> str:
    """Name a question up to what cannot change its answer: the canonical plan and the meaning of its tables.

    The contents of the public tables that it joins are a part of it; those of the protected ones are a version. So are
    the values of its keys: another version of Lapwing may know more of them to be public, or list fewer.
    """
    # The rows of a unit follow from these, and from the links of other tables, which say what keys are unique.
    rows = "" if question.units_of_row > 1 else str(question.selection.rows_per_unit)
    meaning = [str(question), rows, *(table.digest for table in question.tables), *question.public_contents]
    return sha256(json.dumps([*meaning, *map(_values_of, question.keys)]).encode()).hexdigest()


def _values_of(key: Key) -> list[str]:
    """Return what says which values a key has; long lists are in the catalog, of which there is a digest."""
    if key.private:
        return []
    return [str(len(key.domain)), *(map(str, key.domain) if len(key.domain) <= MAX_VALUES else ())]


def payload_of(released: Released) -> str:
    """Write an answer for the ledger."""
    private = bool(released.question.private_keys)
    content = payload.Content(
        mechanisms=released.mechanisms,
        values=released.values,
        selection=released.selection,
        keys=released.keys if private else None,
        choice=released.choice,
    )
    return payload.written(released.question, content)


def restored(question: Question, stored: StoredAnswer, asked: Loss) -> Released:
    """Return what the ledger kept of an answer."""
    content = payload.read(question, stored.payload)
    keys = content.keys if content.keys is not None else columns_of(cells_of(question), len(question.keys))
    return Released(
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


def stored_answer(priced: Priced, ledger: Ledger) -> Released | None:
    """Return an answer that was bought before and is at least as accurate as asked in every number, if there is one.

    The loss alone does not tell: two answers of one price may have split it differently.
    """
    for answer in ledger.answers(key_of(priced.question)):
        released = restored(priced.question, answer, priced.loss)
        pairs = zip(released.mechanisms, priced.terms, strict=True)
        numbers = all(as_accurate(bought, term.mechanism) for bought, term in pairs)
        if numbers and _selects_as_well(released, priced) and _chooses_as_well(released, priced):
            return released
    return None


def _chooses_as_well(released: Released, priced: Priced) -> bool:
    """Tell whether a stored choice was made with no more noise than is asked for."""
    if priced.choosing is None:
        return True
    return released.choice is not None and released.choice.mechanism.scale <= priced.choosing.mechanism.scale


def _selects_as_well(released: Released, priced: Priced) -> bool:
    """Tell whether a stored answer selected its keys with no more noise and no less delta than is asked for."""
    if priced.selecting is None:
        return True
    match released.selection, priced.selecting.mechanism:
        case WeightedGaussian() as bought, WeightedGaussian() as asked:
            return bought.sigma <= asked.sigma and bought.delta >= asked.delta
        case TruncatedGeometric() as bought, TruncatedGeometric() as asked:
            return bought.epsilon >= asked.epsilon and bought.delta >= asked.delta
        case _:
            return False
