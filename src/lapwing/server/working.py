"""One process of a service: what it opens, and how it serves as one of several workers."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import final

from lapwing.errors import LapwingError
from lapwing.opening import connect
from lapwing.server import running
from lapwing.server.journal import log, open_log
from lapwing.server.problems import place_of
from lapwing.server.running import Place
from lapwing.server.service import Service, Settings


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a process of a service opens, and where it listens.

    Args: people: where the store is, the usual place unless given; counts: where the workers keep what they counted.
    """

    catalogs: tuple[Path, ...]
    people: str | None
    settings: Settings
    place: Place
    counts: Path | None = None


@contextmanager
def opened(plan: Plan) -> Iterator[Service]:
    """Open what a plan says.

    Raises: what `lapwing.connect` raises; InvalidParameter, Fault.
    """
    with ExitStack() as stack:
        sessions = []
        for path in plan.catalogs:
            session = connect(path)
            stack.callback(session.close)
            sessions.append(session)
        service = Service(plan.people, sessions, plan.settings, plan.counts)
        stack.callback(service.close)
        yield service


def work(plan: Plan, number: int, door: socket.socket, parent: Connection) -> None:
    """Serve as one of several workers, until told to end or until the parent has died.

    It leaves the parent's process group, so that Ctrl-C on a terminal reaches the parent alone, which passes it on.
    """
    os.setpgid(0, 0)
    open_log(number)
    running.keep_threads_quiet()
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()

    said = False

    async def ready() -> None:
        nonlocal said
        if not said:
            said = True
            with suppress(OSError):
                parent.send_bytes(b"ready")

    try:
        with opened(plan) as service:
            serving = running.server(service, plan.place, worker=number, ready=ready)
            with running.what_is_there_kept():
                serving.run(sockets=[door])
    except LapwingError as error:
        log("not opened", code=error.code, detail=str(error))
        sys.exit(1)
    except Exception as error:
        log("bug", kind=type(error).__name__, place=place_of(error))
        sys.exit(1)


def _end_after(parent: Connection) -> None:
    """End this process when its parent has ended: it says nothing, so its line is quiet until then."""
    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os.kill(os.getpid(), signal.SIGTERM)
