"""A session that a forked child inherits says so at once, charges nothing, and leaves the parent's alone.

DuckDB's threads do not survive a fork: a question would be charged in the child, and then hang.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest

import lapwing as lw
from lapwing.dbapi import ProgrammingError
from lapwing.session import Session
from tests.support.effort import only
from tests.support.release.tables import protected, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
SECONDS = 20.0  # a child that hangs is ended, and fails the test


def by_cursor(session: Session) -> object:
    """Ask as a driver does, and raise what its error stands for."""
    try:
        return session.cursor(epsilon=0.5).execute(COUNT)
    except ProgrammingError as error:
        raise error.__cause__ or error from None


USES: dict[str, Callable[[Session], object]] = {
    "sql": lambda session: session.sql(COUNT, epsilon=0.5),
    "cursor": lambda session: by_cursor(session),
    "batch": lambda session: session.batch([COUNT], epsilon=0.5),
    "synthesize": lambda session: session.synthesize(["sex", "plan"], epsilon=0.5),
    "plan": lambda session: session.plan(COUNT, (), epsilon=0.5),
    "explain": lambda session: session.explain(COUNT, epsilon=0.5),
    "table": lambda session: session.table("visits"),
    "spend": lambda session: session.spend(lw.PureDP(1), "something else"),
    "reserve": lambda session: session.reserve([], "training"),
    "budget": lambda session: session.budget(),
    "history": lambda session: session.history(),
    "guarantee": lambda session: session.guarantee(),
    "first_above": lambda session: session.first_above([COUNT], 3, epsilon=0.1),
    "raised": lambda session: session.raised(was=(3, 1e-6), epsilon=4, delta=1e-6),
    "raise_budget": lambda session: session.raise_budget(was=(3, 1e-6), epsilon=4, delta=1e-6),
    "close_for_ever": lambda session: session.close_for_ever(),
    "ledger_entries": lambda session: list(session.ledger_entries()),
    "accept_data": lambda session: session.accept_data(),
    "faults": lambda session: session.faults(),
    "resume": lambda session: session.resume(),
    "settle": lambda session: session.settle(),
    "await_charges": lambda session: session.await_charges(),
    "note_late": lambda session: session.note_late("2026-01-01T00:00:00+00:00", "ada"),
    "acting_for": lambda session: session.acting_for("ada"),
}
HARMLESS = {"moment", "price", "tables", "close"}
"""A function of the budget; what the catalog says; and what a child may do to what it inherited."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with protected(visits(tmp_path_factory.mktemp("fork"), people=20)) as opened:
        opened.sql(COUNT, epsilon=0.1)  # all threads that a question needs are there
        yield opened


def in_a_child(action: Callable[[], object]) -> tuple[int, object]:
    """Run an action in a forked child, and return how the child ended, negative by a signal, and what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            result = action()
        except lw.LapwingError as error:
            result = f"{error.code}: {error}"
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as results:
        said = results.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), json.loads(said or "null")


def check(session: Session, use: Callable[[Session], object]) -> None:
    ended, said = in_a_child(lambda: repr(use(session)))
    assert ended == 0
    assert isinstance(said, str)
    assert said.startswith(
        "invalid_parameter: This session was opened before a fork and works only in the parent process"
    ), said
    assert "open another with lapwing.connect. Nothing was charged." in said


@pytest.mark.parametrize("use", only([0], USES))
def test_what_a_child_inherited_is_refused_at_once(session: Session, use: str) -> None:
    before = session.budget().spent
    check(session, USES[use])
    assert (session.budget().spent, session.faults()) == (before, ())


def test_every_use_of_a_session_is_tried() -> None:
    public = {name for name in vars(Session) if not name.startswith("_")}
    assert public == {*USES, *HARMLESS}


def test_a_child_may_close_what_it_inherited_and_the_parent_goes_on(session: Session) -> None:
    assert in_a_child(session.close) == (0, None)
    assert len(session.sql(COUNT, epsilon=0.2)) == 1


def test_a_child_opens_a_session_of_its_own(session: Session) -> None:
    def anew() -> bool:
        with lw.connect(session.catalog.folder / "visits.lapwing.toml") as own:
            return own.sql(COUNT, epsilon=0.3).stored

    assert in_a_child(anew) == (0, False)
    assert session.sql(COUNT, epsilon=0.3).stored


def test_twin_a_child_that_takes_the_session_for_its_own_hangs(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unnoticed(inherited: Session) -> object:
        inherited._process = os.getpid()
        return inherited.sql(COUNT, epsilon=0.5)

    monkeypatch.setattr("tests.release.test_fork.SECONDS", 0.5)
    with pytest.raises(AssertionError, match=r"-14 == 0"):
        check(session, unnoticed)
