"""`lapwing budget plan`: one budget divided among queries and releases that are asked several times."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures, options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.privacy.figures import NOTHING

if TYPE_CHECKING:
    from lapwing.tabulation import BudgetPlan, PlannedTable

EXAMPLE: Final = options.examples("lapwing budget plan year.toml", "lapwing budget plan year.toml --format json")


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The list of queries and releases, in TOML.", show_default=False)
    ],
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Divide one budget among the queries and releases of a year. Free, and reads no row."""
    entries, epsilon = lw.tabulation.entries_from_file(file)
    with lw.connect(catalog) as session:
        plan = lw.tabulation.plan_budget(session, entries, epsilon)
    if form is options.ReportFormatName.json:
        print_text(to_json(as_document(plan)))
        return
    show(*as_page(plan))
    note("next", "give each query and each release its epsilon, each time.")


def as_document(plan: "BudgetPlan") -> dict[str, object]:
    """Return a plan for programs."""
    return {
        "epsilon": plan.epsilon,
        "share_of_budget": plan.share_of_budget,
        "fits": plan.fits,
        "epsilon_needed": plan.epsilon_needed,
        "entries": [
            {
                "name": one.entry.name,
                "times": one.entry.times,
                "epsilon": float(one.epsilon),
                "share": one.share,
                "half_widths": {
                    table.name: {number.name: number.half_width for number in table.numbers} for table in one.tables
                },
            }
            for one in plan.entries
        ],
    }


def as_page(plan: "BudgetPlan") -> list[RenderableType]:
    """Return a plan for people."""
    fits = "" if plan.fits else "; the budget has less left"
    cost = f"epsilon {figures.epsilon(plan.epsilon)} in all, {figures.share(plan.share_of_budget)} of the budget{fits}"
    facts = [("cost", cost)]
    if plan.epsilon_needed is not None:
        facts.append(("needed", f"about epsilon {figures.size(plan.epsilon_needed)} for all wanted errors"))
    wanted = any(one.entry.is_wanted for one in plan.entries)
    columns = ["query or release", "times", "epsilon each", "share", "±", *(["wanted"] if wanted else [])]
    page = new_table(*columns, numbers=columns[1:])
    for one in plan.entries:
        first = (one.entry.name, f"{one.entry.times:,}", figures.epsilon(one.epsilon), figures.share(one.share))
        numbers = _numbers(one.tables)
        if len(numbers) > 1:
            page.add_row(*map(text, (*first, *[""] * (len(columns) - 4))))
        for name, table, half_width in numbers:
            margin = "depends on the data" if half_width is None else figures.margin(half_width)
            error = [NOTHING if table.wanted is None else figures.margin(table.wanted)] if wanted else []
            page.add_row(*map(text, (*(first if len(numbers) == 1 else (f"  {name}", "", "", "")), margin, *error)))
    return [labelled(*facts), Text(), Fitted(page)]


def _numbers(tables: "tuple[PlannedTable, ...]") -> "list[tuple[str, PlannedTable, float | None]]":
    """Return the name, the table and the error of each number."""
    return [
        (table.name if len(table.numbers) == 1 else f"{table.name}: {number.name}", table, number.half_width)
        for table in tables
        for number in table.numbers
    ]
