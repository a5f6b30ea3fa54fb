"""A trial before the charge: an answer of zeros is shown as the real one will be, so that no fault of it comes after.

Nothing of a trial is kept. It reads the plan and the noise of a question, and no data.
"""

from dataclasses import replace
from typing import Final

from lapwing.answer import Answer
from lapwing.errors import AnswerFault
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import Quote
from lapwing.release.cells import columns_of, exact_values
from lapwing.release.selecting import shown_mechanisms

TRIED: Final = set[object]()
"""The trials since the process began, or since this was cleared."""
_MOST_TRIED: Final = 4_096
_END: Final = 8
"""Public rows from either end that a trial reads."""


def try_showing(plan: Plan, priced: Quote) -> None:
    """Show an answer of a cell of zeros, and one of no cells, so that what would fail then fails before the charge.

    What runs follows from how the answer is shown and from its noise, so that each pair of these is tried once.

    Raises:
        AnswerFault: If the answer cannot be shown.
    """
    tried = _shown(plan, priced)
    if tried in TRIED or (plan.composition is not None and plan.composition.public):
        return
    try:
        for size in (0, 1):
            str(_without_numbers(plan, priced, size))
    except Exception as error:
        raise AnswerFault(
            "Lapwing could not show the result of this query, so it does not run it. Nothing was charged. This is a "
            "fault of Lapwing: please report the query."
        ) from error
    if len(TRIED) >= _MOST_TRIED:
        TRIED.clear()
    TRIED.add(tried)


def _shown(plan: Plan, priced: Quote) -> tuple[object, ...]:
    """Return what decides how an answer is shown."""
    own = (plan.outputs, plan.having, plan.qualify, plan.order, plan.limit, plan.offset, plan.question.keys)
    if plan.composition is None:
        return (*own, *shown_mechanisms(priced))
    parts = zip(plan.composition.sources, priced.sources, strict=True)
    return (*own, plan.composition.joins, *(_shown(*part) for part in parts))


def few_public_rows(plan: Plan) -> Plan:
    """Return a plan over public rows with the first and the last of them: all are of the same types.

    Queries join calendars of fifty years to a result, which takes longer than all else of a trial.
    """
    public = () if plan.composition is None else plan.composition.public
    if plan.composition is None or not public:
        return plan
    few = [replace(key, values=(*key.domain[:_END], *key.domain[_END:][-_END:])) for key in public]
    return replace(plan, composition=replace(plan.composition, public=tuple(few)))


def _without_numbers(plan: Plan, priced: Quote, size: int) -> Answer:
    """Return an answer of zeros in so many cells of keys, in one if there are no keys, and in none of private keys."""
    plan = few_public_rows(plan)
    question, composition = plan.question, plan.composition
    parts = () if composition is None else zip(composition.sources, priced.sources, strict=True)
    first = tuple(key.domain[0] for key in question.keys if key.domain)
    cells = [first] * size if len(first) == len(question.keys) else []
    cells = cells if question.keys else [()]
    return Answer(
        plan=plan,
        mechanisms=shown_mechanisms(priced),
        keys=columns_of(cells, len(question.keys)),
        values=exact_values(question, {}, cells) if priced.terms else (),
        cost=priced.loss,
        sources=[_without_numbers(source, quote, size) for source, quote in parts],
    )
