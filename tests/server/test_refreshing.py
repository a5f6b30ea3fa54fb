"""A service fetches what comes from sources on its schedule, once a host, and says in its log what came of it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.opening import open_session
from lapwing.server.refreshing import SourceRefresher
from lapwing.session import Session
from tests.support.sources import rows


class Served:
    """A data set as a service has it."""

    def __init__(self, session: Session) -> None:
        self.name, self.session = "visits", session


class Datasets:
    """The data sets of a service."""

    def __init__(self, session: Session) -> None:
        self._served = Served(session)

    def everything(self) -> list[Served]:
        return [self._served]


@pytest.fixture
def made(tmp_path: Path) -> Catalog:
    made = rows.catalog(tmp_path, rows.fill_sqlite(tmp_path / "clinic.db", rows.visits()))
    lw.refresh_data(made)
    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr("lapwing.server.refreshing.log", lambda event, **facts: said.append(f"{event} {facts}"))
    return said


def refresher(session: Session, every: float | None) -> SourceRefresher:
    datasets: Any = Datasets(session)
    return SourceRefresher(datasets, every)


@pytest.fixture
def session(made: Catalog) -> Iterator[Session]:
    with open_session(made) as session:
        yield session


def test_a_round_takes_what_is_there_now(session: Session, tmp_path: Path, told: list[str]) -> None:
    looking = refresher(session, 0.001)
    rows.fill_sqlite(tmp_path / "clinic.db", rows.visits(50, seed=2))
    looking.look()
    looking.look()
    assert session.budget().version == 2
    assert [line.partition(" {")[0] for line in told] == ["data refreshed", "data are the same"]


def test_what_cannot_be_accepted_is_logged_and_the_version_before_answers(
    session: Session, tmp_path: Path, told: list[str]
) -> None:
    looking = refresher(session, 0.001)
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute("INSERT INTO visits (person, cost) VALUES (1, 'much')")
    connection.close()
    looking.look()
    (tmp_path / "clinic.db").unlink()
    looking.look()
    assert "not of the declared type in cost" in told[0]
    assert "There is no database clinic.db" in told[1]
    assert "much" not in "".join(told)
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows()


def test_one_process_at_a_time_and_no_sooner_than_it_is_due(session: Session, told: list[str]) -> None:
    refresher(session, 3600).look()
    assert told == [], "it was fetched a moment ago"
    looking, beside = refresher(session, 0.001), threading.Barrier(2, timeout=60)
    fetches = []

    def slowly(catalog: Catalog) -> None:
        fetches.append(1)
        beside.wait()
        beside.wait()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lapwing.sources.fetch", slowly)
        thread = threading.Thread(target=looking.look)
        thread.start()
        beside.wait()
        refresher(session, 0.001).look()
        beside.wait()
        thread.join()
    assert fetches == [1]


def test_its_thread_does_so_again_and_again(session: Session, tmp_path: Path, told: list[str]) -> None:
    looking = refresher(session, 0.01)
    looking.start()
    rows.fill_sqlite(tmp_path / "clinic.db", rows.visits(50, seed=2))
    deadline = time.monotonic() + 60
    while session.budget().version == 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    looking.rounds.close()
    refresher(session, None).start()
