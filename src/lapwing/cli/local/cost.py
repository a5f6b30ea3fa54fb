"""`lapwing local cost`: what it costs to answer the same question every day with fresh noise."""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

import lapwing as lw
from lapwing.cli.account import rounded
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import new_table, note, text
from lapwing.cli.local.output import aligned, show_as, written_as
from lapwing.cli.local.task_options import Epsilon, check_whole
from lapwing.cli.options import UsualFormat, amount, between
from lapwing.plots import Plot, below_each_other, lines
from lapwing.privacy.amount_texts import short

if TYPE_CHECKING:
    from lapwing.local import Repeated

EXAMPLE: Final = """\b
Examples:
  lapwing local cost --epsilon 4 --reports-a-day 1 --days 30
  lapwing local cost --epsilon 1 --days 101 --plot cost.html"""
MOST_REPORTS: Final = 100_000
"""Of one person, as the library allows."""
SHOWN: Final = (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365)
"""The days of a table, besides the last; CSV and JSON have all."""

Row = dict[str, float]


def cost(
    epsilon: Epsilon,
    reports_a_day: Annotated[int, typer.Option(metavar="COUNT", help="How many each person sends a day.")] = 1,
    days: Annotated[int, typer.Option(metavar="COUNT", help="For how many days.")] = 30,
    delta: Annotated[
        Fraction | None, amount(between("--delta"), "The delta of the tighter statement; default 1e-6.")
    ] = None,
    form: UsualFormat = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
) -> None:
    """Show what reports with fresh noise reveal together, day by day, and how often their majority is the answer.

    Some vendors state a limit of epsilon for each day. It limits only one day, and this command adds up the days.
    """
    require_chart(plot)
    check_whole("--days", days, 1, MOST_REPORTS)
    check_whole("--reports-a-day", reports_a_day, 1, MOST_REPORTS // days)
    totals = lw.local.over_days(epsilon, reports_a_day, days, Fraction(1, 10**6) if delta is None else delta)
    failure = float(totals[0].delta)
    rows = [_row(day, each) for day, each in enumerate(totals, 1)]
    document = {"epsilon": float(epsilon), "reports_a_day": reports_a_day, "delta": failure, "days": rows}
    show_as(written_as(form), table=lambda: _table(rows), rows=rows, document=lambda: document)
    note("a day", f"epsilon {short(epsilon * reports_a_day, 6)} is what a limit by day would say, on day {days} too.")
    note("tight", f"bounds on the least epsilon that holds at delta {short(totals[0].delta, 6)}, for any mechanism.")
    note("recovered", "how often the majority of a person's reports of yes or no is the true answer.")
    if plot is not None:
        write_chart(_chart(rows, float(epsilon * reports_a_day), failure), plot)


def _row(day: int, total: "Repeated") -> Row:
    return {
        "day": day,
        "reports": total.reports,
        "sum": float(total.epsilon),
        "zcdp": total.concentrated,
        "tight_lower": total.tight.lower,
        "tight": total.tight.upper,
        "recovered": total.recovered,
        "mistaken": total.mistaken,
    }


def _table(rows: Sequence[Row]) -> Table:
    """Return some of the days, with bounds rounded to the safe side."""
    names = ("day", "reports", "sum of epsilons", "zCDP", "tight", "recovered")
    table = new_table(*names, numbers=names)
    some = [row for row in rows if row["day"] in (*SHOWN, len(rows))]
    directions = {"sum": ROUND_HALF_EVEN, "zcdp": ROUND_CEILING, "tight": ROUND_CEILING}  # the sum is exact
    losses = [aligned([row[name] for row in some], direction) for name, direction in directions.items()]
    for row, *sums in zip(some, *losses, strict=True):
        counts = [f"{row[name]:,.0f}" for name in ("day", "reports")]
        table.add_row(*map(text, (*counts, *sums, _often(row))))
    return table


def _often(row: Row) -> str:
    """Return a chance of being right, with as many nines as there are, rounded down."""
    return (
        f"1 - {rounded(row['mistaken'], ROUND_CEILING)}"
        if row["mistaken"] < 1e-3
        else rounded(row["recovered"], ROUND_FLOOR)
    )


def _chart(rows: Sequence[Row], daily: float, delta: float) -> Plot:
    """Draw the totals over the days above, and how often the majority is right below."""
    said: dict[str, Callable[[Row], float]] = {
        "stated, a day": lambda row: daily,
        "sum": lambda row: row["sum"],
        f"tight, delta {delta:g}": lambda row: row["tight"],
    }
    totals = [
        {"day": row["day"], "epsilon since day 1": value(row), "statement": name}
        for name, value in said.items()
        for row in rows
    ]
    right = [{"day": row["day"], "chance": row["recovered"], "attack": "majority of the reports"} for row in rows]
    above = lines(totals, x="day", y="epsilon since day 1", series="statement", title="what one person has lost")
    below = lines(right, x="day", y="chance", series="attack", title="how often the answer of yes or no is recovered")
    return below_each_other(f"epsilon {daily:g} a day, every day", above, below)
