"""A service fetches what comes from sources on its schedule, once a host, and says in its log what came of it."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.opening import open_session
from lapwing.server.refreshing import SourceRefresher, _turn
from lapwing.server.service import Service
from lapwing.session import Session
from tests.support.cli.command import Outcome, Run
from tests.support.server.world import QUICK, World, introduce, serving
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


@pytest.mark.long
def test_a_round_takes_what_is_there_now(session: Session, tmp_path: Path, told: list[str]) -> None:
    looking = refresher(session, 0.001)
    rows.fill_sqlite(tmp_path / "clinic.db", rows.visits(50, seed=2))
    looking.look()
    looking.look()
    assert session.budget().version == 2
    assert [line.partition(" {")[0] for line in told] == ["data refreshed", "data are the same"]


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


# ---- When a curator says so, over HTTP ----


@pytest.fixture
def place(session: Session, tmp_path: Path) -> Iterator[World]:
    """A service of this data set, with people."""
    service = Service(tmp_path / "people.db", [session], QUICK)
    introduce(service)
    with serving(service) as world:
        yield world
    service.close()


@pytest.fixture
def refresh(place: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Refresh by the command line, as somebody."""

    def refresh(*options: str, who: str = "carol") -> Outcome:
        monkeypatch.setenv("LAPWING_TOKEN", place.tokens[who])
        return run("data", "refresh", "--server", place.address, *options)

    return refresh


@pytest.mark.long
def test_a_curator_refreshes_from_afar(
    place: World, refresh: Callable[..., Outcome], session: Session, tmp_path: Path
) -> None:
    assert refresh().out == "The rows are the same as in version 1. Nothing was changed.\n"
    rows.fill_sqlite(tmp_path / "clinic.db", rows.visits(50, seed=2))
    assert refresh("--dataset", "visits", "--whole").out == "Version 2 is current from now on.\n"
    assert session.budget().version == 2
    log = [json.loads(line) for line in place.ask("GET", "/v1/audit", "audrey").content.splitlines()]
    said = [(line["act"], line["actor"], line["subject"]) for line in log if "refresh" in line["act"]]
    assert said == 2 * [("refresh of data begun", "carol", "visits"), ("data refreshed", "carol", "visits")]
    assert [line["details"]["whole"] for line in log if line["act"] == "refresh of data begun"] == [False, True]


@pytest.mark.long
def test_what_fails_from_afar_changes_nothing(
    place: World, refresh: Callable[..., Outcome], session: Session, tmp_path: Path
) -> None:
    assert "takes the right `admin`" in refresh(who="audrey").err
    assert "--unreadable goes with a catalog on this machine" in refresh("--unreadable", "null").err
    with _turn(session.catalog):
        assert "already fetching the data; nothing was done" in refresh().err
    (tmp_path / "clinic.db").unlink()
    assert "There is no database clinic.db" in refresh().err
    assert session.budget().version == 1
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows()


@pytest.mark.long
def test_a_data_set_of_files_has_nothing_to_refresh(shared: World) -> None:
    reply = shared.ask("POST", "/v1/datasets/open/refresh", "carol", {})
    assert (reply.status, "No table of this data set comes from a source" in reply.document["detail"]) == (422, True)
