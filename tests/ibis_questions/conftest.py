"""The world of the tests of expressions."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.support.query.clean import catalog_in
from tests.support.query.ibis_world import World

from lapwing.engines.duckdb.public_data import PublicData


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    catalog = catalog_in(tmp_path_factory.mktemp("ibis"))
    with closing(PublicData(catalog)) as facts:
        yield World(catalog, facts)
