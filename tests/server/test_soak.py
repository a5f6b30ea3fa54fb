"""A service that is stalled, killed, and left without disk and database loses no answer, and charges nothing twice."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.postgres import Postgres
from tests.support.server.crew import Crew
from tests.support.server.soak import soaked

MINUTES = 1.0
"""`python -m tests.support.server.soak --minutes 30` does it for longer."""


@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nothing_is_lost_and_nothing_charged_twice(store: str, request: pytest.FixtureRequest) -> None:
    postgres: Postgres | None = request.getfixturevalue("own_postgres") if store == "postgres" else None
    with tempfile.TemporaryDirectory() as folder:  # with a path that is short enough for the sockets of engines
        found = soaked(Path(folder), MINUTES, postgres, seed=hash(folder))
    assert (found.lost, found.double, found.unexplained) == ([], [], []), str(found)
    assert found.told["charged"] > 0
    assert found.told["stored"] > 0
    assert found.wrong.total() > 3


def test_a_stranger_with_the_number_of_a_worker_that_ended_is_left_alone(tmp_path: Path) -> None:
    """Numbers of processes are used again: a soak of half an hour once killed a process of somebody else."""
    command, environment = [sys.executable, "-c", "input(chr(10))"], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as ours:
        assert ours.stdout is not None
        ours.stdout.readline()  # it runs: while a process begins, the system does not show its environment
        (tmp_path / "serve.log").write_text(
            "".join(f"{json.dumps({'event': 'worker started', 'process': one})}\n" for one in (os.getpid(), ours.pid))
        )
        running = Crew(parent=ours, log=tmp_path / "serve.log")
        assert running.workers == [os.getpid(), ours.pid]
        assert running.living == [ours.pid]
        ours.communicate(b"\n")
    assert running.living == []
