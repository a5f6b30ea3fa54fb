"""What an operator has to know at once, sent to an address as it is logged.

Theory of operation. Lines of the log whose event is in `ALARMS` are sent, as they are, as JSON by POST. They hold
public facts alone, as the log does. A thread sends them in order, so that nobody waits for the address. It tries to
deliver a line `TRIES` times, and then the log says that it failed. At most `WAITING` lines wait: of a flood, the rest
is in the log only. Of several workers the first one sends, and so does the process that asks its queries.
"""

import queue
import threading
import urllib.error
import urllib.request
from typing import Final, final
from urllib.parse import urlsplit

from lapwing.errors import InvalidParameter
from lapwing.machine.one_address import opened
from lapwing.server import log

ALARMS: Final = frozenset({
    "data set not ready", "data set ready", "not ready", "ready", "charged query failed", "answers late",
    "late answers not noted", "data set resumed", "engine replaced", "question process died",
    "question process started", "background task failed", "background task goes on",
    "ledger not settled", "ledger settled", "audit log lacks lines", "audit mark not written", "bug",
    "certificate not renewed", "data not refreshed", "catalog not taken up", "budget nearly spent",
    "service account expires", "requests waiting",
})  # fmt: skip
"""Events that somebody should look at, and those that say that it is over."""
WAITING: Final = 1_000
SECONDS: Final = 5.0
"""For the address to answer."""
TRIES: Final = 5
FAILED: Final = "webhook not reached"


@final
class Webhook:
    """Sends alarms.

    Args:
        address: Where to, None for nowhere.
        pause: Seconds before the second try.
    """

    def __init__(self, address: str | None, *, pause: float = 1.0) -> None:
        if address is not None:
            require_address(address)
        self._address, self._pause = address, pause
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)

    def start(self) -> None:
        """Begin, if there is an address."""
        if self._address is not None:
            log.LISTENERS.append(self._hear)
            self._thread.start()

    def close(self) -> None:
        """Send what waits, each line once, and end."""
        if self._thread.is_alive():
            log.LISTENERS.remove(self._hear)
            self._ending.set()
            self._lines.put(None)
            self._thread.join()

    def _hear(self, event: str, line: str) -> None:
        if event in ALARMS:
            try:
                self._lines.put_nowait(line)
            except queue.Full:
                return

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            self._deliver(line)

    def _deliver(self, line: str) -> None:
        reason, pause = None, self._pause
        for _ in range(TRIES):
            reason = send(self._address or "", line)
            if reason is None or self._ending.wait(pause):
                break
            pause *= 2
        if reason is not None:
            log.log(FAILED, reason=reason)


def send(address: str, line: str) -> str | None:
    """Send a line of JSON, and return what went wrong: a status, or the kind of an error; None if nothing did.

    It goes to this address only, which `require_address` checked: a redirect is a status that went wrong.
    """
    request = urllib.request.Request(address, line.encode(), {"Content-Type": "application/json"})  # noqa: S310
    try:
        with opened(request, SECONDS) as reply:
            reply.read(1)
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except (OSError, ValueError) as error:
        return type(error).__name__
    return None


def require_address(address: str) -> None:
    """Refuse what is no address that lines may be sent to: names of data sets and people do not leave unencrypted.

    Raises:
        InvalidParameter: If a value is not allowed. It does not repeat the address, which may hold a secret.
    """
    try:
        parts = urlsplit(address)
        known = parts.hostname and (parts.port or 1)
    except ValueError:
        known = None
    near = known and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not known or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
        raise InvalidParameter(
            "The webhook is not a valid address. Give one that begins with https://, or with "
            "http://127.0.0.1 for a program on this machine."
        )
