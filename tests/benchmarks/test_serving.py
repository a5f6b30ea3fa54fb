"""The load benchmark of the service, with few requests: it runs to its end, and all of them are answered well."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "serving.py"
pytestmark = pytest.mark.long
KINDS = ("charged", "the same", "by id", "explain", "charged, with idle ones")


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run([sys.executable, FILE, "--quick"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_kind_of_request_is_measured_and_none_fails(printed: str) -> None:
    lines = {line[:26].strip(): line[26:].split() for line in printed.splitlines()}
    for kind in (*KINDS, "uvicorn says hello"):
        rate, _median, slow, server, client, *_ = map(float, lines[kind][:6])
        assert rate > 0, kind
        assert slow > 0, kind
        assert server + client > 0, kind
    for kind in ("a row, synced", "DuckDB, the rows alone", "ledger, charge and answer", "session.sql, charged"):
        assert float(lines[kind][0]) > 0, kind
    assert "failed" not in printed


def test_idle_connections_are_still_served(printed: str) -> None:
    found = re.search(r"still served: (\d+) of (\d+)", printed)
    assert found is not None
    assert found[1] == found[2]
