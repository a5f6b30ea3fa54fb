"""`lapwing shell`: the command."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from lapwing.cli import options
from lapwing.cli.console import WIDTH
from lapwing.cli.first_contact import FileProtectionOptions, open_asked
from lapwing.cli.question import require_at_most_one
from lapwing.cli.shell.settings import ShellSettings
from lapwing.cli.shell.shell import Shell
from lapwing.cli.shell.statements import numbered
from lapwing.cli.shell.terminal import piped, typed
from lapwing.cli.streams import SHELL, complain, complain_of
from lapwing.errors import LapwingError

EXAMPLE: Final = """\b
Examples:
  lapwing shell
  lapwing shell --epsilon 0.1 --server https://dp.example.org
  lapwing shell --epsilon 0.1 < questions.sql
  lapwing shell visits.parquet --privacy-unit person_id --max-rows 5

\b
End a query with a semicolon; .help lists the commands. With `pip install 'lapwing-dp[shell]'`
Tab completes tables, columns, functions and listed values."""


@options.grouped
def command(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA | CATALOG", help="A data file or a catalog.", show_default=False),
    ] = None,
    epsilon: options.Epsilon = None,
    error: options.Error = None,
    *,
    place: options.TargetOptions,
    protection: FileProtectionOptions,
) -> None:
    """Run queries line by line; the prompt shows how much of the budget is left."""
    require_at_most_one(epsilon, error)
    with open_asked(data, protection, place) as session:
        shell = Shell(session, ShellSettings(epsilon=epsilon, error=error))
        try:
            _run(shell)
        finally:
            WIDTH.set(None)


def _run(shell: Shell) -> None:
    if not sys.stdin.isatty():
        shell.run_all(piped(), "the input")
        return
    complain(f"{shell.settings.price}. End a query with a semicolon; .help lists the commands.")
    _talk(shell)


def _talk(shell: Shell) -> None:
    """Answer what is typed; what is refused ends nothing."""
    for text in typed(shell):
        try:
            for _, statement in numbered(text):
                shell.run(statement)
                if shell.ended:
                    break
        except LapwingError as refused:
            complain_of(refused, SHELL)
        except KeyboardInterrupt:
            complain("lapwing: Interrupted; nothing was charged.")
        complain("")
