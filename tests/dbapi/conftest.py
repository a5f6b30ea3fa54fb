"""The same small data set, opened here and held by a service: what is a connection's must hold of both."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing import dbapi
from lapwing.server import policies
from tests.support.engines.reused import reused_databases
from tests.support.server.world import World, data_set, service_in, serving

__all__ = ["reused_databases"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a service whose queries may cost as little as those of a library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "USUAL_LEAST", Fraction(0))
        with serving(service_in(tmp_path_factory.mktemp("shared"))) as world:
            yield world


@pytest.fixture(params=["local", "remote"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dbapi.Connection]:
    """Return a connection whose queries cost ε = 1 unless they say otherwise."""
    if request.param == "local":
        with data_set(tmp_path, "open") as session:
            yield dbapi.connect(session, epsilon=1)
    else:
        world: World = request.getfixturevalue("shared")
        with dbapi.connect(world.address, token=world.tokens["alice"], epsilon=1) as remote:
            yield remote
