"""Waiting for the answer to an identical question that is under way for somebody else (`ledger.waiting`)."""

import time
from collections.abc import Callable
from typing import Final, final

from lapwing.ledger.ledger import Ledger
from lapwing.ledger.waiting import UnderWay, still_waiting
from lapwing.machine.interrupts import deferred

WAIT_SECONDS: Final = 120.0
"""How long a question waits for others; longer than it takes to know that an asker died."""
_FIRST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 1.0


@final
class Waiting:
    """What one request may still wait, for all that it has to wait for. It holds nothing meanwhile.

    Args:
        begun: Is called once, as it begins.
    """

    def __init__(self, ledger: Ledger, begun: Callable[[], None] | None = None) -> None:
        self._ledger = ledger
        if begun is not None:
            begun()
        self._deadline = time.monotonic() + WAIT_SECONDS

    def for_end_of(self, awaited: UnderWay) -> None:
        """Return when a charge is no longer under way, answered or not.

        Raises:
            LedgerFault: If that takes too long.
        """
        pause = _FIRST_SECONDS
        while self._ledger.is_under_way(awaited.sequence):
            if time.monotonic() > self._deadline:
                raise still_waiting(WAIT_SECONDS)
            time.sleep(pause)
            with deferred():  # lets a press of this thread's switch through; signals are heard at once
                pass
            pause = min(2 * pause, _LONGEST_SECONDS)
