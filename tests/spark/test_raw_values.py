"""On Spark too, answers are those of plain DuckDB on the raw file, or a note of theirs says why not."""

from pathlib import Path

import pytest

from lapwing.engines.spark.cluster import Cluster
from tests.support.effort import SEED
from tests.support.raw_values import Grammar, compare, world
from tests.support.reviewed_rows import Reviewed


@pytest.mark.parametrize(
    ("seed", "count"), [(4, 6), *(pytest.param(1000 * SEED + i, 400, marks=pytest.mark.long) for i in range(5))]
)
def test_answers_are_those_of_the_raw_file(cluster: Cluster, seed: int, count: int, tmp_path: Path) -> None:
    place = world(tmp_path / "raw", seed, engine="spark")
    found = compare(place, Grammar(place, seed).questions(), count)
    assert found.different == []
    assert found.answered >= count


def test_what_reviews_got_wrong_is_right(cluster: Cluster, tmp_path: Path) -> None:
    assert Reviewed(tmp_path, 2000, engine="spark").wrong(every=3) == []
