"""What a service's ledgers could not write when it happened, written as soon as it can be.

A question may end while its ledger cannot be reached, and a commit may leave open whether a charge was made
(`ledger.settling`). The next charge of the same process writes that down; but a process may be idle, and meanwhile all
others who ask the same wait. So a thread looks every second, which takes no request to the ledger unless there is
something to be written; and after ever longer pauses while that fails, so as not to stand in the way of questions.
"""

import threading
from typing import final

from lapwing.server.datasets import Datasets
from lapwing.server.journal import log

SOON, LATER = 1.0, 15.0
"""Seconds between two looks: while all is well, and at most."""


@final
class Settling:
    """Lets the ledgers of a service write what they owe."""

    def __init__(self, datasets: Datasets) -> None:
        self._datasets = datasets
        self._owing: set[str] = set()
        self._ending = threading.Event()
        self._looking: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._looking = threading.Thread(target=self._look, name="settling", daemon=True)
        self._looking.start()

    def close(self) -> None:
        """Stop looking."""
        self._ending.set()
        if self._looking is not None:
            self._looking.join()

    def look(self) -> None:
        """Write what is owed, where that is possible, and log where it begins and ends to be impossible."""
        for served in self._datasets.everything():
            settled = served.session.settle()
            if settled == (served.name in self._owing):
                log("ledger settled" if settled else "ledger not settled", dataset=served.name)
                self._owing ^= {served.name}

    def _look(self) -> None:
        pause = SOON
        while not self._ending.wait(pause):
            self.look()
            pause = min(2 * pause, LATER) if self._owing else SOON
