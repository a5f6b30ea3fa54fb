"""Who asks, by the token of a request; and whether that is too often.

Each caller has a bucket that fills at a constant rate and from which every request takes one. Requests without a valid
token take from the bucket of their address, and so do logins, of which each costs the service an argon2 hash.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, final

from fastapi import Request

from lapwing.errors import NotAuthorised, TooManyRequests
from lapwing.server.people import UNKNOWN, People
from lapwing.server.rights import MEANINGS, Caller, Right

MOST_BUCKETS: Final = 10_000
PATIENT: Final = 20.0
"""Requests at once of an address without a valid token."""


@final
class Buckets:
    """Buckets of requests by name: `burst` at once, `rate` a second after that. A rate of 0 is no limit."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one.

        Raises: TooManyRequests if the bucket is empty.
        """
        if not self._rate:
            return
        now = self._clock()
        with self._lock:
            left = self._filled(name, now)
            if left < 1:
                raise TooManyRequests(
                    f"These are more than {self._rate:g} requests a second. Nothing was charged. Ask again later."
                )
            self._left[name] = left - 1, now
            if len(self._left) > MOST_BUCKETS:
                self._left = {name: self._left[name] for name in self._left if self._filled(name, now) < self._burst}

    def _filled(self, name: str, now: float) -> float:
        left, then = self._left.get(name, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate)


@final
class Callers:
    """Knows callers by their tokens."""

    def __init__(self, people: People, rate: float, strangers: float) -> None:
        self._people = people
        self._known, self._strangers = Buckets(rate, 2 * rate), Buckets(strangers, PATIENT)

    def caller(self, request: Request) -> Caller:
        """Return who asks.

        Raises: NotAuthorised, TooManyRequests.
        """
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        try:
            if kind.lower() != "bearer" or not secret:
                raise NotAuthorised(UNKNOWN)
            caller = self._people.caller(secret.strip())
        except NotAuthorised:
            self.stranger(request)
            raise
        request.state.caller = caller
        self._known.take(caller.name)
        return caller

    def stranger(self, request: Request) -> None:
        """Count a request of an address that is nobody yet.

        Raises: TooManyRequests.
        """
        self._strangers.take(request.client.host if request.client else "")

    def demand(self, right: Right) -> Callable[[Request], Caller]:
        """Return what a route depends on: who asks, with this right."""

        def demanded(request: Request) -> Caller:
            caller = self.caller(request)
            if not caller.may(right):
                raise NotAuthorised(f"This takes the right `{right}`: to {MEANINGS[right]}.")
            return caller

        return demanded
