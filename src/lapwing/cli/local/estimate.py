"""`lapwing local estimate`: the share of each value, from noisy reports."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import lapwing as lw
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import complain, note
from lapwing.cli.formats import Format
from lapwing.cli.local import numbers, over_time, rappor, words
from lapwing.cli.local.pages import as_csv, moving, shares_table, with_likeliest
from lapwing.cli.local.wanted import Wanted, Whom, reports_in
from lapwing.cli.local.written import show_as, written_as
from lapwing.cli.options import between
from lapwing.errors import InvalidParameter
from lapwing.plots import bars_with_intervals

if TYPE_CHECKING:
    from lapwing.local import Collected, FrequencyEstimate, Likeliest, Randomizer
    from lapwing.local.client import Task

EXAMPLE: Final = """\b
Example:
  lapwing local estimate task.toml reports.ndjson --whom population"""
SHOWN_REASONS: Final = 5
MOST_LINE: Final = 1 << 22
"""A longer line is no report of any task; it is read, and rejected, in parts, so that it does not fill the memory."""
MOST_LIKELIHOODS: Final = 2_000_000
"""Reports times values up to which the likeliest shares are worth the time."""


Level = Annotated[
    Fraction | None,
    typer.Option(parser=between("--confidence"), metavar="NUMBER", help="Of the intervals, 0.95 unless given."),
]
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
    form: Annotated[
        Format | None, typer.Option("--format", help="A table on a terminal, CSV in a pipe.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of a task for texts: the words, one a line.", show_default=False),
    ] = None,
) -> None:
    """Estimate shares or a mean, with intervals. A line that is no report is rejected by itself."""
    require_chart(plot)
    asked = read_task(file)
    wanted = Wanted(
        asked_whom=whom,
        together=together,
        confidence=float(confidence or CONFIDENCE),
        forged=forged,
        format=written_as(form),
        plot=plot,
        candidates=words.candidates_of(candidates),
    )
    show_estimate, kind, ignored = SHOWN.get(asked.mechanism, SHARES)
    wanted.refuse(kind, *ignored)
    with reports.open("rb") as file_of_reports:
        lines = iter(lambda: file_of_reports.readline(MOST_LINE), b"")
        collected = lw.local.collect_for(lw.local.mechanism_of(asked.asked), asked, lines)
    _complain_of(collected)
    _check_forged(collected, forged)
    show_estimate(collected, wanted)


def _check_forged(collected: "Collected[Any]", forged: int) -> None:
    """Refuse what cannot be, before anything is shown."""
    most = reports_in(collected)
    if most and not 0 <= forged <= most:
        raise InvalidParameter(f"--forged is {forged}; it must be from 0 to {most:,}, the number of reports.")


def _estimate_shares(collected: "Collected[Any]", wanted: Wanted) -> None:
    found, likely = _shares(collected, wanted.candidates, wanted.confidence)
    if found is None:
        return
    rows = found.rows(wanted.confidence, whom=wanted.whom.value, together=wanted.together)
    show_as(
        wanted.format,
        table=lambda: shares_table(found, rows, likely),
        csv=lambda: as_csv(rows, likely),
        document=lambda: {**wanted.document(collected, wanted.whom), "estimates": with_likeliest(rows, likely)},
        arrow=lambda: found.to_arrow(wanted.confidence, whom=wanted.whom.value, together=wanted.together),
    )
    _notes(found, wanted.whom, wanted.confidence, wanted.together, wanted.forged)
    if wanted.plot is not None:
        title = collected.task.question
        drawn = bars_with_intervals(rows, keys=["value"], value="share", low="low", high="high", title=title)
        write_chart(drawn, wanted.plot)


Shown = tuple[Callable[["Collected[Any]", Wanted], None], str, tuple[str, ...]]
SHARES: Final[Shown] = (_estimate_shares, "shares", ())
SHOWN: Final[Mapping[str, Shown]] = {
    **dict.fromkeys(rappor.NAMES, (rappor.estimate_texts, "texts of RAPPOR", ("--whom respondents",))),
    **dict.fromkeys(numbers.NAMES, (numbers.estimate_number, "a number", ("--together", "--candidates"))),
    over_time.NAME: (
        over_time.estimate_periods,
        "a yes or no over time",
        ("--whom respondents", "--forged", "--candidates"),
    ),
    numbers.RECORD: (
        numbers.estimate_attributes,
        "several questions",
        ("--whom respondents", "--candidates"),
    ),
}
"""How the reports of a mechanism are shown, of what they are, and which options that ignores; else `SHARES`."""


def _shares(
    collected: "Collected[Any]", candidates: words.Candidates, confidence: float
) -> tuple["FrequencyEstimate | None", "Likeliest | None"]:
    """Return what reports say about shares, and the likeliest ones; None if no words were found."""
    if collected.task.mechanism in words.ESTIMATES:
        return words.ESTIMATES[collected.task.mechanism](collected, candidates, confidence), None
    if candidates is not None:
        raise InvalidParameter("The task lists what may be answered: leave out --candidates.")
    return lw.local.estimate(collected.mechanism, collected.reports, collected.task.values), _likeliest(collected)


def read_task(file: Path) -> "Task":
    """Read a task's file.

    Raises: QueryRefused if it is none, or lies.
    """
    return lw.local.read_task(file.read_bytes().decode("utf-8", errors="replace"))


def _likeliest(collected: "Collected[Randomizer]") -> "Likeliest | None":
    """Return the likeliest shares, unless finding them takes long."""
    few = len(collected.reports) * collected.mechanism.categories <= MOST_LIKELIHOODS
    return lw.local.likeliest(collected.mechanism, collected.reports) if few else None


def _complain_of(collected: "Collected[Any]") -> None:
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
        note("forged", f"{moving(forged)} a share by -{down.max():.3g} to +{up.max():.3g} at most.")
