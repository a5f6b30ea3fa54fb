"""`lapwing holdout`: what a sample can answer about a population, each question chosen after the answers before."""

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import RenderableType

import lapwing as lw
from lapwing.cli.characters import to_json
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import Fitted, labelled, new_table, note, on_terminal, print_text, show, text
from lapwing.cli.local.output import as_csv
from lapwing.cli.options import TableFormat, UsualFormat, amount, reader
from lapwing.errors import InvalidParameter
from lapwing.holdout import Outlook
from lapwing.privacy.figures import level

EXAMPLE: Final = """\b
Examples:
  lapwing holdout --people 1000000 --width 0.05
  lapwing holdout --people 1000000 --questions 10000
  lapwing holdout --people 20000 --questions 500 --failures 20 --plot widths.html"""
CONDITION: Final = "as long as {failures:,} guesses fail at most"


def command(
    people: Annotated[
        int, typer.Option(metavar="N", help="The number of people, drawn independently, with one row each.", min=1)
    ],
    questions: Annotated[
        int | None, typer.Option(metavar="K", help="Show the interval width of K results.", min=1)
    ] = None,
    width: Annotated[
        Fraction | None,
        amount(
            reader("--width", "above 0 and below 1", lambda value: 0 < value < 1, percent=True),
            "Instead: show how many queries reach this ±, for values from 0 to 1.",
        ),
    ] = None,
    confidence: Annotated[
        Fraction | None,
        amount(
            reader("--confidence", "above 0 and below 1", lambda value: 0 < value < 1, percent=True),
            "The confidence that all results hold at once; default 0.95.",
        ),
    ] = None,
    failures: Annotated[
        int, typer.Option(metavar="B", help="The number of guesses that may fail, where you check guesses.", min=1)
    ] = 10,
    form: UsualFormat = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"{HELP} Plot the width over the number of queries.")
    ] = None,
) -> None:
    """Show how many queries a sample can answer for its population, or how exactly. Needs no data and no catalog."""
    if (questions is None) == (width is None):
        raise InvalidParameter("Give either --questions, to see widths, or --width, to see how many: --width 0.05.")
    require_chart(plot)
    level = Fraction(95, 100) if confidence is None else confidence
    if questions is not None:
        rows = [_of(row) for row in lw.holdout.outlook(people, questions, level, failures=failures)]
    else:
        counts = lw.holdout.how_many(people, width or 0, level, failures=failures)
        rows = [
            {
                "strategy": name,
                "questions": count,
                "half_width": float(width or 0),
                "condition": _condition(name, failures),
            }
            for name, count in sorted(counts.items(), key=lambda pair: -pair[1])
        ]
    match form or (TableFormat.table if on_terminal() else TableFormat.csv):
        case TableFormat.table:
            show(*_page(people, rows, level))
        case TableFormat.csv:
            print_text(as_csv(rows))
        case TableFormat.json:
            print_text(to_json(rows))
    note("for", "people drawn independently; the analyst sees only the results. Values from 0 to 1.")
    if plot is not None:
        most = max(1000, 4 * (questions or min(250_000, max(int(str(row["questions"])) for row in rows))))
        chart = lw.holdout.width_chart(people, level, most=most, failures=failures)
        write_chart(chart, plot)


def _of(row: Outlook) -> dict[str, object]:
    fields = asdict(row)
    return {name: fields[name] for name in ("strategy", "questions", "half_width", "condition")}


def _condition(name: str, failures: int) -> str:
    return CONDITION.format(failures=failures) if name in ("thresholdout", "guess-and-check") else ""


def _page(people: int, rows: list[dict[str, object]], confidence: Fraction) -> list[RenderableType]:
    table = new_table("strategy", "queries", "±", "", numbers=("queries", "±"))
    for row in rows:
        promised, count = row["half_width"], int(str(row["questions"]))
        table.add_row(
            text(str(row["strategy"])),
            text("10⁹ or more" if count >= 10**9 else f"{count:,}"),
            text("no promise" if promised is None else f"{float(str(promised)):.4g}"),
            text(str(row["condition"])),
        )
    facts = labelled(("people", f"{people:,}"), ("holds", f"with {level(confidence)}, for all results at once"))
    return [facts, Fitted(table)]
