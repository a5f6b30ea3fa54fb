"""Statements of a shell: queries, and commands that begin with a dot."""

import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog.suggestions import meant
from lapwing.cli import asking, budget, describe, explain, figures, options, tables
from lapwing.cli.answer_formats import Format, require_xlsx
from lapwing.cli.charts import chart_of, draw_chart
from lapwing.cli.console import WIDEST, WIDTH, labelled, note, show, text
from lapwing.cli.described import described
from lapwing.cli.first_contact import PricedText
from lapwing.cli.result_page import as_page, require_page
from lapwing.cli.shell.settings import MODES, SHOWN, ShellSettings
from lapwing.cli.shell.statements import WORDS, is_command, numbered
from lapwing.errors import Fault, InvalidParameter, LapwingError
from lapwing.plots.files import require_suffix

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.described_answer import DescribedAnswer
    from lapwing.session import Session

MOST_FILES: Final = 8
"""That read each other."""
LEAST_WIDTH: Final = 20
MORE: Final = ".history N"
"""How to see earlier charges."""


@final
class Shell:
    """A conversation with one data set."""

    def __init__(self, session: "Session | RemoteSession", settings: ShellSettings) -> None:
        self.session = session
        self.settings = settings
        self.ended = False
        self._answer: Answer | RemoteAnswer | None = None
        self._said: set[str] = set()
        self._left: str | None = None
        self._reading = 0
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

    def run_all(self, statements: Iterable[tuple[int, str]], source: str) -> None:
        """Run statements with the numbers of their lines until one is refused, or the shell is told to end.

        Raises:
            LapwingError: As `run`, with the line that it was.
        """
        for line, statement in statements:
            try:
                self.run(statement)
            except LapwingError as refused:
                refused.add_note(f"Lapwing stopped at line {line} of {source}, and ran nothing after it.")
                raise
            if self.ended:
                return

    def _ask(self, question: str) -> None:
        asked, begun = self.settings, monotonic()
        if asked.explains or question.lstrip()[:7].upper() == "EXPLAIN":
            self._explain(question)
            return
        self._said.update(asking.confirm_doubtful(self.session, self._priced(question)))
        handler = signal.getsignal(signal.SIGINT)
        try:
            answer = asking.ask(self.session, question, lambda: self._bought(question))
        finally:
            signal.signal(signal.SIGINT, handler)  # who asks ignores it to say what was charged; here more is asked
            self._look_at_budget()
        self._answer = answer
        asking.write(self._told(answer) or answer, asked.mode, asked.confidence, None)
        notes = [note for note in answer.notes if note not in self._said]
        asking.say(answer, self.session, notes, None, verbose=asked.verbose)
        self._said.update(answer.notes)
        if asked.timed:
            note("time", f"{figures.size(max(0.001, monotonic() - begun))} s")

    def _bought(self, question: str) -> "Answer | RemoteAnswer":
        asked = self.settings
        return self.session.sql(
            question, epsilon=asked.epsilon, error=asked.error, delta=asked.delta, label=asked.label
        )

    def _priced(self, question: str) -> PricedText:
        asked = self.settings
        return PricedText(text=question, epsilon=asked.epsilon, error=asked.error, delta=asked.delta)

    def _explain(self, question: str) -> None:
        explain.show_preview(self.session, self._priced(question), verbose=self.settings.verbose)

    def _look_at_budget(self) -> None:
        try:
            self._left = figures.share(1 - self.session.budget(history=False).share_spent)
        except LapwingError:  # a server that does not answer is said by the next question
            self._left = None

    # ---- Commands ----

    def _command(self, line: str) -> None:
        typed = line.strip().rstrip(";")
        word, _, rest = WORDS.get(typed.casefold(), typed).partition(" ")
        name = WORDS.get(word.casefold(), word.casefold())
        known = COMMANDS.get(name)
        if known is None:
            raise InvalidParameter(f"There is no command {word[:40]!r}. {meant('Commands', name, COMMANDS)}")
        text = rest.strip()
        if text and not known.takes:
            raise InvalidParameter(f"{name} takes nothing after it; {text[:40]!r} is too much. {known.about}")
        if not text and name in SHOWN:
            note(name.removeprefix("."), SHOWN[name](self.settings))
        else:
            known.act(self, text)

    def help(self, name: str) -> None:
        """Show all commands, or one."""
        if name:
            wanted = f".{name.removeprefix('.').casefold()}"
            if wanted not in COMMANDS:
                raise InvalidParameter(f"There is no command {name[:40]!r}. {meant('Commands', wanted, COMMANDS)}")
            show(labelled((f"{wanted} {COMMANDS[wanted].takes}", COMMANDS[wanted].about)))
            return
        wide = max(len(f"  {name} {one.takes}") for name, one in COMMANDS.items())
        for title, names in GROUPS.items():
            lines = [(f"  {name} {COMMANDS[name].takes}".ljust(wide), COMMANDS[name].about) for name in names]
            show(text(title, "bold"), labelled(*lines))
        show(text(""), text("Type a query and end it with a semicolon. A command needs none. Tab completes."))
        note("cost", self.settings.price)

    def tables(self, _: str) -> None:
        """Show what may be asked about."""
        show(tables.as_page(self.session.tables.values()))

    def describe(self, name: str) -> None:
        """Show the columns of a table, or of the only one."""
        known = self.session.tables
        if not name and len(known) > 1:
            raise InvalidParameter(f"Name a table, as in .describe {next(iter(known))}.")
        show(*describe.as_page(describe.described_in(known, name.strip('"') or next(iter(known)))))

    def schema(self, name: str) -> None:
        """Show the columns of one table, or of all."""
        known = self.session.tables
        wanted = [name.strip('"')] if name else list(known)
        for place, one in enumerate(wanted):
            show(*([text("")] if place else []), *describe.as_page(describe.described_in(known, one)))

    def history(self, count: str) -> None:
        """Show the last queries that were charged."""
        most = options.whole(".history", 1)(count) if count else budget.LAST
        view = replace(self.session.budget(history=False), history=self.session.history(most=-most))
        if not view.history:
            note("history", "Lapwing has not charged a query yet.")
        else:
            show(budget.history_of(view, view.delta - view.delta_keys, most, MORE))

    def read(self, name: str) -> None:
        """Run the queries and commands of a file, until one is refused."""
        if not name:
            raise InvalidParameter("Name a file, as in .read queries.sql.")
        if self._reading == MOST_FILES:
            raise InvalidParameter(
                f"{name} is the last of {MOST_FILES} files that read each other. Check whether a file reads itself."
            )
        try:
            content = Path(name).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error.strerror}"
            raise Fault(f"{name} {why}. Nothing of it was run.") from None
        self._reading += 1
        try:
            self.run_all(numbered(content), name)
        finally:
            self._reading -= 1

    def timer(self, text: str) -> None:
        """Say how long each query took, or no more."""
        self.settings.timed = _switch(".timer", text)

    def width(self, text: str) -> None:
        """Set how wide pages are, in characters."""
        chosen = None if text.casefold() == "auto" else options.whole(".width", LEAST_WIDTH)(text)
        WIDTH.set(chosen if chosen is None else min(chosen, WIDEST))

    def budget(self, count: str) -> None:
        """Show what is spent, what is left, and the last queries that were charged."""
        most = options.whole(".budget", 0)(count) if count else budget.LAST
        view = budget.read(self.session, most)
        self._left = figures.share(1 - view.share_spent)
        name, delta = options.name_of(self.session), view.delta - view.delta_keys
        show(*budget.as_page(view, name, delta, most, MORE, verbose=self.settings.verbose))

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
        self.settings.label = None if text == "off" else text

    def explain(self, text: str) -> None:
        """Only explain from now on, ask again, or explain one question."""
        if text.casefold() in ("on", "off"):
            self.settings.explains = text.casefold() == "on"
        else:
            self._explain(text)

    def verbose(self, text: str) -> None:
        """Say also what adds up in the ledger, or no more."""
        self.settings.verbose = _switch(".verbose", text)

    def mode(self, text: str) -> None:
        """Set how answers are written."""
        if text.casefold() not in MODES:
            raise InvalidParameter(f"There is no mode {text[:40]!r}; write .mode {' | '.join(MODES)}.")
        self.settings.mode = Format(text.casefold())

    def plot(self, name: str) -> None:
        """Draw a chart of the last answer, or write it to a file."""
        answer = self._last()
        if not name:
            draw_chart(answer, self.settings.confidence, self._told(answer))
            return
        file = Path(name).expanduser()
        require_suffix(file, "The chart's file", drawn=True)
        asking.require_writable(file, self.session)
        chart_of(answer, self.settings.confidence, self._told(answer)).save(file)
        note("written", str(file))

    def save(self, name: str) -> None:
        """Write the last answer to a file, as its name says."""
        answer = self._last()
        if not name:
            raise InvalidParameter("Name a file, as in .save result.csv.")
        file = Path(name).expanduser()
        form = asking.format_of(file)
        if form is Format.xlsx:
            require_xlsx()
        asking.require_writable(file, self.session)
        if form is Format.html:
            require_page()
            asking.put(as_page(answer, self.session, None, self.settings.confidence), file)
        else:
            asking.write(self._told(answer) or answer, form, self.settings.confidence, file)
        note("written", str(file))

    def labels(self, text: str) -> None:
        """Show labels in place of codes, or no more."""
        self.settings.labels = _switch(".labels", text)

    def quit(self, _: str) -> None:
        """End the shell."""
        self.ended = True

    def _told(self, answer: "Answer | RemoteAnswer") -> "DescribedAnswer | None":
        return described(answer, self.session, labels=self.settings.labels)

    def _last(self) -> "Answer | RemoteAnswer":
        """Return the last answer."""
        if self._answer is None:
            raise InvalidParameter("There is no result yet. Run a query first.")
        return self._answer


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A command of the shell: what it takes, what it does in words, and the doing."""

    takes: str
    about: str
    act: Callable[[Shell, str], None]


def _switch(command: str, text: str) -> bool:
    if text.casefold() not in ("on", "off"):
        raise InvalidParameter(f"Write {command} on or {command} off.")
    return text.casefold() == "on"


COMMANDS: Final[Mapping[str, Command]] = {
    ".tables": Command("", "List the tables.", Shell.tables),
    ".describe": Command("TABLE", "Show the columns of a table: types, bounds, listed values.", Shell.describe),
    ".schema": Command("[TABLE]", "Show the columns of one table, or of all tables.", Shell.schema),
    ".epsilon": Command("0.1", "Set the cost of each query, as epsilon.", Shell.epsilon),
    ".error": Command("50", "Set the error (±) of COUNT and SUM instead. Lapwing finds the lowest cost.", Shell.error),
    ".delta": Command("1e-7 | off", "Set the delta for finding groups whose values are not listed.", Shell.delta),
    ".confidence": Command("0.95", "Set the confidence of ± and of intervals.", Shell.confidence),
    ".label": Command("TEXT | off", "Name the next queries in the history.", Shell.label),
    ".explain": Command("on | off | SELECT …", "Show cost and error only. This is free.", Shell.explain),
    ".read": Command("FILE", "Run the queries and commands of a file.", Shell.read),
    ".budget": Command("[N]", "Show what is spent, what is left, and the last N queries.", Shell.budget),
    ".history": Command("[N]", "Show the last N queries that were charged.", Shell.history),
    ".plot": Command("[FILE]", "Draw the last result here, or write .svg, .png, .html or .json.", Shell.plot),
    ".save": Command("FILE", "Write the last result: .csv, .json, .md, .html, .arrow, .parquet or .xlsx.", Shell.save),
    ".mode": Command(" | ".join(MODES), "Set how results are written.", Shell.mode),
    ".labels": Command("on | off", "Show the labels of the catalog in place of codes.", Shell.labels),
    ".width": Command("100 | auto", "Set how many characters a line has.", Shell.width),
    ".timer": Command("on | off", "Show how long each query takes.", Shell.timer),
    ".verbose": Command("on | off", "Also show each cost in the unit of the ledger.", Shell.verbose),
    ".help": Command("[COMMAND]", "Show this list, or one command.", Shell.help),
    ".quit": Command("", "Leave the shell. Ctrl-D does the same.", Shell.quit),
}
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Data": (".tables", ".describe", ".schema"),
    "Queries": (".epsilon", ".error", ".delta", ".confidence", ".label", ".explain", ".read"),
    "Results": (".plot", ".save", ".mode", ".labels", ".width", ".timer", ".verbose"),
    "Budget": (".budget", ".history"),
    "Shell": (".help", ".quit"),
}
"""How `.help` lists the commands."""
