"""The process that runs queries is ended while it gets ready, without waiting for that."""

import threading
from multiprocessing import active_children
from multiprocessing.connection import Connection

from lapwing.errors import ServiceFault
from lapwing.server.deadline.process import ProcessorShare, QuestionProcess, Reach


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
