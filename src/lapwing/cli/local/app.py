"""`lapwing local`: the respondent adds the noise. Tasks, reports, estimates, and advice on mechanisms."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, final

import typer

from lapwing.cli.console import note, print_text
from lapwing.cli.local import collect as collecting
from lapwing.cli.local import cost as costing
from lapwing.cli.local import device_file as devices
from lapwing.cli.local import estimate as estimating
from lapwing.cli.local import longitudinal_task as repeating
from lapwing.cli.local import rappor_task as rappor
from lapwing.cli.local import simulate as simulating
from lapwing.cli.local import task_mechanisms as mechanisms
from lapwing.cli.local import task_options as options
from lapwing.cli.local import typed_answers as typing
from lapwing.cli.local.advise import Goal, advise_number, advise_shares
from lapwing.cli.options import ReportFormatName, above_zero, amount, grouped
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause

EXAMPLE: Final = """\b
Examples:
  lapwing local advise --epsilon 1 --values 10 --respondents 1000
  lapwing local report task.toml"""
ADVISE: Final = """\b
Examples:
  lapwing local advise --epsilon 1 --values 10 --respondents 1000
  lapwing local advise --epsilon 1 --values 2 --within 0.03
  lapwing local advise --respondents 500 --values 2 --within 0.1
  lapwing local advise --number 0:120 --epsilon 1 --respondents 5000
  lapwing local advise --number 0:120 --epsilon 1 --within 2"""
TASK: Final = """\b
Examples:
  lapwing local task --question "Have you cheated in an exam?" --value no --value yes
    --epsilon 1 --opens 2027-01-01 --closes 2027-01-31 --output task.toml
  lapwing local task --question "How many minutes a day?" --number 0:600
    --epsilon 1 --opens 2027-01-01 --closes 2027-01-31
  lapwing local task --question "Your way to school"
    --attribute "How do you come?=walk,bus,car" --attribute "How many minutes?=0:120"
    --epsilon 1 --opens 2027-01-01 --closes 2027-01-31"""
REPORT: Final = """\b
Examples:
  lapwing local report task.toml --output reports.ndjson
  echo yes | lapwing local report task.toml"""

app = typer.Typer(
    help="Local differential privacy: the respondent adds the noise.", epilog=EXAMPLE, rich_markup_mode=None
)


@app.callback()
def local() -> None:
    """Local differential privacy: the respondent adds the noise."""


@app.command(epilog=ADVISE, short_help="Compare all mechanisms, or say what an accuracy takes.")
def advise(
    values: Annotated[
        int | None, typer.Option(metavar="COUNT", help="How many values may be answered.", show_default=False)
    ] = None,
    number: Annotated[
        str | None, typer.Option(metavar="LOWER:UPPER", help="Instead: a number, for its mean.", show_default=False)
    ] = None,
    epsilon: Annotated[Fraction | None, amount(above_zero("--epsilon"), "The privacy loss of one report.")] = None,
    respondents: Annotated[int | None, typer.Option(metavar="COUNT", help="How many will answer.")] = None,
    within: Annotated[
        Fraction | None,
        amount(
            above_zero("--within"),
            "Instead of --respondents or --epsilon: the wanted half-width, such as 0.03; of a mean, in its units.",
            show_default=False,
        ),
    ] = None,
    confidence: estimating.Level = None,
    form: Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")] = ReportFormatName.table,
) -> None:
    """Compare all mechanisms by their exact error, or say how many respondents or what epsilon an accuracy takes.

    Give two of --epsilon, --respondents and --within. The accuracy is for every share of answers, or with --number for
    the mean, in a population from which the respondents are a random sample. With --number, --within has the unit of
    the number.
    """
    if (values is None) == (number is None):
        raise InvalidParameter("Give --values, how many may be answered, or --number with its bounds, like 0:120.")
    if [epsilon, respondents, within].count(None) != 1:
        raise InvalidParameter("Give two of --epsilon, --respondents and --within: such as --epsilon 1 --within 0.03.")
    if within is None:
        options.check_unused({"--confidence": confidence is not None}, "without --within")
    if respondents is not None:
        options.check_whole("--respondents", respondents, 1)
    goal = Goal(epsilon=epsilon, respondents=respondents, within=within, confidence=confidence or estimating.CONFIDENCE)
    if values is not None:
        advise_shares(values, goal, form)
    else:
        advise_number(mechanisms.number_of(number or "", mechanisms.STEPS), goal, form)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnswerOptions:
    """What may be answered: one kind of answer, or several questions."""

    value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A possible answer; repeat for each.", show_default=False)
    ] = None
    values: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead: a file of possible answers, one a line.", show_default=False),
    ] = None
    text: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Instead: any text of at most BYTES bytes.", show_default=False)
    ] = None
    number: Annotated[
        str | None, typer.Option(metavar="LOWER:UPPER", help="Instead: a number, for its mean.", show_default=False)
    ] = None
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION=ANSWERS",
            help="Instead: several questions, each with A,B,… or LOWER:UPPER; repeat.",
            show_default=False,
        ),
    ] = None
    joint: Annotated[
        bool,
        typer.Option("--joint", help="Each report tells all attributes, with a part of epsilon, for joint tables."),
    ] = False
    steps: Annotated[
        int, typer.Option(metavar="COUNT", help="How many steps the grid has that numbers are rounded to.")
    ] = mechanisms.STEPS

    def require_one_kind(self) -> None:
        """Refuse a task without an answer, with several kinds of them, and options that belong to another kind.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        value, attribute = self.value or None, self.attribute or None
        given = {"--value": value, "--values": self.values}
        _check_one_kind({**given, "--text": self.text, "--number": self.number, "--attribute": attribute})
        if value:
            options.check_values("--value", value)
        if not attribute:
            options.check_unused({"--joint": self.joint}, "without --attribute")
        if self.number is None and not attribute:
            options.check_unused({"--steps": self.steps != mechanisms.STEPS}, "without a number")

    def listed(self) -> list[str]:
        """Return the possible answers, if they are listed.

        Raises:
            InvalidParameter: If the file has one value, too many, or two the same.
        """
        if self.values is None:
            return self.value or []
        found = options.lines_of(self.values, "--values")
        options.check_values("--values", found)
        return found


@app.command(epilog=TASK, short_help="Write a task: what is asked, and how answers are made noisy.")
@grouped
def task(
    question: options.Question,
    opens: options.Opens,
    closes: options.Closes,
    epsilon: options.Epsilon,
    *,
    answers: TaskAnswerOptions,
    mechanism: Annotated[
        mechanisms.MechanismOption,
        typer.Option(metavar="NAME", help=f"One of {', '.join(mechanisms.MechanismOption)}."),
    ] = mechanisms.MechanismOption.best,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The unit that noise hides: one answer, or all answers, of one person unless given."
        ),
    ] = None,
    written: options.TaskFileOptions,
) -> None:
    """Write a task. Unless you name a mechanism, Lapwing takes the most accurate one.

    With --text, people may answer any text, and Lapwing finds the common words. Of several attributes, each report has
    one, drawn at random, with the whole epsilon. With --joint, each report has all of them, each with an equal part of
    epsilon.
    """
    answers.require_one_kind()
    hidden = unit or f"{'all answers' if answers.attribute else 'one answer'} of one person"
    terms = mechanisms.Terms(opens=opens, closes=closes, unit=hidden, retention_days=written.retention_days)
    if answers.attribute:
        made = mechanisms.task_of_attributes(
            question, answers.attribute, answers.steps, epsilon, mechanism, terms, joint=answers.joint
        )
    else:
        allowed = answers.listed() or (
            mechanisms.text_of(answers.text or 0)
            if answers.number is None
            else mechanisms.number_of(answers.number, answers.steps)
        )
        made = mechanisms.task_of_one(question, allowed, epsilon, mechanism, terms)
    options.write_task(made, written.output, force=written.force)


def _check_one_kind(answers: Mapping[str, object]) -> None:
    """Refuse a task without an answer, or with several kinds of them."""
    kinds = [option for option, value in answers.items() if value is not None]
    if len(kinds) > 1:
        raise InvalidParameter(
            f"A question has one kind of answer, but {' and '.join(kinds)} are given: leave all but one out. "
            "Several questions are --attribute for each."
        )
    if not kinds:
        raise InvalidParameter(
            "Give what may be answered: --value for each, --text, --number, or --attribute for each."
        )


@app.command(epilog=REPORT, short_help="Turn a respondent's answer into a noisy report.")
def report(
    file: estimating.TaskFile,
    answer: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Append the report to a file instead.")
    ] = None,
    device: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file in which this device records what it has revealed.", show_default=False
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For tests: the answers of many people, as CSV.", show_default=False),
    ] = None,
) -> None:
    """Turn an answer into a noisy report, one line of JSON. Nobody sees anything else of the answer.

    The command asks for the answer, or reads it from standard input: one line for each question. No option takes it,
    because the shell's history keeps what you type with a command.

    A task that states another epsilon than its thresholds have is refused. So is a task that is not open today. Every
    further report on the same matter costs as much again. With --device, Lapwing adds up these costs and refuses a
    report beyond the limit of the device. Mechanisms that remember answers need --device.
    """
    if answer is not None:
        raise InvalidParameter(
            "An answer on the command line stays in the shell's history, and others may see it while the command runs. "
            "Leave out --answer: the command asks for it, or reads it from standard input. Nothing was sent."
        )
    asked = estimating.read_task(file)
    today = date.today()
    if not asked.opens <= today <= asked.closes:
        verb = "was" if asked.closes < today else "will be"
        raise QueryRefused(
            f"The task {verb} open from {asked.opens} to {asked.closes}",
            cause=RefusalCause.TASK_CLOSED,
            remedy="No report was made.",
        )
    if people is not None:
        if device is not None:
            raise InvalidParameter("--people are many, and --device is one: leave out --device.")
        lines = [devices.report(asked, one, None, today) for one in typing.answers_of_people(asked, people)]
        _write([line for line in lines if line is not None], output)
        note("people", f"{len(lines):,}, for tests: whoever holds their answers needs no noise on devices.")
        return
    note("promise", asked.promise)  # before anybody types an answer
    line = devices.report(asked, typing.typed_answer(asked), device, today)
    if line is None:
        note("nothing", "is due today; this device stores the answer for the period's report.")
    else:
        _write([line], output)


def _write(lines: list[bytes], output: Path | None) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    if output is None:
        print_text(whole.decode("ascii"))
    else:
        with output.open("ab") as taken:
            taken.write(whole)
        note("written", str(output))


app.command(epilog=collecting.EXAMPLE, short_help="Serve a page, and take reports.")(collecting.collect)
app.command(epilog=costing.EXAMPLE, short_help="Show what answering every day costs.")(costing.cost)
app.command(epilog=devices.EXAMPLE, short_help="Show what this device has revealed so far.")(devices.device)
app.command(epilog=estimating.EXAMPLE, short_help="Estimate shares from reports.")(estimating.estimate)
app.command(epilog=repeating.EXAMPLE, short_help="Write a task that is answered again and again.")(repeating.over_time)
app.command(epilog=rappor.EXAMPLE, short_help="Write a RAPPOR task: for any text.")(rappor.rappor)
app.command(epilog=simulating.EXAMPLE, short_help="Compare ways of collecting the same data.")(simulating.simulate)
