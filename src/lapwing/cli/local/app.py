"""`lapwing local`: the respondent adds the noise. Tasks, reports, estimates, and advice on mechanisms."""

from collections.abc import Callable
from datetime import date
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import typer

import lapwing as lw
from lapwing.cli.console import note, print_text, show
from lapwing.cli.fitting import Fitted
from lapwing.cli.formats import to_json
from lapwing.cli.local import estimate as estimating
from lapwing.cli.local.pages import advice_document, advice_table
from lapwing.cli.options import Report, above_zero, between
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.exact.entropy import SYSTEM

EXAMPLE: Final = """\b
Examples:
  lapwing local advise --epsilon 1 --values 10 --respondents 1000
  lapwing local report task.toml --answer yes"""
ADVISE: Final = """\b
Examples:
  lapwing local advise --epsilon 1 --values 10 --respondents 1000
  lapwing local advise --epsilon 1 --values 2 --within 0.03
  lapwing local advise --respondents 500 --values 2 --within 0.1"""
TASK: Final = """\b
Example:
  lapwing local task --question "Have you cheated in an exam?" --value no --value yes
    --epsilon 1 --opens 2027-01-01 --closes 2027-01-31 --output task.toml"""
REPORT: Final = """\b
Example:
  lapwing local report task.toml --answer yes --output reports.ndjson"""

app = typer.Typer(
    help="Ask where nobody is trusted: the respondent adds the noise.", epilog=EXAMPLE, rich_markup_mode=None
)


class Kind(StrEnum):
    """A mechanism, or the most accurate one."""

    best = "best"
    binary = "binary"
    k_ary = "k-ary"
    subset = "subset"
    optimised_unary = "optimised-unary"
    symmetric_unary = "symmetric-unary"
    hashing = "hashing"


def _day(option: str) -> Callable[[str], date]:
    def read(text: str) -> date:
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise InvalidParameter(f"{option} is {text[:60]!r}; it must be a day, such as 2027-01-31.") from None

    return read


Epsilon = Annotated[
    Fraction | None,
    typer.Option(parser=above_zero("--epsilon"), metavar="NUMBER", help="What one report may lose."),
]


@app.callback()
def local() -> None:
    """Ask where nobody is trusted: the respondent adds the noise."""


@app.command(epilog=ADVISE, short_help="Compare all mechanisms, or say what an accuracy takes.")
def advise(
    values: Annotated[int, typer.Option(metavar="COUNT", help="How many values may be answered.", show_default=False)],
    epsilon: Epsilon = None,
    respondents: Annotated[int | None, typer.Option(metavar="COUNT", help="How many will answer.")] = None,
    within: Annotated[
        Fraction | None,
        typer.Option(
            parser=between("--within"),
            metavar="NUMBER",
            help="Instead of --respondents or --epsilon: the wanted half-width, such as 0.03.",
        ),
    ] = None,
    confidence: estimating.Level = None,
    form: Annotated[Report, typer.Option("--format", help="How to write it.")] = Report.table,
) -> None:
    """Compare all mechanisms by their exact error, or say how many respondents or what epsilon an accuracy takes.

    Give two of --epsilon, --respondents and --within. An accuracy is that of every share of a population of which the
    respondents are a random sample, whatever the shares are.
    """
    if [epsilon, respondents, within].count(None) != 1:
        raise InvalidParameter("Give two of --epsilon, --respondents and --within: such as --epsilon 1 --within 0.03.")
    level, needed = confidence or estimating.CONFIDENCE, ""
    if within is not None and epsilon is not None:
        respondents = lw.local.respondents_needed(epsilon, values, within, level)
        needed = f"{respondents:,} respondents for ±{float(within):g} at epsilon {float(epsilon):g}"
    elif within is not None and respondents is not None:
        epsilon = lw.local.epsilon_needed(respondents, values, within, level)
        needed = f"epsilon {float(epsilon):g} for ±{float(within):g} with {respondents:,} respondents"
    advice = lw.local.advise(epsilon or 1, values, respondents if respondents is not None else 1)
    if form is Report.json:
        print_text(to_json(advice_document(advice)))
    else:
        show(Fitted(advice_table(advice)))
    if needed:
        note("needed", needed)


@app.command(epilog=TASK, short_help="Write a task: what is asked, and how answers are made noisy.")
def task(
    question: Annotated[str, typer.Option(metavar="TEXT", help="What is asked.", show_default=False)],
    value: Annotated[list[str], typer.Option(metavar="TEXT", help="What may be answered; repeat.", show_default=False)],
    opens: Annotated[date, typer.Option(parser=_day("--opens"), metavar="DAY", help="The first day.")],
    closes: Annotated[date, typer.Option(parser=_day("--closes"), metavar="DAY", help="The last day.")],
    epsilon: Annotated[
        Fraction,
        typer.Option(parser=above_zero("--epsilon"), metavar="NUMBER", help="What one report may lose."),
    ],
    mechanism: Annotated[Kind, typer.Option(help="The mechanism.")] = Kind.best,
    unit: Annotated[str, typer.Option(metavar="TEXT", help="Whose answer is hidden.")] = "one answer of one person",
    retention_days: Annotated[int, typer.Option(metavar="DAYS", help="How long reports are kept.")] = 30,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")] = None,
) -> None:
    """Write a task. The most accurate mechanism is taken, for two values the coin, unless one is given."""
    options = lw.local.advise(epsilon, len(value), 1).options
    wanted = mechanism.value.replace("optimised-", "optimised ").replace("symmetric-", "symmetric ")
    chosen = [option.mechanism for option in options if mechanism is Kind.best or option.name == wanted]
    if not chosen:
        raise InvalidParameter(f"The mechanism {mechanism.value} is not for {len(value)} values at this epsilon.")
    made = lw.local.new_task(
        question, value, chosen[0], opens=opens, closes=closes, unit=unit, retention_days=retention_days
    )
    text = lw.local.to_toml(made)
    if output is None:
        print_text(text)
    else:
        output.write_text(text, encoding="utf-8")
        note("written", str(output))
    note("promise", made.promise)


@app.command(epilog=REPORT, short_help="Turn an answer into a noisy report, as a respondent.")
def report(
    file: estimating.TaskFile,
    answer: Annotated[str, typer.Option(metavar="VALUE", help="Your answer; it stays here.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Append it to a file instead.")
    ] = None,
) -> None:
    """Turn an answer into a noisy report, one line of JSON: all that anybody is to see.

    A task that states another epsilon than its thresholds have is refused, and so is one that is not open today.
    Every further report on the same matter loses as much again.
    """
    asked = estimating.read_task(file)
    today = date.today()
    if not asked.opens <= today <= asked.closes:
        raise QueryRefused(f"The task is open from {asked.opens} to {asked.closes}", remedy="No report was made.")
    try:
        line = lw.local.client.report(asked, answer, SYSTEM.read)
    except lw.local.client.AnswerRefused as refused:
        raise InvalidParameter(str(refused)) from None
    if output is None:
        print_text(line.decode("ascii") + "\n")
    else:
        with output.open("ab") as taken:
            taken.write(line + b"\n")
        note("written", str(output))
    note("promise", asked.promise)


app.command(epilog=estimating.EXAMPLE, short_help="Estimate shares from reports.")(estimating.estimate)
