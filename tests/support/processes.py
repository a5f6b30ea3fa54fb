"""Processes that begin as copies of one that has imported everything.

An interpreter that imports Lapwing takes half a second of the processor; a copy of one that has it takes a hundredth.
What a test says of processes stays the same: each has its own memory, threads, signals and end. For what is about the
start or the end of an interpreter itself, take `subprocess`.

`multiprocessing` keeps the process that is copied, and ends it with this one.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TextIO, final

IMPORTED: Final = [
    *("lapwing.cli.commands", "lapwing.opening", "lapwing.engines", "lapwing.ledger.opening", "lapwing.monitors"),
    *("lapwing.ledger.sqlite.chain", "lapwing.ledger.postgres.chain", "lapwing.release.waiting"),
    *("psycopg", "pyarrow.parquet", "pytest"),
]
"""What most of them use, none of which starts a thread when it is imported."""
CONTEXT: Final = multiprocessing.get_context("forkserver")
"""For who wants processes without pipes."""
CONTEXT.set_forkserver_preload(IMPORTED)


@final
class Process:
    """A process with pipes, as `subprocess.Popen` has them, in UTF-8."""

    def __init__(self, work: Callable[..., object], given: Sequence[object], cwd: Path, env: Mapping[str, str]) -> None:
        ends = [os.pipe() for _ in range(3)]
        theirs = [Connection(ends[0][0], writable=False), *(Connection(end[1], readable=False) for end in ends[1:])]
        self._process = CONTEXT.Process(target=_begin, args=(work, given, str(cwd), dict(env), *theirs))
        self._process.start()
        for end in theirs:
            end.close()
        self.stdin: TextIO = os.fdopen(ends[0][1], "w", encoding="utf-8")
        self.stdout: TextIO = os.fdopen(ends[1][0], encoding="utf-8")
        self.stderr: TextIO = os.fdopen(ends[2][0], encoding="utf-8")

    @property
    def pid(self) -> int:
        """Its number, which the system gives to another one when it has ended."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its status, or the signal that ended it, negated; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return its status as `returncode`."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutError(f"It goes on after {timeout} s.")
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs still."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, if it runs still."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Close what it reads, wait until it has ended, and return all that it wrote."""
        self.stdin.close()
        said = dict[TextIO, str]()
        files = (self.stdout, self.stderr)
        readers = [threading.Thread(target=lambda file=file: said.update({file: file.read()})) for file in files]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader, file in zip(readers, files, strict=True):
            reader.join()
            file.close()
        return said[self.stdout], said[self.stderr]


def started(program: str, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Process:
    """Start a module, as `python -m` does, or a text of several lines, as `python -c` does."""
    work = _run_text if "\n" in program else _run_module
    given = (program, list(arguments))
    return Process(work, given, Path.cwd() if cwd is None else cwd, os.environ if env is None else env)


def ended(
    program: str, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 600
) -> tuple[int, str, str]:
    """Run a program to its end, and return its status and what it wrote."""
    process = started(program, *arguments, cwd=cwd, env=env)
    try:
        out, err = process.communicate(timeout)
    finally:
        process.kill()
    assert process.returncode is not None
    return process.returncode, out, err


def _begin(
    work: Callable[..., object],
    given: Sequence[object],
    cwd: str,
    env: Mapping[str, str],
    *ends: Connection,
) -> None:
    """Take the place of a new interpreter."""
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout, sys.stderr = (
        TextIOWrapper(os.fdopen(0, "rb", closefd=False), "utf-8"),
        TextIOWrapper(os.fdopen(1, "wb", closefd=False), "utf-8"),
        TextIOWrapper(os.fdopen(2, "wb", closefd=False), "utf-8", write_through=True),
    )
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work(*given)


def _run_module(name: str, arguments: list[str]) -> None:
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_text(text: str, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments]
    exec(compile(text, "<text>", "exec"), {"__name__": "__main__"})
