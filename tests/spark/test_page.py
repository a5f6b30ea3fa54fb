"""The page about Spark shows what happens."""

from pathlib import Path

from lapwing.engines.spark.cluster import Cluster
from tests.docs.test_examples import ON_SPARK
from tests.support.docs.pages import inside, prepare, run_page


def test_the_page_shows_what_happens(cluster: Cluster, tmp_path: Path) -> None:
    prepare(ON_SPARK, tmp_path)
    with inside(tmp_path):
        complaints = list(run_page(ON_SPARK))
    assert not complaints, "\n\n".join(complaints)
