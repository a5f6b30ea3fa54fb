"""`lapwing secure send`: a client's answer leaves this device in parts."""

import getpass
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lapwing.cli.console import note
from lapwing.cli.options import above_zero, amount, between
from lapwing.cli.secure.days import today_of
from lapwing.cli.secure.task_files import TaskFile, task_in
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.secure.task import Task

DEVICE: Final = "device.json"


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

    task = task_in(file)
    if people is not None:
        if relay is not None:
            raise InvalidParameter("--people sends to the servers themselves: leave out --relay.")
        answers = people.read_text(encoding="utf-8", errors="replace").splitlines()
        sending.send_all(task.on(today_of(task)), answers)
        note("sent", f"the answers of {len(answers):,} people to {len(task.servers)} servers, nothing of them kept")
        return
    note("promise", task.promise)  # before anybody types an answer
    if not again:
        task.require_small_delta(accept_delta)  # nor types one in vain
    sending.send(
        task,
        None if again else typed_answer(task),
        device,
        limit=limit,
        delta_limit=delta_limit,
        accept_delta=accept_delta,
        relay=relay,
    )
    names = ", ".join(server.name for server in task.servers)
    note("sent", f"a part to each of {names}" if relay is None else f"a sealed part for each of {names} to the relay")


def typed_answer(task: "Task") -> str:
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
