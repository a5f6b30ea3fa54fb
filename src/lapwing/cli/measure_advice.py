"""Which privacy measure suits a planned number of questions."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from lapwing.catalog.model import Budget, Catalog
from lapwing.catalog.protection import bound_of
from lapwing.cli import figures
from lapwing.cli.console import Fitted, new_table, text
from lapwing.privacy.plans import Choice, choices

PURE: Final = "pure"


def advise(catalog: Catalog, questions: int) -> tuple[Choice, ...]:
    """Return each measure that a budget allows with its best noise for so many questions, the most accurate first.

    A question is a COUNT(*) over the catalog's table, which one unit moves by at most `max_rows_per_unit` under both
    neighbourings (`query.stability`). All get the same noise, and together they take the whole budget.
    """
    budget = catalog.budget
    every = choices(questions, catalog.tables[0].max_rows_per_unit, budget.epsilon, budget.delta - budget.delta_keys)
    best: dict[str, Choice] = {}
    for choice in every:
        best.setdefault(choice.kind, choice)
    return tuple(best.values())


def as_page(catalog: Catalog, questions: int, advised: Sequence[Choice]) -> list[RenderableType]:
    """Return the comparison for people; the catalog is the one that the advice was asked for."""
    table = catalog.tables[0]
    planned = "1 question," if questions == 1 else f"{questions:,} queries, each"
    page = new_table("measure", "promise", "noise", "± at 95 %", numbers=["± at 95 %"])
    for choice in advised:
        width = figures.margin(float(choice.half_width))
        page.add_row(
            text(choice.kind), text(_promise(catalog.budget, choice.kind)), text(NOISES[choice.noise]), text(width)
        )
    return [text(f"{planned} a COUNT of {table.name}, {bound_of([table])}:"), Text(), Fitted(page), Text()]


def verdict(advised: Sequence[Choice], taken: str, budget: Budget, *, given: bool) -> str:
    """Say which measure the catalog has, and why; `budget` is the one that the advice was asked for."""
    best = advised[0].kind
    if given and taken != best:
        return f"{taken}, as given; {best} would be more accurate."
    if given:
        return f"{taken}, as given; it is the most accurate for this plan."
    if len(advised) == 1:
        return f"{taken}, the only one without a delta; give one, such as 1e-6, to compare."
    if taken != PURE:
        return f"{taken}, the most accurate for this plan."
    unused = figures.delta(budget.delta_keys)
    return f"pure, the most accurate for this plan. It uses no delta: the catalog's is {unused}, which promises more."


NOISES: Final = {"laplace": "Laplace", "gaussian": "Gaussian"}


def _promise(budget: Budget, kind: str) -> str:
    delta: Fraction = budget.delta_keys if kind == PURE else budget.delta
    return f"epsilon {figures.epsilon(budget.epsilon)}, delta {figures.delta(delta)}"
