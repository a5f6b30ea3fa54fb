"""The client's side of the PostgreSQL protocol, written without the code that it tests."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

STARTUP, SSL, GSS, CANCEL = (3 << 16, (1234 << 16) + 5679, (1234 << 16) + 5680, (1234 << 16) + 5678)


def cstring(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape") + b"\0"


def packet(code: int, body: bytes = b"") -> bytes:
    return struct.pack(">II", len(body) + 8, code) + body


def startup(user: str = "alice", version: int = STARTUP, **parameters: str) -> bytes:
    pairs = {"user": user, **parameters} if user else parameters
    return packet(version, b"".join(cstring(name) + cstring(value) for name, value in pairs.items()) + b"\0")


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack(">I", len(body) + 4) + body


def query(text: str) -> bytes:
    return message("Q", cstring(text))


def parse(text: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    return message("P", cstring(name) + cstring(text) + struct.pack(f">H{len(types)}I", len(types), *types))


def bind(
    values: Sequence[bytes | None] = (),
    portal: str = "",
    statement: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    parts = [struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value for value in values]
    return message(
        "B",
        cstring(portal)
        + cstring(statement)
        + struct.pack(f">H{len(formats)}H", len(formats), *formats)
        + struct.pack(">H", len(values))
        + b"".join(parts)
        + struct.pack(f">H{len(results)}H", len(results), *results),
    )


def describe(kind: str, name: str = "") -> bytes:
    return message("D", kind.encode() + cstring(name))


def execute(portal: str = "", rows: int = 0) -> bytes:
    return message("E", cstring(portal) + struct.pack(">i", rows))


def close(kind: str, name: str = "") -> bytes:
    return message("C", kind.encode() + cstring(name))


SYNC, FLUSH, TERMINATE = message("S"), message("H"), message("X")


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of a server."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an error or a notice, by their letters."""
        parts = self.body.split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts if part}


def messages_of(data: bytes) -> Iterator[Sent]:
    """Read messages of a server, all of them whole."""
    while data:
        (size,) = struct.unpack(">I", data[1:5])
        assert size >= 4
        assert len(data) >= size + 1, "a message is cut off"
        yield Sent(data[:1].decode("ascii"), data[5 : size + 1])
        data = data[size + 1 :]
