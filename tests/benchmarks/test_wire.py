"""The benchmark of PostgreSQL clients beside HTTP, with few requests: all of them are answered well."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.long


def test_every_way_is_measured_and_none_fails() -> None:
    command = [sys.executable, str(FOLDER / "wire.py"), "--quick", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for kind in ("charged", "stored"):
        for way in ("http", "simple", "extended"):
            assert re.search(rf"^{kind}, {way} +\d+ a second +\d+\.\d+ ms +\d+\.\d+ times HTTP$", done.stdout, re.M)
    assert "failed" not in done.stdout


def test_it_attacks_the_clock_over_the_wire() -> None:
    command = [sys.executable, str(FOLDER / "timing.py"), "--quick", "--no-padding", "--wire"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "batches" not in done.stdout
    statuses = re.findall(r"(?:absent|within) (\d+)", done.stdout)
    assert set(statuses) == {"200", "422"}
    assert re.search(r"all that are charged +\d+ ", done.stdout)
