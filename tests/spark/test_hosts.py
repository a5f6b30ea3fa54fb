"""Two services before one Spark cluster, with one ledger in PostgreSQL: one is killed in the middle of a question.

Each is `lapwing serve` as a process of its own, with an application of its own on the cluster. What they share is the
cluster, the files and the database, as on two hosts.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.server.people import DAY, RIGHTS_OF, People
from lapwing.server.store_places import open_store
from tests.spark.test_cluster import SMALL, cluster_of_two, write
from tests.support.engines.standalone import Standalone
from tests.support.server.crew import CATALOG, PATIENCE, Crew, ask, crew, persistently

__all__ = ["cluster_of_two"]
pytestmark = pytest.mark.long

TEXT = """
[dataset]
name = "visits"
engine = "spark"
ledger = "{ledger}"
cluster = "{master}"
[budget]
epsilon = 1
measure = "pure"
[tables.trips]
source = "{folder}/trips/*.parquet"
privacy_unit = "rider"
max_rows_per_unit = 5
[tables.trips.columns]
zone = {{ type = "integer", values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }}
fare = {{ type = "decimal", lower = 0, upper = 100, step = 0.01 }}
"""
FIRST, SECOND, LOST, LAST, TOO_MUCH = [
    {"sql": f"SELECT zone, COUNT(*) AS n FROM trips WHERE fare > {least} GROUP BY zone", "epsilon": "0.25"}
    for least in range(5)
]


@pytest.fixture
def hosts(cluster_of_two: Standalone, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the folders of two hosts, each with a catalog of the same data; each takes one of the cluster's cores."""
    write(tmp_path, 20_000)
    settings = {name: value for name, value in SMALL.items() if name != "spark.sql.shuffle.partitions"}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in (settings | {"spark.cores.max": "1"}).items())
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    text = TEXT.format(ledger=f"{postgres}&ledger=visits", master=cluster_of_two.master, folder=tmp_path)
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        (folder / CATALOG).write_text(text)
    return folders


def token_of(address: str) -> str:
    """Return the token of somebody who may ask, known to every host that keeps its people in the database."""
    with closing(open_store(address)) as store:
        people = People(store)
        people.add("carol", "curator", None, by="carol")
        secret, _ = people.issue("carol", label="", scopes=RIGHTS_OF["curator"], seconds=DAY, by="carol")
    return secret


def kill(host: Crew) -> None:
    """End a host as a loss of power does: the service first, whose JVM ends with it."""
    host.parent.kill()
    host.parent.wait(PATIENCE)


def test_a_host_that_is_killed_in_the_middle_keeps_its_charge_and_the_other_goes_on(
    hosts: list[Path], postgres: str
) -> None:
    one_folder, other_folder = hosts
    token = token_of(postgres)
    with ExitStack() as running, ThreadPoolExecutor(1) as thread:
        one = running.enter_context(crew(one_folder, planted="hold questions on Spark", number=1))
        first = ask(one.port, token, FIRST, "first")  # its start made the ledger and accepted the data
        assert first.status == 200, first.content
        other = running.enter_context(crew(other_folder, planted="believe deaths soon", number=1))
        second = ask(other.port, token, SECOND, "second")
        assert second.status == 200, second.content
        (one_folder / "hold").touch()
        lost = thread.submit(ask, one.port, token, LOST, "lost")
        one.wait_for("a question is under way")
        kill(one)
        assert isinstance(lost.exception(PATIENCE), OSError)
        assert ask(other.port, token, FIRST).status == 200  # bought by the host that is gone, and free
        assert persistently(other.port, token, LOST, "lost").code == "key_conflict"
        assert ask(other.port, token, LAST, "last").status == 200
        assert ask(other.port, token, TOO_MUCH, "too much").code == "budget_exhausted"
    with lw.connect(other_folder / CATALOG) as session:
        history = session.budget().history
        session._ledger.verify()
    assert [row.answered for row in history] == [True, True, False, True]
    assert [Fraction(row.loss.amount) for row in history] == [Fraction(1, 4)] * 4
