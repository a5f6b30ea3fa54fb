"""How many requests an address may make: a bucket each, in memory, forgotten with the process and never written."""

from collections import OrderedDict
from ipaddress import ip_address, ip_network
from math import ceil
from time import monotonic
from typing import Final, final

MOST_ADDRESSES: Final = 100_000
SECONDS: Final = 10
"""Of requests at the rate that may come at once."""


@final
class RequestRates:
    """Buckets of tokens, one an address; of IPv6 one for each network of 64 bits, as that is what one line gets.

    Args:
        rate: Requests a second; 0 for no limit.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str, now: float | None = None) -> int:
        """Take a token, and return 0; or return after how many seconds there will be one."""
        if not self._rate:
            return 0
        now, key = monotonic() if now is None else now, _network(address)
        most = max(1.0, SECONDS * self._rate)
        tokens, before = self._buckets.pop(key, (most, now))
        tokens = min(most, tokens + (now - before) * self._rate)
        short = tokens < 1
        self._buckets[key] = (tokens if short else tokens - 1, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return ceil((1 - tokens) / self._rate) if short else 0


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((found, 64), strict=False)) if found.version == 6 else address
