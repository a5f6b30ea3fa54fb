"""A running service: one for each file of tests that only reads it, and one for each test that changes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import folder, run, visits
from tests.server.world import World, service_in, serving

__all__ = ["folder", "run", "visits"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(service_in(tmp_path_factory.mktemp("shared"))) as world:
        yield world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(service_in(tmp_path)) as running:
        yield running
