"""All commands under one name, and the one place where an error becomes a message and an exit status.

A command's module is imported when the command is called, so that `lapwing --help` is quick, and no command waits for
what another one needs.
"""

import atexit
import gc
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, cast

import typer
from typer.core import TyperGroup

from lapwing import __version__
from lapwing.cli import progress
from lapwing.cli.characters import visible
from lapwing.cli.streams import complain, complain_of, print_text
from lapwing.errors import Fault, InvalidParameter, LapwingError
from lapwing.machine.build import build_id

INTERRUPTED: Final = 130
_LAST_SECONDS: Final = 5.0
LAYOUT: Final = "\n\t"
"""What a message of several lines keeps: those of others quote what was given."""

SECTIONS: Final = {
    "Queries": {
        "demo": ("demo", "Answer real questions on a public data set."),
        "tables": ("tables", "List the tables that you can query."),
        "describe": ("describe", "Show the columns of a table: types, bounds, values."),
        "explain": ("explain", "Show the cost and the error of a query, for free."),
        "query": ("query", "Run a query: charge its cost and show the result."),
        "synthesize": ("synthesize", "Buy synthetic rows that imitate a table."),
        "release": ("release", "Plan and publish a set of tables."),
        "graph": ("graph", "Query graphs: who knows whom."),
        "shell": ("shell.command", "Query line by line, with completion and history."),
        "budget": ("budget", "Show the budget: spent, left, and by which queries."),
        "guarantee": ("guarantee", "Show the promise to the people in the data."),
    },
    "Data (for the curator)": {
        "init": ("init", "Write a catalog for your file."),
        "data": ("data", "Check, accept and close the data; look at failed queries."),
        "index": ("index", "Keep rows ready for queries."),
        "monitor": ("monitor", "Release numbers repeatedly as events come in."),
        "ledger": ("ledger", "Verify, copy and restore the record of spending."),
        "audit": ("audit", "Check this installation: catalog, queries, records."),
    },
    "Service": {
        "serve": ("serve", "Serve queries over HTTP to people with tokens."),
        "login": ("service.login", "Get a token for your name and password."),
        "people": ("service.people", "Add people to a service and set their roles."),
        "token": ("service.tokens", "Create, list and revoke tokens."),
        "grant": ("service.grant", "Let people query a data set, and set how much."),
        "requests": ("service.requests", "Ask for access or more budget; decide requests."),
        "policy": ("service.policy", "Share a budget among people; stop a data set."),
        "audit-log": ("audit_log", "Show who did what to people, rights and data."),
    },
    "Without a curator, and for learning": {
        "local": ("local.app", "Local differential privacy: respondents add the noise."),
        "secure": ("secure.app", "Secure sums: no single server sees an answer."),
        "account": ("account", "Add up the privacy loss of a list of mechanisms."),
        "holdout": ("holdout", "Show how many queries a sample can answer for its population."),
        "lab": ("lab.command", "Try out privacy guarantees and attacks."),
    },
}
COMMANDS: Final = {name: row for commands in SECTIONS.values() for name, row in commands.items()}
"""The module of each command, and what it does in one sentence."""
CHARTS: Final = (".json", ".html", ".svg", ".png")
"""How the name of a chart's file ends (`plots.files`)."""
NO_WHOLE: Final = "Input should be a valid integer, unable to parse string as an integer"
"""The words of typer for a text that is no whole number."""
MEANT: Final = {
    **dict.fromkeys(("ask", "sql", "select", "run", "export", "save", "plot", "chart"), "query"),
    **dict.fromkeys(("history", "spent", "left"), "budget"),
    **dict.fromkeys(("schema", "columns", "show"), "describe"),
    **dict.fromkeys(("cost", "price", "preview"), "explain"),
    **dict.fromkeys(("log", "logs"), "audit-log"),
    **dict.fromkeys(("user", "users"), "people"),
    **dict.fromkeys(("server", "start", "service"), "serve"),
    **dict.fromkeys(("catalog", "create", "protect"), "init"),
    **dict.fromkeys(("revoke", "allow", "permissions"), "grant"),
    **{word: f"data {word}" for word in ("accept", "check", "close", "faults", "refresh", "resume")},
    **{word: f"ledger {word}" for word in ("backup", "restore", "verify")},
    "repl": "shell",
    "raise": "budget raise",
}
"""What people type for a command whose name is another."""
BESIDES: Final = {
    "export": " It writes a result to a file with `-o FILE`; `lapwing ledger export` writes all charges.",
    "save": " It writes a result to a file with `-o FILE`.",
    **dict.fromkeys(("plot", "chart"), " It draws a result with `--plot`."),
    **dict.fromkeys(("log", "logs"), " `lapwing budget` has the queries that were charged."),
}
"""Other ways to do it."""
QUERY_FIRST: Final = "To run a query, write `lapwing query` before it; a file comes first: `lapwing query FILE SQL`."
"""For a query or a file in the place of a command."""
OPTIONS: Final[dict[str, Any]] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _CommandsOnCall(TyperGroup):
    """A group whose commands have a name and a summary, until one is called: its module is imported then."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args and args[0] in MEANT:
            besides = BESIDES.get(args[0], "")
            raise InvalidParameter(f"No such command {args[0]!r}. Did you mean {MEANT[args[0]]!r}?{besides}")
        if args and (" " in args[0] or Path(args[0]).suffix):
            raise InvalidParameter(f"No such command {args[0]!r}. {QUERY_FIRST}")
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(name), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])


@cache
def load(name: str) -> Any:
    """Import a command, once: of a module with an `app` of several, or with one `command`."""
    gc.disable()  # what is imported stays: looking through it for garbage took a fifth of the start
    module = import_module(f"lapwing.cli.{COMMANDS[name][0]}")
    gc.freeze()
    gc.enable()
    parent = typer.Typer(**OPTIONS)
    parent.callback()(_nothing)
    if hasattr(module, "app"):
        parent.add_typer(module.app, name=name)
    else:
        parent.command(name, epilog=module.EXAMPLE)(module.command)
    group = typer.main.get_command(parent)
    return cast(TyperGroup, group).commands[name]


def _nothing() -> None:
    pass


app = typer.Typer(
    name="lapwing", cls=_CommandsOnCall, pretty_exceptions_enable=False, **{**OPTIONS, "add_completion": True}
)
for name, (_, summary) in COMMANDS.items():
    app.command(name, short_help=summary)(_nothing)

EXAMPLE = """\b
Examples:
  lapwing demo
  lapwing query "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" --epsilon 0.5

\b
Exit status: 0 done, 2 usage or catalog, 3 refused, 4 budget exhausted,
5 not authorised, 6 fault, 130 interrupted."""


@app.callback(invoke_without_command=True, epilog=EXAMPLE)
def lapwing(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Query a sensitive table in SQL, and get noisy results with error bars, a cost and a budget."""
    if version:
        print_text(f"lapwing {__version__} build {build_id()}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        complain(context.get_help())
        raise typer.Exit(InvalidParameter.exit_status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    _open_streams()
    given = _with_places_of_charts(sys.argv[1:] if arguments is None else arguments)
    try:
        with progress.shown():
            status = app(given, prog_name="lapwing", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the reader has had enough, as `head` has; typer turns one into the other
        # The closed pipe must not be written to by the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        return _report(error, given)
    finally:
        gc.unfreeze()  # what is frozen at the very end is never taken apart, and libraries call that a leak
    if status == INTERRUPTED:  # pressed where nothing can have been charged; a command that charges reports it itself
        complain("lapwing: Interrupted; nothing was charged.")
    return status if isinstance(status, int) else 0


def _with_places_of_charts(arguments: Sequence[str]) -> list[str]:
    """Return arguments in which `--plot` without a file says that the chart is for the terminal.

    >>> _with_places_of_charts(["query", "SELECT 1", "--plot", "--epsilon", "1"])
    ['query', 'SELECT 1', '--plot=-', '--epsilon', '1']
    >>> _with_places_of_charts(["query", "--plot", "SELECT 1"]), _with_places_of_charts(["query", "--plot", "a.svg"])
    (['query', '--plot=-', 'SELECT 1'], ['query', '--plot', 'a.svg'])
    """
    written = list(arguments)
    for place, argument in enumerate(arguments):
        after = arguments[place + 1] if place + 1 < len(arguments) else "--"
        if argument == "--":
            break
        if argument == "--plot" and (after.startswith("-") or (" " in after and not after.endswith(CHARTS))):
            written[place] = "--plot=-"
    return written


def _command_path(arguments: Sequence[str]) -> str:
    """Return the command that arguments name, for its help."""
    command: Any = None
    path, known = ["lapwing"], COMMANDS.keys()
    for argument in arguments:
        if argument not in known:
            break
        command = load(argument) if len(path) == 1 else command.commands[argument]
        path.append(argument)
        known = getattr(command, "commands", {}).keys()
    return " ".join(path)


def run() -> NoReturn:
    """Run the command line as the whole of a process, which ends at once: only what asked for it is done at the end.

    Whatever a command opens it has closed by now. To take a thousand modules apart took a fifth of a small question.
    """
    status = main()
    # Those of an engine that was closed end in a moment. Daemons end with the process, whichever way that goes.
    others = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
    for thread in others:
        thread.join(_LAST_SECONDS)
    if any(thread.is_alive() for thread in others):
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # said already, if it can be
            stream.flush()
    os._exit(status)


def _report(error: Exception, arguments: Sequence[str]) -> int:
    """Say what went wrong and return the exit status that says whose turn it is."""
    if isinstance(error, LapwingError):
        complain_of(error)
        return error.exit_status
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else _command_path(arguments)
        said = (
            visible(error.format_message(), keep=LAYOUT)
            .replace(": Value error, ", ": ")
            .replace(NO_WHOLE, "it is no whole number")
        )
        if said.startswith("Missing command") and isinstance(getattr(context, "command", None), TyperGroup):
            complain(cast(Any, context).get_help())  # as `lapwing` by itself does
            return InvalidParameter.exit_status
        if said.startswith("No such command") and path != "lapwing":
            said += f" Commands: {', '.join(cast(Any, context).command.commands)}."
        complain(f"lapwing: {said if said.endswith(('.', '?')) else f'{said}.'} `{path} --help` shows how.")
        return InvalidParameter.exit_status
    if isinstance(error, OSError):
        complain(f"lapwing: {error.strerror or 'a file could not be used'}: {visible(str(error.filename or 'output'))}")
        return Fault.exit_status
    complain(visible("".join(traceback.format_exception(error)).rstrip("\n"), keep=LAYOUT))
    complain("lapwing: This is a bug in Lapwing; please report it with the lines above.")
    return Fault.exit_status


def _open_streams() -> None:
    """Make writing safe: a closed stream swallows, and a character that a stream cannot hold is replaced."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
