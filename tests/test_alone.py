"""A test that is marked `alone` overlaps with none, and others overlap with one another."""

import itertools
from pathlib import Path

import pytest

from tests.support import alone
from tests.support.effort import only

pytest_plugins = ["pytester"]

TESTS = """
import time
import pytest

@pytest.mark.parametrize("number", range(12))
def test_together(number): noted("together")

@pytest.mark.alone
@pytest.mark.parametrize("number", range(2))
def test_alone(number): noted("alone")

def noted(kind):
    begun = time.monotonic()
    time.sleep(0.03)
    with open("log", "a") as log:
        log.write(f"{kind} {begun} {time.monotonic()}\\n")
"""


def overlaps(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mark: str) -> set[tuple[str, str]]:
    """Return which kinds of tests ran at the same time as which."""
    monkeypatch.delenv(alone.FOLDER)  # of the run that this test is in
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST + f"alone.MARK = {mark!r}\n")
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-n", "3", "-q", "-p", "no:cacheprovider").assert_outcomes(passed=14)
    lines = [line.split() for line in (pytester.path / "log").read_text().splitlines()]
    runs = [(kind, float(begun), float(ended)) for kind, begun, ended in lines]
    return {
        (kind, other)
        for place, (kind, begun, ended) in enumerate(runs)
        for other, begun_too, ended_too in runs[:place] + runs[place + 1 :]
        if begun < ended_too and begun_too < ended
    }


CONFTEST = """
from tests.support import alone
def pytest_configure(config):
    config.addinivalue_line("markers", "alone: as here")
    config.pluginmanager.register(alone.Alone())
"""


@pytest.mark.long
def test_nothing_else_runs_meanwhile(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    assert overlaps(pytester, monkeypatch, alone.MARK) == {("together", "together")}


@pytest.mark.long
def test_twin_a_mark_that_is_not_looked_at(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("alone", "together") in overlaps(pytester, monkeypatch, "another")


FAILING = """
import pytest
from tests.support import alone

seen = []

@pytest.fixture
def fresh():
    yield len(seen)

@pytest.mark.alone
def test_once(fresh):
    seen.append(fresh)
    assert len(seen) == 3

@pytest.mark.alone
def test_always():
    assert False

def test_of_something_else():
    assert False

def test_the_end():
    assert seen == [0, 1, 2][: len(seen)] and len(seen) == {most}
"""


@pytest.mark.parametrize(("busy", "most"), only([0], [(True, 3), (False, 1)], many=True))
def test_what_fails_runs_again_where_the_machine_was_busy_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, busy: bool, most: int
) -> None:
    clock = itertools.count(step=alone.BUSY * 2 if busy else 0)
    monkeypatch.setattr(alone, "waited", lambda: next(clock))
    pytester.makeconftest(CONFTEST.replace("Alone", "Again"))
    pytester.makepyfile(FAILING.replace("{most}", str(most)))
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=1 + busy, failed=2 + (not busy))
