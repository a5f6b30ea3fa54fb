"""What was bought under the plan of an earlier version, where that counted the same with more noise.

Units that DISTINCT leaves were as many rows of a unit as it has, and are one now (`query.relations.once_a_unit`). Of
pairs of rows in an order a unit had as many as of all pairs (`query.relations.ordered_rows`). In FULL JOIN, and LEFT
JOIN along a link, the rows of both sides were added (`query.relations.set_operations`, `unit_join`). Under replace_one,
numbers that never move together had a price each (`query.pricing.row_price`). The noise of then hid more than there is
to hide. An answer of then serves if it errs by no more than what its price bought then, and is sharpened where more is
asked for. Both are post-processing of what was released and charged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lapwing.ledger.entries import StoredAnswer
from lapwing.mechanisms.noisy import SCALE_BITS
from lapwing.query.pricing.quote import Quote, at_price, bounds_of
from lapwing.query.relations.once_a_unit import rows_of_then
from lapwing.query.relations.ordered_rows import with_all_pairs
from lapwing.query.relations.relation import FilteredRows
from lapwing.release.cells import cells_of, columns_of
from lapwing.release.request import Access, Release
from lapwing.release.restoring import stored_answer
from lapwing.release.stored import Purchase, key_of, purchase_of

if TYPE_CHECKING:
    from lapwing.query.pricing.measured_vectors import MeasuredVector

AS_ROUNDED: Final = 1 - Fraction(1, 1 << SCALE_BITS - 3)
"""What is left of a share of the price where the rounding of scales is taken off.

A scale is a root, rounded up to SCALE_BITS binary digits unless it is rational: by less than 2^(1 − SCALE_BITS) of it.
Here a scale of then is computed from what the scale of now loses. That root may be rational, and below what was bought.
From 1 − 2^(3 − SCALE_BITS) of the loss, a root is larger by 2^(2 − SCALE_BITS), which is more than rounding adds.
"""


def look_up_as_asked(vector: "MeasuredVector", key: str, kept: Sequence[StoredAnswer]) -> Release | Purchase:
    """Return the stored answer to numbers that are measured themselves, as one vector, or what is to be bought.

    Answers of then, with a price for each number, have the same key. One serves where no more is asked than was paid
    for the question: so it stays free. A higher price sharpens it to what the vector has.
    """
    bought = vector.bought
    paid = bought.loss.from_amount(sum((one.loss.amount for one in kept), Fraction(0)))
    stored = stored_answer(bought, kept)
    if stored is None and bought.loss <= paid:
        stored = stored_answer(vector.before, kept)
    return purchase_of(bought, key, kept) if stored is None else stored


def look_up_before(priced: Quote, key: str, access: Access) -> Release | Purchase:
    """Return an answer that was bought under the plan of then, or what is to be bought under that of now."""
    budget, kind = access.catalog.budget, priced.loss.kind
    shares = [term.loss(kind).amount * AS_ROUNDED for term in priced.terms]
    shares += [] if priced.key_selection is None else [priced.key_selection.loss.amount * AS_ROUNDED]
    bought = Purchase(key=key, bought=priced)
    for then in _plans_of_then(priced.question.selection):
        question = replace(priced.question, selection=then)
        kept = access.ledger.answers(key_of(question))
        if not kept:
            continue
        as_then = at_price(question, bounds_of(question, budget), priced.loss, tuple(shares), priced.delta)
        stored = stored_answer(as_then, kept)
        if stored is not None:
            return replace(stored, question=priced.question)
        if bought.refinement is None:
            bought = purchase_of(priced, key, kept)
    return bought


def _plans_of_then(selection: FilteredRows) -> Iterator[FilteredRows]:
    """Yield a selection as earlier versions planned it, the last one first."""
    pairs = with_all_pairs(selection)
    if pairs != selection and pairs.rows_per_unit != selection.rows_per_unit:
        yield pairs
    then = rows_of_then(pairs)
    if then is not None:
        yield then


def look_up_wider(priced: Quote, key: str, access: Access) -> Release | Purchase:
    """Return an earlier answer with more cells, cut to those of the question; if there is none, a purchase.

    The further cells were those that no row can fall into. Leaving them out is post-processing.
    """
    question, then = priced.question, priced.question.wider
    if then is None or question.distributions or question.choosing or question.private_keys:
        return Purchase(key=key, bought=priced)
    wide = replace(question, keys=then.keys, sets=then.sets, combined=then.combined, wider=None)
    kept = access.ledger.answers(key_of(wide))
    stored = stored_answer(replace(priced, question=wide), kept) if kept else None
    if stored is None:
        return Purchase(key=key, bought=priced)
    places, cells = {cell: place for place, cell in enumerate(cells_of(wide))}, cells_of(question)
    if not all(cell in places for cell in cells):
        return Purchase(key=key, bought=priced)
    taken = [places[cell] for cell in cells]
    values = tuple(numbers[taken] for numbers in stored.values)
    return replace(stored, question=question, keys=columns_of(cells, len(question.keys)), values=values)
