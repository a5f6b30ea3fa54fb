"""`lapwing query`: pay for an answer and write it."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.cli import explain, first_contact, options
from lapwing.cli.answer_formats import BINARY, Format, require_xlsx
from lapwing.cli.asking import USUAL_CONFIDENCE, ask, format_of, paid_for, require_writable, say, write
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import note, on_terminal
from lapwing.cli.first_contact import Protection, open_asked, split_asked
from lapwing.cli.question import Stopped, ignore_interrupts, require_at_most_one, text_of, values_of
from lapwing.errors import Fault, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lapwing.answer import Answer
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.answer_document import AnswerShown
    from lapwing.query.text.parameters import Parameters
    from lapwing.session import Session

EXAMPLE: Final = """\b
Examples:
  lapwing query "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" --epsilon 0.5
  lapwing query "SELECT COUNT(*) AS n FROM visits" --error 50 --format json
  lapwing query "SELECT AVG(age) AS m FROM visits" --epsilon 0.5 --population
  lapwing query - --epsilon 0.5 -o answer.csv < question.sql
  lapwing query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --server https://dp.example.org
  lapwing query visits.csv "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 \\
      --privacy-unit person_id --max-rows 5

\b
The same question again is free. Ctrl-C says whether the price was paid."""


@first_contact.protecting
def command(
    texts: first_contact.Asked,
    epsilon: options.Epsilon = None,
    error: options.Error = None,
    delta: options.Delta = None,
    values: options.Values = None,
    assuming_count: options.AssumingCount = None,
    label: options.Label = None,
    level: Annotated[
        Fraction | None,
        options.amount(options.between("--confidence"), "Of the intervals; 0.95 unless given.", "--confidence"),
    ] = None,
    population: Annotated[
        bool, typer.Option("--population", help="Of the intervals: for the population that the people are a sample of.")
    ] = False,
    sampling: Annotated[
        str | None,
        typer.Option(
            "--sampling",
            metavar="N|poisson",
            help="With --population: how many people were drawn, for counts and sums.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="A table on a terminal, CSV in a pipe, by its name for a file.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help=HELP)] = None,
    verbose: options.Verbose = False,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="With --server: wait for it however long it takes; Ctrl-C cancels it.")
    ] = False,
    *,
    protection: Protection,
) -> None:
    """Ask a question, charge its price to the budget, and write the noisy answer."""
    require_at_most_one(epsilon, error)
    form = form or (format_of(output) if output is not None else Format.table if on_terminal() else Format.csv)
    drawn = _drawn(population, sampling, plot)
    data, sql = split_asked(texts)
    question, parameters = text_of(sql), values_of(values or [])
    first = first_contact.Question(
        text=question,
        parameters=parameters,
        epsilon=epsilon,
        error=error,
        delta=delta,
        assuming_count=assuming_count,
    )
    if question.lstrip()[:7].upper() == "EXPLAIN":  # EXPLAIN PRIVACY SELECT … asks for the price alone
        with open_asked(data, protection, catalog, server, dataset, first) as session:
            return explain.show_preview(
                session,
                question,
                parameters,
                epsilon=epsilon,
                error=error,
                delta=delta,
                assuming_count=assuming_count,
                verbose=verbose,
            )
    if form in BINARY and output is None and on_terminal():
        raise InvalidParameter(f"{form.title()} is binary, and this is a terminal; add -o FILE or pipe it.")
    if form is Format.xlsx:
        require_xlsx()
    require_chart(plot)
    if server is None and data is None and drawn is None and not protection.said and _has_graphs(catalog):
        from lapwing.cli.graph import answer_sql  # here: few questions are of graphs, whose budget is said with them

        if answer_sql(question, epsilon, delta, catalog, form, output, level, label, plot):
            return None
    with open_asked(data, protection, catalog, server, dataset, first) as session:
        for file in (output, plot):
            if file is not None:
                require_writable(file, session)

        def asked() -> "Answer | RemoteAnswer":
            if queue:
                return _from_queue(
                    session, question, parameters, label, assuming_count, epsilon=epsilon, error=error, delta=delta
                )
            return session.sql(
                question,
                parameters,
                epsilon=epsilon,
                error=error,
                delta=delta,
                label=label,
                assuming_count=assuming_count,
            )

        answer = ask(session, question, asked)
        try:
            shown = answer if drawn is None else drawn(answer)
            write(shown, form, level or USUAL_CONFIDENCE, output)
            if plot is not None:
                write_chart(answer.plot(confidence=level or USUAL_CONFIDENCE), plot)
            say(shown, session, shown.notes, output, verbose=verbose)
        except KeyboardInterrupt:
            ignore_interrupts()
            raise Stopped(paid_for(answer)) from None
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise Fault(f"The answer could not be written: {failure.strerror}. {paid_for(answer)}") from None
    return None


def _drawn(
    population: bool, sampling: str | None, plot: Path | None
) -> "Callable[[Answer | RemoteAnswer], AnswerShown] | None":
    """Return what shows an answer's intervals for the population; None if they are for the data.

    Raises: InvalidParameter, before anything is charged.
    """
    if sampling is not None and not population:
        raise InvalidParameter("--sampling says how a population was drawn from; give --population with it.")
    if not population:
        return None
    if plot is not None:
        raise InvalidParameter("A chart shows intervals for the data; leave out --plot, or --population.")
    from lapwing.answer.population_shown import PopulationShown, read_sampling  # here: `lapwing --help` loads no engine

    said = None if sampling is None else read_sampling(sampling)
    return lambda answer: PopulationShown(answer, said)


def _from_queue(
    session: "Session | RemoteSession",
    question: str,
    parameters: "Parameters",
    label: str | None,
    assuming_count: int | None,
    **prices: Fraction | None,
) -> "RemoteAnswer":
    """Let a question wait in a server's queue, and wait for its answer; Ctrl-C cancels it there, too."""
    if isinstance(session, lw.Session):
        raise InvalidParameter("--queue goes with --server; a catalog has no queue.")
    pending = session.submit(question, parameters, **prices, label=label, assuming_count=assuming_count)
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
