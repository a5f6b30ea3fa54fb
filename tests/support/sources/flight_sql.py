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


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Answers statements; `interrupt` ends the stream of the next one in its middle."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        super().__init__("grpc://127.0.0.1:0", auth_handler=_Anybody(), middleware={"door": _Door()})
        self.tables = tables
        self.interrupt = False

    @property
    def address(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        query = _field(_field(descriptor.command, 2), 1)
        schema = self._run(query.decode()).schema
        endpoint = flight.FlightEndpoint(_ticket(query), [])
        return flight.FlightInfo(schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        query = _field(_field(ticket.ticket, 2), 1).decode()
        table = self._run(query)
        if self.interrupt and "COUNT" not in query:

            def broken() -> Iterator[Any]:
                yield table.slice(0, 10)
                raise flight.FlightServerError("secret row: 42")

            return flight.GeneratorStream(table.schema, broken())
        return flight.RecordBatchStream(table.to_reader(max_chunksize=64))

    def _run(self, query: str) -> pa.Table:
        with duckdb.connect() as database:
            for name, table in self.tables.items():
                database.register(name, table)
            try:
                return database.sql(query).to_arrow_table()
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
    statement = b"\x0a" + _length(len(query)) + query
    kind = b"type.googleapis.com/arrow.flight.protocol.sql.TicketStatementQuery"
    return flight.Ticket(b"\x0a" + _length(len(kind)) + kind + b"\x12" + _length(len(statement)) + statement)


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
