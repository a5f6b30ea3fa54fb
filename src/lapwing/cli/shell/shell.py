"""What a shell does with a statement: it asks, or it is told something by a line that begins with a dot."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog.suggestions import meant
from lapwing.cli import asking, budget, describe, explain, figures, options, tables
from lapwing.cli.answer_formats import Format, require_xlsx
from lapwing.cli.console import labelled, note, show
from lapwing.cli.first_contact import Question
from lapwing.cli.shell.statements import WORDS, is_command
from lapwing.errors import InvalidParameter, LapwingError
from lapwing.plots.files import require_suffix

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.session import Session

MODES: Final = (Format.table, Format.csv, Format.json, Format.markdown)


@final
@dataclass(slots=True, kw_only=True)
class Settings:
    """How the next questions are asked and shown: a price or a wanted error, and no more than one of them."""

    epsilon: Fraction | None = None
    error: Fraction | None = None
    delta: Fraction | None = None
    label: str | None = None
    explains: bool = False
    verbose: bool = False
    mode: Format = Format.table
    confidence: Fraction = asking.USUAL_CONFIDENCE

    @property
    def price(self) -> str:
        """What every question costs, in words."""
        if self.error is not None:
            price = f"± {figures.size(float(self.error))} wanted"
        else:
            price = "no price yet" if self.epsilon is None else f"epsilon {figures.epsilon(self.epsilon)} a question"
        return f"{price}, only explained" if self.explains else price


@final
class Shell:
    """A conversation with one data set."""

    def __init__(self, session: "Session | RemoteSession", settings: Settings) -> None:
        self.session = session
        self.settings = settings
        self.ended = False
        self._answer: Answer | RemoteAnswer | None = None
        self._said: set[str] = set()
        self._left: str | None = None
        self._look_at_budget()

    @property
    def prompt(self) -> str:
        """What stands before what is typed: the data set, and how much of its budget is left."""
        name = options.name_of(self.session)
        return f"{name}> " if self._left is None else f"{name} {self._left} left> "

    def run(self, statement: str) -> None:
        """Ask a question, or do what a command says.

        Raises:
            LapwingError: Root of all errors that Lapwing raises on purpose.
        """
        if is_command(statement):
            self._command(statement)
        else:
            self._ask(statement)

    def _ask(self, question: str) -> None:
        asked = self.settings
        if asked.explains or question.lstrip()[:7].upper() == "EXPLAIN":
            self._explain(question)
            return
        handler = signal.getsignal(signal.SIGINT)
        try:
            answer = asking.ask(self.session, question, lambda: self._bought(question))
        finally:
            signal.signal(signal.SIGINT, handler)  # who asks ignores it to say what was charged; here more is asked
            self._look_at_budget()
        self._answer = answer
        asking.write(answer, asked.mode, asked.confidence, None)
        notes = [note for note in answer.notes if note not in self._said]
        asking.say(answer, self.session, notes, None, verbose=asked.verbose)
        self._said.update(answer.notes)

    def _bought(self, question: str) -> "Answer | RemoteAnswer":
        asked = self.settings
        return self.session.sql(
            question, epsilon=asked.epsilon, error=asked.error, delta=asked.delta, label=asked.label
        )

    def _explain(self, question: str) -> None:
        asked = self.settings
        price = Question(text=question, epsilon=asked.epsilon, error=asked.error, delta=asked.delta)
        explain.show_preview(self.session, price, verbose=asked.verbose)

    def _look_at_budget(self) -> None:
        try:
            self._left = figures.share(1 - self.session.budget(history=False).share_spent)
        except LapwingError:  # a server that does not answer is said by the next question
            self._left = None

    # ---- Commands ----

    def _command(self, line: str) -> None:
        word, _, rest = line.strip().rstrip(";").partition(" ")
        name = WORDS.get(word.casefold(), word.casefold())
        known = COMMANDS.get(name)
        if known is None:
            raise InvalidParameter(f"There is no command {word[:40]!r}. {meant('Commands', name, COMMANDS)}")
        known.act(self, rest.strip())

    def help(self, _: str) -> None:
        """Show all commands."""
        show(labelled(*((f"{name} {one.takes}".rstrip(), one.about) for name, one in COMMANDS.items())))
        note("price", self.settings.price)

    def tables(self, _: str) -> None:
        """Show what may be asked about."""
        show(tables.as_page(self.session.tables.values()))

    def describe(self, name: str) -> None:
        """Show the columns of a table, or of the only one."""
        known = self.session.tables
        if not name and len(known) > 1:
            raise InvalidParameter(f"Say which table, as in .describe {next(iter(known))}.")
        show(*describe.as_page(describe.described_in(known, name.strip('"') or next(iter(known)))))

    def budget(self, _: str) -> None:
        """Show what is spent, what is left, and for what."""
        view = budget.read(self.session, budget.LAST)
        self._left = figures.share(1 - view.share_spent)
        show(*budget.as_page(view, options.name_of(self.session), view.delta - view.delta_keys))

    def epsilon(self, text: str) -> None:
        """Set the price of every question."""
        self.settings.epsilon, self.settings.error = options.above_zero(".epsilon")(text), None

    def error(self, text: str) -> None:
        """Set the wanted half-width of intervals, instead of a price."""
        self.settings.error, self.settings.epsilon = options.above_zero(".error")(text), None

    def delta(self, text: str) -> None:
        """Set what choosing private keys may take."""
        self.settings.delta = None if text == "off" else options.between(".delta")(text)

    def confidence(self, text: str) -> None:
        """Set the confidence of the intervals."""
        self.settings.confidence = options.between(".confidence")(text)

    def label(self, text: str) -> None:
        """Set what the history calls the next questions."""
        self.settings.label = None if text in ("", "off") else text

    def explain(self, text: str) -> None:
        """Only explain from now on, ask again, or explain one question."""
        if text.casefold() in ("on", "off"):
            self.settings.explains = text.casefold() == "on"
        elif text:
            self._explain(text)
        else:
            raise InvalidParameter("Say .explain on, .explain off, or .explain SELECT …")

    def verbose(self, text: str) -> None:
        """Say also what adds up in the ledger, or no more."""
        if text.casefold() not in ("on", "off"):
            raise InvalidParameter("Say .verbose on or .verbose off.")
        self.settings.verbose = text.casefold() == "on"

    def mode(self, text: str) -> None:
        """Set how answers are written."""
        if text.casefold() not in MODES:
            raise InvalidParameter(f"There is no mode {text[:40]!r}; write .mode {' | '.join(MODES)}.")
        self.settings.mode = Format(text.casefold())

    def plot(self, name: str) -> None:
        """Write a chart of the last answer to a file."""
        answer, file = self._last(name, ".plot answer.svg")
        require_suffix(file, "The chart's file")
        asking.require_writable(file, self.session)
        answer.plot(confidence=self.settings.confidence).save(file)
        note("written", str(file))

    def save(self, name: str) -> None:
        """Write the last answer to a file, as its name says."""
        answer, file = self._last(name, ".save answer.csv")
        form = asking.format_of(file)
        if form is Format.xlsx:
            require_xlsx()
        asking.require_writable(file, self.session)
        asking.write(answer, form, self.settings.confidence, file)
        note("written", str(file))

    def quit(self, _: str) -> None:
        """End the shell."""
        self.ended = True

    def _last(self, name: str, example: str) -> tuple["Answer | RemoteAnswer", Path]:
        """Return the last answer and the file that it is to be written to."""
        if not name:
            raise InvalidParameter(f"Name a file, as in {example}.")
        if self._answer is None:
            raise InvalidParameter("Nothing was answered yet.")
        return self._answer, Path(name).expanduser()


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A command of the shell: what it takes, what it does in words, and the doing."""

    takes: str
    about: str
    act: Callable[[Shell, str], None]


COMMANDS: Final[Mapping[str, Command]] = {
    ".tables": Command("", "what may be asked about", Shell.tables),
    ".describe": Command("TABLE", "its columns: types, bounds, listed values", Shell.describe),
    ".budget": Command("", "what is spent, what is left, and for what", Shell.budget),
    ".epsilon": Command("0.1", "the price of every question from now on", Shell.epsilon),
    ".error": Command("50", "instead of a price: the half-width that intervals of COUNT and SUM may have", Shell.error),
    ".delta": Command("1e-7 | off", "what choosing private keys may take", Shell.delta),
    ".label": Command("TEXT | off", "what the history calls the next questions", Shell.label),
    ".explain": Command("on | off | SELECT …", "only show price and error: free", Shell.explain),
    ".mode": Command(" | ".join(MODES), "how answers are written", Shell.mode),
    ".verbose": Command("on | off", "say also what adds up in the ledger", Shell.verbose),
    ".confidence": Command("0.95", "of the intervals", Shell.confidence),
    ".plot": Command("FILE", "a chart of the last answer: .svg, .png, .html or .json", Shell.plot),
    ".save": Command("FILE", "the last answer: .csv, .json, .md, .arrow, .parquet or .xlsx", Shell.save),
    ".help": Command("", "this list", Shell.help),
    ".quit": Command("", "ends the shell, as Ctrl-D does", Shell.quit),
}
