"""A test that is marked `alone` overlaps with none, and others overlap with one another."""

from pathlib import Path

import pytest

from tests.support import alone

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
    pytester.makeconftest(f"from tests.support import alone\nalone.MARK = {mark!r}\n" + CONFTEST)
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
