"""Messages of the PostgreSQL protocol, version 3: this module reads a client's and writes a server's.

A message has a type of one byte, a length of four that counts itself, and a body. The first packet of a client has no
type. A reader takes no more from a body than is there, and makes no list longer than the body has bytes for.

Source:
    PostgreSQL 18, Documentation, chapter 54, "Frontend/Backend Protocol".
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

PROTOCOL_VIOLATION: Final = "08P01"
BAD_TEXT: Final = "22021"
MAX_STARTUP: Final = 10_000
"""Bytes of the first packet of a client."""
MAX_PASSWORD: Final = 1024
"""Bytes of a message before somebody is signed in."""
MAX_SHORT: Final = 1024
"""Bytes of a message with no text of a query and no values."""
SSL_REQUEST: Final = (1234, 5679)
GSS_REQUEST: Final = (1234, 5680)
CANCEL_REQUEST: Final = (1234, 5678)
MAX_CANCEL_KEY: Final = 256
TEXT, BINARY = 0, 1
"""The two formats of a value."""


@final
class Malformed(Exception):
    """A message that is none; `state` is its SQLSTATE."""

    def __init__(self, reason: str, state: str = PROTOCOL_VIOLATION) -> None:
        self.state = state
        super().__init__(reason)


# ---- of a client -----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class SslRequest:
    """The client asks whether the connection may be encrypted by TLS."""


@final
@dataclass(frozen=True, slots=True)
class GssRequest:
    """The client asks whether the connection may be encrypted by GSSAPI."""


@final
@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop what the connection of this number does, of which the sender knows the key."""

    process: int
    key: bytes


@final
@dataclass(frozen=True, slots=True)
class Startup:
    """A connection begins."""

    major: int
    minor: int
    parameters: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Password:
    """A step of an authentication; what it holds depends on the step."""

    body: bytes


@final
@dataclass(frozen=True, slots=True)
class Query:
    """Statements, to be carried out one after another."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Parse:
    """Prepare a statement; of parameters the types by number, 0 where the server is to choose."""

    name: str
    text: str
    types: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Bind:
    """Make a portal of a prepared statement and values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Describe:
    """The client asks which columns a statement (`S`) or a portal (`P`) gives."""

    kind: Literal["S", "P"]
    name: str


@final
@dataclass(frozen=True, slots=True)
class Execute:
    """Carry out a portal, and send at most this number of rows; 0 is no limit."""

    portal: str
    rows: int


@final
@dataclass(frozen=True, slots=True)
class Close:
    """Forget a statement (`S`) or a portal (`P`)."""

    kind: Literal["S", "P"]
    name: str


@final
@dataclass(frozen=True, slots=True)
class Flush:
    """Send what waits."""


@final
@dataclass(frozen=True, slots=True)
class Sync:
    """The end of a group of messages of the extended protocol."""


@final
@dataclass(frozen=True, slots=True)
class Terminate:
    """The client closes the connection."""


@final
@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Call a function by number, which no client has done for long."""


@final
@dataclass(frozen=True, slots=True)
class CopyIn:
    """Data for a COPY that was refused or has ended: no answer is due."""


Message = (
    Password | Query | Parse | Bind | Describe | Execute | Close | Flush | Sync | Terminate | FunctionCall | CopyIn
)
First = SslRequest | GssRequest | CancelRequest | Startup
LONG: Final = frozenset(b"QPBFd")
"""The types of messages that hold a text of a query, values or data."""
SHORT: Final = frozenset(b"pDECHSXcf")


@final
class _Fields:
    """The fields of a body, in their order."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise Malformed("A message is shorter than its fields.")
        taken, self._at = self._body[self._at : end], end
        return taken

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def text(self) -> str:
        end = self._body.find(0, self._at)
        if end < 0:
            raise Malformed("A text in a message has no end.")
        taken, self._at = self._body[self._at : end], end + 1
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise Malformed("A text in a message is not UTF-8. Set client_encoding to UTF8.", BAD_TEXT) from None

    def int16s(self) -> tuple[int, ...]:
        size = self.int16()
        return struct.unpack(f">{size}H", self.take(2 * size))

    def int32s(self) -> tuple[int, ...]:
        size = self.int16()
        return struct.unpack(f">{size}I", self.take(4 * size))

    def value(self) -> bytes | None:
        size = self.int32()
        return None if size == -1 else self.take(size)

    def kind(self) -> Literal["S", "P"]:
        kind = self.take(1)
        if kind == b"S":
            return "S"
        if kind == b"P":
            return "P"
        raise Malformed("A message names neither a statement nor a portal.")

    def end(self) -> None:
        if self._at != len(self._body):
            raise Malformed("A message is longer than its fields.")


def read_first(body: bytes) -> First:
    """Read the first packet of a client, without its length.

    Raises:
        Malformed: If it is none.
    """
    fields = _Fields(body)
    major, minor = fields.int16(), fields.int16()
    if (major, minor) == CANCEL_REQUEST:
        process, key = fields.int32(), body[8:]
        if not 4 <= len(key) <= MAX_CANCEL_KEY:
            raise Malformed("The key of a cancel request has from 4 to 256 bytes.")
        return CancelRequest(process, key)
    if (major, minor) in (SSL_REQUEST, GSS_REQUEST):
        fields.end()
        return SslRequest() if (major, minor) == SSL_REQUEST else GssRequest()
    if major != 3:
        raise Malformed(f"The protocol {major}.{minor} is not supported; this server speaks 3.0 to 3.2.", "0A000")
    parameters: dict[str, str] = {}
    while name := fields.text():
        parameters[name] = fields.text()
    fields.end()
    return Startup(major, minor, parameters)


def read(kind: int, body: bytes) -> Message:
    """Read a message by its type and its body.

    Raises:
        Malformed: If it is none.
    """
    fields = _Fields(body)
    message = _message(kind, fields, body)
    if not isinstance(message, Password | FunctionCall | CopyIn):
        fields.end()
    return message


def _message(kind: int, fields: _Fields, body: bytes) -> Message:
    match chr(kind):
        case "Q":
            return Query(fields.text())
        case "P":
            return Parse(fields.text(), fields.text(), fields.int32s())
        case "B":
            return _bind(fields)
        case "D":
            return Describe(fields.kind(), fields.text())
        case "E":
            return Execute(fields.text(), max(fields.int32(), 0))
        case "C":
            return Close(fields.kind(), fields.text())
        case "H":
            return Flush()
        case "S":
            return Sync()
        case "X":
            return Terminate()
        case "F":
            return FunctionCall()
        case "d" | "c" | "f":
            return CopyIn()
        case _:
            return Password(body)


def _bind(fields: _Fields) -> Bind:
    portal, statement, formats = fields.text(), fields.text(), fields.int16s()
    values = tuple(fields.value() for _ in range(fields.int16()))
    return Bind(portal, statement, formats, values, fields.int16s())


def read_sasl_initial(body: bytes) -> tuple[str, bytes]:
    """Read the first message of a SASL authentication: the name of the mechanism, and what it is given.

    Raises:
        Malformed: If it is none.
    """
    fields = _Fields(body)
    mechanism, data = fields.text(), fields.value()
    fields.end()
    return mechanism, data or b""


# ---- of a server -----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """A column of a result: its name, the number and the size of its type, and the format of its values."""

    name: str
    type: int
    size: int
    format: int = TEXT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An error, or something besides a result.

    Args:
        state: The SQLSTATE, of five characters.
        position: Of a character in the text of the query, from 1.
    """

    severity: Literal["FATAL", "ERROR", "WARNING", "NOTICE"]
    state: str
    message: str
    detail: str = ""
    hint: str = ""
    position: int | None = None


def _framed(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _text(text: str) -> bytes:
    """Return a text with its end; what would end it sooner, or is no character, becomes one that says so."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace") + b"\0"


def _int16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def _int32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def authentication_ok() -> bytes:
    """Say that somebody is signed in."""
    return _framed(b"R", _int32(0))


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    """Ask for an authentication by one of these mechanisms."""
    return _framed(b"R", _int32(10) + b"".join(map(_text, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    """Go on with a SASL authentication."""
    return _framed(b"R", _int32(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    """End a SASL authentication."""
    return _framed(b"R", _int32(12) + data)


def negotiate_version(major: int, minor: int, unknown: Sequence[str]) -> bytes:
    """Say which version holds, and which options of the protocol are unknown here."""
    return _framed(b"v", _int16(major) + _int16(minor) + _int32(len(unknown)) + b"".join(map(_text, unknown)))


def parameter_status(name: str, value: str) -> bytes:
    """Say what a setting is."""
    return _framed(b"S", _text(name) + _text(value))


def backend_key(process: int, key: bytes) -> bytes:
    """Give the number and the key that a cancel request takes."""
    return _framed(b"K", _int32(process) + key)


def ready_for_query(status: str) -> bytes:
    """Say that the next query may come: outside a transaction (I), in one (T), or in one that failed (E)."""
    return _framed(b"Z", status.encode())


def command_complete(tag: str) -> bytes:
    """Say what a statement has done."""
    return _framed(b"C", _text(tag))


def parameter_description(types: Sequence[int]) -> bytes:
    """Give the types of the parameters of a statement."""
    return _framed(b"t", _int16(len(types)) + b"".join(map(_int32, types)))


def row_description(columns: Sequence[FieldDescription]) -> bytes:
    """Describe the columns of a result, which are columns of no table."""
    described = (
        _text(column.name) + struct.pack(">IhIhih", 0, 0, column.type, column.size, -1, column.format)
        for column in columns
    )
    return _framed(b"T", _int16(len(columns)) + b"".join(described))


def data_row(values: Iterable[bytes | None]) -> bytes:
    """Send a row."""
    parts = [b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values]
    return _framed(b"D", _int16(len(parts)) + b"".join(parts))


def copy_out(format_: int, columns: int) -> bytes:
    """Say that data follow, in this format."""
    return _framed(b"H", bytes((format_,)) + _int16(columns) + _int16(format_) * columns)


def copy_data(data: bytes) -> bytes:
    """Send a part of the data."""
    return _framed(b"d", data)


PARSE_COMPLETE: Final = _framed(b"1", b"")
BIND_COMPLETE: Final = _framed(b"2", b"")
CLOSE_COMPLETE: Final = _framed(b"3", b"")
NO_DATA: Final = _framed(b"n", b"")
PORTAL_SUSPENDED: Final = _framed(b"s", b"")
EMPTY_QUERY: Final = _framed(b"I", b"")
COPY_DONE: Final = _framed(b"c", b"")
TLS_ACCEPTED, ENCRYPTION_REFUSED = b"S", b"N"


def report(said: Report) -> bytes:
    """Tell of an error, or of something besides a result."""
    fields = {
        b"S": said.severity,
        b"V": said.severity,
        b"C": said.state,
        b"M": said.message,
        b"D": said.detail,
        b"H": said.hint,
        b"P": "" if said.position is None else str(said.position),
    }
    body = b"".join(name + _text(text) for name, text in fields.items() if text) + b"\0"
    return _framed(b"E" if said.severity in ("FATAL", "ERROR") else b"N", body)
