"""`lapwing demo secure`: three servers add up a thousand answers, one is killed and comes back, and none saw anything.

The servers are processes of their own, on this machine, started as anybody would start them.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from lapwing.cli.console import new_table, page_width, show, text
from lapwing.cli.demo import stage
from lapwing.errors import Fault, ServiceFault
from lapwing.exact.entropy import SYSTEM

if TYPE_CHECKING:
    from lapwing.secure.task import Task

NAMES: Final = ("north", "south", "west")
QUESTION: Final = "Have you ever cheated in an exam?"
ANSWERS: Final = {"never": 560, "once": 300, "more often": 140}
"""How many of the made-up people answer what."""
LATE: Final = "once"
PATIENCE: Final = 900.0
"""Seconds to wait for a server, to start or to reply: on a busy machine it needs minutes."""
_PORTS: Final = range(10_000, 30_000)


def play(folder: Path) -> None:
    """Show it all, in a folder that is empty."""
    from lapwing.secure import organising, sending

    show(Text("Lapwing: sums that no single server sees", style="bold"), Text())
    task, key = _made(folder)
    file = folder / "task.json"
    file.write_text(task.to_text(), encoding="utf-8")
    with _servers(folder, file) as running:
        _await(task, running)
        _scene(1, "Three servers, run by different people")
        show(
            Text(
                f"“{QUESTION}” is asked of 1,001 people. {', '.join(NAMES)} are three processes, each with a key of "
                f"its own. The promise: {task.promise}."
            )
        )
        _scene(2, "A thousand people answer")
        answers = [answer for answer, count in ANSWERS.items() for _ in range(count)]
        sending.send_all(task, answers, seconds=PATIENCE)
        _show_held(folder, task)
        _scene(3, f"{NAMES[1]} is killed, while one more person answers")
        running[NAMES[1]].kill()
        running[NAMES[1]].wait()
        device = folder / "device.json"
        try:
            sending.send(task, LATE, device, seconds=PATIENCE)
        except ServiceFault as fault:
            show(Text(str(fault)))
        _try_to_close(task, key)
        running[NAMES[1]] = _start(folder, file, NAMES[1])
        _await(task, running)
        sending.send(task, None, device, seconds=PATIENCE)
        show(
            Text(
                f"{NAMES[1]} is back. It kept what it had acknowledged; the device sent it the part that it had missed."
            )
        )
        _scene(4, "The task is closed: each server adds its own noise to its own sums")
        found = organising.close(task, key, PATIENCE)
        _show_result(found.clients, found)
        again = organising.close(task, key, PATIENCE)
        same = "the same numbers" if again.cells == found.cells else "other numbers"
        show(Text(f"Closed again, the servers give {same}: a set of clients is charged and released once."))


def _made(folder: Path) -> tuple["Task", str]:
    from lapwing.secure.identity import make_identity
    from lapwing.secure.organising import new_task
    from lapwing.secure.values import Values

    certificates = [make_identity(folder / name, name, f"127.0.0.1:{port}") for name, port in _free_ports().items()]
    return new_task(
        question=QUESTION,
        asked=Values(tuple(ANSWERS)),
        epsilon=Fraction(1),
        delta=Fraction(0),
        least_clients=100,
        certificates=[certificate.read_text(encoding="ascii") for certificate in certificates],
    )


def _free_ports() -> dict[str, int]:
    """Return a port for each server, below those that systems give to connections: until it listens, none takes it."""
    doors: dict[str, socket.socket] = {}
    try:
        for _ in range(1000):
            with suppress(OSError):  # somebody listens there: try another one
                port = _PORTS[int.from_bytes(SYSTEM.read(4), "big") % len(_PORTS)]
                doors[NAMES[len(doors)]] = socket.create_server(("127.0.0.1", port))
            if len(doors) == len(NAMES):
                return {name: int(door.getsockname()[1]) for name, door in doors.items()}
        raise Fault("No process can listen on 127.0.0.1 here. Try again.")
    finally:
        for door in doors.values():
            door.close()


@contextmanager
def _servers(folder: Path, file: Path) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    running = {name: _start(folder, file, name) for name in NAMES}
    try:
        yield running
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        for process in running.values():
            process.wait()


def _start(folder: Path, file: Path, name: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "lapwing", "secure", "serve", os.fspath(folder / name), os.fspath(file)]
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603 - our own


def _await(task: "Task", running: Mapping[str, "subprocess.Popen[bytes]"]) -> None:
    """Wait until all servers listen. A server whose process ended will not: it is named at once.

    Raises:
        Fault: If one does not listen.
    """
    from lapwing.secure.transport import lines

    until = time.monotonic() + PATIENCE
    with lines(task, PATIENCE) as each:
        for line in each:
            name = line.server.name
            while True:
                try:
                    line.progress()
                    break
                except ServiceFault:
                    if running[name].poll() is not None:
                        raise Fault(f"{name} ended before it listened. {name}.log in the folder says why.") from None
                    if time.monotonic() > until:
                        raise Fault(f"{name} did not listen within {PATIENCE / 60:g} minutes. Try again.") from None
                    time.sleep(0.05)


def _show_held(folder: Path, task: "Task") -> None:
    """Show what each server has of one client: read from its file, as its operator could."""
    import sqlite3

    from lapwing.secure.wire import cells_of

    table = new_table("", *ANSWERS, numbers=ANSWERS)
    client = None
    for name in NAMES:
        with sqlite3.connect(folder / name / f"parts-{task.digest[:16]}.db") as file:
            query = "SELECT client, cells FROM part WHERE client = ? OR ? IS NULL LIMIT 1"
            client, cells = file.execute(query, (client, client)).fetchone()
        file.close()
        table.add_row(text(f"{name} holds"), *(text(str(cell)) for cell in cells_of(cells)))
    show(Text("The servers' records of one person, whose answer is 1 in one column and 0 in the others:"), table)
    show(
        Text(
            "Each single number, and any two of a column, are uniform below 2^61 - 1: they reveal nothing. All three "
            "of a column add up to 0 or 1, modulo 2^61 - 1. Only all three servers together could see that."
        )
    )


def _try_to_close(task: "Task", key: str) -> None:
    from lapwing.secure import organising

    try:
        organising.close(task, key, PATIENCE)
    except ServiceFault:
        show(Text("Nobody can close the task in the meantime: without all servers, nothing is released."))


def _show_result(clients: int, found: object) -> None:
    from lapwing.secure.estimates import estimates, standard_deviation
    from lapwing.secure.organising import Totals

    if not isinstance(found, Totals):
        raise TypeError
    table = new_table("", "estimate", "95 % interval", "truth – teaching only", numbers=["estimate"])
    truth = Counter(ANSWERS) + Counter([LATE])
    for each in estimates(found):
        interval = f"{int(each.low):,} to {int(each.high):,}"
        table.add_row(text(each.label), text(f"{int(each.value):,}"), text(interval), text(f"{truth[each.label]:,}"))
    deviation = standard_deviation(found.task)
    show(
        Text(f"{clients:,} people. The noise of three servers has a standard deviation of {deviation:.3g} people."),
        table,
    )


def _scene(number: int, title: str) -> None:
    show(stage.heading(number, title, page_width(sys.stdout)))
