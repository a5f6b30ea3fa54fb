"""Attempts to sign in that are under way: good ones are not limited, however many come at once.

Theory of operation. An attempt takes from the bucket of its network when it begins. It gives back once somebody has
proven who they are. A pool of connections begins more attempts at once than the bucket holds. So an attempt that finds
the bucket empty waits while others of its network are under way. One that is good makes room for the next. When all of
them have ended and the bucket is still empty, it is refused. So an attempt is never made without room in the bucket.
Wrong tokens are as few as over HTTP.

An attempt that waits has caused no work. It is one of the strangers of the listener, and its time to sign in runs. An
attempt that is begun and never finished counts as a wrong one. Until its time is over, others of its network may wait.
"""

import asyncio
from collections import Counter
from typing import final

from lapwing.errors import TooManyRequests
from lapwing.server.authentication import Callers, network_of


@final
class Attempts:
    """The attempts of all connections of one listener."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._under_way: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def begin(self, address: str) -> None:
        """Count an attempt from an address, once there is room; `end` must follow.

        Raises:
            TooManyRequests: If there is none, and no attempt is under way that could make room.
        """
        network = network_of(address)
        while True:
            try:
                self._callers.stranger_at(address)
            except TooManyRequests:
                if not self._under_way[network]:
                    raise
                await self._ended.wait()
            else:
                self._under_way[network] += 1
                return

    def end(self, address: str, *, good: bool) -> None:
        """Note whether an attempt that had begun was good."""
        if good:
            self._callers.no_stranger_at(address)
        self._under_way[network_of(address)] -= 1
        self._under_way += Counter()  # forgets who has none
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
