"""Tests that measure the clock run while no other test does.

Twice as many processes as there are cores run tests, as tests wait for half of their time. What a test of the
clock measures would then be its neighbours. One that is marked `alone` begins when they have ended, and they go on when
it has.

Two files are locked, which all processes of a run share. Every test holds the room, together with others, or `alone`
for itself. Who wants it goes through the gate, and holds that until the room is there: so no further test begins
while one waits to be alone.
"""

import fcntl
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

MARK: Final = "alone"
FOLDER: Final = "LAPWING_TESTS_LOCKS"


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
