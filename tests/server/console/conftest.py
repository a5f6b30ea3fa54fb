"""A service whose people have passwords, which are hashed quickly."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from lapwing.server import credentials
from tests.support.server.browsing import PASSWORD, Visitor, visitor
from tests.support.server.world import PEOPLE, World, issued, service_in, serving


@pytest.fixture(autouse=True, scope="module")
def quick_hashes() -> Iterator[None]:
    """Hash passwords in a millisecond, not in a tenth of a second: what is tested here rests on no hash."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


def with_passwords(world: World) -> World:
    """Give everybody the same password, and tokens again."""
    for name in PEOPLE:
        world.service.people.change(name, password=PASSWORD, by="carol")
    world.tokens.update(issued(world.service))
    return world


@pytest.fixture
def place(world: World) -> World:
    return with_passwords(world)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service for tests that only look."""
    with serving(service_in(tmp_path_factory.mktemp("console"))) as running:
        running.catalog_file()
        yield with_passwords(running)


@pytest.fixture
def alice(place: World) -> Visitor:
    return visitor(place, "alice")
