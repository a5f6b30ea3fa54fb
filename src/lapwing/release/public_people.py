"""What a mean would be if the number of people were public: a note of a price, from public facts alone.

A mean over everybody is a noisy sum over a noisy count, as who has a row is protected. Textbooks take the number n of
people as known: their mean has Laplace noise of scale 1/(εn) for values from 0 to 1. That is another promise, of
`replace_one` neighbours, and a catalog makes it with `people` (`query.derivation.known_mean`). The note says what it
would give at the same price.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.answer.notes import PUBLIC_PEOPLE
from lapwing.answer.python_values import Note
from lapwing.catalog.model import Budget, Table
from lapwing.errors import LapwingError
from lapwing.ledger.state import LedgerState
from lapwing.privacy.figures import margin
from lapwing.privacy.measures import Loss, PureDP
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import measures_of
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Output
from lapwing.query.expressions.conversion import nullable
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import CONFIDENCE, at_loss, bounds_of
from lapwing.query.pricing.quote import request as loss_of
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.relations.relation import ProtectedRows

EXAMPLE: Final = 1_000
"""People of whom the note speaks if nobody assumes a number."""


def notes_on_public_people(
    plan: Plan, price: Loss, state: LedgerState, budget: Budget, assuming_count: int | None
) -> tuple[Note, ...]:
    """Say of each mean over everybody what it would be without noise in its count; nothing of other questions.

    Args:
        price: Of the question.
        assuming_count: How many rows the means are assumed to be of.
    """
    unused = not (state.account.spent.amount or state.delta_spent or state.division is not None)
    if budget.neighbouring != "replace_one" and not unused:
        return ()  # what neighbours are is settled with the first charge
    known = dict(_means(plan, people := assuming_count or EXAMPLE))
    if not known:
        return ()
    kinds = {budget.measure: budget} | ({PureDP.kind: _pure(budget)} if unused else {})
    epsilon = price.to_epsilon(delta=budget.delta - budget.delta_keys)
    widths = {kind: _half_widths(plan, known, epsilon, each) for kind, each in kinds.items()}
    kind = min((kind for kind, found in widths.items() if found), key=lambda kind: sum(widths[kind]), default=None)
    if kind is None:
        return ()
    named = ", ".join(f"{name} {margin(float(width))}" for name, width in zip(known, widths[kind], strict=True))
    lines = " and ".join(_lines(plan, known, budget, kind))
    anew = " and begin a new ledger" if kind != budget.measure or budget.neighbouring != "replace_one" else ""
    return (
        Note(
            "part of this noise hides how many people there are. If their number is public, write "
            f"{lines} in the catalog{anew}: at {people:,} people a {kind} ledger then gives {named} for this cost",
            PUBLIC_PEOPLE,
        ),
    )


def _means(plan: Plan, people: int) -> Iterator[tuple[str, KnownMean]]:
    """Yield the means over everybody, one row each, by their names, as they are where the number is public."""
    question = plan.question
    table = question.table
    everybody = isinstance(question.selection.relation, ProtectedRows) and question.where is None
    if not everybody or question.keys or question.sets or table.link is not None or table.max_rows_per_unit != 1:
        return
    promised = frozenset(column.name for column in table.columns if column.numeric or column.type == "boolean")
    for output in plan.outputs:
        match output.value:
            case Average(total=total) if total.clamp is None and not nullable(total.argument, promised):
                yield output.name, KnownMean(total=total, people=people)


def _pure(budget: Budget) -> Budget:
    return replace(budget, measure=PureDP.kind, delta=Fraction(0), delta_keys=Fraction(0))


def _half_widths(plan: Plan, known: Mapping[str, KnownMean], epsilon: float, budget: Budget) -> tuple[Fraction, ...]:
    """Return the half-widths at 95 % of these means, with the other numbers of the question beside them."""
    budget = replace(budget, neighbouring="replace_one")
    outputs = tuple(Output(name=one.name, value=known.get(one.name, one.value)) for one in plan.outputs)
    measures = tuple(dict.fromkeys(measure for output in outputs for measure in measures_of(output.value)))
    other = Plan(
        question=replace(plan.question, measures=measures),
        keys=plan.keys,
        outputs=outputs,
        price_request=PriceRequest(),
    )
    try:
        quote = at_loss(other, bounds_of(other.question, budget), loss_of(epsilon, budget), budget, Fraction(0))
    except LapwingError:  # not every question is answered in every kind of ledger
        return ()
    terms = {term.measure: term for term in quote.terms}
    return tuple(mean.half_width(terms[mean.total].half_width(CONFIDENCE)) for mean in known.values())


def _lines(plan: Plan, known: Mapping[str, KnownMean], budget: Budget, kind: str) -> Iterator[str]:
    """Yield what the catalog lacks."""
    if kind != budget.measure:
        yield f'measure = "{kind}" and delta = 0'
    table: Table = plan.question.table
    if budget.neighbouring != "replace_one":
        yield 'neighbouring = "replace_one"'
    if table.people is None:
        yield "people = their number"
    promised = frozenset(column.name for column in table.columns if not column.nullable)
    if any(nullable(mean.total.argument, promised) for mean in known.values()):
        yield "nullable = false"
