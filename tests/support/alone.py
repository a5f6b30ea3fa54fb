"""Tests that measure the clock run while no other test does.

Three processes for two cores run tests, as tests wait for a part of their time. What a test of the
clock measures would then be its neighbours. One that is marked `alone` begins when they have ended, and they go on when
it has.

Others may be busy on this machine too. If such a test fails, and this process had to wait for a processor meanwhile, it
says nothing: the test runs again, a few times at most. What fails on a machine that was free fails.

Two files are locked, which all processes of a run share. Every test holds the room, together with others, or `alone`
for itself. Who wants it goes through the gate, and holds that until the room is there: so no further test begins
while one waits to be alone.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

MARK: Final = "alone"
FOLDER: Final = "LAPWING_TESTS_LOCKS"
TRIES: Final = 5
BUSY: Final = 0.05
"""Seconds that all threads of this process together waited for a processor."""


class Alone:
    """The plugin, registered once in every process of a run: the first makes the files, and the others inherit them."""

    def __init__(self) -> None:
        self._own = FOLDER not in os.environ
        if self._own:
            os.environ[FOLDER] = mkdtemp(prefix="lapwing-tests-")
        self._folder = Path(os.environ[FOLDER])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        kind = fcntl.LOCK_SH if item.get_closest_marker(MARK) is None else fcntl.LOCK_EX
        with (self._folder / "gate").open("a") as gate, (self._folder / "room").open("a") as room:
            fcntl.flock(gate, kind)
            fcntl.flock(room, kind)
            fcntl.flock(gate, fcntl.LOCK_UN)
            try:
                return (yield)
            finally:
                fcntl.flock(room, fcntl.LOCK_UN)  # and not by closing alone: what a test forked may have it open yet

    def pytest_unconfigure(self) -> None:
        if self._own:
            shutil.rmtree(self._folder, ignore_errors=True)
            del os.environ[FOLDER]


class Again:
    """The plugin that runs a test of the clock once more where others on this machine decided how it ended."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if item.get_closest_marker(MARK) is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for tried in range(1, TRIES + 1):
            before = waited()
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if tried == TRIES or waited() - before < BUSY or not any(report.failed for report in reports):
                break
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def waited() -> float:
    """Return for how many seconds the threads that this process has were ready to run, and had no processor.

    Where the system does not say so, 0: then nothing runs again.
    """
    total = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # it has ended meanwhile
            total += int(task.read_text().split()[1])
    return total / 1e9
