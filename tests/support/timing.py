"""Where the time of a run goes: processor seconds of each part of the suite, at the end of the run.

Processor time, of this process and of those that it has waited for, and not the clock: tests run side by side, and a
machine that does other work too would be measured with them. A worker adds to every report what passed since the one
before, so that fixtures count where they are made; the process that prints, which may be another, adds these up.
"""

import os
from collections import defaultdict
from typing import Any, Final

import pytest

LONGEST: Final = 5
"""How many single tests are shown."""


def spent() -> float:
    """Return the processor seconds of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def most(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])


class Timing:
    """The plugin, registered once in every process of a run."""

    def __init__(self) -> None:
        self._before = 0.0
        self._parts: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._before = spent()
        output = getattr(session.config, "workeroutput", None)
        if output is None:
            self._parts["(start and collection)"] += self._before
        else:
            output["collection"] = self._before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = spent()
        report.processor_seconds, self._before = now - self._before, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = getattr(report, "processor_seconds", 0.0)
        folders = report.nodeid.split("::")[0].split("/")
        self._parts["/".join(folders[:2])] += seconds
        self._tests[report.nodeid] += seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._parts["(start and collection)"] += getattr(node, "workeroutput", {}).get("collection", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor seconds by part")
        for part, seconds in most(self._parts):
            terminalreporter.write_line(f"{seconds:8.1f}  {part}")
        terminalreporter.write_line(f"{sum(self._parts.values()):8.1f}  in all")
        for test, seconds in most(self._tests)[:LONGEST]:
            terminalreporter.write_line(f"{seconds:8.1f}  {test}")
