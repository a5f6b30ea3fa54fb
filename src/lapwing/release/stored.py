"""The ledger's record of a question and its answer: its name, its charge, the numbers that were released.

A stored answer is served again for nothing, or sharpened for the difference.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lapwing.catalog.model import Catalog
from lapwing.ledger.entries import Charge, StoredAnswer
from lapwing.ledger.parts import Parts
from lapwing.ledger.state import LedgerState
from lapwing.query.measures.measures import Key
from lapwing.query.plan.parts_read import parts_read
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.quote import Quote
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.relations.relation import public_tables_of
from lapwing.release.refinement import Sharpening, sharpening
from lapwing.release.request import Access, Release, Request, Wordings
from lapwing.release.restoring import restored, stored_answer


def key_of(question: Question) -> str:
    """Name a question up to what cannot change its answer: the canonical plan and the meaning of its tables.

    The contents of the public tables that it joins are a part of it; those of the protected ones are a version. So are
    the values of its keys: another version of Lapwing may know more of them to be public, or list fewer.
    """
    # The rows of a unit follow from these, and from the links of other tables, which say what keys are unique.
    rows = "" if question.units_of_row > 1 else str(question.selection.rows_per_unit)
    public = (digest for _, digest in sorted(public_tables_of(question.selection.relation)))
    tables = (*(table.digest for table in question.tables), *public)
    keys = (*map(_values_of, question.keys), *(each.digest for each in question.combined))
    return sha256(json.dumps([str(question), rows, *tables, *keys]).encode()).hexdigest()


def _values_of(key: Key) -> list[str]:
    """Return what says which values a key has; long lists are in the catalog, of which there is a digest."""
    listed = () if key.private or len(key.domain) > MAX_VALUES else key.domain
    return [] if key.private else [str(len(key.domain)), *map(str, listed)]


def charge_of(
    priced: Quote, key: str, catalog: Catalog, principal: str, state: LedgerState, wording: Wordings | None = None
) -> Charge:
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
        wording=None if wording is None else wording(priced.question),
    )


def wording_of(request: Request) -> dict[str, object]:
    """Return what was typed, as a record (`ledger.wording`); what JSON has no form for is a text in it."""
    given, typed = request.parameters, dict[str, object](text=request.text)
    if len(given):
        named = given.items() if isinstance(given, Mapping) else enumerate(given)
        plain = {key: value if isinstance(value, bool | int | str | None) else str(value) for key, value in named}
        typed["parameters"] = plain if isinstance(given, Mapping) else list(plain.values())
    return typed if request.label is None else {**typed, "label": request.label}


def parts_charged(question: Question, state: LedgerState) -> tuple[str, ...] | None:
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
    bought: Quote
    refinement: Sharpening | None = None


def keys_of(priced: Quote) -> tuple[str, ...]:
    """Return the keys under which an answer may be kept: as it was bought before, and as it would be bought now."""
    return tuple(key_of(one.question) for one in (priced, *([] if priced.vector is None else [priced.vector.bought])))


def look_up(
    priced: Quote,
    answers: Callable[[str], Sequence[StoredAnswer]],
    access: Access,
    keys: Sequence[str] = (),
) -> Release | Purchase:
    """Return the stored answer to a question, or what is to be bought.

    Args:
        answers: Those to a key.
        keys: What `keys_of` says of it, if that is at hand.
    """
    key, *further = keys or keys_of(priced)
    if (vector := priced.vector) is not None and vector.is_as_asked and (kept := answers(key)):
        from lapwing.release.bought_before import look_up_as_asked  # here: few vectors are of the same numbers

        return look_up_as_asked(vector, key, kept)
    if vector is not None:  # `before` is the same question, and the other key is of what is bought
        before = look_up(vector.before, answers, access, (key,))
        wanted = not (isinstance(before, Release) or before.refinement)
        now = look_up(vector.bought, answers, access, further) if wanted else before
        return now if vector.is_bought or isinstance(now, Release) else before
    kept = answers(key)
    if not kept:
        if priced.question.wider is not None:
            from lapwing.release.bought_before import look_up_wider  # here: few questions had more cells

            found = look_up_wider(priced, key, access)
            if isinstance(found, Release) or not priced.question.selection.relation.sources:
                return found
        if priced.question.selection.relation.sources:
            from lapwing.release.bought_before import look_up_before  # here: few plans were others before

            return look_up_before(priced, key, access)
        return Purchase(key=key, bought=priced)
    stored = stored_answer(priced, kept)
    if stored is not None:
        return stored
    return purchase_of(priced, key, kept)


def purchase_of(priced: Quote, key: str, kept: Sequence[StoredAnswer]) -> Purchase:
    """Return what is to be bought where none of the stored answers will do: the least that sharpens one, or all."""
    further = sharpening(priced, (restored(priced.question, one, priced.loss) for one in kept))
    return Purchase(key=key, bought=priced if further is None else further.refinement.priced, refinement=further)
