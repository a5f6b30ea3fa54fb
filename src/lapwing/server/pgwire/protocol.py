"""A state machine over bytes: the server's side of one connection in the PostgreSQL protocol 3.

Theory of operation. The owner of the socket passes on what arrives (`receive`) and asks for events until there is none
(`next_event`). Each event is answered by a method, and `output` gives what is to be sent. Nothing here waits, knows a
clock or draws anything: the same bytes and the same answers always give the same output.

    beginning ──SSLRequest──▶ handshake ──secured──▶ beginning ──Startup──▶ signing in ──▶ ready ──▶ closed

The protocol itself decides about the order of messages, the names of statements and portals, and the skipping after an
error. So these never become events. An error in a message of the extended protocol skips everything until `Sync`. An
error in a query skips the rest of its statements: the caller sees to that.

No input makes it store more than its limits. It stores one message that is not complete, of a limited length. It stores
`MAX_STATEMENTS` statements and `MAX_PORTALS` portals by name, of `MAX_STORED` bytes together. A bad message
closes the connection, after an error that says why. So do bytes in plain text behind a request for TLS: they would
count as encrypted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, Literal, TypeVar, final

from lapwing.server.pgwire import messages
from lapwing.server.pgwire.messages import Malformed, Report

S = TypeVar("S")
"""The caller's form of a prepared statement."""
P = TypeVar("P")
"""The caller's form of a portal."""
T = TypeVar("T")
Transaction = Literal["I", "T", "E"]
"""Outside a transaction, in one, or in one that failed."""
MAX_STATEMENTS: Final = 1_000
MAX_PORTALS: Final = 64
MAX_STORED: Final = 8 << 20
"""Bytes of the texts of prepared statements and of the values of portals, together."""
NEWEST_MINOR: Final = 2
PLAIN_KEY: Final = 4
"""Bytes of the key for cancel requests in versions before 3.2."""


class _State(Enum):
    BEGINNING = auto()
    HANDSHAKE = auto()
    SIGNING_IN = auto()
    READY = auto()
    CLOSED = auto()


# ---- events ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class StartTls:
    """Send what waits, do the handshake, and call `secured`."""


@final
@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop what another connection does, if the key is its key; this one is closed."""

    process: int
    key: bytes


@final
@dataclass(frozen=True, slots=True)
class SignIn:
    """Somebody wants to sign in: call `request_sasl`."""

    user: str
    parameters: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class SaslInitial:
    """The first message of an authentication: call `challenge`."""

    mechanism: str
    data: bytes


@final
@dataclass(frozen=True, slots=True)
class SaslResponse:
    """The second message of an authentication: call `signed_in`."""

    data: bytes


@final
@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of the simple protocol: answer each, and then call `ready`."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Prepare:
    """A statement to be prepared: call `prepared`."""

    name: str
    text: str
    types: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class BindTo(Generic[S]):
    """Values for a prepared statement: call `bound`."""

    statement: S
    sent: messages.Bind


@final
@dataclass(frozen=True, slots=True)
class DescribeStatement(Generic[S]):
    """Send the types of parameters and columns of a statement: call `described_statement`."""

    statement: S


@final
@dataclass(frozen=True, slots=True)
class DescribePortal(Generic[P]):
    """Send the columns of a portal: call `described`. `runs`: the client has already sent that it is to be run."""

    portal: P
    runs: bool


@final
@dataclass(frozen=True, slots=True)
class DescribeCursor:
    """Send the columns of a cursor of this name, which is no portal of the protocol: call `described`, or `fail`."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Run(Generic[P]):
    """Send this number of rows of a portal (0: all), and then call `suspended` or `completed`."""

    portal: P
    rows: int


Event = (
    StartTls
    | Cancel
    | SignIn
    | SaslInitial
    | SaslResponse
    | Statements
    | Prepare
    | BindTo[S]
    | DescribeStatement[S]
    | DescribePortal[P]
    | DescribeCursor
    | Run[P]
)


@final
class Protocol(Generic[S, P]):
    """One connection.

    Args:
        tls: Whether TLS is offered; then nobody signs in without.
        most_bytes: Of a message with statements or values.
        process: The number of the connection, for cancel requests.
        key: 32 random bytes that only this client comes to know, of which older versions send the first four.
    """

    def __init__(self, *, tls: bool, most_bytes: int, process: int, key: bytes) -> None:
        self._tls, self._most, self._process, self._key = tls, most_bytes, process, key
        self._state = _State.BEGINNING
        self._buffer, self._output = bytearray(), bytearray()
        self._asked_for_tls = self._asked_for_gss = self._answered = False
        self._skipping = self._extended = False
        self._statements: dict[str, tuple[S, int]] = {}
        self._portals: dict[str, tuple[P, int]] = {}
        self._stored = 0
        self.encrypted = False
        self.transaction: Transaction = "I"

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is read; what waits in `output` is still to be sent."""
        return self._state is _State.CLOSED

    @property
    def is_signed_in(self) -> bool:
        """Whether somebody has signed in."""
        return self._state is _State.READY

    @property
    def process(self) -> int:
        """The number of the connection."""
        return self._process

    @property
    def cancel_key(self) -> bytes:
        """The key that the client was sent, or will be."""
        return self._key

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes that arrived."""
        if self._state is _State.HANDSHAKE:
            self.close(_violation("Data came before TLS was there."))
        if not self.is_closed:
            self._buffer += data

    def output(self) -> bytes:
        """Return what is to be sent, and forget it."""
        waiting, self._output = bytes(self._output), bytearray()
        return waiting

    @property
    def waiting(self) -> int:
        """Bytes of output."""
        return len(self._output)

    @property
    def stored(self) -> int:
        """Bytes that it keeps: what arrived and is no whole message yet, and texts and values by name."""
        return len(self._buffer) + self._stored

    def next_event(self) -> Event[S, P] | None:
        """Return what is to be done next; None until more arrives."""
        while True:
            try:
                sent = self._next_message()
                if sent is None:
                    return None
                event = self._event(sent)
            except Malformed as broken:
                if broken.state == messages.BAD_TEXT and self._state is _State.READY:
                    self.fail(Report(severity="ERROR", state=broken.state, message=str(broken)))
                    if not self._extended:
                        self.ready()
                else:
                    self.close(Report(severity="FATAL", state=broken.state, message=str(broken)))
                continue
            if event is not None:
                return event

    def _next_message(self) -> messages.First | messages.Message | None:
        buffer = self._buffer
        if self._state is _State.BEGINNING:
            if len(buffer) < 4:
                return None
            size = int.from_bytes(buffer[:4], "big")
            if not 8 <= size <= messages.MAX_STARTUP:
                raise Malformed("This is no first packet of the PostgreSQL protocol 3.")
            if len(buffer) < size:
                return None
            body = bytes(buffer[4:size])
            del buffer[:size]
            return messages.read_first(body)
        while self._state in (_State.SIGNING_IN, _State.READY) and len(buffer) >= 5:
            kind, size = buffer[0], int.from_bytes(buffer[1:5], "big")
            self._require_size(kind, size)
            if len(buffer) < size + 1:
                return None
            body = bytes(buffer[5 : size + 1])
            del buffer[: size + 1]
            if not self._skipping or chr(kind) in "SX":
                self._extended = chr(kind) in "PBDECHS"
                return messages.read(kind, body)
        return None

    def _require_size(self, kind: int, size: int) -> None:
        """Refuse a message of a type or a length that may not come now, before its body is there."""
        if self._state is _State.SIGNING_IN:
            if chr(kind) not in "pX":
                raise Malformed("A password was expected.")
            most = messages.MAX_PASSWORD
        elif kind in messages.LONG:
            most = self._most
        elif kind in messages.SHORT and chr(kind) != "p":
            most = messages.MAX_SHORT
        else:
            raise Malformed("A message of this type may not come here.")
        if size < 4:
            raise Malformed("A message has a length that no message has.")
        if size - 4 > most:
            raise Malformed(f"A message has {size - 4:,} bytes; at most {most:,} are allowed.", "54000")

    # ---- from messages to events -------------------------------------------------------------------------------------

    def _event(self, sent: messages.First | messages.Message) -> Event[S, P] | None:
        match sent:
            case messages.SslRequest():
                return self._encryption(self._asked_for_tls, self._tls)
            case messages.GssRequest():
                return self._encryption(self._asked_for_gss, None)
            case messages.CancelRequest():
                self.close()
                return Cancel(sent.process, sent.key)
            case messages.Startup():
                return self._startup(sent)
            case messages.Terminate():
                self.close()
                return None
            case messages.Password():
                return self._password(sent.body)
            case messages.Sync():
                self._skipping = False
                self.ready()
                return None
        return self._ready_event(sent)

    def _encryption(self, before: bool, offered: bool | None) -> StartTls | None:
        """Answer a request for encryption; offered: None for one that nobody has here."""
        if before or self.encrypted:
            raise Malformed("Encryption was asked for twice.")
        if offered is None:
            self._asked_for_gss = True
        else:
            self._asked_for_tls = True
        if self._buffer:
            raise Malformed("Data came behind a request for encryption.")
        if not offered:
            self._output += messages.ENCRYPTION_REFUSED
            return None
        self._output += messages.TLS_ACCEPTED
        self._state = _State.HANDSHAKE
        return StartTls()

    def _startup(self, sent: messages.Startup) -> SignIn | None:
        if self._tls and not self.encrypted:
            hint = "Connect with sslmode=verify-full, or with sslmode=require at least."
            message_ = "This server answers connections with TLS only."
            self.close(Report(severity="FATAL", state="28000", message=message_, hint=hint))
            return None
        unknown = [name for name in sent.parameters if name.startswith("_pq_.")]
        if sent.minor > NEWEST_MINOR or unknown:
            self._output += messages.negotiate_version(3, min(sent.minor, NEWEST_MINOR), unknown)
        if sent.minor < NEWEST_MINOR:
            self._key = self._key[:PLAIN_KEY]
        user = sent.parameters.get("user", "")
        if not user:
            self.close(Report(severity="FATAL", state="28000", message="The name of a user is missing."))
            return None
        self._state = _State.SIGNING_IN
        return SignIn(user, {name: value for name, value in sent.parameters.items() if name not in unknown})

    def _password(self, body: bytes) -> SaslInitial | SaslResponse:
        if self._answered:
            return SaslResponse(body)
        self._answered = True
        return SaslInitial(*messages.read_sasl_initial(body))

    def _ready_event(self, sent: messages.First | messages.Message) -> Event[S, P] | None:
        match sent:
            case messages.Query():
                self._forget(self._statements, "")
                self._forget(self._portals, "")
                return Statements(sent.text)
            case messages.Parse():
                return self._prepare(sent)
            case messages.Bind():
                return self._bind(sent)
            case messages.Describe(kind="S"):
                statement = self._found(self._statements, sent.name, "prepared statement", "26000")
                return None if statement is None else DescribeStatement(statement[0])
            case messages.Describe() if sent.name and sent.name not in self._portals:
                return DescribeCursor(sent.name)
            case messages.Describe():
                portal = self._found(self._portals, sent.name, "portal", "34000")
                return None if portal is None else DescribePortal(portal[0], self._runs_next(sent.name))
            case messages.Execute():
                portal = self._found(self._portals, sent.portal, "portal", "34000")
                return None if portal is None else Run(portal[0], sent.rows)
            case messages.Close():
                if sent.kind == "S":
                    self._forget(self._statements, sent.name)
                else:
                    self._forget(self._portals, sent.name)
                self._output += messages.CLOSE_COMPLETE
            case messages.FunctionCall():
                self.fail(Report(severity="ERROR", state="0A000", message="Functions are called in queries only."))
                self.ready()
        return None  # Flush: what waits is always sent before the next wait. CopyIn: no answer is due

    def _prepare(self, sent: messages.Parse) -> Prepare | None:
        if not sent.name:
            self._forget(self._statements, "")
        elif sent.name in self._statements:
            self.fail(_error("42P05", f"There is a prepared statement {sent.name!r} already."))
            return None
        if len(self._statements) >= MAX_STATEMENTS or self._stored + _bytes_of_statement(sent) > MAX_STORED:
            self.fail(_error("54000", "Too many statements are prepared. Close some, or connect again."))
            return None
        return Prepare(sent.name, sent.text, sent.types)

    def _bind(self, sent: messages.Bind) -> BindTo[S] | None:
        if not sent.portal:
            self._forget(self._portals, "")
        elif sent.portal in self._portals:
            self.fail(_error("42P03", f"There is a portal {sent.portal!r} already."))
            return None
        statement = self._found(self._statements, sent.statement, "prepared statement", "26000")
        if statement is None:
            return None
        if len(sent.formats) not in (0, 1, len(sent.values)):
            raise Malformed("The formats of parameters do not match their number.")
        if any(one > messages.BINARY for one in (*sent.formats, *sent.result_formats)):
            self.fail(_error("22023", "A format of values is neither text (0) nor binary (1)."))
            return None
        if len(self._portals) >= MAX_PORTALS or self._stored + _bytes_of(sent) > MAX_STORED:
            self.fail(_error("54000", "Too many portals are open. Close some, or end the transaction."))
            return None
        return BindTo(statement[0], sent)

    def _runs_next(self, portal: str) -> bool:
        """Tell whether the next message, if it is there, runs this portal."""
        name = portal.encode() + b"\0"
        head = b"E" + (len(name) + 8).to_bytes(4, "big") + name
        return self._buffer.startswith(head) and len(self._buffer) >= len(head) + 4

    def _found(self, table: Mapping[str, tuple[T, int]], name: str, what: str, state: str) -> tuple[T, int] | None:
        if name not in table:
            self.fail(_error(state, f"There is no {what} {name[:64]!r}."))
            return None
        return table[name]

    def _forget(self, table: dict[str, tuple[T, int]], name: str) -> None:
        self._stored -= table.pop(name, (None, 0))[1]

    # ---- answers -----------------------------------------------------------------------------------------------------

    def secured(self) -> None:
        """Go on after the handshake of TLS."""
        self.encrypted, self._state = True, _State.BEGINNING

    def request_sasl(self, mechanisms: Sequence[str]) -> None:
        """Ask for an authentication by one of these mechanisms."""
        self._output += messages.authentication_sasl(mechanisms)

    def challenge(self, data: bytes) -> None:
        """Go on with an authentication."""
        self._output += messages.authentication_sasl_continue(data)

    def signed_in(self, data: bytes, settings: Mapping[str, str]) -> None:
        """End an authentication well, and say what holds."""
        self._output += messages.authentication_sasl_final(data) + messages.authentication_ok()
        for name, value in settings.items():
            self.say_setting(name, value)
        self._output += messages.backend_key(self._process, self._key)
        self._state = _State.READY
        self.ready()

    def say_setting(self, name: str, value: str) -> None:
        """Say what a setting is."""
        self._output += messages.parameter_status(name, value)

    def prepared(self, event: Prepare, statement: S) -> None:
        """Keep a statement by its name."""
        size = _bytes_of_statement(event)
        self._statements[event.name] = statement, size
        self._stored += size
        self._output += messages.PARSE_COMPLETE

    def bound(self, event: BindTo[S], portal: P) -> None:
        """Keep a portal by its name."""
        size = _bytes_of(event.sent)
        self._portals[event.sent.portal] = portal, size
        self._stored += size
        self._output += messages.BIND_COMPLETE

    def described_statement(self, types: Sequence[int], columns: Sequence[messages.FieldDescription] | None) -> None:
        """Send the types of the parameters of a statement, and its columns."""
        self._output += messages.parameter_description(types)
        self.described(columns)

    def described(self, columns: Sequence[messages.FieldDescription] | None) -> None:
        """Send the columns of a result; None for what has none."""
        self._output += messages.NO_DATA if columns is None else messages.row_description(columns)

    def rows(self, rows: Iterable[bytes]) -> None:
        """Send rows, or other parts of a result, as `messages` writes them."""
        for row in rows:
            self._output += row

    def completed(self, tag: str) -> None:
        """Say what a statement has done; without a tag, that there was none."""
        self._output += messages.command_complete(tag) if tag else messages.EMPTY_QUERY

    def suspended(self) -> None:
        """Say that a portal has more rows."""
        self._output += messages.PORTAL_SUSPENDED

    def notice(self, said: Report) -> None:
        """Say something beside a result."""
        self._output += messages.report(said)

    def fail(self, said: Report) -> None:
        """Say why something is refused; of the extended protocol, all is skipped until the next `Sync`."""
        self._output += messages.report(said)
        self._skipping = self._extended
        if self.transaction == "T":
            self.transaction = "E"

    def ready(self) -> None:
        """Say that the client may go on. Outside a transaction, all portals end."""
        if self.transaction == "I":
            self.end_portals()
        self._output += messages.ready_for_query(self.transaction)

    def end_portals(self) -> None:
        """Forget all portals, as at the end of a transaction."""
        for name in list(self._portals):
            self._forget(self._portals, name)

    def end_statements(self, name: str | None = None) -> bool:
        """Forget all statements, or one, and tell whether it was there."""
        there = name is None or name in self._statements
        for known in list(self._statements) if name is None else [name]:
            self._forget(self._statements, known)
        return there

    def close(self, said: Report | None = None) -> None:
        """Close the connection, saying why."""
        if not self.is_closed:
            if said is not None:
                self._output += messages.report(said)
            self._state = _State.CLOSED
            self._buffer.clear()
            self.end_portals()
            self.end_statements()


def _error(state: str, message: str) -> Report:
    return Report(severity="ERROR", state=state, message=message)


def _violation(message: str) -> Report:
    return Report(severity="FATAL", state=messages.PROTOCOL_VIOLATION, message=message)


def _bytes_of_statement(sent: messages.Parse | Prepare) -> int:
    """Return about how much a statement takes: of Python a number takes 40 bytes, and an object some hundred."""
    return 500 + len(sent.text.encode()) + 40 * len(sent.types)


def _bytes_of(sent: messages.Bind) -> int:
    return 500 + sum(50 + len(value or b"") for value in sent.values) + 40 * len(sent.result_formats)
