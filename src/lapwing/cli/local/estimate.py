"""`lapwing local estimate`: the share of each value, from noisy reports."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.cli.answer_formats import Format
from lapwing.cli.charts import HELP, require_chart
from lapwing.cli.console import note
from lapwing.cli.local.estimate_options import EstimateOptions, Whom, draw_checks, reports_in
from lapwing.cli.local.estimate_views import SHARES, VIEWS, said_of
from lapwing.cli.local.output import written_as
from lapwing.cli.local.report_files import collected_from
from lapwing.cli.local.task_options import lines_of
from lapwing.cli.options import AS_USUAL, amount, between
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local.client import Task

EXAMPLE: Final = """\b
Examples:
  lapwing local estimate task.toml reports.ndjson --whom population
  lapwing local estimate task.toml reports/*.parquet"""
Level = Annotated[Fraction | None, amount(between("--confidence"), "The confidence of the intervals; default 0.95.")]
CONFIDENCE: Final = Fraction("0.95")
TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task, in TOML or JSON.")]


def estimate(
    file: TaskFile,
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS…",
            help="Files of one report a line, also .gz; - is standard input; what a collector released: .parquet, or "
            "its database as postgres://user@host/db.",
        ),
    ],
    whom: Annotated[
        Whom | None,
        typer.Option(help="The people that the intervals are for; respondents where both can be.", show_default=False),
    ] = None,
    together: Annotated[bool, typer.Option("--together", help="All intervals hold at once.")] = False,
    confidence: Level = None,
    forged: Annotated[
        int, typer.Option(metavar="COUNT", help="Also show the harm that COUNT forged reports can do.")
    ] = 0,
    refuse_uneven: Annotated[
        bool,
        typer.Option(
            "--refuse-uneven", help="Refuse reports whose groups, hash functions or bits look chosen, not drawn."
        ),
    ] = False,
    form: Annotated[Format | None, AS_USUAL] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With a task for texts: the words, one a line.", show_default=False),
    ] = None,
) -> None:
    """Estimate shares or a mean, with intervals. A line that is no report is left out."""
    require_chart(plot)
    asked = read_task(file)
    options = EstimateOptions(
        chosen_whom=whom,
        together=together,
        confidence=float(confidence or CONFIDENCE),
        forged=forged,
        format=written_as(form),
        plot=plot,
        candidates=None if candidates is None else lines_of(candidates, "--candidates"),
    )
    view, kind, ignored = VIEWS.get(asked.mechanism, SHARES)
    options.refuse(kind, *ignored)
    collected = collected_from(asked, reports)
    most = reports_in(collected)
    if most and not 0 <= forged <= most:
        raise InvalidParameter(f"--forged is {forged}; it must be from 0 to {most:,}, the number of reports.")
    uneven = [said_of(check) for check in draw_checks(collected) if check.uneven]
    if uneven and refuse_uneven:
        raise InvalidParameter(f"{uneven[0]}. Find out where the reports come from, or leave out --refuse-uneven.")
    view(collected, options)
    for sentence in uneven:
        note("uneven", f"{sentence}.")


def read_task(file: Path) -> "Task":
    """Read a task's file.

    Raises:
        QueryRefused: If it is none, or lies.
    """
    return lw.local.read_task(file.read_bytes().decode("utf-8", errors="replace"))
