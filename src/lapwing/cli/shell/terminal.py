"""How a shell reads: on a terminal with completion, colours and history, elsewhere line by line."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lapwing.cli.shell.statements import is_complete, numbered

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from lapwing.cli.shell.shell import Shell

HISTORY: Final = "LAPWING_SHELL_HISTORY"
MORE: Final = "   ...> "


def typed(shell: "Shell") -> Iterator[str]:
    """Yield what is typed at the prompts of a terminal, until Ctrl-D; Ctrl-C drops what was begun."""
    reading = _reader(shell)
    while not shell.ended:
        try:
            yield reading()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def piped() -> Iterator[tuple[int, str]]:
    """Yield the statements on standard input as they come, each with the number of its line."""
    begun, first = "", 1
    for number, line in enumerate(sys.stdin, 1):
        begun += line
        if is_complete(begun):
            yield from numbered(begun, first)
            begun, first = "", number + 1
    yield from numbered(begun, first)


def _reader(shell: "Shell") -> Callable[[], str]:
    try:
        prompts = prompt_session(shell)
    except ModuleNotFoundError:  # without the extra `shell`
        return lambda: _plain(shell.prompt)
    return lambda: prompts.prompt(shell.prompt)


def _plain(prompt: str) -> str:
    begun = ""
    while True:
        begun += input(MORE if begun else prompt) + "\n"
        if is_complete(begun):
            return begun


def prompt_session(shell: "Shell") -> "PromptSession[str]":
    """Return what reads a statement with completion and history, and shows the price of a question under it.

    Raises:
        ModuleNotFoundError: Without prompt_toolkit.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

    from lapwing.cli.shell.completion import SqlCompleter

    file = history_file()
    return PromptSession(
        history=InMemoryHistory() if file is None else FileHistory(file),
        completer=SqlCompleter(shell.session.tables),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        prompt_continuation=lambda width, *_: MORE.rjust(width)[-width:],
        key_bindings=_keys(),
        bottom_toolbar=lambda: f" {shell.settings.price} · Tab completes · .help",
    )


def _keys() -> "KeyBindings":
    """Return the keys: Enter takes the chosen completion, or what is complete, and else begins another line."""
    from prompt_toolkit.filters import completion_is_selected
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=completion_is_selected)
    def _(event: "KeyPressEvent") -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: "KeyPressEvent") -> None:
        if is_complete(event.current_buffer.text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return keys


def history_file() -> Path | None:
    """Return the file of what was typed, which its owner alone can read; None if there is to be none.

    It is the file that the environment variable LAPWING_SHELL_HISTORY names, if that is not empty, else one in the
    folder for such things.
    """
    named = os.environ.get(HISTORY)
    if named == "":
        return None
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    file = Path(named or f"{state}/lapwing/shell-history").expanduser()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:  # a home that cannot be written to
        return None
    return file
