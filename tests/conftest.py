"""Settings of the whole suite. The short run draws the same examples every time, so that a red run is red again."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from hypothesis import is_hypothesis_test

from tests.support import effort
from tests.support.alone import Again, Alone
from tests.support.postgres import own_postgres, postgres, postgres_files, shared_postgres
from tests.support.timing import Timing

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Tests run side by side already; NumPy reads this when it is first imported, which may be later than here."""

__all__ = ["own_postgres", "postgres", "postgres_files", "shared_postgres"]

MEMORY: Final = Path("/dev/shm")
ENOUGH: Final = 4 << 30
"""Free bytes: all folders that tests of one run keep take a fraction of them."""


def is_for_tests(memory: Path) -> bool:
    """Return whether a file system in memory is there, has room, and lets programs of tests run."""
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(memory).free > ENOUGH


if is_for_tests(MEMORY):  # ledgers sync to disk, for which tests wait a third of their time
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

effort.register()
gc.disable()
"""Until all tests are found: they and all modules stay, so that each search for garbage would find none of them."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing())
    config.pluginmanager.register(Alone())
    config.pluginmanager.register(Again())
    config.stash[gc_collect_iterations_key] = 1  # of five searches for garbage at the end, which take seconds


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no case of a long test where only the others run: a third of all cases, in every process of a run."""
    if collector.config.option.markexpr != effort.SHORT_RUN:
        return None
    marks = getattr(obj, "pytestmark", [])
    return [] if isinstance(marks, list) and any(mark.name == "long" for mark in marks) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no case of a table that is long, where only the others run: another third."""
    if metafunc.config.option.markexpr != effort.SHORT_RUN:
        return
    every = metafunc.parametrize

    def short(argnames: Any, argvalues: Any, *more: Any, ids: Any = None, **named: Any) -> None:
        rows = list(argvalues)
        places = [place for place, row in enumerate(rows) if not effort.is_long_case(row)] or range(len(rows))
        names = ids if ids is None or callable(ids) else list(ids)
        kept = [names[place] for place in places] if isinstance(names, list) else names
        every(argnames, [rows[place] for place in places], *more, ids=kept, **named)

    metafunc.parametrize = short  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take every property test into the long run: it tries other examples there, and more."""
    if not effort.is_long():
        return
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Keep all tests and modules, which live as long as the run, out of every search for garbage from here on."""
    gc.freeze()
    gc.set_threshold(20_000)  # after 700 objects, as Python has it, searches take a fiftieth of the whole run
    gc.enable()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt this process, also where a shell that runs it in the background has it ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
