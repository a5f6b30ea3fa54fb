"""`lapwing secure`: answers are split between servers, so that none of them sees one; each adds its own noise."""

import getpass
import math
import os
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.cli.options import ReportFormatName, above_zero, amount, between, examples, grouped, part_of_one, quantity
from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import written
from lapwing.privacy.figures import level

if TYPE_CHECKING:
    from lapwing.secure.organising import Totals
    from lapwing.secure.repeating_organiser import Days
    from lapwing.secure.repetition import TaskDays
    from lapwing.secure.task import Asked, Task

KEY_SUFFIX: Final = ".key"
DEVICE: Final = "device.json"
FIRST: Final = examples("lapwing secure join north --address north.example.org:8471", "lapwing secure send task.json")

app = typer.Typer(help="Secure sums: no single server sees an answer.", epilog=FIRST, rich_markup_mode=None)
CONFIDENCE: Final = Fraction(95, 100)
_ALPHABET: Final = "_abcdefghijklmnopqrstuvwxyz"
_MOST_ROWS: Final = 100
"""Of a grid's table: the largest estimates, with intervals that all hold together."""
Level = Annotated[
    Fraction | None,
    amount(between("--confidence"), "The confidence of the intervals; default 0.95.", show_default=False),
]
TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task's file.", show_default=False)]


@app.callback()
def secure() -> None:
    """Secure sums: no single server sees an answer."""


@app.command(
    epilog=examples("lapwing secure join north --address north.example.org:8471"), short_help="Make a server's key."
)
def join(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the server, for people.", show_default=False)
    ],
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address at which clients reach it.", show_default=False)
    ],
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder; NAME unless given.", show_default=False)
    ] = None,
) -> None:
    """Make a folder for a server that you run: its private key, and the certificate to give to the organiser."""
    from lapwing.secure.identity import make_identity

    certificate = make_identity(folder or Path(name), name, address)
    note("written", f"{certificate}: give only this file to the organiser. The key next to it never leaves the folder.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecureAnswerOptions:
    """What clients answer: one of some values, a number, or several."""

    value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A possible answer; repeat for each.", show_default=False)
    ] = None
    values: Annotated[
        Path | None,
        typer.Option("--values", metavar="FILE", help="Instead: possible answers, one a line.", show_default=False),
    ] = None
    letters: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Instead: a word of at most this many letters.", show_default=False),
    ] = None
    alphabet: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="A mark for the end, then all letters; default _a…z.", show_default=False),
    ] = None
    number: Annotated[
        str | None, typer.Option(metavar="LOWER:UPPER", help="Instead: a number, for its sum.", show_default=False)
    ] = None
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Instead: the name of one of several numbers, for their sums; repeat.",
            show_default=False,
        ),
    ] = None
    upper: Annotated[
        Fraction | None, amount(above_zero("--upper"), "Each --part is from 0 to this.", show_default=False)
    ] = None
    l1: Annotated[
        Fraction | None,
        amount(above_zero("--l1"), "The most that the parts of a client may add up to.", show_default=False),
    ] = None
    l2: Annotated[
        Fraction | None,
        amount(above_zero("--l2"), "Instead: the most for the root of the sum of their squares.", show_default=False),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="The steps of the grid of numbers; default 1,000.", show_default=False),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecureDaysOptions:
    """The days of a task that is asked every day."""

    days: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="Ask every day, for this number of days, with one budget.", show_default=False
        ),
    ] = None
    most_days: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="On how many of them a client answers at most; default: all.", show_default=False
        ),
    ] = None
    first: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The first day, by UTC; default: today.", show_default=False),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            help="The least noise for totals of this number of days; default: all days so far.",
            show_default=False,
        ),
    ] = None


@app.command(
    epilog=examples(
        'lapwing secure init --question "How do you come?" --value walk --value bus --epsilon 1',
        "  --server north/server.crt --server south/server.crt --server west/server.crt",
    ),
    short_help="Write a task: the question and its servers.",
)
@grouped
def init(
    question: Annotated[str, typer.Option(metavar="TEXT", help="What is asked.", show_default=False)],
    epsilon: Annotated[
        Fraction, amount(above_zero("--epsilon"), "The privacy loss of one answer.", show_default=False)
    ],
    server: Annotated[
        list[Path], typer.Option(metavar="FILE", help="A server's certificate; repeat.", show_default=False)
    ],
    *,
    answers: SecureAnswerOptions,
    days: SecureDaysOptions,
    delta: Annotated[
        Fraction | None,
        amount(part_of_one("--delta"), "Above 0: Gaussian noise in place of Laplace noise.", show_default=False),
    ] = None,
    least_clients: Annotated[int, typer.Option(metavar="COUNT", help="Release nothing with fewer clients.")] = 100,
    checked: Annotated[
        bool,
        typer.Option(
            "--checked", help="Drop invalid answers; two of three servers together could then see all answers."
        ),
    ] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="One noise for all three servers; two of them together know it.")
    ] = False,
    grid: Annotated[
        bool, typer.Option("--grid", help="With --checked: up to 1,048,576 values, sent as a row and a column.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The task's file.")] = Path(
        "task.json"
    ),
) -> None:
    """Write a task for everybody, and next to it the organiser's key, which closes the task.

    A sum of 0 and 1, such as a count of those who say yes, is --number 0:1 --steps 1, with half the noise of --value.
    """
    from lapwing.secure.organising import new_task
    from lapwing.secure.task import MOST_DELTA

    task, key = new_task(
        question=question,
        asked=_asked(answers),
        epsilon=epsilon,
        delta=delta or Fraction(0),
        least_clients=least_clients,
        checked=checked,
        joint=joint,
        grid=grid,
        repeats=_repetition(days),
        certificates=[file.read_text(encoding="ascii", errors="replace") for file in server],
    )
    _write_new(output, task.to_text(), 0o644)
    _write_new(_key_file(output), key + "\n", 0o600)
    note("written", f"give {output} to everybody; {_key_file(output)} is only for you")
    note("promise", task.promise)
    note("noise", _noise_of(task))
    if task.delta > MOST_DELTA:
        note("delta", f"above {short(MOST_DELTA)}: clients refuse the task unless they say that they accept this delta")


@app.command(epilog=examples("lapwing secure serve north task.json"), short_help="Run one of the servers.")
def serve(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the server.", show_default=False)],
    file: TaskFile,
    epsilon: Annotated[
        Fraction | None,
        amount(
            above_zero("--epsilon"), "Budget for all tasks of this folder; default: the task's.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        Fraction | None,
        amount(part_of_one("--delta"), "The same for delta; default: the task's.", show_default=False),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen there; by default the task's.", show_default=False)
    ] = None,
) -> None:
    """Take parts of answers, and release noisy totals once a task is closed. Ctrl-C ends it and loses nothing."""
    from lapwing.secure.adding import AddingServer, budget_of
    from lapwing.secure.identity import CERTIFICATE
    from lapwing.secure.repeating_server import RepeatingServer

    try:
        from lapwing.secure import repeating_service, service
        from lapwing.secure.serving import run
    except ImportError:
        raise InvalidParameter(
            "A server needs packages that are not installed: `pip install 'lapwing-dp[server]'`."
        ) from None

    task = _task(file)
    certificate = (folder / CERTIFICATE).read_text(encoding="ascii")
    mine = [each for each in task.servers if each.certificate == certificate]
    if not mine:
        raise InvalidParameter(
            f"The task names another certificate than {folder / CERTIFICATE}, so it is not for this server."
        )
    promised = task.epsilon if epsilon is None else epsilon, task.delta if delta is None else delta
    budget_for = budget_of(task.measure, *promised)
    server = RepeatingServer(folder, task, budget_for) if task.repeats else AddingServer(folder, task, budget_for)
    try:
        server.require_affordable()
        spent, budget = server.spent()
        note("serving", f"{mine[0].name} at https://{mine[0].address}: {task.question}")
        note("promise", task.promise)
        place = host or mine[0].host, mine[0].port
        if isinstance(server, RepeatingServer):
            note("spent", f"{spent} of {budget}")
            run(service.served(repeating_service.application(server, mine[0].close_key), folder, *place))
        else:
            delta, kept = server.delta_spent()
            note("spent", f"{spent} of {budget}" + (f", and delta {short(delta)} of {short(kept)}" if kept else ""))
            run(service.configured(server, folder, mine[0].name, *place))
    except KeyboardInterrupt:  # how a service is told to end
        note("ended", "everything that was acknowledged or charged is stored")
    finally:
        server.close()


@app.command(
    epilog=examples("lapwing secure send task.json", "echo walk | lapwing secure send task.json"),
    short_help="Send a client's answer to a task.",
)
def send(
    file: TaskFile,
    device: Annotated[
        Path, typer.Option(metavar="FILE", help="The file in which this device records its answers.")
    ] = Path(DEVICE),
    limit: Annotated[
        Fraction | None,
        amount(
            above_zero("--limit"), "The most that this device may reveal in all; stored for later.", show_default=False
        ),
    ] = None,
    delta_limit: Annotated[
        Fraction | None,
        amount(between("--delta-limit"), "The same for delta; default 1e-5 once --limit is set.", show_default=False),
    ] = None,
    accept_delta: Annotated[
        Fraction | None,
        amount(between("--accept-delta"), "Answer a task with a delta above 1e-5, up to this.", show_default=False),
    ] = None,
    relay: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send sealed parts through this relay.", show_default=False),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Send the parts again that a server did not get.")] = False,
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For tests: answers of many people, one a line.", show_default=False),
    ] = None,
) -> None:
    """Send an answer to a task. The answer leaves this device only in parts.

    The command asks for the answer, or reads it from standard input. No option takes it, because the shell's history
    keeps what you type with a command.
    """
    from lapwing.secure import sending

    task = _task(file)
    if people is not None:
        if relay is not None:
            raise InvalidParameter("--people sends to the servers themselves: leave out --relay.")
        answers = people.read_text(encoding="utf-8").splitlines()
        sending.send_all(task.on(_today(task)), answers)
        note("sent", f"the answers of {len(answers):,} people to {len(task.servers)} servers, nothing of them kept")
        return
    note("promise", task.promise)  # before anybody types an answer
    if not again:
        task.require_small_delta(accept_delta)  # nor types one in vain
    sending.send(
        task,
        None if again else _asked_for(task),
        device,
        limit=limit,
        delta_limit=delta_limit,
        accept_delta=accept_delta,
        relay=relay,
    )
    names = ", ".join(server.name for server in task.servers)
    note("sent", f"a part to each of {names}" if relay is None else f"a sealed part for each of {names} to the relay")


@app.command(
    epilog=examples("lapwing secure relay task.json --listen 0.0.0.0:8480 --tls-cert cert.pem --tls-key key.pem"),
    short_help="Pass sealed parts on to the servers.",
)
def relay(
    file: TaskFile,
    listen: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen.")] = "127.0.0.1:8480",
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the relay stores envelopes.")] = Path("relay"),
    rate: Annotated[
        float,
        typer.Option(
            metavar="N",
            parser=quantity("--rate", "0"),
            help="Requests per second from one address; 0 for no limit.",
        ),
    ] = 20.0,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A certificate with its chain, in PEM form.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, in PEM form.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine speaks TLS with clients.")
    ] = False,
) -> None:
    """Take sealed parts from clients and browsers, and pass them on to the servers. Only the servers can read them.

    Ctrl-C ends it. When you run it again, it passes on what it had acknowledged.
    """
    from lapwing.cli.local.collect import is_loopback, place_of
    from lapwing.secure.relay import Relay

    try:
        from lapwing.secure.relay_service import configured
        from lapwing.secure.serving import run
    except ImportError:
        raise InvalidParameter(
            "A relay needs packages that are not installed: `pip install 'lapwing-dp[server]'`."
        ) from None
    host, port = place_of(listen)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidParameter("TLS takes both, --tls-cert and --tls-key; give the other one too.")
    if not (tls_cert or behind_proxy or is_loopback(host)):
        raise InvalidParameter(
            f"Without TLS, whoever is between a client and {host} could change the module that browsers load. Give "
            "--tls-cert and --tls-key; or, if a proxy on this machine speaks TLS, --behind-proxy."
        )
    passing = Relay(folder, _task(file))
    try:
        scheme = "https" if tls_cert or behind_proxy else "http"
        note("relaying", f"{scheme}://{listen}/secure/{passing.task.digest}/: {passing.task.question}")
        run(configured(passing, host=host, port=port, rate=rate, certificate=tls_cert, key=tls_key))
    except KeyboardInterrupt:  # how a service is told to end
        note("ended", "everything that was acknowledged is stored, and passed on next time")
    finally:
        passing.close()


@app.command(
    epilog=examples("lapwing secure close task.json"), short_help="Close a task to answers and release its totals."
)
def close(
    file: TaskFile,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The organiser's key; default: next to the task.", show_default=False),
    ] = None,
    confidence: Level = None,
    form: Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")] = ReportFormatName.table,
) -> None:
    """Close a task: the servers take no more answers, agree on the clients that all of them have, and release totals.

    If a server does not answer, the command names it; close again when it is back. What was released stays as it was.
    Of a task that repeats, it closes the days that are over.
    """
    from lapwing.secure import organising

    task, held = _task(file), (key or _key_file(file)).read_text(encoding="ascii").strip()
    if task.repeats:
        _show_days(_closed_days(task, held), None, confidence or CONFIDENCE, form)
        return
    _show(organising.close(task, held), confidence or CONFIDENCE, form)


@app.command(
    "next",
    epilog=examples("lapwing secure next task.json --output level2.json"),
    short_help="Write the task of the next level of words.",
)
def next_level(
    file: TaskFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new task's file.")],
    epsilon: Annotated[
        Fraction | None,
        amount(above_zero("--epsilon"), "Of the new level; default: of the last one.", show_default=False),
    ] = None,
    least: Annotated[int, typer.Option(metavar="COUNT", help="Follow prefixes with at least this noisy count.")] = 0,
) -> None:
    """Read what all servers released of a level of words, and write the task for more letters of the frequent ones.

    Clients answer each level, and each costs its own epsilon.
    """
    from lapwing.secure import heavy_hitters, organising

    task, key = heavy_hitters.next_task(organising.totals(_task(file)), epsilon=epsilon, least=least)
    _write_new(output, task.to_text(), 0o644)
    _write_new(_key_file(output), key + "\n", 0o600)
    note("written", f"give {output} to everybody; {_key_file(output)} is only for you")
    note("promise", f"{task.promise}, beside what the levels before have cost")
    note("noise", _noise_of(task))


@app.command(epilog=examples("lapwing secure result task.json"), short_help="Show the result of a closed task.")
def result(
    file: TaskFile,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS", help="Of a task that repeats: totals of this number of last days.", show_default=False
        ),
    ] = None,
    confidence: Level = None,
    form: Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")] = ReportFormatName.table,
) -> None:
    """Get what all servers released, and add it up. Anybody can do this, and nothing is charged."""
    from lapwing.secure import organising, repeating_organiser

    task = _task(file)
    if task.repeats:
        _show_days(repeating_organiser.released_days(task), window, confidence or CONFIDENCE, form)
        return
    if window is not None:
        raise InvalidParameter("--window is of a task that repeats; leave it out.")
    _show(organising.totals(task), confidence or CONFIDENCE, form)


def _repetition(options: SecureDaysOptions) -> "TaskDays | None":
    """Return the days that the options of `init` mean, or refuse those that need --days."""
    from datetime import UTC, date, datetime

    from lapwing.secure.repetition import TaskDays

    if options.days is None:
        if (options.most_days, options.first, options.window) != (None, None, None):
            raise InvalidParameter("--most-days, --first and --window are for a task that repeats: give --days.")
        return None
    try:
        first = datetime.now(UTC).date() if options.first is None else date.fromisoformat(options.first)
    except ValueError:
        raise InvalidParameter("--first must be a date such as 2026-01-31.") from None
    most = options.days if options.most_days is None else options.most_days
    return TaskDays(first=first, days=options.days, most_days=most, window=options.window)


def _today(task: "Task") -> int | None:
    """Return the number of today among the days of a task that repeats.

    Raises:
        InvalidParameter: If today is none of them.
    """
    from datetime import UTC, datetime

    if task.repeats is None:
        return None
    day = task.repeats.day_of(datetime.now(UTC).date())
    if day is None:
        raise InvalidParameter(f"The task is open from {task.repeats.first} to {task.repeats.last}.")
    return day


def _closed_days(task: "Task", key: str) -> "Days":
    """Close the days that are over, and return all days that are released.

    Raises:
        InvalidParameter: If none is over.
    """
    from datetime import UTC, datetime

    from lapwing.secure.repeating_organiser import close_day, due_days, released_days

    for day in due_days(task, len(released_days(task).totals), datetime.now(UTC).date()):
        close_day(task, key, day)
    return released_days(task)


def _show_days(found: "Days", window: int | None, confidence: Fraction, form: ReportFormatName) -> None:
    import json

    if form is ReportFormatName.json:
        print_text(json.dumps(_days_document(found, window, confidence), ensure_ascii=False) + "\n")
        return
    table = new_table(
        "day", "", "estimate", f"{level(confidence)} interval", "answers", numbers=["estimate", "answers"]
    )
    for number in range(1, len(found.totals) + 1):
        answers = f"{found.over(number, window).clients:,}"
        for each in found.estimates(number, window, confidence):
            between_ = f"{_figure(each.low)} to {_figure(each.high)}"
            date = found.repeats.date_of(number).isoformat()
            table.add_row(*map(text, (date, each.label, _figure(each.value), between_, answers)))
    what = "of all days so far" if window is None else f"of the last {window} days"
    facts = labelled(
        ("days", f"{len(found.totals)} of {found.repeats.days} released; each row is {what}"),
        ("promise", found.task.promise),
    )
    show(text(found.task.question, "bold"), Fitted(table), text(""), facts)


def _days_document(found: "Days", window: int | None, confidence: Fraction) -> dict[str, object]:
    return {
        "question": found.task.question,
        "task": found.task.digest,
        "epsilon": written(found.task.epsilon),
        "window": window,
        "confidence": float(confidence),
        "days": [
            {
                "day": number,
                "date": found.repeats.date_of(number).isoformat(),
                "answers": found.over(number, window).clients,
                "estimates": [
                    {"label": each.label, "value": float(each.value), "low": float(each.low), "high": float(each.high)}
                    for each in found.estimates(number, window, confidence)
                ],
            }
            for number in range(1, len(found.totals) + 1)
        ],
    }


def _asked(answers: SecureAnswerOptions) -> "Asked":
    """Return the question that the options of `init` mean, or refuse those that do not belong together."""
    from lapwing.secure.heavy_hitters import first_level
    from lapwing.secure.task import Values, number_between, vector_within

    values, number, parts, steps = answers.value or [], answers.number, answers.part or [], answers.steps
    if answers.values is not None:
        if values:
            raise InvalidParameter("Give --value for each answer, or --values with a file, and not both.")
        values = answers.values.read_text(encoding="utf-8").splitlines()
    upper, l1, l2 = answers.upper, answers.l1, answers.l2
    if answers.alphabet is not None and answers.letters is None:
        raise InvalidParameter("--alphabet is of words: give --letters, too.")
    if [bool(values), answers.letters is not None, number is not None, bool(parts)].count(True) != 1:
        raise InvalidParameter(
            "Give --value for each answer, --values with a file of them, --letters for words, --number with its "
            "bounds, like 0:120, or several --part."
        )
    if (values or answers.letters is not None) and steps is not None:
        raise InvalidParameter("--steps is of the grid of numbers; leave it out.")
    whole = upper is not None and (l1 is None) != (l2 is None)
    if whole != bool(parts) or (not parts and (upper, l1, l2) != (None, None, None)):
        raise InvalidParameter(
            "Several --part need --upper, and either --l1 or --l2. These options are only for --part."
        )
    if values:
        return Values(tuple(values))
    if answers.letters is not None:
        return first_level(answers.alphabet or _ALPHABET, answers.letters)
    grid = 1000 if steps is None else steps
    if number is not None:
        return number_between(number, grid)
    bound = l2 if l1 is None else l1
    return vector_within(parts, upper or Fraction(0), grid, "l2" if l1 is None else "l1", bound or Fraction(0))


def _task(file: Path) -> "Task":
    from lapwing.secure.task import Task

    return Task.from_text(file.read_text(encoding="utf-8", errors="replace"))


def _key_file(task: Path) -> Path:
    return task.with_suffix(KEY_SUFFIX)


def _write_new(path: Path, content: str, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InvalidParameter(
            f"The file {path} already exists, and answers to its task would not count for another one. "
            "Choose another --output."
        ) from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)


def _asked_for(task: "Task") -> str:
    """Return the answer that is typed, unseen, or stands on standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    asked = task.asked.document
    allowed = " / ".join(asked) if isinstance(asked, list) else "a number"
    if isinstance(asked, dict) and "names" in asked:
        allowed = f"numbers between commas: {', '.join(asked['names'])}"
    if isinstance(asked, dict) and "alphabet" in asked:
        allowed = f"a word of up to {asked['length']} letters, of {asked['alphabet'][1:]}"
    return getpass.getpass(f"{task.question} ({allowed}; it is not shown) ")


def _noise_of(task: "Task") -> str:
    from lapwing.secure.estimates import standard_deviation
    from lapwing.secure.task import Values
    from lapwing.secure.words import Words

    if task.repeats:
        return _noise_of_days(task)
    each, servers = task.noise, len(task.servers)
    step = Fraction(1) if isinstance(task.asked, Values | Words) else task.asked.step
    steps = "" if step == 1 else f" steps of {_figure(step)}"
    who = ", one for all servers:" if task.joint else f" by each server; of all {servers} together,"
    return (
        f"{each.name} of scale {float(each.scale):.4g}{steps}{who} "
        f"a standard deviation of {standard_deviation(task) * float(step):.4g}"
    )


def _noise_of_days(task: "Task") -> str:
    from lapwing.secure.repeating_organiser import Days

    if task.repeats is None:
        raise InvalidParameter("The task does not repeat.")
    days, step = Days(task=task, totals=()), float(getattr(task.asked, "step", 1))
    window, last = task.repeats.window, task.repeats.days
    what = f"all {last} days" if window is None else f"{window} days"
    one = max(days.standard_deviation(day, 1) for day in range(1, last + 1))
    return (
        f"{task.noise.name} of scale {float(task.noise.scale) * step:.4g} in each node of a tree. All "
        f"{len(task.servers)} servers together: a standard deviation of at most {one * step:.4g} for one day, and "
        f"{days.standard_deviation(last, window) * step:.4g} for {what}"
    )


def _show(found: "Totals", confidence: Fraction, form: ReportFormatName) -> None:
    from lapwing.secure.estimates import estimates, largest
    from lapwing.secure.part_sums import soundness_error

    if form is ReportFormatName.json:
        print_text(_document(found, confidence))
        return
    many = found.task.asked.width > _MOST_ROWS and found.task.grid
    rows = largest(found, confidence) if many else estimates(found, confidence)
    together = ", all rows together" if many else ""
    table = new_table("", "estimate", f"{level(confidence)} interval{together}", numbers=["estimate"])
    for each in rows[:_MOST_ROWS] if many else rows:
        table.add_row(text(each.label), text(_figure(each.value)), text(f"{_figure(each.low)} to {_figure(each.high)}"))
    tested = []
    if found.dropped is not None:
        error = soundness_error(found.task, found.clients + found.dropped)
        stays = f"one more invalid answer remains with a probability below 10^{math.ceil(math.log10(error))}"
        tested = [("dropped", f"{found.dropped:,}, whose parts add up to no valid answer; {stays}")]
    facts = labelled(
        ("clients", f"{found.clients:,}, counted exactly"),
        *tested,
        *([("shown", f"{min(len(rows), _MOST_ROWS):,} of {len(rows):,} values that are above 0")] if many else []),
        ("noise", _noise_of(found.task)),
        ("promise", found.task.promise),
    )
    show(text(found.task.question, "bold"), Fitted(table), text(""), facts)


def _document(found: "Totals", confidence: Fraction) -> str:
    import json

    from lapwing.secure.estimates import estimates

    return (
        json.dumps(
            {
                "question": found.task.question,
                "task": found.task.digest,
                "clients": found.clients,
                "dropped": found.dropped,
                "set": found.clients_digest,
                "epsilon": written(found.task.epsilon),
                "delta": written(found.task.delta),
                "confidence": float(confidence),
                "estimates": [
                    {"label": each.label, "value": float(each.value), "low": float(each.low), "high": float(each.high)}
                    for each in estimates(found, confidence)
                ],
            },
            ensure_ascii=False,
        )
        + "\n"
    )


def _figure(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.4g}"
