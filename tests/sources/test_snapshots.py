"""What was fetched answers when it is accepted, whole and for everybody, and not before; nothing half is ever kept."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines import snapshots as engines
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.engines.snapshots import SnapshotEngine
from lapwing.errors import DataChanged, DataFault
from lapwing.opening import open_session
from lapwing.query.plan.plan import Question
from lapwing.sources import fetch
from tests.support.effort import only
from tests.support.postgres import Postgres
from tests.support.processes import ended
from tests.support.sources import rows
from tests.support.sources.rows import exact, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
PEOPLE = visits(4_000)


@pytest.fixture
def made(tmp_path: Path) -> Catalog:
    source = rows.fill_sqlite(tmp_path / "clinic.db", PEOPLE)
    return rows.catalog(tmp_path, source)


def more(folder: Path, count: int = 4_000) -> None:
    rows.fill_sqlite(folder / "clinic.db", visits(count, seed=7, first=10_000))


def counted(session: lw.Session, epsilon: float) -> int:
    """Return the noisy number of visits."""
    (row,) = session.sql(COUNT, epsilon=epsilon).rows()
    return int(str(row["n"]))


def folders(catalog: Catalog) -> set[str]:
    where = catalog.folder / "visits.lapwing.snapshots"
    return {path.name for path in where.iterdir() if path.is_dir()} if where.exists() else set()


# ---- what answers ----------------------------------------------------------------------------------------------------


def test_nothing_answers_before_something_was_fetched(made: Catalog) -> None:
    with pytest.raises(DataFault, match=r"were not fetched yet\. .*: `lapwing data check`"):
        open_session(made)
    assert not (made.folder / "visits.db").exists()


def test_what_is_fetched_answers_once_it_is_accepted(made: Catalog, tmp_path: Path) -> None:
    assert lw.refresh_data(made) == 1
    with open_session(made) as session, open_session(made) as other:
        first = session.sql(COUNT, epsilon=1).rows()
        more(tmp_path)
        fetch(made)
        assert session.sql(COUNT, epsilon=1).rows() == first, "the stored answer: the version is the same"
        assert counted(session, 2) < 3_400
        assert session.accept_data() == 2
        assert session.accept_data() == 2
        for either in (session, other):
            assert counted(either, 1.5) > 4_000
        assert len(folders(made)) == 2, "the other session still holds the first"
    assert lw.refresh_data(made) == 2, "the same rows are the same version"
    with open_session(made) as session:
        session.sql(COUNT, epsilon=1)
        assert len(folders(made)) == 1


@pytest.mark.long
def test_a_question_that_runs_is_answered_from_what_it_began_with(
    made: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh between the charge and the first row, and one between two looks at the data, change nothing of it."""
    lw.refresh_data(made)
    before = exact(made, COUNT)
    ran: list[Any] = []
    run = SnapshotEngine.run

    def refreshed_before(self: SnapshotEngine, question: Question, digests: Mapping[str, str]) -> Exact:
        more(tmp_path)
        assert lw.refresh_data(made) == 2
        found = run(self, question, digests)
        ran.append(dict(found.cells))
        return found

    with open_session(made) as session:
        with monkeypatch.context() as patched:
            patched.setattr(SnapshotEngine, "run", refreshed_before)
            session.sql(COUNT, epsilon=1)
        assert ran == [before]
        assert not session.faults()
        assert counted(session, 1) > 4_000, "the next one is of the next version"


@pytest.mark.long
def test_letting_go_too_early_would_be_noticed(made: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: an engine is closed as soon as another version is current."""
    lw.refresh_data(made)
    monkeypatch.setattr(engines, "IDLE", -1.0)
    with open_session(made) as session:
        engine, digest = session._engine, session._engine.digest(made.tables[0])
        more(tmp_path)
        lw.refresh_data(made)
        question = session.plan(COUNT, (), epsilon=1).question
        assert engine.digest(made.tables[0]) != digest
        with pytest.raises(lw.EngineFault):
            engine.run(question, {"visits": digest})


@pytest.mark.long
def test_questions_and_refreshes_side_by_side(made: Catalog, tmp_path: Path) -> None:
    """Every answer is of a whole version; none fails, and none is refused."""
    lw.refresh_data(made)
    ended, wrong = threading.Event(), list[object]()
    with open_session(made) as session:

        def ask(number: int) -> None:
            while not ended.is_set():
                try:
                    n = counted(session, number / 100)
                    if n < -2_000:
                        wrong.append(n)
                except lw.LapwingError as error:
                    wrong.append(error)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 4)]
        for thread in threads:
            thread.start()
        for version in range(2, 6):
            more(tmp_path, 50)
            assert lw.refresh_data(made) == version
        ended.set()
        for thread in threads:
            thread.join()
        assert (wrong, session.faults()) == ([], ())


@pytest.mark.long
def test_looking_at_the_data_removes_nothing_that_was_accepted(made: Catalog, tmp_path: Path) -> None:
    """Nobody has asked yet, and the curator looks at what came since, again and again."""
    lw.refresh_data(made)
    for _ in range(3):
        more(tmp_path, 10)
        fetch(made)
    assert len(folders(made)) == 2, "of what was only looked at, the last alone stays"
    with open_session(made) as session:
        assert session.sql(COUNT, epsilon=1).rows()


# ---- what is not accepted --------------------------------------------------------------------------------------------


@pytest.mark.long
def test_values_that_are_not_of_their_type_leave_the_version_before(made: Catalog, tmp_path: Path) -> None:
    import sqlite3

    lw.refresh_data(made)
    with open_session(made) as session:
        first = session.sql(COUNT, epsilon=1).rows()
        with sqlite3.connect(tmp_path / "clinic.db") as connection:
            connection.execute("INSERT INTO visits (person, plan, cost) VALUES (1, 'a', 'much')")
        connection.close()
        with pytest.raises(DataFault, match="not of the declared type in cost"):
            lw.refresh_data(made)
        assert session.sql(COUNT, epsilon=1).rows() == first
        assert session.budget().version == 1
        assert lw.refresh_data(made, unreadable="null") == 2
        assert session.sql(COUNT, epsilon=1.5).rows()
        assert session.budget().version == 2


def test_what_a_dead_process_left_is_removed(made: Catalog) -> None:
    where = made.folder / "visits.lapwing.snapshots"
    where.mkdir(mode=0o700)
    left = where / ".fetching-dead"
    left.mkdir(mode=0o700)
    (left / ".alive").touch()
    (left / "half.parquet").write_text("PAR1")
    fetch(made)
    assert not left.exists()
    for path in where.rglob("*"):
        if path.suffix == ".parquet" or path.is_dir():
            assert path.stat().st_mode & 0o077 == 0, "nobody else can read it"


LIMITED = """
import resource, sys
from lapwing.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(main(["data", "check"]))
"""


@pytest.mark.long
def test_files_that_cannot_be_written_to_their_end_leave_what_was_there(made: Catalog, tmp_path: Path) -> None:
    """By the operating system's own limit, as on a disk that is full: of the sort, and of the snapshot."""
    before = fetch(made)
    more(tmp_path)
    status, _, err = ended(LIMITED, cwd=tmp_path)
    assert status == 6, err
    assert "could not be written" in err
    assert "Nothing was taken" in err
    assert folders(made) == {before.folder.name}
    assert fetch(made).tables["visits"].rows == 2 * PEOPLE.num_rows, "and with room it goes on"


@pytest.mark.parametrize("harm", only([0], ["a byte", "shorter", "another", "no manifest"]))
def test_a_snapshot_that_was_touched_does_not_answer(harm: str, made: Catalog) -> None:
    snapshot = fetch(made)
    file = snapshot.folder / snapshot.tables["visits"].file
    file.chmod(0o600)
    content = bytearray(file.read_bytes())
    if harm == "a byte":
        content[len(content) // 2] ^= 1
    if harm == "shorter":
        del content[-100:]
    file.write_bytes(content)
    if harm == "another":
        pq.write_table(pq.read_table(file).slice(1), file)
    if harm == "no manifest":
        (snapshot.folder / "manifest.json").unlink()
    with pytest.raises(DataFault):
        open_session(made)
    assert lw.refresh_data(made) == 1, "fetched again, it is whole again"


def test_the_manifest_decides_nothing_about_what_the_digest_is(made: Catalog) -> None:
    """Who writes another digest into it has a snapshot of another name, which nobody looks for."""
    snapshot = fetch(made)
    file = snapshot.folder / "manifest.json"
    document = json.loads(file.read_text())
    document["tables"]["visits"]["digest"] = "0" * 64
    file.chmod(0o600)
    file.write_text(json.dumps(document))
    with pytest.raises(DataFault, match="not fetched yet"):
        open_session(made)


# ---- two hosts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hosts(tmp_path: Path, postgres: str, shared_postgres: Postgres) -> Iterator[list[Catalog]]:
    """Two hosts with one source and one ledger, and a folder each."""
    source = rows.fill_postgres(postgres, PEOPLE)
    with shared_postgres.database() as database:
        made = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            made.append(rows.catalog(tmp_path / name, source, ledger=f"{database}&ledger=visits"))
        yield made


@pytest.mark.long
def test_two_hosts_answer_from_one_version_or_say_that_they_do_not(hosts: list[Catalog], postgres: str) -> None:
    one, two = hosts
    assert lw.refresh_data(one) == 1
    assert lw.refresh_data(two) == 1, "the same rows, fetched elsewhere, are the same version"
    with open_session(one) as here, open_session(two) as there:
        first = here.sql(COUNT, epsilon=1).rows()
        assert there.sql(COUNT, epsilon=1).rows() == first, "bought once for both"
        rows.fill_postgres(postgres, visits(500, seed=3))
        assert lw.refresh_data(one) == 2
        spent = there.budget().spent
        with pytest.raises(DataChanged, match=r"have changed since version 2\..*: `lapwing data refresh`"):
            there.sql(COUNT, epsilon=1)
        assert there.budget().spent == spent
        fetch(two)
        assert there.sql(COUNT, epsilon=2).rows()
        assert here.budget().version == there.budget().version == 2


@pytest.mark.long
def test_two_hosts_may_share_what_was_fetched(hosts: list[Catalog], postgres: str) -> None:
    one, two = hosts
    lw.refresh_data(one)
    os.symlink(one.folder / "visits.lapwing.snapshots", two.folder / "visits.lapwing.snapshots")
    with open_session(one) as here, open_session(two) as there:
        assert there.sql(COUNT, epsilon=1).rows() == here.sql(COUNT, epsilon=1).rows()
        rows.fill_postgres(postgres, visits(500, seed=3))
        assert lw.refresh_data(one) == 2
        assert there.sql(COUNT, epsilon=1).rows() == here.sql(COUNT, epsilon=1).rows()


# ---- indexes ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_index_is_beside_its_snapshot_and_answers_the_same(made: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.engines import open_indexed_engine
    from lapwing.engines.base import IndexState

    snapshot = fetch(made)
    cold = [exact(made, text) for text in rows.QUESTIONS]
    engine = open_indexed_engine(made)
    assert engine.build_index(made.tables[0])
    assert engine.index_state(made.tables[0]) is IndexState.current
    engine.close()
    assert (snapshot.folder / "visits.lapwing.index").exists()
    asked, fetched = list[str](), DuckDB.fetch

    def noted(engine: DuckDB, query: str) -> Any:
        asked.append(query)
        return fetched(engine, query)

    monkeypatch.setattr(DuckDB, "fetch", noted)
    assert [exact(made, text) for text in rows.QUESTIONS] == cold
    assert asked
    assert all(".kept)" in query and ".parquet" not in query for query in asked)


@pytest.mark.long
def test_it_is_protected_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = rows.fill_sqlite(tmp_path / "clinic.db", PEOPLE)
    options: dict[str, Any] = {"privacy_unit": "person", "epsilon": 3, "delta": 1e-6, "max_rows_per_unit": 3}
    with lw.protect(source, domains={"plan": ["a", "B"]}, **options) as session:
        assert session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=1).rows()
    with lw.protect(source, **options) as session:
        assert session.catalog.tables[0].column("plan") == load(tmp_path / "visits.lapwing.toml").tables[0].column(
            "plan"
        )
    with pytest.raises(lw.CatalogMismatch):
        lw.protect(source, **{**options, "epsilon": 4})
    more(tmp_path)
    assert lw.refresh_data(tmp_path / "visits.lapwing.toml") == 2
