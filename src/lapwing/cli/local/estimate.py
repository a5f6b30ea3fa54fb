"""`lapwing local estimate`: the share of each value, from noisy reports."""

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.cli.console import complain, note, on_terminal, print_bytes, print_text, show
from lapwing.cli.fitting import Fitted
from lapwing.cli.formats import Format, to_json
from lapwing.cli.local.pages import as_csv, shares_document, shares_table
from lapwing.cli.options import between
from lapwing.plots import bars_with_intervals

if TYPE_CHECKING:
    from lapwing.local import Collected, FrequencyEstimate, Likeliest
    from lapwing.local.client import Task

EXAMPLE: Final = """\b
Example:
  lapwing local estimate task.toml reports.ndjson --whom population"""
SHOWN_REASONS: Final = 5
MOST_LINE: Final = 1 << 22
"""A longer line is no report of any task; it is read, and rejected, in parts, so that it does not fill the memory."""
MOST_LIKELIHOODS: Final = 2_000_000
"""Reports times values up to which the likeliest shares are worth the time."""


class Whom(StrEnum):
    """Whose shares an interval is for."""

    respondents = "respondents"
    population = "population"


Level = Annotated[
    Fraction | None,
    typer.Option(parser=between("--confidence"), metavar="NUMBER", help="Of the intervals, 0.95 unless given."),
]
CONFIDENCE: Final = Fraction("0.95")
TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task, in TOML or JSON.")]


def estimate(
    file: TaskFile,
    reports: Annotated[Path, typer.Argument(metavar="REPORTS", help="One report a line.")],
    whom: Annotated[Whom, typer.Option(help="Whose shares the intervals are for.")] = Whom.respondents,
    together: Annotated[bool, typer.Option("--together", help="All intervals hold at once.")] = False,
    confidence: Level = None,
    forged: Annotated[int, typer.Option(metavar="COUNT", help="Also show what so many forged reports can do.")] = 0,
    form: Annotated[
        Format | None, typer.Option("--format", help="A table on a terminal, CSV in a pipe.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a Vega-Lite chart.")] = None,
) -> None:
    """Estimate the share of each value, with intervals. A line that is no report is rejected by itself."""
    asked = read_task(file)
    with reports.open("rb") as file_of_reports:
        collected = lw.local.collect(asked, iter(lambda: file_of_reports.readline(MOST_LINE), b""))
    _complain_of(collected)
    found = lw.local.estimate(collected.mechanism, collected.reports, asked.values)
    level = float(confidence or CONFIDENCE)
    rows = found.rows(level, whom=whom.value, together=together)
    likely = _likeliest(collected)
    match form or (Format.table if on_terminal() else Format.csv):
        case Format.table:
            show(Fitted(shares_table(found, rows, likely)))
        case Format.csv:
            print_text(as_csv(rows, likely))
        case Format.json:
            print_text(to_json(shares_document(collected, rows, likely)))
        case Format.arrow:
            from lapwing.documents.answers import arrow_stream  # here, so that `lapwing --help` loads no engine

            print_bytes(arrow_stream(found.to_arrow(level, whom=whom.value, together=together)))
    _notes(found, whom, level, together, forged)
    if plot is not None:
        drawn = bars_with_intervals(rows, keys=["value"], value="share", low="low", high="high", title=asked.question)
        plot.write_text(to_json(drawn.to_dict()), encoding="utf-8")
        note("written", str(plot))


def read_task(file: Path) -> "Task":
    """Read a task's file.

    Raises: QueryRefused if it is none, or lies.
    """
    return lw.local.read_task(file.read_bytes().decode("utf-8", errors="replace"))


def _likeliest(collected: "Collected") -> "Likeliest | None":
    """Return the likeliest shares, unless finding them takes long."""
    few = len(collected.reports) * collected.mechanism.categories <= MOST_LIKELIHOODS
    return lw.local.likeliest(collected.mechanism, collected.reports) if few else None


def _complain_of(collected: "Collected") -> None:
    rejected = collected.rejected
    for line in rejected[:SHOWN_REASONS]:
        complain(f"line {line.line} rejected: {line.reason}")
    if len(rejected) > SHOWN_REASONS:
        complain(f"and {len(rejected) - SHOWN_REASONS:,} more lines rejected")


def _notes(found: "FrequencyEstimate", whom: Whom, confidence: float, together: bool, forged: int) -> None:
    """Say for whom the intervals are, what noise alone makes, and what forged reports can do."""
    whose = "those who sent a report" if whom is Whom.respondents else "the population they are a random sample of"
    note("for", f"{whose}; each interval holds with {100 * confidence:g} %{', all at once' if together else ''}.")
    band = float(found.noise_band(confidence).max())
    note("noise", f"a share below {band:.3g} cannot be told from 0.")
    if forged:
        down, up = found.forged(forged)
        note("forged", f"{forged:,} forged reports move a share by -{down.max():.3g} to +{up.max():.3g} at most.")
