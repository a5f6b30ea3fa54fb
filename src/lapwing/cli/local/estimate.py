"""`lapwing local estimate`: the share of each value, from noisy reports."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.cli.answer_formats import Format
from lapwing.cli.charts import HELP, require_chart
from lapwing.cli.console import complain
from lapwing.cli.local.estimate_options import EstimateOptions, Whom, reports_in
from lapwing.cli.local.estimate_views import SHARES, VIEWS, candidates_of
from lapwing.cli.local.output import written_as
from lapwing.cli.options import AS_USUAL, amount, between
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local.client import Task

EXAMPLE: Final = """\b
Example:
  lapwing local estimate task.toml reports.ndjson --whom population"""
SHOWN_REASONS: Final = 5
MOST_LINE: Final = 1 << 22
"""A longer line is no report of any task; it is read, and rejected, in parts, so that it does not fill the memory."""


Level = Annotated[Fraction | None, amount(between("--confidence"), "Of the intervals, 0.95 unless given.")]
CONFIDENCE: Final = Fraction("0.95")
TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task, in TOML or JSON.")]


def estimate(
    file: TaskFile,
    reports: Annotated[Path, typer.Argument(metavar="REPORTS", help="One report a line.")],
    whom: Annotated[
        Whom | None,
        typer.Option(help="Whose shares the intervals are for; respondents where both can be.", show_default=False),
    ] = None,
    together: Annotated[bool, typer.Option("--together", help="All intervals hold at once.")] = False,
    confidence: Level = None,
    forged: Annotated[int, typer.Option(metavar="COUNT", help="Also show what so many forged reports can do.")] = 0,
    form: Annotated[Format | None, AS_USUAL] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of a task for texts: the words, one a line.", show_default=False),
    ] = None,
) -> None:
    """Estimate shares or a mean, with intervals. A line that is no report is rejected by itself."""
    require_chart(plot)
    asked = read_task(file)
    options = EstimateOptions(
        chosen_whom=whom,
        together=together,
        confidence=float(confidence or CONFIDENCE),
        forged=forged,
        format=written_as(form),
        plot=plot,
        candidates=candidates_of(candidates),
    )
    view, kind, ignored = VIEWS.get(asked.mechanism, SHARES)
    options.refuse(kind, *ignored)
    with reports.open("rb") as file_of_reports:
        lines = iter(lambda: file_of_reports.readline(MOST_LINE), b"")
        collected = lw.local.collect_for(lw.local.mechanism_of(asked.asked), asked, lines)
    for line in collected.rejected[:SHOWN_REASONS]:
        complain(f"line {line.line} rejected: {line.reason}")
    if len(collected.rejected) > SHOWN_REASONS:
        complain(f"and {len(collected.rejected) - SHOWN_REASONS:,} more lines rejected")
    most = reports_in(collected)
    if most and not 0 <= forged <= most:
        raise InvalidParameter(f"--forged is {forged}; it must be from 0 to {most:,}, the number of reports.")
    view(collected, options)


def read_task(file: Path) -> "Task":
    """Read a task's file.

    Raises: QueryRefused if it is none, or lies.
    """
    return lw.local.read_task(file.read_bytes().decode("utf-8", errors="replace"))
