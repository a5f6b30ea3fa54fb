"""How much a free query may compute: who pays nothing may send it again and again."""

from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation.derived import values_in
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan

MOST_FREE_NUMBERS: Final = 200_000
"""Values that a query over only public rows and constants computes."""


def require_little(plan: Plan) -> None:
    """Refuse a plan over only public rows that computes much: each of its values in each of its rows.

    Raises:
        QueryRefused: If it computes too many.
    """
    if plans_asked(plan):
        return
    numbers = numbers_of(plan)
    if numbers > MOST_FREE_NUMBERS:
        reason = f"The result needs up to {numbers:,} values, and a free query computes at most {MOST_FREE_NUMBERS:,}"
        remedy = "Keep fewer rows with WHERE, or show fewer columns."
        raise QueryRefused(reason, cause=RefusalCause.RESULT_TOO_LARGE, remedy=remedy)


def numbers_of(plan: Plan) -> int:
    """Return how many values a plan over only public rows computes."""
    if plan.composition is None or plan.composition.public:
        return 0
    return (plan.composition.most_rows or 0) * values_of_row(plan) + sum(map(numbers_of, plan.composition.sources))


def values_of_row(plan: Plan) -> int:
    """Return how many values a plan computes for each of its rows."""
    every = [output.value for output in plan.outputs] + [term.value for term in plan.order]
    every += [condition for condition in (plan.having, plan.qualify) if condition is not None]
    return sum(1 for value in every for _ in values_in(value))
