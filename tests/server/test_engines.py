"""The engine runs in a process that can be killed; whoever is next is asked of the spare."""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines import Exact
from lapwing.errors import InvalidParameter
from lapwing.release.request import Timing
from lapwing.server.deadline import engines as engines_module
from lapwing.server.deadline.engines import Engines, InPlace, wait_for_end
from lapwing.server.deadline.pace import AskedEngine
from lapwing.server.deadline.process import LONGEST_TEMPORARY, require_short
from lapwing.session import Session
from tests.support.server.queueing import until
from tests.support.server.world import data_set

BY_PLAN = "SELECT plan, COUNT(*) AS n FROM visits WHERE cost < {} GROUP BY plan"
TEXTS = (
    BY_PLAN,
    "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits WHERE cost < {}",
    "SELECT MEDIAN(cost) AS m FROM visits WHERE cost < {}",
)
Asked = tuple[Any, Any]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with data_set(tmp_path_factory.mktemp("engines"), "open") as opened:
        yield opened


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    both = Engines()
    both.begin_spare()
    yield both
    both.close()


def asked(session: Session, text: str) -> list[Asked]:
    """Ask a new question, and return all that its engine was asked."""
    seen = list[Asked]()

    def run(engine: Any, question: Any, digests: Any) -> Exact:
        seen.append((question, digests))
        found: Exact = engine.run(question, digests)
        return found

    timing = Timing(through=lambda engine: AskedEngine(engine, run))
    session.acting_for("alice", timing=timing).sql(text.format(300 + len(session.history())), epsilon=0.01)
    return seen


def shown(exact: Exact | None) -> str:
    """Return what an engine found as text, leaves in order: an engine lists them in any."""
    assert exact is not None
    leaves = {
        name: {cell: sorted(zip(*map(list, pair), strict=True)) for cell, pair in cells.items()}
        for name, cells in exact.leaves.items()
    }
    return repr((sorted(exact.cells.items(), key=repr), exact.holders, leaves))


def test_what_it_finds_is_what_an_engine_here_finds(session: Session, engines: Engines) -> None:
    questions = [one for text in TEXTS for one in asked(session, text)]
    assert len(questions) == 4
    for one in questions:
        elsewhere, here = engines.of(session.catalog, session._engine), InPlace(session._engine)
        assert shown(elsewhere.run(*one)) == shown(here.run(*one))


def test_one_that_hears_nothing_is_killed_and_the_spare_asked(session: Session, engines: Engines) -> None:
    (one,) = asked(session, BY_PLAN)
    first = engines.asked()
    assert ends_when_told(session, engines, one, patience=60)
    again = engines.of(session.catalog, session._engine)
    assert again.run(*one) is not None
    assert engines.asked() is not first
    assert (again.used() > 0, again.lost()) == (True, None)


def ends_when_told(session: Session, engines: Engines, one: Asked, patience: float) -> bool:
    """Let an engine hear nothing while it runs a question, and stop it; tell whether who asked is free by then."""
    asking, found = engines.asked(), list[Exact | None]()
    process = asking._process.pid or 0
    os.kill(process, signal.SIGSTOP)
    running = engines.of(session.catalog, session._engine)
    thread = threading.Thread(target=lambda: found.append(running.run(*one)))
    thread.start()
    until(lambda: asking._running)
    assert found == []
    running.stop()
    thread.join(patience)
    free = not thread.is_alive()
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGCONT)
    thread.join()
    assert (found == [None], running.lost()) == (free, "stopped" if free else None)
    return free


def test_an_engine_that_is_asked_to_end_and_waited_for_is_found(
    session: Session, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: it is told, as by an interrupt, and not killed."""
    (one,) = asked(session, BY_PLAN)
    monkeypatch.setattr(engines_module._Process, "kill_if_running", lambda _: None)
    assert not ends_when_told(session, engines, one, patience=1)


def test_one_that_has_died_while_nobody_asked_costs_no_fault(session: Session, engines: Engines) -> None:
    (one,) = asked(session, BY_PLAN)
    process = engines.asked()
    os.kill(process._process.pid or 0, signal.SIGKILL)
    process._process.join(60)
    running = engines.of(session.catalog, session._engine)
    assert running.run(*one) is not None
    assert running.lost() == "died"
    assert engines.asked() is not process


def test_what_was_found_is_not_lost_to_a_stop_that_comes_later(session: Session, engines: Engines) -> None:
    (one,) = asked(session, BY_PLAN)
    running = engines.of(session.catalog, session._engine)
    assert running.run(*one) is not None
    process = engines.asked()
    running.stop()
    assert running.run(*one) is not None
    assert engines.asked() is process


def test_data_that_are_no_longer_those_are_not_asked(session: Session, engines: Engines) -> None:
    ((question, digests),) = asked(session, BY_PLAN)
    running = engines.of(session.catalog, session._engine)
    assert running.run(question, dict.fromkeys(digests, "0" * 64)) is None
    assert running.run(question, digests) is not None


def test_a_process_ends_with_whoever_began_it() -> None:
    alone = Engines()
    process = alone.asked()
    process._line.close()
    process._process.join(60)
    assert process._process.exitcode == 0


def test_the_end_of_a_line_is_heard_and_no_question() -> None:
    ours, theirs = Pipe()
    thread = threading.Thread(target=wait_for_end, args=(theirs,), daemon=True)
    thread.start()
    for number in range(3):
        ours.send(number)
        assert theirs.recv() == number
    thread.join(0.05)
    assert thread.is_alive()
    ours.close()
    thread.join(60)
    assert not thread.is_alive()


def test_a_folder_whose_path_is_too_long_for_sockets_is_refused_in_words() -> None:
    """Long ones are those of test runners and of some clusters; without this the service said only that it failed."""
    with tempfile.TemporaryDirectory() as short:
        for length, possible in ((LONGEST_TEMPORARY, True), (LONGEST_TEMPORARY + 1, False)):
            folder = f"{short}/".ljust(length, "x")
            with nullcontext() if possible else pytest.raises(InvalidParameter, match="TMPDIR"):
                require_short(folder)
            inner = Path(folder) / "pymp-12345678"
            inner.mkdir(parents=True)
            bound = nullcontext() if possible else pytest.raises(OSError, match="too long")
            with socket.socket(socket.AF_UNIX) as listener, bound:
                listener.bind(str(inner / "listener-12345678"))
