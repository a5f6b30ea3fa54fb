"""Keys alone, of which all values are public: the result follows from the catalog, and is free.

    SELECT DISTINCT plan FROM visits ORDER BY plan

BI tools send such queries for the lists of their filters. A plan that asks nothing is never charged. So no limit on the
least that a query costs refuses it, and no ledger grows with it.
"""

from dataclasses import replace

from lapwing.query.bind.free_work import MOST_FREE_NUMBERS, values_of_row
from lapwing.query.derivation.node import Output
from lapwing.query.derivation.source_values import SourceValue
from lapwing.query.measures.measures import Key
from lapwing.query.plan.combined_keys import cells_over
from lapwing.query.plan.composition import MOST_FREE_ROWS, Composition
from lapwing.query.plan.plan import Plan, Question


def without_rows(plan: Plan) -> Plan:
    """Return the plan that shows public keys as constants; other plans, and those that compute much, unchanged.

    Guarantee:
        PureDP(0) for all neighbours: it has no leaf that touches data. Its rows are the combinations of public values.
        They follow from the text, the catalog and public files.
    """
    question = plan.question
    if not question.keys or question.private_keys or question.measures or plan.constants or plan.searches:
        return plan
    rows = question.combinations
    if rows > MOST_FREE_ROWS or rows * values_of_row(plan) > MOST_FREE_NUMBERS:
        return plan
    cells = cells_over(question.keys, question.sets or (question.keys,), question.combined)
    keys = tuple(
        Key(expression=key.expression, values=values)
        for key, values in zip(question.keys, zip(*cells, strict=True), strict=True)
    )
    nothing = Question(selection=question.selection, keys=(), measures=())
    shown = replace(plan, question=nothing, composition=Composition(sources=(), joins=(), public=keys))
    return Plan(
        question=nothing,
        keys=(),
        outputs=tuple(Output(name=one.name, value=SourceValue(source=0, value=one.value)) for one in plan.outputs),
        price_request=plan.price_request,
        explain=plan.explain,
        composition=Composition(sources=(shown,), joins=()),
        moment=plan.moment,
    )
