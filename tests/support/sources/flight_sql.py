"""A Flight SQL server for tests: what an ADBC driver asks of one, over a database in memory, with a password."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

BEARER = "Bearer of-this-server"
TOKEN = "Basic cmVhZGVyOmtlcHQtc2VjcmV0"  # reader:kept-secret


class _Passing(flight.ServerMiddleware):  # type: ignore[misc]
    def sending_headers(self) -> dict[str, str]:
        return {"authorization": BEARER}


class _Anybody(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets the handshake pass, whose headers `_Door` looks at."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def is_valid(self, token: bytes) -> bytes:
        return b""


class _Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def start_call(self, info: Any, headers: dict[str, list[str]]) -> Any:
        given = {name.lower(): values for name, values in headers.items()}.get("authorization", [""])[0]
        if given not in (TOKEN, BEARER):
            raise flight.FlightUnauthenticatedError("kept-secret is what was expected")
        return _Passing()


PREPARED = b"prepared "


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Answers statements, also prepared ones with values; `interrupt` ends the stream of the next one in its middle.

    `texts` has all statements as they came, and `values` those that came beside them.
    """

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        super().__init__("grpc://127.0.0.1:0", auth_handler=_Anybody(), middleware={"door": _Door()})
        self.tables = tables
        self.interrupt = False
        self.texts: list[str] = []
        self.values: list[list[Any]] = []
        self._prepared: dict[bytes, tuple[str, list[Any]]] = {}

    @property
    def address(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def do_action(self, context: Any, action: Any) -> Any:
        if action.type == "CreatePreparedStatement":
            handle = PREPARED + str(len(self._prepared)).encode()
            query = _field(_field(action.body.to_pybytes(), 2), 1).decode()
            self._prepared[handle] = (query, [])
            return [flight.Result(_any(b"ActionCreatePreparedStatementResult", b"\x0a" + _sized(handle)))]
        return []

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        handle = _field(_field(descriptor.command, 2), 1)
        (row,) = reader.read_all().to_pylist()
        self._prepared[handle] = (self._prepared[handle][0], list(row.values()))
        self.values.append(list(row.values()))

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        query = _field(_field(descriptor.command, 2), 1)
        schema = self._run(query).schema
        endpoint = flight.FlightEndpoint(_ticket(query), [])
        return flight.FlightInfo(schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        query = _field(_field(ticket.ticket, 2), 1)
        table = self._run(query)
        if self.interrupt and b"COUNT" not in query:

            def broken() -> Iterator[Any]:
                yield table.slice(0, 10)
                raise flight.FlightServerError("secret row: 42")

            return flight.GeneratorStream(table.schema, broken())
        return flight.RecordBatchStream(table.to_reader(max_chunksize=64))

    def _run(self, statement: bytes) -> pa.Table:
        query, values = self._prepared.get(statement, (statement.decode(), []))
        self.texts.append(query)
        with duckdb.connect() as database:
            for name, table in self.tables.items():
                database.register(name, table)
            try:
                return database.sql(query, params=values or None).to_arrow_table()
            except duckdb.Error as error:
                raise flight.FlightServerError(f"secret: {error}") from None


@contextmanager
def serving(tables: dict[str, pa.Table]) -> Iterator[Server]:
    """Run a server."""
    server = Server(tables)
    try:
        yield server
    finally:
        server.shutdown()
        server.wait()


def _ticket(query: bytes) -> Any:
    return flight.Ticket(_any(b"TicketStatementQuery", b"\x0a" + _sized(query)))


def _any(kind: bytes, message: bytes) -> bytes:
    """Return a message of the Protocol Buffers that says what it is."""
    return b"\x0a" + _sized(b"type.googleapis.com/arrow.flight.protocol.sql." + kind) + b"\x12" + _sized(message)


def _sized(content: bytes) -> bytes:
    return _length(len(content)) + content


def _length(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(message: bytes, wanted: int) -> bytes:
    """Return a field of a message of the Protocol Buffers that holds bytes."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        size, at = _number(message, at)
        if tag >> 3 == wanted:
            return message[at : at + size]
        at += size
    return b""


def _number(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = message[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
