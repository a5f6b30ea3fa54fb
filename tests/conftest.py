"""Settings of the whole suite. Hypothesis draws the same examples every time, so that a red run is red again."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.postgres import own_postgres, postgres, shared_postgres

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Tests run side by side already; NumPy reads this when it is first imported, which may be later than here."""

__all__ = ["own_postgres", "postgres", "shared_postgres"]

settings.register_profile(
    "lapwing", deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck), database=None
)
settings.load_profile("lapwing")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt this process, also where a shell that runs it in the background has it ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
