"""Sockets that speak the PostgreSQL protocol: TLS, the sign-in, limits of time and number, and cancel requests.

Theory of operation. A connection is one task. Until somebody has signed in it has `seconds`, and there are no more than
`MOST_STRANGERS` such connections. After that, another task reads what arrives into a queue of a few parts. So a client
that hangs up is noticed while its query is under way, and a client that sends much is not read from. A client that
does not read its results is waited for, for a limited time.

The sign-in is SCRAM with the tokens of a person (`scram`). A failed one is noted and limited as one over HTTP is.
"""

import asyncio
import hmac
import socket
import ssl
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import new as new_hash
from pathlib import Path
from typing import Final, final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from fastapi.concurrency import run_in_threadpool

from lapwing.errors import LapwingError, NotAuthorised, TooManyRequests
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.server.log import log
from lapwing.server.pgwire import protocol, scram
from lapwing.server.pgwire.catalog import PublicCatalogs
from lapwing.server.pgwire.connection_statements import Wire
from lapwing.server.pgwire.messages import Report
from lapwing.server.pgwire.protocol import Protocol
from lapwing.server.pgwire.refusals import Refusal
from lapwing.server.pgwire.results import Portal, Prepared
from lapwing.server.pgwire.session import FLUSHED, WireSession
from lapwing.server.pgwire.settings import REPORTED, options_of, spelt
from lapwing.server.problems import place_of, told
from lapwing.server.service import Service

Flush = Callable[[], Awaitable[None]]
MOST_STRANGERS: Final = 64
MOST_CONNECTIONS: Final = 300
MOST_OF_PERSON: Final = 100
PART: Final = 1 << 16
PARTS: Final = 4
"""Parts of what arrived that wait while a query is under way."""
UNREAD_SECONDS: Final = 300.0
WRONG: Final = "The name or the token is wrong, or the token is no longer valid."
OLDER: Final = (
    "The password is an API token of this person. Tokens that were issued before this service spoke PostgreSQL's "
    "protocol do not work here: issue a new one."
)


@final
class WireListener:
    """Answers clients of the PostgreSQL protocol at one socket.

    Args:
        tls: Returns the context of the service's certificate, None without TLS.
        certificate: Its file.
    """

    def __init__(
        self, service: Service, door: socket.socket, tls: Callable[[], ssl.SSLContext | None], certificate: Path | None
    ) -> None:
        self._service, self._door, self._tls, self._certificate = service, door, tls, certificate
        self._numbers = 0
        self._catalogs = PublicCatalogs()
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._sessions: dict[int, tuple[WireSession, bytes]] = {}
        self._of_person: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to take connections."""
        self._server = await asyncio.start_server(self._connected, sock=self._door, limit=PART)
        log("listening for PostgreSQL clients", port=self._door.getsockname()[1])

    async def close(self) -> None:
        """Take no more connections, and end those that are open once their query has ended."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- a connection ------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._tasks.add(task)
        self._strangers[task] = None
        if len(self._strangers) > MOST_STRANGERS:  # the one that has been here the longest makes room
            next(iter(self._strangers)).cancel()
        try:
            await self._serve(reader, writer, task)
        except (OSError, asyncio.CancelledError, TimeoutError, ssl.SSLError):
            pass  # the client has gone or is told to go
        except Exception as error:
            log("bug", kind=type(error).__name__, place=place_of(error))
        finally:
            self._strangers.pop(task, None)
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        opened = writer.transport.get_extra_info("socket")
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._numbers = self._numbers % (2**31 - 1) + 1
        wire: Wire = Protocol[Prepared, Portal](
            tls=self._tls() is not None,
            most_bytes=self._service.settings.most_bytes,
            process=self._numbers,
            key=read_exactly(SystemEntropy(), 32),
        )

        async def flush() -> None:
            data = wire.output()
            if data:
                writer.write(data)
                async with asyncio.timeout(UNREAD_SECONDS):
                    await writer.drain()

        async with asyncio.timeout(self._service.settings.request_seconds):
            session = await self._signed_in(wire, reader, writer, flush)
            await flush()
        if session is not None:
            del self._strangers[task]
            self._sessions[wire.process] = session, wire.cancel_key
            self._of_person[session.person] += 1
            try:
                await _answer_all(wire, session, reader)
            finally:
                del self._sessions[wire.process]
                self._of_person[session.person] -= 1
                log("PostgreSQL client left", person=session.person, dataset=session.dataset)
        await flush()
        writer.close()
        async with asyncio.timeout(UNREAD_SECONDS):
            await writer.wait_closed()

    # ---- the sign-in -------------------------------------------------------------------------------------------------

    async def _signed_in(
        self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flush: Flush
    ) -> WireSession | None:
        """Let somebody sign in; None if the connection ends without."""
        peer = writer.get_extra_info("peername")
        address = str(peer[0])[:100] if peer else ""
        exchange: scram.Exchange | None = None
        begun: protocol.SignIn | None = None
        tokens: list[str] = []
        while not wire.is_closed:
            event = wire.next_event()
            await flush()
            match event:
                case None if wire.is_closed:
                    break
                case None:
                    data = await reader.read(PART)
                    if not data:
                        return None
                    wire.receive(data)
                case protocol.StartTls():
                    context = self._tls()
                    if context is None:
                        return None
                    await writer.start_tls(context)
                    wire.secured()
                case protocol.Cancel():
                    self._cancel(event)
                case protocol.SignIn():
                    begun = event
                    exchange, tokens = await self._begun(wire, event.user)
                case protocol.SaslInitial() if exchange is not None:
                    try:
                        wire.challenge(exchange.first(event.mechanism, event.data))
                    except scram.Refused as refused:
                        wire.close(_fatal("28000", str(refused)))
                case protocol.SaslResponse() if exchange is not None and begun is not None:
                    try:
                        place, proof = exchange.final(event.data)
                    except scram.Refused:
                        await self._failed(wire, begun.user[:100], address)
                        break
                    return await self._opened(wire, begun, tokens[place], proof, flush)
                case _:
                    wire.close(_fatal("08P01", "This message does not belong here."))
        return None

    async def _begun(self, wire: Wire, user: str) -> tuple[scram.Exchange | None, list[str]]:
        """Ask somebody for a proof: by the same steps, whoever they are."""
        try:
            people = self._service.people
            salt = await run_in_threadpool(people.scram_salt, user)
            known = await run_in_threadpool(people.scram_verifiers, user)
        except LapwingError as error:
            wire.close(_fatal("58000", str(told(error, None, None))))
            return None, []
        nonce = b64encode(read_exactly(SystemEntropy(), 18)).decode()
        binding = b""
        if wire.encrypted and self._certificate is not None:  # as its file is now: SIGHUP renews it while this runs
            binding = binding_of(self._certificate.read_bytes())
        exchange = scram.Exchange(salt, [verifier for _, verifier in known], nonce, binding)
        wire.request_sasl(exchange.mechanisms)
        return exchange, [id_ for id_, _ in known]

    async def _failed(self, wire: Wire, user: str, address: str) -> None:
        """Refuse somebody; of an address, as many guesses count as over HTTP."""
        try:
            self._service.callers.stranger_at(address)
            await run_in_threadpool(self._service.failed_logins.note, user, address)
        except TooManyRequests as error:
            wire.close(_fatal("53000", str(error)))
        except LapwingError as error:
            wire.close(_fatal("58000", str(told(error, None, None))))
        wire.close(_fatal("28P01", WRONG, OLDER))

    async def _opened(
        self, wire: Wire, begun: protocol.SignIn, token: str, proof: bytes, flush: Flush
    ) -> WireSession | None:
        """Open a session for somebody who has proven who they are, of the data set that they name."""
        try:
            dataset = await run_in_threadpool(self._dataset, token, begun)
        except LapwingError as error:
            state = "28000" if isinstance(error, NotAuthorised) else "3D000"
            wire.close(_fatal(state, str(told(error, begun.user, None))))
            return None
        if len(self._sessions) >= MOST_CONNECTIONS or self._of_person[begun.user] >= MOST_OF_PERSON:
            wire.close(_fatal("53300", "Too many connections are open. Close some, and connect again."))
            return None
        session = WireSession(
            service=self._service,
            wire=wire,
            token=token,
            person=begun.user,
            dataset=dataset,
            catalogs=self._catalogs,
            flush=flush,
        )
        given = {name: value for name, value in begun.parameters.items() if name not in _NO_SETTINGS}
        try:
            for name, value in [*options_of(begun.parameters.get("options", "")), *given.items()]:
                session.settings.put(spelt(name), value)
        except Refusal as refused:
            wire.close(_fatal(refused.report.state, refused.report.message, refused.report.hint))
            return None
        wire.output()  # what settings were changed to is said below
        wire.signed_in(proof, {name: session.settings[name] for name in REPORTED})
        log("PostgreSQL client", person=begun.user, dataset=dataset, encrypted=wire.encrypted)
        return session

    def _dataset(self, token: str, begun: protocol.SignIn) -> str:
        """Return the data set that a connection is for: that of the database's name, or else the only one."""
        caller = self._service.people.caller_of(token)
        visible = [served.name for served in self._service.datasets.all_visible(caller)]
        wanted = begun.parameters.get("database", begun.user)
        if wanted in visible:
            return wanted
        if len(visible) == 1 and wanted in (begun.user, "postgres", "lapwing"):
            return visible[0]
        return self._service.datasets.visible(caller, wanted).name

    def _cancel(self, event: protocol.Cancel) -> None:
        """Stop what a connection does, if the key is its key; nobody is told whether it was."""
        session, key = self._sessions.get(event.process, (None, b"\0" * 32))
        if hmac.compare_digest(key, event.key) and session is not None:
            session.stop()


async def _answer_all(wire: Wire, session: WireSession, reader: asyncio.StreamReader) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue(PARTS)

    async def read() -> None:
        with suppress(OSError, ssl.SSLError):
            while data := await reader.read(PART):
                await arrived.put(data)
        session.stop(hung_up=True)
        await arrived.put(b"")

    reading = asyncio.create_task(read())
    try:
        while True:
            while not wire.is_closed and (event := wire.next_event()) is not None:
                await session.answer(event)
                if wire.waiting > FLUSHED:
                    await session.flush()
                await asyncio.sleep(0)  # other connections have their turn between two messages
            await session.flush()
            if wire.is_closed:
                return
            data = await arrived.get()
            if not data:
                return
            wire.receive(data)
    finally:
        reading.cancel()


_NO_SETTINGS: Final = frozenset({"user", "database", "options", "replication"})


def _fatal(state: str, text: str, hint: str = "") -> Report:
    return Report(severity="FATAL", state=state, message=text, hint=hint)


def binding_of(pem: bytes) -> bytes:
    """Return the hash of a certificate that a sign-in is bound to; empty where RFC 5929 defines none."""
    certificate = x509.load_pem_x509_certificates(pem)[0]
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        return b""
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    return new_hash(name, certificate.public_bytes(Encoding.DER)).digest()
