"""`lapwing local rappor`, which writes a task for any text, and what `lapwing local estimate` does with its reports."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

import lapwing as lw
from lapwing.cli.charts import write_chart
from lapwing.cli.console import note, text
from lapwing.cli.formats import new_table
from lapwing.cli.local.days import day
from lapwing.cli.local.pages import moving
from lapwing.cli.local.ranges import check_unused, check_values, check_whole
from lapwing.cli.local.task_file import Force, Output, write_task
from lapwing.cli.local.wanted import Wanted, Whom
from lapwing.cli.local.written import show_as
from lapwing.cli.options import above_zero
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_BYTES
from lapwing.local.client.rappor import MOST_BITS, MOST_COHORTS, MOST_HASHES
from lapwing.plots import bars_with_intervals

if TYPE_CHECKING:
    from lapwing.local import BasicRappor, Collected, Rappor, RapporEstimate

EXAMPLE: Final = """\b
Examples:
  lapwing local rappor --question "Your home page?" --epsilon 1 --forever 3
    --opens 2027-01-01 --closes 2027-12-31 --output task.toml
  lapwing local estimate task.toml reports.ndjson --candidates pages.txt"""
NAMES: Final = ("rappor", "rappor-once")
BYTES: Final = 200
BITS: Final = 32
COHORTS: Final = 64
"""Of a task, unless others are given."""
MOST_DRAWN: Final = 40
"""Bars of a chart."""
MISFIT: Final = 1.5
"""From here on, other texts than the candidates have so large a share that the user should know."""

Row = dict[str, Any]
Amount = Annotated[
    Fraction,
    typer.Option(
        parser=above_zero("--epsilon"), metavar="NUMBER", help="What one report may lose.", show_default=False
    ),
]


def rappor(
    question: Annotated[str, typer.Option(metavar="TEXT", help="What is asked.", show_default=False)],
    opens: Annotated[date, typer.Option(parser=day("--opens"), metavar="DAY", help="The first day.")],
    closes: Annotated[date, typer.Option(parser=day("--closes"), metavar="DAY", help="The last day.")],
    epsilon: Amount,
    forever: Annotated[
        Fraction | None,
        typer.Option(
            parser=above_zero("--forever"),
            metavar="NUMBER",
            help="What all reports of an answer that never changes may lose. Without it, one report without memory.",
        ),
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What may be answered, if that is a list; repeat.")
    ] = None,
    most_bytes: Annotated[int, typer.Option(metavar="COUNT", help="The most bytes of an answer.")] = BYTES,
    bits: Annotated[int, typer.Option(metavar="COUNT", help="Bits of the Bloom filter.")] = BITS,
    hashes: Annotated[int, typer.Option(metavar="COUNT", help="Bits that an answer sets.")] = 1,
    cohorts: Annotated[int, typer.Option(metavar="COUNT", help="Cohorts that devices are in.")] = COHORTS,
    unit: Annotated[str, typer.Option(metavar="TEXT", help="Whose answer is hidden.")] = "one answer of one person",
    retention_days: Annotated[int, typer.Option(metavar="DAYS", help="How long reports are kept.")] = 30,
    output: Output = None,
    force: Force = False,
) -> None:
    """Write a task for RAPPOR: any text may be answered, and later be looked for by candidates.

    With --forever the device remembers; as much as --epsilon makes it send the same report every time. Several hashes
    are for compatibility: one is the most accurate. With --value there is a bit for each value and no hashing.
    """
    check_whole("--most-bytes", most_bytes, 1, MOST_BYTES)
    if value:
        shape = {"--bits": bits != BITS, "--hashes": hashes != 1, "--cohorts": cohorts != COHORTS}
        check_unused(shape | {"--most-bytes": most_bytes != BYTES}, "with --value")
    answers = tuple(value) if value else lw.local.client.Text(most_bytes)
    mechanism = _basic(epsilon, forever, value) if value else _made(epsilon, forever, bits, hashes, cohorts)
    task = lw.local.new_task(
        question, answers, mechanism, opens=opens, closes=closes, unit=unit, retention_days=retention_days
    )
    write_task(task, output, force=force)


def _made(epsilon: Fraction, forever: Fraction | None, bits: int, hashes: int, cohorts: int) -> "Rappor":
    check_whole("--hashes", hashes, 1, MOST_HASHES)
    check_whole("--bits", bits, 2 * hashes, MOST_BITS)
    check_whole("--cohorts", cohorts, 1, MOST_COHORTS)
    shape = {"bits": bits, "hashes": hashes, "cohorts": cohorts}
    if forever is None:
        return lw.local.Rappor.once(epsilon, **shape)
    if forever == epsilon:
        return lw.local.Rappor.memoised(epsilon, **shape)
    return lw.local.Rappor.full(epsilon, forever, **shape)


def _basic(epsilon: Fraction, forever: Fraction | None, values: Sequence[str]) -> "BasicRappor":
    check_values("--value", values)
    if forever is None:
        raise InvalidParameter("A list of values without memory is symmetric unary encoding: use `lapwing local task`.")
    if forever == epsilon:
        return lw.local.BasicRappor.memoised(epsilon, len(values))
    return lw.local.BasicRappor.full(epsilon, forever, len(values))


def estimate_texts(collected: "Collected[Rappor]", wanted: Wanted) -> None:
    """Write the share of each candidate, the largest first.

    Raises: InvalidParameter without candidates.
    """
    if wanted.candidates is None:
        raise InvalidParameter("Bits tell nothing without texts to look for: give --candidates FILE, one text a line.")
    texts = list(
        dict.fromkeys(unicodedata.normalize("NFC", text) for text in wanted.candidates)
    )  # as devices take them
    found = lw.local.decode(collected.mechanism, collected.reports, texts)
    rows = sorted(found.rows(wanted.confidence, together=wanted.together), key=_largest_first)
    show_as(
        wanted.format,
        table=lambda: _table(rows),
        csv=lambda: _csv(rows),
        document=lambda: {**wanted.document(collected, Whom.population), **_document(found, rows)},
        arrow=lambda: found.to_arrow(wanted.confidence, together=wanted.together),
    )
    _notes(found, wanted)
    if wanted.plot is not None:
        title = collected.task.question
        drawn = bars_with_intervals(
            rows[:MOST_DRAWN], keys=["value"], value="share", low="low", high="high", title=title
        )
        write_chart(drawn, wanted.plot)


def _largest_first(row: Row) -> float:
    return -float(row["share"])


def _table(rows: Sequence[Row]) -> Table:
    names = ("share", "from", "to", "consistent")
    table = new_table("value", *names, "", numbers=names)
    for row in rows:
        shown = ["?" if row[name] is None else f"{row[name]:.4f}" for name in ("share", "low", "high", "consistent")]
        table.add_row(*map(text, (row["value"], *shown, "" if row["seen"] else "?")))
    return table


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    names = ["value", "share", "standard_error", "low", "high", "consistent", "significance", "seen"]
    writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "seen": str(row["seen"]).lower()})
    return out.getvalue()


def _document(found: "RapporEstimate", rows: Sequence[Row]) -> dict[str, Any]:
    """Return what a document of an estimate says besides; `reports` are those that measured."""
    return {
        "reports": found.reports,
        "chosen_by": found.chosen_by,
        "candidates": found.candidates,
        "estimates": list(rows),
        "unallocated": {"share": found.unallocated, "standard_error": found.unallocated_error},
        "misfit": found.misfit,
    }


def _notes(found: "RapporEstimate", wanted: Wanted) -> None:
    """Say what was measured by what, for whom intervals are, and what is left."""
    from lapwing.local.rappor.rappor_estimate import FEW  # here, so that `lapwing --help` loads no engine

    if found.chosen_by:
        chose = f"{found.chosen_by:,} reports chose {len(found.texts):,} of {found.candidates:,} candidates"
        note("chosen", f"{chose}, and {found.reports:,} others measured them.")
    if found.few:
        note("few", f"{found.reports:,} reports are too few for intervals, and to say what is seen; {FEW} are needed.")
        note("left", f"{found.unallocated:.3g} for all other texts, without an interval.")
    else:
        held = f"each interval holds with {100 * wanted.confidence:g} %{', all at once' if wanted.together else ''}"
        note("for", f"the population that respondents are a random sample of; {held}.")
        note("left", f"{found.unallocated:.3g} ±{1.96 * found.unallocated_error:.2g} (95 %) for all other texts.")
    if found.misfit > MISFIT:
        note("misfit", f"other texts disturb: errors are {found.misfit**0.5:.2g} times noise's; list more texts.")
    if wanted.forged and found.texts:
        note("forged", f"{moving(wanted.forged)} a share by {found.forged(wanted.forged).max():.3g} at most.")
