"""A standalone Spark cluster of one master and some workers, or a Connect server, for as long as a test needs it."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_DEPLOY: Final = "org.apache.spark.deploy"


@dataclass(frozen=True, kw_only=True)
class Standalone:
    """A running cluster. Args: master: its address; workers: their processes; folder: what executors leave is below."""

    master: str
    workers: Sequence["subprocess.Popen[bytes]"]
    folder: Path

    def written(self) -> str:
        """Return all that executors wrote to their output and their errors."""
        return "".join(
            file.read_text(errors="replace") for name in ("stdout", "stderr") for file in self.folder.rglob(name)
        )


@dataclass(frozen=True, kw_only=True)
class ConnectServer:
    """A running server of Spark Connect. Args: port: where it listens; process: its JVM."""

    port: int
    process: "subprocess.Popen[bytes]"

    def worked(self) -> float:
        """Return the processor time that it has taken, in seconds."""
        return worked(self.process.pid)


def worked(process: int) -> float:
    """Return the processor time that a process has taken, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _die_with_parent() -> None:
    """Have the kernel end this process with the one that started it, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def standalone(folder: Path, *, workers: int = 2, memory: str = "700m") -> Iterator[Standalone]:
    """Run a cluster; every process of it ends with the block."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home, port = Path(spec.origin).parent, free_port()
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{name}", *arguments]
        log = (folder / f"{len(running)}.log").open("wb")
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True, preexec_fn=_die_with_parent
        )
        log.close()
        running.append(process)
        return process

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        _until(lambda: _answers(port), "the master")
        master = f"spark://127.0.0.1:{port}"
        offered = ("--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0")
        ours = [start("worker.Worker", *offered, master) for _ in range(workers)]
        known = folder / "0.log"
        _until(lambda: known.read_text(errors="replace").count("Registering worker") >= workers, "the workers")
        yield Standalone(master=master, workers=ours, folder=folder / "work")
    finally:
        for process in reversed(running):
            _end(process)


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str], port: int | None = None) -> Iterator[ConnectServer]:
    """Run a server of Spark Connect in local mode; what it writes goes to `connect.log`."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    port = port or free_port()
    own = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    own |= {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder)}
    command = [str(Path(spec.origin).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in (own | dict(settings)).items():
        command += ["--conf", f"{name}={value}"]
    with (folder / "connect.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    try:
        _until(lambda: _answers(port), "the Connect server")
        yield ConnectServer(port=port, process=process)
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process with its group: asked first, as then it clears away its folders of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(20)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 180
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} of a Spark cluster did not start")
        time.sleep(0.2)
