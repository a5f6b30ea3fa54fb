"""A service whose people have passwords."""

from collections.abc import Iterator

import pytest

from tests.support.server.browsing import PASSWORD, Visitor, visitor
from tests.support.server.world import PEOPLE, World, issued, service_in, serving


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
