"""The world of the builder's tests."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from lapwing.engines.duckdb.public_data import PublicData
from tests.support.builder.world import World
from tests.support.query.clean import catalog_in


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    catalog = catalog_in(tmp_path_factory.mktemp("builder"))
    with closing(PublicData(catalog)) as facts:
        yield World(catalog, facts)
