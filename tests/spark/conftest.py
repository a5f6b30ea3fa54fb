"""The one application that all tests of Spark share."""

from collections.abc import Iterator

import pytest

from lapwing.engines.spark.cluster import Cluster
from tests.support.engines import spark


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with spark.application() as opened:
        yield opened
