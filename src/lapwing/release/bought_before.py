"""What was bought under the plan of an earlier version, where that counted the same with more noise.

Units that DISTINCT leaves were as many rows of a unit as it has, and are one now (`query.relations.once_a_unit`): the
noise of then hid more than there is to hide. An answer of then serves if it errs by no more than what its price bought
then, and is sharpened where more is asked for. Both are post-processing of what was released and charged.
"""

from dataclasses import replace

from lapwing.query.pricing.quote import Quote, at_price, bounds_of
from lapwing.query.relations.once_a_unit import rows_of_then
from lapwing.release.request import Access, Release
from lapwing.release.restoring import stored_answer
from lapwing.release.stored import Purchase, key_of, purchase_of


def look_up_before(priced: Quote, key: str, access: Access) -> Release | Purchase:
    """Return an answer that was bought under the plan of then, or what is to be bought under that of now."""
    then = rows_of_then(priced.question.selection)
    question = None if then is None else replace(priced.question, selection=then)
    kept = () if question is None else access.ledger.answers(key_of(question))
    if question is None or not kept:
        return Purchase(key=key, bought=priced)
    budget, kind = access.catalog.budget, priced.loss.kind
    shares = [term.loss(kind).amount for term in priced.terms]
    shares += [] if priced.selecting is None else [priced.selecting.loss.amount]
    as_then = at_price(question, bounds_of(question, budget), priced.loss, tuple(shares), priced.delta)
    stored = stored_answer(as_then, kept)
    if stored is not None:
        return replace(stored, question=priced.question)
    return purchase_of(priced, key, kept)
