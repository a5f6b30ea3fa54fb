"""Who sends a request, by its token, and whether they send too many.

Each caller has a bucket that fills at a constant rate and from which every request takes one. Requests without a valid
token take from the bucket of their address, and so do logins, of which each costs the service an argon2 hash. An IPv6
address counts by its first 64 bits, as whoever has one has the others.
"""

import ipaddress
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from fastapi import Request

from lapwing.documents.people_document import Right
from lapwing.errors import NotAuthorised, TooManyRequests
from lapwing.server.listing import require_known_parameters
from lapwing.server.people import MEANINGS, RIGHTS_OF, UNKNOWN, Caller, People

INSIDE: Final = "lapwing.caller"
"""The key of a request's scope under which this process says who asks, if it has found that out itself."""
MOST_BUCKETS: Final = 10_000
MOST_PRICES: Final = 4
"""Prices that one person may have worked out at once: each takes a shared thread, and maybe seconds of a core."""
PATIENT: Final = 20.0
"""Requests at once of an address without a valid token."""


@final
class TokenBuckets:
    """Buckets of requests by name: `burst` at once, `rate` a second after that. A rate of 0 is no limit."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one.

        Raises:
            TooManyRequests: If the bucket is empty.
        """
        if not self._rate:
            return
        now = self._clock()
        with self._lock:
            left = self._filled(name, now)
            if left < 1:
                raise TooManyRequests(
                    f"You sent more than {self._rate:g} requests in a second. Nothing was charged. Try again later."
                )
            self._left[name] = left - 1, now
            if len(self._left) > MOST_BUCKETS:
                self._left = {name: self._left[name] for name in self._left if self._filled(name, now) < self._burst}

    def give_back(self, name: str) -> None:
        """Give back one that was taken."""
        with self._lock:
            if name in self._left:
                self._left[name] = min(self._burst, self._left[name][0] + 1), self._left[name][1]

    def _filled(self, name: str, now: float) -> float:
        left, then = self._left.get(name, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate)


@final
class Callers:
    """Recognises callers by their tokens.

    Args:
        rate: Requests a second of one person. strangers: Those of one network without a token, in all processes.
        workers: Processes of the service; what strangers may do is divided among them.
    """

    def __init__(self, people: People, rate: float, strangers: float, workers: int = 1) -> None:
        self._people = people
        self._known = TokenBuckets(rate, 2 * rate)
        self.strangers = TokenBuckets(strangers / workers, max(1.0, PATIENT / workers))
        self._lock = threading.Lock()
        self._pricing: Counter[str] = Counter()

    def caller(self, request: Request) -> Caller:
        """Return who asks.

        Raises:
            NotAuthorised: If who asks may not do this.
            TooManyRequests: If there are too many requests.
            HTTPException: For a query parameter that the request does not take.
        """
        caller = request.scope.get(INSIDE) or self._by_token(request)
        request.state.caller = caller
        self._known.take(caller.name)
        require_known_parameters(request)  # here, after who asks is known, as every request with a token comes this way
        return caller

    def _by_token(self, request: Request) -> Caller:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        try:
            if kind.lower() != "bearer" or not secret:
                raise NotAuthorised(UNKNOWN)
            return self._people.caller(secret.strip())
        except NotAuthorised:
            self.stranger(request)
            raise

    def stranger(self, request: Request) -> None:
        """Count a request of an address that is nobody yet.

        Raises:
            TooManyRequests: If there are too many requests.
        """
        self.stranger_at(address_of(request))

    def stranger_at(self, address: str) -> None:
        """Count an attempt from an address by somebody who is nobody yet.

        Raises:
            TooManyRequests: If there are too many requests.
        """
        self.strangers.take(network_of(address))

    def no_stranger_at(self, address: str) -> None:
        """Do not count an attempt from an address after all, because somebody has proven who they are."""
        self.strangers.give_back(network_of(address))

    def of_token(self, token: str, right: Right, dataset: str) -> Caller:
        """Return the caller whose token has an id, with the rights of this moment, and count a request of theirs.

        Raises:
            NotAuthorised: If the token is not valid any more, or does not have the right at the data set.
            TooManyRequests: If there are too many requests.
        """
        caller = self._people.caller_of(token)
        self._known.take(caller.name)
        return require_right(caller.at(dataset), right)

    @contextmanager
    def pricing(self, caller: Caller) -> Iterator[None]:
        """Work out a price, if somebody has not too many worked out already.

        Raises:
            TooManyRequests: If there are too many requests.
        """
        with self._lock:
            if self._pricing[caller.name] >= MOST_PRICES:
                raise TooManyRequests(
                    f"Lapwing is already computing {MOST_PRICES} costs for you. Nothing was charged. Try again later."
                )
            self._pricing[caller.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._pricing[caller.name] -= 1
                self._pricing += Counter()  # forgets who has none

    def recognise(self, right: Right, *or_else: Right) -> Callable[[Request], Caller]:
        """Return what says who asks, with this right or another of these, at the path's data set if it has one."""

        def demanded(request: Request) -> Caller:
            caller = self.caller(request)
            if "dataset" in request.path_params:
                caller = caller.at(request.path_params["dataset"])
            return require_right(caller, next((one for one in (right, *or_else) if caller.may(one)), right))

        return demanded


def require_right(caller: Caller, right: Right) -> Caller:
    """Return a caller who has a right.

    Raises:
        NotAuthorised: If they do not have it.
    """
    if not caller.may(right):
        who = " or ".join(sorted(role for role, rights in RIGHTS_OF.items() if right in rights))
        raise NotAuthorised(
            f"Your account cannot {MEANINGS[right]}. That takes the right `{right}`, which the role {who} has. Ask a "
            "curator for it."
        )
    return caller


def address_of(request: Request) -> str:
    """Return the address that a request comes from, as this process or the proxy before it says."""
    return request.client.host[:100] if request.client else ""


def network_of(address: str) -> str:
    """Return what an address counts as: an IPv6 address as its first 64 bits, another one or a name as itself.

    >>> network_of("2001:db8::1") == network_of("2001:db8::2"), network_of("::ffff:192.0.2.1"), network_of("")
    (True, '192.0.2.1', '')
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
