"""`lapwing local estimate` of a dyadic tree: the share of yes in every period."""

import csv
import io
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

import lapwing as lw
from lapwing.cli.charts import write_chart
from lapwing.cli.console import note, text
from lapwing.cli.formats import new_table
from lapwing.cli.local.wanted import Wanted, Whom
from lapwing.cli.local.written import as_arrow, show_as
from lapwing.plots import bars_with_intervals

if TYPE_CHECKING:
    from lapwing.local import Collected, DyadicTree
    from lapwing.local.client import Task

NAME: Final = "tree"

Row = dict[str, Any]


def estimate_periods(collected: "Collected[DyadicTree]", wanted: Wanted) -> None:
    """Show the share of yes in every period, and say for whom intervals are and which changes count."""
    rows = periods_of(collected, wanted.confidence, wanted.together)
    show_as(
        wanted.format,
        table=lambda: _table(rows),
        csv=lambda: _csv(rows),
        document=lambda: {**wanted.document(collected, Whom.population), "estimates": rows},
        arrow=lambda: as_arrow(rows),
    )
    _notes(collected.mechanism, len(rows), wanted.confidence, wanted.together)
    if wanted.plot is not None:
        title = collected.task.question
        drawn = bars_with_intervals(rows, keys=["begins"], value="share", low="low", high="high", title=title)
        write_chart(drawn, wanted.plot)


def periods_of(collected: "Collected[DyadicTree]", confidence: float, together: bool) -> list[Row]:
    """Return the share of yes in every period that reports reach, with its first day.

    Raises: InvalidParameter while that is none.
    """
    found = lw.local.estimate_over_time(collected.mechanism, collected.reports)
    return [
        {"period": row["period"], "begins": _begins(collected.task, int(row["period"])), **row}
        for row in found.rows(confidence, together=together)
    ]


def _table(rows: Sequence[Row]) -> Table:
    table = new_table("period", "begins", "share", "from", "to", numbers=("period", "share", "from", "to"))
    for row in rows:
        shown = (f"{row[name]:.4f}" for name in ("share", "low", "high"))
        table.add_row(*map(text, (str(row["period"]), row["begins"], *shown)))
    return table


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _notes(tree: "DyadicTree", reached: int, confidence: float, together: bool) -> None:
    if reached < tree.periods:
        note("so far", f"{reached} of {tree.periods} periods: of every later one a block has no reports yet.")
    each = f"each interval holds with {100 * confidence:g} %{', all at once' if together else ''}"
    note("for", f"the population that the respondents are a random sample of; {each}.")
    counted = f"the first {tree.changes} of a respondent count"
    note("changes", f"{counted}; whoever changes more often stays as they were then.")


def _begins(task: "Task", period: int) -> str:
    days = dict(task.parameters)["days"]
    return (task.opens + timedelta(days=days * (period - 1))).isoformat()
