"""Sockets that speak the PostgreSQL protocol: TLS, limits of time and number, and cancel requests.

Theory of operation. A connection is one task. Until somebody has signed in (`sign_in`) it has `request_seconds`, and
there are no more than `MOST_STRANGERS` such connections. After that, another task reads what arrives into a queue of a
few parts. So a client that hangs up is noticed while its query is under way, and a client that sends much is not read
from. A client that does not read its results is waited for, for a limited time.

Of one person there are at most `MOST_OF_PERSON` connections, and `MOST_CONNECTIONS` in all; with several workers, at
each of them, as over HTTP. When all are taken, the one that has been idle the longest makes room. A connection ends
after it was idle for `IDLE_SECONDS`.
"""

import asyncio
import hmac
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, final

from fastapi.concurrency import run_in_threadpool

from lapwing.errors import LapwingError, NotAuthorised
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.server.log import log
from lapwing.server.pgwire import protocol
from lapwing.server.pgwire.cancel_lines import CancelLines
from lapwing.server.pgwire.catalog import PublicCatalogs
from lapwing.server.pgwire.connection_statements import Wire
from lapwing.server.pgwire.protocol import Protocol
from lapwing.server.pgwire.refusals import StatementRefused, fatal
from lapwing.server.pgwire.results import Portal, Prepared
from lapwing.server.pgwire.session import FLUSHED, WireSession
from lapwing.server.pgwire.settings import REPORTED, options_of, spelt
from lapwing.server.pgwire.sign_in import SignInAttempt
from lapwing.server.pgwire.sign_in_attempts import Attempts
from lapwing.server.problems import place_of, told
from lapwing.server.service import Service

Flush = Callable[[], Awaitable[None]]
MOST_STRANGERS: Final = 128
MOST_CONNECTIONS: Final = 300
MOST_OF_PERSON: Final = 100
PART: Final = 1 << 16
PARTS: Final = 4
"""Parts of what arrived that wait while a query is under way."""
UNREAD_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 8 * 3600.0


@final
class WireListener:
    """Answers clients of the PostgreSQL protocol at one socket.

    Args:
        tls: Returns the context of the service's certificate, None without TLS.
        certificate: Returns the certificate that clients are shown, as PEM; None without TLS.
        lines: To the other workers of the service, for cancel requests.
    """

    def __init__(
        self,
        service: Service,
        door: socket.socket,
        tls: Callable[[], ssl.SSLContext | None],
        certificate: Callable[[], bytes | None],
        lines: CancelLines,
    ) -> None:
        self._service, self._door, self._tls, self._certificate = service, door, tls, certificate
        self._lines = lines
        self._count = 0
        self._catalogs = PublicCatalogs()
        self._attempts = Attempts(service.callers)
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._sessions: dict[int, WireSession] = {}
        self._idle: dict[int, asyncio.Timeout] = {}
        self._of_person: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to take connections."""
        self._certificate()  # is read now, before its file can change
        self._lines.start(self._stop)
        self._server = await asyncio.start_server(self._connected, sock=self._door, limit=PART)
        log("listening for PostgreSQL clients", port=self._door.getsockname()[1])

    async def close(self) -> None:
        """Take no more connections, and end those that are open once their query has ended."""
        if self._server is not None:
            self._server.close()
            self._lines.close()
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
        number, self._count = self._lines.number(self._count), self._count + 1
        wire: Wire = Protocol[Prepared, Portal](
            tls=self._tls() is not None,
            most_bytes=self._service.settings.most_bytes,
            process=number,
            key=read_exactly(SystemEntropy(), 32),
        )

        async def flush() -> None:
            data = wire.output()
            if data:
                writer.write(data)
                async with asyncio.timeout(UNREAD_SECONDS):
                    await writer.drain()

        session = None
        try:
            async with asyncio.timeout(self._service.settings.request_seconds):
                session = await self._signed_in(wire, reader, writer, flush)
                await flush()
            if session is not None:
                del self._strangers[task]
                await self._answer_all(session, reader)
        finally:
            if session is not None:
                self._forget(session)
        await flush()
        writer.close()
        async with asyncio.timeout(UNREAD_SECONDS):
            await writer.wait_closed()

    async def _answer_all(self, session: WireSession, reader: asyncio.StreamReader) -> None:
        wire = session.wire
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
                data = await self._next_data(session, arrived)
                if not data:
                    return
                wire.receive(data)
        finally:
            reading.cancel()

    async def _next_data(self, session: WireSession, arrived: asyncio.Queue[bytes]) -> bytes:
        """Return what the client sends next; nothing, if it has left or was idle for too long."""
        process = session.wire.process
        try:
            async with asyncio.timeout(IDLE_SECONDS) as limit:
                self._idle[process] = limit
                return await arrived.get()
        except TimeoutError:
            session.wire.close(fatal("57P05", "The connection was idle for long, or had to make room for another."))
            await session.flush()
            return b""
        finally:
            self._idle.pop(process, None)

    # ---- the sign-in -------------------------------------------------------------------------------------------------

    async def _signed_in(
        self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flush: Flush
    ) -> WireSession | None:
        """Let somebody sign in; None if the connection ends without."""
        peer = writer.get_extra_info("peername")
        address = str(peer[0])[:100] if peer else ""
        attempt = SignInAttempt(self._service, wire, address, self._attempts, self._certificate)
        try:
            return await self._attempted(attempt, wire, reader, writer, flush)
        finally:
            attempt.end()

    async def _attempted(
        self,
        attempt: SignInAttempt,
        wire: Wire,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        flush: Flush,
    ) -> WireSession | None:
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
                    attempt.note_handshake()
                    await writer.start_tls(context)
                    wire.secured()
                case protocol.Cancel():
                    self._cancel(event)
                case protocol.SignIn():
                    await attempt.begin(event)
                case protocol.SaslInitial():
                    attempt.challenge(event)
                case protocol.SaslResponse():
                    proven = await attempt.finish(event)
                    return None if proven is None else await self._opened(wire, *proven, flush)
                case _:
                    wire.close(fatal("08P01", "This message does not belong here."))
        return None

    async def _opened(
        self, wire: Wire, begun: protocol.SignIn, token: str, proof: bytes, flush: Flush
    ) -> WireSession | None:
        """Open a session for somebody who has proven who they are, of the data set that they name."""
        try:
            dataset = await run_in_threadpool(self._dataset, token, begun)
        except LapwingError as error:
            state = "28000" if isinstance(error, NotAuthorised) else "3D000"
            wire.close(fatal(state, str(told(error, begun.user, None))))
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
        except StatementRefused as refused:
            wire.close(fatal(refused.report.state, refused.report.message, refused.report.hint))
            return None
        wire.output()  # what settings were changed to is said below
        if not self._register(session):
            wire.close(fatal("53300", "Too many connections are open. Close some, and connect again."))
            return None
        wire.signed_in(proof, {name: session.settings[name] for name in REPORTED})
        log("PostgreSQL client", person=begun.user, dataset=dataset, encrypted=wire.encrypted)
        return session

    def _register(self, session: WireSession) -> bool:
        """Count a session, if there is room for it: the one that has been idle the longest makes room."""
        if self._of_person[session.person] >= MOST_OF_PERSON:
            return False
        if len(self._sessions) >= MOST_CONNECTIONS:
            if not self._idle:
                return False
            limit = self._idle.pop(next(iter(self._idle)))
            limit.reschedule(asyncio.get_running_loop().time())
        self._sessions[session.wire.process] = session
        self._of_person[session.person] += 1
        return True

    def _forget(self, session: WireSession) -> None:
        if self._sessions.pop(session.wire.process, None) is not None:
            self._of_person[session.person] -= 1
            self._of_person += Counter()  # forgets who has none
            log("PostgreSQL client left", person=session.person, dataset=session.dataset)

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
        """Let the worker stop what a connection does that has the connection."""
        if not self._lines.pass_on(event):
            self._stop(event)

    def _stop(self, event: protocol.Cancel) -> None:
        """Stop what a connection does, if the key is its key; nobody is told whether it was."""
        session = self._sessions.get(event.process)
        key = b"\0" * 32 if session is None else session.wire.cancel_key
        if hmac.compare_digest(key, event.key) and session is not None:
            session.stop()


_NO_SETTINGS: Final = frozenset({"user", "database", "options", "replication"})
