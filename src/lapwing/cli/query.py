"""`lapwing query`: pay for an answer and write it."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import lapwing as lw
from lapwing.answer.charts.chart_options import NAMES, ChartOptions
from lapwing.cli import explain, first_contact, options
from lapwing.cli.answer_formats import BINARY, Format, require_xlsx
from lapwing.cli.asking import (
    USUAL_CONFIDENCE,
    ask,
    besides,
    confirm_doubtful,
    format_of,
    paid_for,
    put,
    require_writable,
    say,
    write,
)
from lapwing.cli.charts import HELP_DRAWN, HERE, make_chart, require_chart, require_choices
from lapwing.cli.console import note, on_terminal
from lapwing.cli.described import described
from lapwing.cli.first_contact import FileProtectionOptions, PricedText, open_asked, question_of, split_asked
from lapwing.cli.question import Stopped, ignore_interrupts, require_at_most_one
from lapwing.cli.result_page import as_page, require_page
from lapwing.errors import Fault, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lapwing.answer import Answer, Note
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.answer_document import AnswerShown
    from lapwing.session import Session

EXAMPLE: Final = """\b
Examples:
  lapwing query "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" --epsilon 0.5
  lapwing query "SELECT COUNT(*) AS n FROM visits" --error 50 --format json
  lapwing query "SELECT AVG(age) AS m FROM visits" --epsilon 0.5 --population
  lapwing query "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --epsilon 0.5 --labels
  lapwing query - --epsilon 0.5 -o result.csv < query.sql
  lapwing query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --server https://dp.example.org
  lapwing query visits.csv "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 \\
      --privacy-unit person_id --max-rows 5

\b
Running the same query again is free. Ctrl-C says whether the cost was charged."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions:
    """What the intervals of an answer are of."""

    level: Annotated[
        Fraction | None,
        options.amount(
            options.between("--confidence"), "The confidence of the intervals; default 0.95.", "--confidence"
        ),
    ] = None
    population: Annotated[
        bool,
        typer.Option(
            "--population",
            help="If the people are a random sample: show intervals for the population that they come from.",
        ),
    ] = False
    sampling: Annotated[
        str | None,
        typer.Option(
            "--sampling",
            metavar="N|poisson",
            help="With --population, for counts and sums: how many people were drawn, or poisson if by chance.",
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFormatOptions:
    """How an answer is written, and where."""

    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Default: a table on a terminal, CSV in a pipe, and for a file as its name ends.",
            show_default=False,
        ),
    ] = None
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead.")] = (
        None
    )
    plot: Annotated[Path | None, typer.Option("--plot", metavar="[FILE]", help=HELP_DRAWN)] = None
    chart: Annotated[
        list[str] | None,
        typer.Option(
            "--chart",
            metavar="NAME=VALUE",
            help=f"A choice for --plot: {', '.join(NAMES[:-1])} or {NAMES[-1]}. Give it once for each.",
            show_default=False,
        ),
    ] = None
    labels: Annotated[
        bool, typer.Option("--labels", help="Show the labels of the catalog in place of codes. Charts always do.")
    ] = False
    verbose: options.Verbose = False

    def chosen(self) -> Format:
        """Return the format that is stated, or follows from where an answer goes.

        Raises:
            InvalidParameter: For a file whose name says none.
        """
        if self.form is not None:
            return self.form
        if self.output is not None:
            return format_of(self.output)
        return Format.table if on_terminal() else Format.csv

    def require_possible(self, form: Format, *, server: bool, population: bool) -> None:
        """Refuse, before anything is charged, what cannot be written.

        Args:
            form: The format.
            server: As of `require_page`.
            population: As of `require_page`.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        if form in BINARY and self.output is None and on_terminal():
            raise InvalidParameter(f"{form.title()} is binary, and this is a terminal; add -o FILE or pipe it.")
        if form is Format.xlsx:
            require_xlsx()
        if form is Format.html:
            require_page(server=server, population=population)
        require_chart(self.plot, here=True)
        self.choices()

    def choices(self) -> ChartOptions:
        """Return the choices of the chart.

        Raises:
            InvalidParameter: If one is not allowed.
        """
        return require_choices(self.chart or (), self.plot)


@options.grouped
def command(
    texts: first_contact.Asked,
    *,
    pricing: options.PricingOptions,
    label: options.Label = None,
    intervals: IntervalOptions,
    writing: ResultFormatOptions,
    place: options.TargetOptions,
    queue: Annotated[
        bool, typer.Option("--queue", help="With --server: wait until the query ends; Ctrl-C cancels it.")
    ] = False,
    protection: FileProtectionOptions,
) -> None:
    """Run a query, charge its cost to the budget, and write the noisy result."""
    require_at_most_one(pricing.epsilon, pricing.error)
    form, level = writing.chosen(), intervals.level
    drawn = _drawn(intervals, writing.plot)
    data, sql = split_asked(texts)
    question = question_of(sql, pricing)
    if question.text.lstrip()[:7].upper() == "EXPLAIN":  # EXPLAIN PRIVACY SELECT … asks for the price alone
        with open_asked(data, protection, place, question) as session:
            return explain.show_preview(session, question, verbose=writing.verbose)
    try:
        writing.require_possible(form, server=place.server is not None, population=intervals.population)
    except InvalidParameter as wrong:
        raise InvalidParameter(f"{wrong} Nothing was charged.") from None
    if place.server is None and data is None and drawn is None and not protection.said and _has_graphs(place.catalog):
        from lapwing.cli.graph import answer_sql  # here: few questions are of graphs, whose budget is said with them

        price = (question.epsilon, question.delta)
        drawing = (writing.plot, writing.choices())
        if answer_sql(question.text, *price, place.catalog, form, writing.output, level, label, *drawing):
            return None
    with open_asked(data, protection, place, question) as session:
        for file in (writing.output, writing.plot):
            if file is not None and file != HERE:
                require_writable(file, session)

        def asked() -> "Answer | RemoteAnswer":
            if queue:
                return _from_queue(session, question, label)
            return session.sql(question.text, question.parameters, label=label, **question.price)

        shown = confirm_doubtful(session, question)
        answer = ask(session, question.text, asked)
        _write(answer, session, writing, form, level or USUAL_CONFIDENCE, drawn, shown, label)
    return None


def _write(
    answer: "Answer | RemoteAnswer",
    session: "Session | RemoteSession",
    writing: ResultFormatOptions,
    form: Format,
    level: Fraction,
    drawn: "Callable[[Answer | RemoteAnswer], AnswerShown] | None",
    known: "Sequence[Note]",
    label: str | None,
) -> None:
    """Write an answer, and say what it cost; if that fails, say that it is paid for.

    Args:
        drawn: As of `_drawn`.
        known: Notes that were shown before the charge.
        label: Of the query.
    """
    try:
        shown = answer if drawn is None else drawn(answer)
        told = described(answer, session, labels=writing.labels, shown=shown)
        if writing.labels and (told is None or not told.has_labels):
            note("note", "the catalog has no labels for the columns of this result.")
        if form is Format.html:
            put(as_page(answer, session, label, level), writing.output)
        else:
            write(told or shown, form, level, writing.output)
        if writing.plot is not None:
            make_chart(answer, writing.plot, level, told, writing.choices())
        say(shown, session, besides(shown.notes, known), writing.output, verbose=writing.verbose)
    except KeyboardInterrupt:
        ignore_interrupts()
        raise Stopped(paid_for(answer)) from None
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise Fault(f"The result could not be written: {failure.strerror}. {paid_for(answer)}") from None


def _drawn(intervals: IntervalOptions, plot: Path | None) -> "Callable[[Answer | RemoteAnswer], AnswerShown] | None":
    """Return what shows an answer's intervals for the population; None if they are for the data.

    Raises:
        InvalidParameter: Before anything is charged.
    """
    sampling = intervals.sampling
    if sampling is not None and not intervals.population:
        raise InvalidParameter("--sampling says how a population was drawn from; give --population with it.")
    if not intervals.population:
        return None
    if plot is not None:
        raise InvalidParameter("A chart shows intervals for the data; leave out --plot, or --population.")
    from lapwing.answer.population_shown import PopulationShown, read_sampling  # here: `lapwing --help` loads no engine

    said = None if sampling is None else read_sampling(sampling)
    return lambda answer: PopulationShown(answer, said)


def _from_queue(session: "Session | RemoteSession", question: PricedText, label: str | None) -> "RemoteAnswer":
    """Let a question wait in a server's queue, and wait for its answer; Ctrl-C cancels it there, too."""
    if isinstance(session, lw.Session):
        raise InvalidParameter("--queue goes with --server; a catalog has no queue.")
    pending = session.submit(question.text, question.parameters, label=label, **question.price)
    note("queued", pending.id)
    try:
        return pending.wait()
    except KeyboardInterrupt:
        ignore_interrupts()
        pending.cancel()
        return pending.wait()  # raises what it was cancelled by, unless the answer came first


def _has_graphs(catalog: Path) -> bool:
    from lapwing.catalog.toml import load  # here, so that a question to a server loads none of it

    return bool(load(catalog).graphs)
