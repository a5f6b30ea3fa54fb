"""What the ledger is told of a question and keeps of its answer: its name, its charge, the numbers that were released.

A stored answer is served again for nothing, or sharpened for the difference.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from lapwing.catalog.model import Catalog
from lapwing.ledger.entries import Charge, StoredAnswer
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.parts import Parts
from lapwing.ledger.state import State
from lapwing.privacy.measures import Loss
from lapwing.query.keys import Key
from lapwing.query.parts import parts_read
from lapwing.query.plan import Question
from lapwing.query.quote import Priced
from lapwing.query.relations.images import MAX_VALUES
from lapwing.release import payload
from lapwing.release.cells import cells_of, columns_of
from lapwing.release.refinement import Sharpening, as_accurate, is_refinable, sharpening
from lapwing.release.request import Release


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


def charge_of(priced: Priced, key: str, catalog: Catalog, principal: str, state: State) -> Charge:
    """Return what the ledger is to be asked for a question; `key` is that of `key_of`."""
    return Charge(
        key=key,
        question=str(priced.question),
        loss=priced.loss,
        catalog_digest=catalog.digest,
        principal=principal,
        version=state.version,
        delta=priced.delta,
        parts=parts_charged(priced.question, state),
    )


def parts_charged(question: Question, state: State) -> tuple[str, ...] | None:
    """Return the parts that a question is charged to, in order; None for all.

    These are the parts that it reads, if the ledger has divided the data by the parts of the question's table.
    """
    if state.division is None or state.division.parts != Parts.of_table(question.table):
        return None
    read = parts_read(question)
    return None if read is None else tuple(part for part in state.division.parts.values if part in read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What a question takes: an answer of its own, or what a stored one lacks; `key` names the question."""

    key: str
    bought: Priced
    further: Sharpening | None = None


def look_up(priced: Priced, ledger: Ledger) -> Release | Purchase:
    """Return the stored answer to a question, or what is to be bought."""
    key = key_of(priced.question)
    kept = ledger.answers(key)
    stored = stored_answer(priced, kept)
    if stored is not None:
        return stored
    # Reading many private keys to no end would take longer than to answer.
    readable = bool(kept) and is_refinable(priced)
    further = sharpening(priced, [restored(priced.question, one, priced.loss) for one in kept]) if readable else None
    return Purchase(key=key, bought=priced if further is None else further.refinement.priced, further=further)


def stored_answer(priced: Priced, kept: Sequence[StoredAnswer]) -> Release | None:
    """Return an answer that was bought before and is at least as accurate as asked in every number, if there is one.

    The loss alone does not tell: two answers of one price may have split it differently.
    """
    for one in kept:
        answer = restored(priced.question, one, priced.loss)
        pairs = zip(answer.mechanisms, priced.terms, strict=True)
        numbers = all(as_accurate(bought, term.mechanism) for bought, term in pairs)
        if numbers and _selects_as_well(answer, priced) and _chooses_as_well(answer, priced):
            return answer
    return None


def payload_of(released: Release) -> str:
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


def restored(question: Question, stored: StoredAnswer, asked: Loss) -> Release:
    """Return what the ledger kept of an answer."""
    content = payload.read(question, stored.payload)
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


def _chooses_as_well(released: Release, priced: Priced) -> bool:
    """Tell whether a stored choice was made with no more noise than is asked for."""
    if priced.choosing is None:
        return True
    return released.choice is not None and released.choice.mechanism.scale <= priced.choosing.mechanism.scale


def _selects_as_well(released: Release, priced: Priced) -> bool:
    """Tell whether a stored answer selected its keys with no more noise and no less delta than is asked for."""
    if priced.selecting is None:
        return True
    return released.selection is not None and released.selection.selects_as_well_as(priced.selecting.mechanism)
