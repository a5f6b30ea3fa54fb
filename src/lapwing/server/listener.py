"""A service on a socket: TLS, time limits of connections, and an end that waits for what is under way."""

import ipaddress
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, final
from weakref import WeakKeyDictionary

import uvicorn

from lapwing.collector.collector import Collector
from lapwing.errors import InvalidParameter
from lapwing.machine.garbage import long_lived_objects_frozen
from lapwing.server import connections
from lapwing.server.application import application
from lapwing.server.collecting import with_collectors
from lapwing.server.log import log, open_log
from lapwing.server.middleware import Application
from lapwing.server.pgwire.cancel_lines import CancelLines
from lapwing.server.problems import place_of
from lapwing.server.service import Service

IDLE_SECONDS: Final = 60
PUBLIC: Final = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?/?")
UNSAID: Final = "https://ADDRESS"
"""Stands on the pages where the address of the service is not known."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a service listens.

    Args:
        behind_proxy: Whether a proxy on this machine speaks TLS with the callers.
        public_url: At which callers find it, if that is not where it listens.
        grace: Seconds that requests under way have to end in.
        postgres: The port for clients of the PostgreSQL protocol, at the same host and with the same certificate.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    public_url: str | None = None
    grace: int = 30
    postgres: int | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidParameter("TLS needs both --tls-cert and --tls-key; give the other one too.")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise InvalidParameter(f"There is no file {file}; --tls-cert and --tls-key name files in PEM form.")
        if not (self.certificate or self.behind_proxy or _is_loopback(self.host)):
            raise InvalidParameter(
                f"Tokens and passwords would go to {self.host} unencrypted. Give --tls-cert and --tls-key; or, if a "
                "proxy on this machine speaks TLS with the callers, --behind-proxy."
            )
        if self.postgres is not None and not (self.certificate or _is_loopback(self.host)):
            raise InvalidParameter(
                f"Results for PostgreSQL clients would go to {self.host} unencrypted: a proxy for HTTP does not speak "
                "their protocol. Give --tls-cert and --tls-key with --postgres."
            )
        if self.public_url is not None:
            _require_public(self.public_url)

    def at(self, door: socket.socket) -> "Endpoint":
        """Return the place with the port that a socket has: with port 0 the system chose it."""
        return replace(self, port=door.getsockname()[1])

    @property
    def address(self) -> str:
        """Where the service listens, as an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def callers_address(self) -> str:
        """The address to which callers send tokens, as pages and messages show it.

        It is what the operator says, or else where the service listens. Behind a proxy, or at all addresses of a
        machine, that is not where callers find it, and nothing is shown that they could send a token to.
        """
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        return UNSAID if self.behind_proxy or _is_any(self.host) else self.address


def run(service: Service, place: Endpoint, collectors: Mapping[str, Collector] | None = None) -> None:
    """Serve until the process is told to end; then take no new request, and finish those under way.

    With TLS, SIGHUP makes it read its certificate anew.

    Args:
        collectors: Of noisy reports, by the ids of their tasks, served beside it.

    Raises:
        KeyboardInterrupt: When all is closed; whoever told it to end, by Ctrl-C or SIGTERM.
    """
    keep_threads_quiet()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when all is closed
    with listening(place) as door, wire_listening(place) as wire_door:
        here = place.at(door)
        running = server(service, here, collectors=collectors, wire_door=wire_door)
        if here.certificate is not None:
            signal.signal(signal.SIGHUP, lambda *_: renew_certificate(running.config, here))
        try:
            log("listening", host=here.host, port=here.port)
            with long_lived_objects_frozen():
                running.run(sockets=[door])
        finally:
            log("ended")


def keep_threads_quiet() -> None:
    """Log the kind and the place of an error that ends a thread, and not its message, which could hold a value."""

    def end(ended: threading.ExceptHookArgs) -> None:
        error = ended.exc_value
        log("bug", kind=ended.exc_type.__name__, place=None if error is None else place_of(error))

    threading.excepthook = end


def listening(place: Endpoint) -> socket.socket:
    """Return the socket of a place.

    Raises:
        InvalidParameter: If it cannot be had.
    """
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family, backlog=1024)
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno and error.errno > 0 else "it is not an address").lower()
        raise InvalidParameter(
            f"Lapwing cannot listen at {place.address}: {reason}. Give another --host or --port."
        ) from None


def require_free(place: Endpoint) -> None:
    """Raise what `listening` raises, before a start that takes long; another program may still come first."""
    for port in filter(None, (place.port, place.postgres)):
        listening(replace(place, port=port)).close()


def wire_listening(place: Endpoint) -> AbstractContextManager[socket.socket | None]:
    """Return the socket for clients of the PostgreSQL protocol, None if there is to be none."""
    return nullcontext() if place.postgres is None else listening(replace(place, port=place.postgres))


def server(
    service: Service,
    place: Endpoint,
    *,
    worker: int | None = None,
    ready: Callable[[], Awaitable[None]] | None = None,
    collectors: Mapping[str, Collector] | None = None,
    wire_door: socket.socket | None = None,
    lines: CancelLines | None = None,
) -> uvicorn.Server:
    """Return the server of a service.

    Args:
        worker: Which of several, for the log.
        ready: Is called when it takes connections, and every now and then.
        collectors: As of `run`.
        wire_door: The socket for clients of the PostgreSQL protocol.
        lines: To the other workers, for their cancel requests.
    """
    open_log(worker)
    encrypted = place.certificate is not None

    @asynccontextmanager
    async def wire() -> AsyncIterator[None]:
        if wire_door is None:
            yield
            return
        from lapwing.server.pgwire.listener import WireListener  # here: most services speak HTTP only

        certificate = partial(served_certificate, config, place)
        clients = WireListener(service, wire_door, lambda: config.ssl, certificate, lines or CancelLines())
        await clients.start()
        try:
            yield
        finally:
            await clients.close()

    app: Application = application(service, place.callers_address, encrypted=encrypted, beside=wire)
    if collectors:
        app = with_collectors(app, collectors, service.metrics, encrypted=encrypted)
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        http=connections.protocol(service.settings.request_seconds, connections.room()),
        backlog=connections.BACKLOG,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=place.behind_proxy,
        forwarded_allow_ips="127.0.0.1,::1",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=place.grace,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
        callback_notify=ready,
    )
    return uvicorn.Server(config)


_SERVED: Final[WeakKeyDictionary[ssl.SSLContext, bytes]] = WeakKeyDictionary()
"""The certificate of each context. Its file may hold another by now."""


def served_certificate(config: uvicorn.Config, place: Endpoint) -> bytes | None:
    """Return the certificate that clients are shown, in PEM form; None without TLS."""
    if config.ssl is None or place.certificate is None:
        return None
    if config.ssl not in _SERVED:
        _SERVED[config.ssl] = place.certificate.read_bytes()
    return _SERVED[config.ssl]


def renew_certificate(config: uvicorn.Config, place: Endpoint) -> None:
    """Use the certificate and the key as their files are now, for connections from now on; log what came of it.

    If they cannot be read or do not belong together, all stays as it was.
    """
    if place.certificate is None or place.key is None or not config.loaded or config.ssl is None:
        return
    try:
        chain = place.certificate.read_bytes()
        # First into another context: one that refuses the key has taken the certificate by then. There is nobody to
        # ask for a password, so a key that needs one is refused.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), config.ssl):
            context.load_cert_chain(place.certificate, place.key, password="")
        _SERVED[config.ssl] = chain
    except OSError as error:
        log("certificate not renewed", kind=type(error).__name__)
    else:
        log("certificate renewed")


def _require_public(url: str) -> None:
    """Refuse what is no address that callers can send tokens to."""
    parts = PUBLIC.fullmatch(url)
    if parts is None or not 0 < int(parts[3] or 443) < 1 << 16:
        raise InvalidParameter(
            f"--public-url is {url[:100]!r}, which is no address of a service: write one like https://dp.example.org, "
            "with a port if it has one, and without name, path or question mark."
        )
    if parts[1] == "http" and not _is_loopback(parts[2].strip("[]")):
        raise InvalidParameter(f"Tokens would go to {parts[2]} unencrypted. Give --public-url an address with https.")


def _is_any(host: str) -> bool:
    """Tell whether a host stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
