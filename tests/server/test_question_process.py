"""The process that runs queries is ended while it gets ready, without waiting for that."""

import threading
from collections.abc import Callable
from multiprocessing import active_children
from multiprocessing.connection import Connection

import pytest

from lapwing.errors import ServiceFault
from lapwing.server.deadline.process import ProcessorShare, QuestionProcess, Reach
from lapwing.server.log import LISTENERS


def hang(line: Connection) -> None:
    """Say something, and never get ready."""
    line.send(Reach(number=1, reached="ready"))
    threading.Event().wait()


def test_it_is_ended_before_it_is_ready() -> None:
    """Ctrl-C and SIGTERM waited until the machine was measured: two minutes on a busy one, and for ever if it hung."""
    process = QuestionProcess(hang, (), ProcessorShare(None, 1))
    begun, refused = threading.Event(), threading.Event()

    def start() -> None:
        try:
            process.start(lambda _: begun.set(), lambda: None)
        except ServiceFault:
            refused.set()

    starting = threading.Thread(target=start)
    starting.start()
    begun.wait()
    process.close()
    starting.join()
    assert refused.is_set()
    assert not any(child.name == "questions" for child in active_children())


def end(_line: Connection) -> None:
    """End before it is ready."""


@pytest.mark.parametrize(
    ("begin", "patience", "event"),
    [(hang, 0.01, "question process not ready yet"), (end, 900.0, "question process died")],
)
def test_the_log_says_why_it_did_not_start(begin: Callable[[Connection], None], patience: float, event: str) -> None:
    """On a busy machine it was ended after two minutes, with a message that sent people to an empty log."""
    events = list[str]()

    def hear(event: str, _line: str) -> None:
        events.append(event)

    process = QuestionProcess(begin, (), ProcessorShare(None, 1), patience)
    LISTENERS.append(hear)
    try:
        with pytest.raises(ServiceFault):
            process.start(lambda _: None, lambda: None)
    finally:
        LISTENERS.remove(hear)
    assert events[-1] == event
    assert not any(child.name == "questions" for child in active_children())
