"""What of a budget is made when somebody looks at it, and then what it was when the budget was asked for."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.client.transport import ServerConnection
from lapwing.documents.budget_document import budget_document
from lapwing.ledger import reading
from lapwing.privacy.odometers import Odometer, Reading, as_if_cap
from tests.support.release.tables import protected, visits
from tests.support.server.world import service_in, serving


def asked(session: lw.Session | lw.RemoteSession, *least: int, epsilon: float = 0.01) -> None:
    for bound in least:
        session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {bound}", epsilon=epsilon)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with protected(visits(tmp_path)) as opened:
        asked(opened, 1, 2, 3)
        yield opened


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was read of histories."""
    found: list[object] = []
    real = reading._rows

    def noted(entries: object, snapshot: object) -> object:
        found.append(entries)
        return real(entries, snapshot)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(reading, "_rows", noted)
    return found


def test_a_budget_reads_no_history(session: lw.Session, reads: list[object]) -> None:
    view = session.budget()
    assert float(view.share_spent) > 0
    assert str(view).endswith("3 results")  # counted, and not read
    assert len(view.history) == 3
    assert reads == []
    assert len([row.sequence for row in view.history]) == 3
    assert view.history[-1].asked
    assert len(reads) == 1


def test_each_reading_is_computed_once_and_of_what_was_spent_then(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = list[str]()
    whenever = Odometer.reading

    def noted_as_if_cap(*spent: Any) -> Reading:
        computed.append("as_if_cap")
        return as_if_cap(*spent)

    def noted_whenever(odometer: Odometer, spent: Any) -> Reading:
        computed.append("whenever")
        return whenever(odometer, spent)

    monkeypatch.setattr("lapwing.budget.as_if_cap", noted_as_if_cap)
    monkeypatch.setattr(Odometer, "reading", noted_whenever)
    view = session.budget(history=False)
    asked(session, 4)
    later = session.budget(history=False)
    assert (view.version, view.faults, float(view.share_spent) > 0, computed) == (1, 0, True, [])
    for _ in range(2):
        assert view.spent_epsilon == view.spent.to_epsilon(delta=view.delta) < later.spent.to_epsilon(delta=view.delta)
    assert computed == ["as_if_cap"]
    assert view.whenever.epsilon > view.as_if_cap.epsilon
    assert computed == ["as_if_cap", "whenever"]
    assert view != later
    assert later == session.budget(history=False)


@pytest.mark.long
def test_it_is_as_a_tuple_is(session: lw.Session) -> None:
    history, rows = session.budget().history, session.history()
    assert history == rows
    assert rows == history
    assert history != rows[:-1]
    assert history == session.budget().history
    assert (history[0], history[-1], history[1:], tuple(reversed(history))) == (rows[0], rows[-1], rows[1:], rows[::-1])
    assert history + rows == rows + rows
    assert rows[1] in history
    assert bool(history)
    assert (repr(history), hash(history)) == (repr(rows), hash(rows))
    assert pickle.loads(pickle.dumps(history)) == copy.deepcopy(history) == rows
    assert budget_document(session.budget())["history"][0]["sequence"] == rows[0].sequence


@pytest.mark.long
def test_it_ends_where_the_budget_was_asked_for(session: lw.Session) -> None:
    view = session.budget()
    asked(session, 4, 5)
    assert len(view.history) == 3
    assert [row.sequence for row in view.history] == [row.sequence for row in session.history()[:3]]
    assert len(session.budget().history) == 5
    assert session.budget(history=False).history == ()


def test_it_is_there_when_its_session_is_closed(tmp_path: Path, reads: list[object]) -> None:
    with protected(visits(tmp_path)) as session:
        asked(session, 1)
        view = session.budget()
        session.budget()
    assert len(reads) == 1  # of the one that somebody still has
    assert [row.answered for row in view.history] == [True]


@pytest.mark.long
def test_of_a_remote_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(service_in(tmp_path)) as world:
        remote = world.connect("alice")
        asked(remote, 1, 2, epsilon=1)
        paths: list[str] = []
        real = ServerConnection.get
        monkeypatch.setattr(ServerConnection, "get", lambda self, path: paths.append(path) or real(self, path))  # type: ignore[func-returns-value]
        view = remote.budget()
        assert len(paths) == 1
        assert [row.sequence for row in view.history] == [row.sequence for row in remote.history()]
        assert view.history == remote.history()
