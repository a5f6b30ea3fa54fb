"""The one application that all tests of Spark share, and what is done where its JVM ends in the middle of them."""

from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from lapwing.engines.spark.cluster import Cluster
from tests.support.engines import spark

_ends: list[str] = []
"""Tests during which the JVM ended although they had not ended it, and how it ended."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with spark.application() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _running(request: pytest.FixtureRequest) -> None:
    """Start another application where that of the tests before has ended."""
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").renew()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test again, the first time that the JVM ends under one: a machine short of memory kills the largest."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    java = spark.java()
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    ended = None if java is None else java.poll()
    if ended is not None and any(report.failed for report in reports):
        _ends.append(f"{item.nodeid} (exit {ended})")
        if len(_ends) == 1:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for end in _ends:
        terminalreporter.write_line(f"The JVM of Spark ended during {end}")
