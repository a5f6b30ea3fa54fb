"""What every command that asks does: asks, writes the answer in some form, and says what it cost."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import lapwing as lw
from lapwing.catalog.patterns import folder_of, is_pattern
from lapwing.catalog.source_names import ending
from lapwing.cli import answer_formats, figures
from lapwing.cli.answer_formats import BY_SUFFIX, Format
from lapwing.cli.characters import visible
from lapwing.cli.console import note, print_bytes, print_text, rendered
from lapwing.cli.first_contact import PricedText
from lapwing.cli.question import Stopped, ignore_interrupts, pointing_at
from lapwing.errors import Interrupted, InvalidParameter, LapwingError

if TYPE_CHECKING:
    from lapwing.answer import Answer, Note
    from lapwing.budget import BudgetView
    from lapwing.catalog.model import Catalog
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.answer_document import AnswerShown
    from lapwing.ledger.reading import HistoryRow
    from lapwing.session import Session

USUAL_CONFIDENCE: Final = Fraction(95, 100)
RECENT: Final = 50
"""Charges among which that of an answer is looked for, as others charge meanwhile."""


def ask(
    session: "Session | RemoteSession", question: str, asked: Callable[[], "Answer | RemoteAnswer"]
) -> "Answer | RemoteAnswer":
    """Ask a question, and say where it was not understood, or whether it was charged when it was interrupted."""
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
            raise Stopped(
                "Interrupted. The server continues the query; run it again to see the result, free of charge."
            ) from None
        # Release says itself whether a question was paid when it was stopped; between its steps only the ledger knows.
        history = session.history(most=-1)
        raise Interrupted(charged=bool(history) and history[-1].time >= started) from None


def confirm_doubtful(session: "Session | RemoteSession", question: PricedText) -> "tuple[Note, ...]":
    """On a terminal, show before the charge which conditions cannot be meant, and ask whether to go on; return these.

    They follow from the query and the catalog, so they cost nothing.

    Raises:
        InvalidParameter: If it is not to be run.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return ()
    from lapwing.answer.notes import OUTSIDE_BOUNDS, TEXT_NOT_LISTED  # here: few commands ask
    from lapwing.answer.python_values import Note

    slips = (TEXT_NOT_LISTED, OUTSIDE_BOUNDS)
    try:
        preview = session.explain(question.text, question.parameters, **question.price)
    except LapwingError:
        return ()  # which asking raises again
    doubtful = tuple(one for one in preview.notes if isinstance(one, Note) and one.code in slips)
    if not doubtful or preview.stored or preview.refusal is not None:
        return ()
    for one in doubtful:
        note("note", f"{one}.")
    sys.stderr.write(f"Nothing was charged yet. Run the query for epsilon {figures.epsilon(preview.epsilon)}? [y/N] > ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise InvalidParameter("The query was not run. Nothing was charged.")
    return doubtful


def besides(notes: Sequence[str], known: "Sequence[Note]") -> list[str]:
    """Return the notes that were not shown before the charge."""
    codes = {one.code for one in known}
    return [note for note in notes if getattr(note, "code", "") not in codes]


def paid_for(answer: "AnswerShown") -> str:
    """Say that an answer that was not seen can be asked for again."""
    if answer.stored:
        paid = "The result was bought before"
    else:
        paid = "The cost is charged, and the result is stored" if answer.cost.amount else "Nothing was charged"
    return f"{paid}. Run the query again: that is free."


def format_of(output: Path) -> Format:
    """Return the format that a file's name says; CSV for a name without an ending."""
    suffix = output.suffix.lower()
    if suffix and suffix not in BY_SUFFIX:
        raise InvalidParameter(
            f"{output} ends in {suffix!r}, which is not a known format; end it in .csv, .json, .arrow, .parquet, .md, "
            f".xlsx or .html, or give --format. Nothing was charged."
        )
    return BY_SUFFIX.get(suffix, Format.csv)


def require_writable(output: Path, session: "Session | RemoteSession") -> None:
    """Refuse, before anything is charged, a file that cannot be written or that Lapwing itself needs."""
    if isinstance(session, lw.Session) and _is_needed(output.resolve(), session.catalog):
        raise InvalidParameter(f"{output} belongs to the data set; write the result to another file.")
    if output.is_dir() or not os.access(output if output.exists() else output.absolute().parent, os.W_OK):
        raise InvalidParameter(
            f"{output} cannot be written; choose a file in a folder that exists. Nothing was charged."
        )


def _is_needed(target: Path, catalog: "Catalog") -> bool:
    sources = [catalog.source_path(table).resolve() for table in catalog.tables]
    needed = {*sources, *([catalog.file.resolve()] if catalog.file is not None else [])}
    patterns = [source for source in sources if is_pattern(source)]
    if any(folder_of(source) in target.parents and ending(source) == ending(target) for source in patterns):
        return True  # it may come to be data
    return target in needed or target.name.startswith(catalog.ledger_path.name)


def write(answer: "AnswerShown", form: Format, level: Fraction, output: Path | None) -> None:
    """Write an answer to standard output, or to a file."""
    put(_content(answer, form, level, sys.stdout if output is None else io.StringIO()), output)


def put(content: str | bytes, output: Path | None) -> None:
    """Write a text or bytes to standard output, or to a file."""
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
        case Format.xlsx:
            return answer_formats.as_xlsx(answer, level)
        case Format.html:  # which takes the catalog and the ledger, too (`cli.result_page`)
            raise TypeError


def say(
    answer: "AnswerShown",
    session: "Session | RemoteSession",
    notes: Sequence[str],
    output: Path | None,
    *,
    verbose: bool = False,
) -> None:
    """Say what an answer cost and what is left, and what of its notes is to be known.

    Args:
        verbose: Whether to say also what adds up in the ledger.
    """
    sys.stdout.flush()
    view = replace(session.budget(history=False), history=session.history(most=-RECENT))
    note("cost", price_line(answer, view))
    if verbose:
        remaining = f"{figures.left(view.remaining)} of {figures.loss(view.total)} left"
        note("ledger", remaining if answer.stored else f"{figures.loss(answer.cost)}; {remaining}")
    from lapwing.documents.answer_document import notes_on_empty  # here, so that `lapwing --help` loads no engine

    for line in (*notes, *notes_on_empty(answer, answer.rows())):
        note("note", f"{line}.")
    if output is not None:
        note("written", str(output))


def price_line(answer: "AnswerShown", view: "BudgetView") -> str:
    """Say what an answer cost, and what is left; after a question about some parts of the data, what of these."""
    if not answer.cost.amount:
        return f"{price_of(answer, view)}; {figures.share(1 - view.share_spent)} of the budget left"
    row = next((row for row in reversed(view.history) if row.loss == answer.cost.rounded_up()), None)
    parts, keys = (None, Fraction(0)) if row is None else (row.parts, row.delta)
    left = figures.share(float(view.room(parts).amount / view.total.amount))
    where = "" if parts is None else f" for {figures.names(parts)}"
    allowed = "".join(f"; {figures.allowance(allowance, view.total)}" for allowance in view.allowances)
    took = f", delta {figures.delta_in_words(keys)} for finding groups" if keys else ""
    more = f"{view.fits(answer.cost, parts, keys):,} more like it"  # by the tightest of all that is left
    paid = _paid_before(answer, view, row)
    price = _price_in_all(answer, view, paid) if paid else price_of(answer, view)
    return f"{price}{took}; {left} left{where}{allowed}: {more}"


def _paid_before(answer: "AnswerShown", view: "BudgetView", row: "HistoryRow | None") -> "Sequence[HistoryRow]":
    from lapwing.answer.notes import REFINED  # here, so that `lapwing --help` loads no engine
    from lapwing.documents.answer_document import codes_of
    from lapwing.ledger.charged_queries import bought_before

    return bought_before(view.history, row) if row is not None and REFINED in codes_of(answer.notes) else ()


def _price_in_all(answer: "AnswerShown", view: "BudgetView", paid: "Sequence[HistoryRow]") -> str:
    """Say what a query cost together with its earlier, less exact results."""
    delta, share = view.delta - view.delta_keys, answer.cost.amount / view.total.amount
    before = sum((row.loss.amount for row in paid), Fraction(0))
    whole, earlier = (
        figures.epsilon(answer.cost.from_amount(amount).to_epsilon(delta=delta))
        for amount in (before + answer.cost.amount, before)
    )
    added = figures.share(float(share))
    return f"epsilon {whole} for this query in all: {earlier} was paid before, and this adds {added} of the budget"


def price_of(answer: "AnswerShown", view: "BudgetView") -> str:
    """Say what an answer cost, by the epsilon of this query by itself."""
    if not answer.cost.amount:
        return figures.FREE if answer.stored else figures.NOTHING_PROTECTED
    alone = figures.epsilon(answer.cost.to_epsilon(delta=view.delta - view.delta_keys))
    return (
        f"epsilon {alone} for this query, {figures.share(float(answer.cost.amount / view.total.amount))} of the budget"
    )
