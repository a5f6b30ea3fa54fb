"""Questions that fail after their charge, through the whole path: how many an analyst can see, and what follows."""

import contextlib
import dis
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lapwing as lw
from lapwing.engines import FAILED, DuckDB
from lapwing.ledger.faults import given_up
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.unanswered import leaving
from lapwing.machine import interrupts
from lapwing.release import release
from tests.support.effort import one_in
from tests.support.release.tables import protected, visits

GIVEN_UP = str(given_up())


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with protected(visits(tmp_path), epsilon=50) as session:
        yield session


def question(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}"


def failing(patch: pytest.MonkeyPatch, fails: Callable[[str], bool] = lambda _asked: True) -> None:
    run = DuckDB.run

    def running(self: DuckDB, asked: Any, digests: Any) -> Any:
        if fails(str(asked)):
            raise lw.EngineFault(FAILED)
        return run(self, asked, digests)

    patch.setattr(DuckDB, "run", running)


def outcome(session: lw.Session, number: int) -> str:
    """Return what an analyst sees of a question, but for the noise."""
    try:
        session.sql(question(number), epsilon=0.1)
    except lw.LapwingError as error:
        return f"{error}" if error.__context__ is None else f"{error} {error.__context__}"
    return "answered"


def test_the_third_failure_stops_the_data_set(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(session, 0) == "answered"
    with monkeypatch.context() as patch:
        failing(patch)
        assert [outcome(session, number) for number in (1, 2, 3)] == [FAILED] * 3
    view = session.budget()
    assert (view.faults, view.stopped, len(session.faults())) == (3, True, 3)
    assert [row.unanswered for row in view.history] == [None, "fault", "fault", "fault"]
    with pytest.raises(lw.DataStopped) as refused:
        session.sql(question(4), epsilon=0.1)
    assert refused.value.command.endswith("`lapwing data resume`")
    with pytest.raises(lw.DataStopped):
        session.batch([question(0), question(5)], epsilon=0.5)
    assert session.sql(question(0), epsilon=0.1).stored, "what was bought stays free"
    assert session.budget().spent == view.spent
    assert session.explain(question(4), epsilon=0.1).refusal == refused.value.analyst_text
    assert session.explain(question(0), epsilon=0.1).refusal is None
    assert session.resume() == 3
    assert session.budget().spent == view.spent, "nothing is refunded"
    assert session.explain(question(4), epsilon=0.1).refusal is None
    assert outcome(session, 4) == "answered"


@pytest.mark.parametrize("error", one_in(3, [EOFError("bug"), lw.EntropyFault("none"), SystemExit()]))
@pytest.mark.parametrize("place", ["add_noise", "payload_of"])
def test_whatever_raises_after_the_charge_counts(
    error: BaseException, place: str, session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(release, place, raising)
    with pytest.raises(type(error)):
        session.sql(question(1), epsilon=0.1)
    assert session.budget().faults == 1


def test_what_raises_before_the_charge_does_not_count(session: lw.Session) -> None:
    for text, epsilon in (("SELECT", 0.1), (question(1), 1000), (question(1), -1)):
        with pytest.raises(lw.LapwingError):
            session.sql(text, epsilon=epsilon)
    assert session.budget().faults == 0


def test_ctrl_c_stops_nobody(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_self: DuckDB, _query: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(DuckDB, "fetch", pressed)
    for number in range(5):
        with pytest.raises(lw.Interrupted, match="the cost is charged"):
            session.sql(question(number), epsilon=0.1)
    view = session.budget()
    assert (view.faults, {row.unanswered for row in view.history}) == (0, {"interrupt"})


def test_a_batch_fails_once(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        failing(patch, lambda asked: "20" in asked)
        with pytest.raises(lw.EngineFault):
            session.batch([question(number) for number in (10, 20, 30, 40)], epsilon=1)
    (fault,) = session.faults()
    assert [("20" in row.question, row.answered) for row in fault.charges] == [(True, False)] + [(False, False)] * 2
    assert [row.answered for row in session.budget().history] == [True, False, False, False]


AT_ONCE = 8


def seen_at_once(session: lw.Session, secret: int, first: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Ask many questions that are all under way when the first ends; which of them fail, the bits of a secret say."""
    turns, met = threading.Lock(), threading.Barrier(AT_ONCE, timeout=300)
    run, seen, place = DuckDB.run, [""] * AT_ONCE, threading.local()

    def fails(self: DuckDB, asked: Any, digests: Any) -> Any:
        met.wait()
        while len(done) < place.number:  # one after another, in order
            wait.wait(0.01)
        if secret >> place.number & 1:
            raise lw.EngineFault(FAILED)
        return run(self, asked, digests)

    done, wait = list[int](), threading.Event()

    def ask(number: int) -> None:
        place.number = number
        seen[number] = outcome(session, first + number)
        with turns:
            done.append(number)

    patch.setattr(DuckDB, "run", fails)
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def check_few_bits(session: lw.Session, patch: pytest.MonkeyPatch) -> None:
    """Two secrets that agree up to the third failure look the same."""
    shown = []
    for first, secret in ((0, 0b11001011), (50, 0b00001011)):
        with patch.context() as once:
            shown.append(seen_at_once(session, secret, first, once))
        session.resume()
    assert shown[0] == shown[1] == [FAILED, FAILED, "answered", FAILED, *[GIVEN_UP] * 4]


def test_questions_under_way_tell_nothing_after_the_third_failure(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_few_bits(session, monkeypatch)


def test_twin_questions_under_way_that_end_as_they_end(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "record_unanswered", telling)
    with pytest.raises(AssertionError):
        check_few_bits(session, monkeypatch)


def telling(self: Ledger, sequences: list[int], cause: Any) -> bool:
    """Plant a bug: keep the books, and let what went wrong be seen."""
    with self._chain.transaction() as transaction:
        entry = leaving(transaction.state, sequences, cause, "")
        transaction.commit(*([] if entry is None else [entry]))
    return False


# ---- memory, and Ctrl-C at any instruction ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["add_noise", "payload_of", "cells_of"])
def test_memory_that_runs_out_after_the_charge_is_a_fault_like_any_other(
    place: str, session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_arguments: object) -> None:
        raise MemoryError("7 GiB for secret rows")

    with monkeypatch.context() as patch:
        patch.setattr(release, place, short_of_memory)
        assert outcome(session, 1) == FAILED
    assert session.budget().faults == 1


def test_memory_that_runs_out_before_the_charge_costs_nothing(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(release, "charge_of", short_of_memory)
    with pytest.raises(MemoryError):
        session.sql(question(1), epsilon=0.1)
    assert (session.budget().faults, session.budget().history) == (0, ())


class PressedAt:
    """Ctrl-C at one instruction of the release of a question, counted from when the engine has failed."""

    FILES = (release.__file__, interrupts.__file__, contextlib.__file__)
    NEVER = ("PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "COPY")
    """Python looks for signals at none of these, and a tracer that raises there spoils its account of exceptions."""

    def __init__(self, instruction: int) -> None:
        self.left = instruction
        self.failed = self.pressed = False

    def fail(self, *_arguments: object) -> Any:
        self.failed = True
        raise lw.EngineFault(FAILED)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        frame.f_trace_opcodes = True
        opcode = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if event == "opcode" and self.failed and not self.pressed and opcode not in self.NEVER:
            self.left -= 1
            if self.left < 0:
                self.pressed = True
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.long)])
def test_ctrl_c_at_any_instruction_leaves_no_question_under_way(
    step: int, session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each instruction that follows the engine's fault, or one in twenty: the question is ended in the ledger."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told, causes = set(), set()
    try:
        for instruction in itertools.count(0, step):
            press = PressedAt(instruction)
            monkeypatch.setattr(DuckDB, "run", press.fail)
            tracing = sys.gettrace()
            sys.settrace(press)
            try:
                session.sql(question(instruction), epsilon=0.01)
            except (KeyboardInterrupt, lw.LapwingError) as error:
                told.add(type(error).__name__)
                dragged = isinstance(error, lw.LapwingError) and error.__context__ is not None
            finally:
                sys.settrace(tracing)
            assert not dragged, instruction
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, instruction
            assert not session._ledger.state().under_way, instruction
            causes.add(session.budget().history[-1].unanswered)
            session.resume()
            if not press.pressed:
                break
    finally:
        signal.signal(signal.SIGINT, handler)
    assert instruction > 2 * step
    assert causes == {"interrupt", "fault"}
    assert {"EngineFault", "Interrupted"} <= told
