"""Ctrl-C: exit status 130, and a message that says truly whether the price was paid."""

import signal
import time
from pathlib import Path

import pytest

import lapwing as lw
from tests.support.effort import one_in
from tests.support.processes import Process, started

COUNT = "SELECT COUNT(*) AS n FROM visits"
# A process begins within two seconds where it is alone on the machine.
MOST_SECONDS = 120


def stop_at(place: str, folder: Path) -> tuple[int, str, str]:
    """Run a question that hangs at a place, press Ctrl-C there and once more, and return status and what was said."""
    command = ("tests.support.cli.stopped", place, "query", COUNT, "--epsilon", "0.5")
    process = started(*command, cwd=folder, env={"LANG": "C.UTF-8"})
    try:
        wait_for(folder / "reached", process)
        process.send_signal(signal.SIGINT)
        if place != "opening":
            wait_for(folder / "closing", process)
            process.send_signal(signal.SIGINT)
            (folder / "pressed").touch()
        out, err = process.communicate(timeout=MOST_SECONDS)
    finally:
        process.kill()
    return process.wait(), out, err


def wait_for(sign: Path, process: Process) -> None:
    """Wait for a file that a process makes."""
    deadline = time.monotonic() + MOST_SECONDS
    while not sign.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("place", "charged", "words"),
    one_in(
        8,
        [
            ("opening", False, "nothing was charged"),
            ("planning", False, "nothing was paid"),
            pytest.param("comparing", False, "nothing was paid", marks=pytest.mark.long),
            ("running", True, "the cost is charged"),
            pytest.param("noise", True, "the cost is charged", marks=pytest.mark.long),
            pytest.param("between", True, "the cost is charged", marks=pytest.mark.long),
            ("writing", True, "The cost is charged, and the result is stored. Run the query again: that is free"),
        ],
        many=True,
    ),
)
def test_it_says_whether_it_was_charged(visits: Path, place: str, charged: bool, words: str) -> None:
    status, out, err = stop_at(place, visits)
    assert (status, out) == (130, "")
    assert err.startswith("lapwing: ")
    assert words in err
    assert "Traceback" not in err
    with lw.connect() as session:
        assert (session.budget().spent.amount > 0) is charged
        assert session.faults() == (), "impatience is no fault"
