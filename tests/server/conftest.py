"""A running service: one for each file of tests that only reads it, and one for each test that changes it."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from lapwing.server import credentials, policies
from tests.support.cli.command import folder, run, visits
from tests.support.engines.reused import reused_databases
from tests.support.server.queueing import ONE
from tests.support.server.world import World, service_in, serving

__all__ = ["folder", "reused_databases", "run", "visits"]


@pytest.fixture(autouse=True)
def cheap_questions() -> Iterator[None]:
    """Let questions cost as little as they do in a library: tests ask many of one data set (`test_least_price`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "USUAL_LEAST", Fraction(0))
        yield


@pytest.fixture(autouse=True, scope="module")
def quick_hashes() -> Iterator[None]:
    """Hash passwords in a millisecond, not in a tenth of a second: what is tested here rests on no hash."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(service_in(tmp_path_factory.mktemp("shared"))) as world:
        yield world


@pytest.fixture
def people(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the people of a service are kept: in a file, or as a test asks for by `on_both`."""
    return (
        request.getfixturevalue("postgres") if getattr(request, "param", "") == "postgres" else f"{tmp_path}/people.db"
    )


@pytest.fixture
def world(tmp_path: Path, people: str) -> Iterator[World]:
    with serving(service_in(tmp_path, people=people)) as running:
        yield running


@pytest.fixture
def one(tmp_path: Path, people: str) -> Iterator[World]:
    """A service that runs one question at once, of a data set that alice and bob may ask."""
    with serving(service_in(tmp_path, ONE, people=people)) as running:
        running.service.policies.grant("open", "bob", None, {}, running.session().budget().total, by="carol")
        yield running
