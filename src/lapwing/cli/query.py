"""`lapwing query`: pay for an answer and write it."""

import io
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

import lapwing as lw
from lapwing.cli import answer_formats, explain, figures, options
from lapwing.cli.answer_formats import BINARY, BY_SUFFIX, Format
from lapwing.cli.characters import visible
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import note, on_terminal, print_bytes, print_text, rendered
from lapwing.cli.question import Stopped, ignore_interrupts, pointing_at, require_at_most_one, text_of, values_of
from lapwing.errors import Fault, Interrupted, InvalidParameter

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.budget import BudgetView
    from lapwing.catalog.model import Catalog
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.answer_document import AnswerShown
    from lapwing.query.text.parameters import Parameters
    from lapwing.session import Session

EXAMPLE: Final = """\b
Examples:
  lapwing query "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" --epsilon 0.5
  lapwing query "SELECT COUNT(*) AS n FROM visits" --error 50 --format json
  lapwing query - --epsilon 0.5 -o answer.csv < question.sql
  lapwing query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --server https://dp.example.org

\b
The same question again is free. Ctrl-C says whether the price was paid."""

USUAL_CONFIDENCE: Final = Fraction(95, 100)


def command(
    sql: options.Sql,
    epsilon: options.Epsilon = None,
    error: options.Error = None,
    delta: options.Delta = None,
    values: options.Values = None,
    label: options.Label = None,
    level: Annotated[
        Fraction | None,
        options.amount(options.between("--confidence"), "Of the intervals; 0.95 unless given.", "--confidence"),
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
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="With --server: wait for it however long it takes; Ctrl-C cancels it.")
    ] = False,
) -> None:
    """Ask a question, charge its price to the budget, and write the noisy answer."""
    require_at_most_one(epsilon, error)
    form = form or _usual(output)
    question, parameters = text_of(sql), values_of(values or [])
    if question.lstrip()[:7].upper() == "EXPLAIN":  # EXPLAIN PRIVACY SELECT … asks for the price alone
        return explain.command(
            sql=question,
            epsilon=epsilon,
            error=error,
            delta=delta,
            values=values,
            catalog=catalog,
            server=server,
            dataset=dataset,
        )
    if form in BINARY and output is None and on_terminal():
        raise InvalidParameter(f"{form.title()} is binary, and this is a terminal; add -o FILE or pipe it.")
    require_chart(plot)
    with options.open_session(catalog, server, dataset) as session:
        for file in (output, plot):
            if file is not None:
                _require_writable(file, catalog, session)

        def asked() -> "Answer | RemoteAnswer":
            if queue:
                return _from_queue(session, question, parameters, label, epsilon=epsilon, error=error, delta=delta)
            return session.sql(question, parameters, epsilon=epsilon, error=error, delta=delta, label=label)

        answer = _ask(session, question, asked)
        try:
            _write(answer, form, level or USUAL_CONFIDENCE, output)
            if plot is not None:
                write_chart(answer.plot(confidence=level or USUAL_CONFIDENCE), plot)
            _say(answer, session, output)
        except KeyboardInterrupt:
            ignore_interrupts()
            raise Stopped(_paid_for(answer)) from None
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise Fault(f"The answer could not be written: {failure.strerror}. {_paid_for(answer)}") from None
    return None


def _from_queue(
    session: "Session | RemoteSession",
    question: str,
    parameters: "Parameters",
    label: str | None,
    **prices: Fraction | None,
) -> "RemoteAnswer":
    """Let a question wait in a server's queue, and wait for its answer; Ctrl-C cancels it there, too."""
    if isinstance(session, lw.Session):
        raise InvalidParameter("--queue goes with --server; a catalog has no queue.")
    pending = session.submit(question, parameters, **prices, label=label)
    note("queued", pending.id)
    try:
        return pending.wait()
    except KeyboardInterrupt:
        ignore_interrupts()
        pending.cancel()
        return pending.wait()  # raises what it was cancelled by, unless the answer came first


def _ask(
    session: "Session | RemoteSession", question: str, asked: Callable[[], "Answer | RemoteAnswer"]
) -> "Answer | RemoteAnswer":
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    try:
        with pointing_at(question):
            return asked()
    except Interrupted:
        ignore_interrupts()
        raise
    except KeyboardInterrupt:
        ignore_interrupts()
        if not isinstance(session, lw.Session):
            raise Stopped("Interrupted; the server goes on with the question. Ask again: that is free if so.") from None
        # Release says itself whether a question was paid when it was stopped; between its steps only the ledger knows.
        history = session.budget().history
        raise Interrupted(charged=bool(history) and history[-1].time >= started) from None


def _paid_for(answer: "AnswerShown") -> str:
    paid = "It was bought before" if answer.stored else "Its price is paid and it is kept"
    return f"{paid}: ask again, that is free."


def _usual(output: Path | None) -> Format:
    """Return the format where none was asked for."""
    if output is not None:
        ending = output.suffix.lower()
        if ending and ending not in BY_SUFFIX:
            raise InvalidParameter(
                f"{output} ends in {ending!r}, which names no format; "
                "end it in .csv, .json, .arrow, .parquet or .md, or give --format. Nothing was charged."
            )
        return BY_SUFFIX.get(ending, Format.csv)
    return Format.table if on_terminal() else Format.csv


def _require_writable(output: Path, described: Path, session: "Session | RemoteSession") -> None:
    """Refuse, before anything is charged, a file that cannot be written or that Lapwing itself needs."""
    if isinstance(session, lw.Session) and _is_needed(output.resolve(), described, session.catalog):
        raise InvalidParameter(f"{output} belongs to the data set; write the answer to another file.")
    if output.is_dir() or not os.access(output if output.exists() else output.absolute().parent, os.W_OK):
        raise InvalidParameter(
            f"{output} cannot be written; choose a file in a folder that exists. Nothing was charged."
        )


def _is_needed(target: Path, described: Path, catalog: "Catalog") -> bool:
    needed = {described.resolve(), *(catalog.source_path(table).resolve() for table in catalog.tables)}
    return target in needed or target.name.startswith(catalog.ledger_path.name)


def _write(answer: "AnswerShown", form: Format, level: Fraction, output: Path | None) -> None:
    content = _content(answer, form, level, sys.stdout if output is None else io.StringIO())
    if output is not None:
        output.write_bytes(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, bytes):
        print_bytes(content)
    else:
        print_text(content)


def _content(answer: "AnswerShown", form: Format, level: Fraction, page: TextIO) -> str | bytes:
    match form:
        case Format.table:
            return rendered(page, answer_formats.as_table(answer, level), whole=True)
        case Format.csv:
            return answer_formats.as_csv(answer, level, visible if page.isatty() else str)
        case Format.json:
            return answer_formats.as_json(answer, level)
        case Format.arrow:
            return answer_formats.as_arrow(answer, level)
        case Format.parquet:
            return answer_formats.as_parquet(answer, level)
        case Format.markdown:
            return answer_formats.as_markdown(answer, level)


def _say(answer: "AnswerShown", session: "Session | RemoteSession", output: Path | None) -> None:
    sys.stdout.flush()
    view = session.budget()
    note("price", price_of(answer, view, view.delta - view.delta_keys))
    note("left", left_of(answer, view))
    for line in answer.notes:
        note("note", f"{line}.")
    if output is not None:
        note("written", str(output))


def price_of(answer: "AnswerShown", view: "BudgetView", delta: Fraction) -> str:
    """Say what an answer cost; `delta` is what the epsilon of a single question is read at."""
    if answer.stored:
        return "free: it was bought before"
    alone = figures.epsilon(answer.cost.to_epsilon(delta=delta))
    part = figures.share(float(answer.cost.amount / view.total.amount))
    return f"{part} of the budget: epsilon {alone} alone ({figures.loss(answer.cost)})"


def left_of(answer: "AnswerShown", view: "BudgetView") -> str:
    """Say what is left of the budget; after a question about some parts of the data, what is left for these."""
    if answer.stored:
        return f"{figures.share(1 - view.share_spent)} of the budget"
    parts = next((row.parts for row in reversed(view.history) if row.loss == answer.cost.rounded_up()), None)
    left = figures.share(float(view.room(parts).amount / view.total.amount))
    where = "" if parts is None else f" for {figures.names(parts)}"
    where += "".join(f"; {figures.allowance(one, view.total)}" for one in view.allowances)
    return f"{left} of the budget{where}: {view.fits(answer.cost, parts):,} more like it would fit"
