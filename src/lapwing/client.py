"""A session on a data set that a server holds: the same `sql`, `explain` and `budget` over HTTP.

Requests go by the standard library, follow no redirect and send the token to one address only; over plain HTTP only on
this machine. A question is sent with an idempotency key: if the connection breaks, it is sent once more with the same
key, so that it is charged once, whichever of the two arrived.
"""

import http.client
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from html import escape
from numbers import Integral
from types import TracebackType
from typing import Any, Final, Self, cast, final
from urllib.parse import quote, urlsplit

import numpy as np
import pyarrow as pa

from lapwing import errors
from lapwing.answer.showing import Cell, EndArray, show
from lapwing.budget import BudgetView
from lapwing.documents import account_of, preview_of, value_of
from lapwing.errors import InvalidParameter, LapwingError, QueryRefused, ServiceFault
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.preview import Preview
from lapwing.privacy.amounts import Number, exact, probability, written
from lapwing.privacy.measures import Loss, from_record
from lapwing.query.text.parameters import Parameters

ARROW: Final = "application/vnd.apache.arrow.stream"
USUAL_CONFIDENCE: Final = Fraction(95, 100)
SECONDS: Final = 300.0
MOST_BYTES: Final = 1 << 30
_CLASSES: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LapwingError) and kind is not errors.Interrupted
}


@final
class Connection:
    """One server, and the token that it knows its caller by."""

    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidParameter(
                f"{address[:100]!r} is no address of a server; write one like https://dp.example.org."
            )
        if parts.username or parts.password:
            raise InvalidParameter("The address holds a name or a password; give a token by token= instead.")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname):
            raise InvalidParameter(
                f"The token would go to {parts.hostname} unencrypted. Use https, or http on this machine only."
            )
        if not token or not token.isascii() or not token.isprintable():
            raise InvalidParameter("token is empty or no token; give the one that the server issued.")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._netloc, self._token = parts.netloc, token

    def __repr__(self) -> str:
        return f"<Connection: {self.address}>"

    def get(self, path: str) -> Any:
        """Return the document at a path."""
        return json.loads(self._asked("GET", path))

    def post(self, path: str, body: Mapping[str, object], key: str | None = None) -> Any:
        """Send a document and return the one that answers it."""
        return json.loads(self._asked("POST", path, body, key))

    def stream(self, path: str) -> bytes:
        """Return an Arrow stream."""
        return self._asked("GET", path, accept=ARROW)

    def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        key: str | None = None,
        accept: str = "application/json",
    ) -> bytes:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        headers |= {"Content-Type": "application/json"} if content is not None else {}
        headers |= {"Idempotency-Key": key} if key is not None else {}
        for attempt in (1, 2):
            try:
                return self._once(method, path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                if attempt == 2 or (method == "POST" and key is None):
                    raise ServiceFault(
                        f"The server at {self.address} cannot be reached, or broke off ({type(error).__name__}). "
                        "Whether a question was charged is in `budget().history`; ask it again, that is free if it was."
                    ) from None
        raise AssertionError

    def _once(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> bytes:
        connection = self._kind(self._netloc, timeout=SECONDS)
        try:
            connection.request(method, self._path + path, content, dict(headers))
            response = connection.getresponse()
            answer = response.read(MOST_BYTES)
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return answer
        raise _error(response.status, answer)


def _error(status: int, content: bytes) -> LapwingError:
    """Return the error that a problem document tells of."""
    try:
        document = json.loads(content)
        code, detail = str(document["code"]), str(document["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceFault(f"The server answered with status {status}, and not as Lapwing does; ask who runs it.")
    kind = _CLASSES.get(code)
    if kind is QueryRefused:
        position = document.get("position")
        where = (int(position[0]), int(position[1])) if position else None
        return QueryRefused(document["reason"], remedy=document["remedy"], position=where)
    if kind is None:
        return (ServiceFault if status >= 500 else InvalidParameter)(detail)
    return cast(Callable[[str], LapwingError], kind)(detail)


@final
class RemoteAnswer:
    """A noisy table that a server keeps: what `Answer` says of itself, and `id`, by which it is opened again."""

    def __init__(self, connection: Connection, document: Mapping[str, Any]) -> None:
        self._connection = connection
        self.id: str = document["id"]
        self.columns: tuple[str, ...] = tuple(document["columns"])
        self.cost: Loss = from_record(document["cost"])
        self.stored: bool = document["stored"]
        self.notes: tuple[str, ...] = tuple(document["notes"])
        self._types: Mapping[str, str] = document["types"]
        self._rows: list[dict[str, Any]] = document["rows"]
        self._opened = exact(document["confidence"], "confidence")
        self._intervals = {self._opened: self._read(document["intervals"])}

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<RemoteAnswer: {len(self)} rows of {', '.join(self.columns)}; cost {self.cost}>"

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows` does."""
        return [{name: value_of(row[name], self._types[name]) for name in self.columns} for row in self._rows]

    def interval(self, confidence: Number = USUAL_CONFIDENCE) -> dict[str, tuple[EndArray, EndArray]]:
        """Return the ends of intervals, as `Answer.interval` does.

        At another confidence than the answer was opened with the server computes them anew, for nothing; it cannot once
        data or catalog have changed.

        Raises: DataChanged.
        """
        level = probability(confidence, "confidence")
        if level not in self._intervals:
            document = self._connection.get(f"/v1/answers/{self.id}?confidence={quote(written(level))}")
            self._intervals[level] = self._read(document["intervals"])
        return self._intervals[level]

    def to_arrow(self, confidence: Number | None = None) -> pa.Table:
        """Return a PyArrow table; with a confidence, also `<column>_low` and `<column>_high`."""
        path = f"/v1/answers/{self.id}"
        if confidence is not None and (level := probability(confidence, "confidence")) != self._opened:
            path += f"?confidence={quote(written(level))}"
        with pa.ipc.open_stream(self._connection.stream(path)) as reader:
            table = reader.read_all()
        if confidence is not None:
            return table
        noisy = self._intervals[self._opened]
        return table.drop_columns([f"{name}_{end}" for name in noisy for end in ("low", "high")])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the answer to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _read(self, intervals: Mapping[str, Mapping[str, Sequence[object]]]) -> dict[str, tuple[EndArray, EndArray]]:
        return {name: self._ends(name, ends) for name, ends in intervals.items()}

    def _ends(self, name: str, ends: Mapping[str, Sequence[object]]) -> tuple[EndArray, EndArray]:
        kind = {"date": "datetime64[D]", "timestamp": "datetime64[us]"}.get(self._types[name], "float64")
        unknown = np.nan if kind == "float64" else "NaT"
        low, high = (np.array([unknown if x is None else x for x in ends[end]], dtype=kind) for end in ("low", "high"))
        return low, high

    def _repr_html_(self) -> str:
        intervals = self._intervals[self._opened]
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = []
        for i, row in enumerate(self.rows()):
            cells = []
            for name, value in row.items():
                ends = [show(end[i].item()) for end in intervals.get(name, ())]
                cells.append(escape(show(value)) + (f" <small>[{escape(', '.join(ends))}]</small>" if ends else ""))
            body.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        cost = "free: bought before" if self.stored else f"cost {self.cost}"
        top = f"<caption>{escape(cost)}</caption><thead><tr>{head}</tr></thead>"
        return f"<table>{top}<tbody>{''.join(body)}</tbody></table>"


@final
class RemoteSession:
    """Ask questions of one data set that a server holds. Thread-safe.

    Made by `lapwing.connect` with an address and a token.
    """

    def __init__(self, address: str, token: str, dataset: str | None = None) -> None:
        self._connection = Connection(address, token)
        seen = [str(served["name"]) for served in self._connection.get("/v1/datasets")]
        if dataset is None and len(seen) != 1:
            listed = f"one of {', '.join(seen)}" if seen else "none, as you may see none; ask the curator"
            raise InvalidParameter(f"Say by dataset= which data set is meant: {listed}.")
        self.dataset = seen[0] if dataset is None else dataset
        self._path = f"/v1/datasets/{quote(self.dataset, safe='')}"
        self.schema: Mapping[str, Any] = self._connection.get(self._path)

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
    ) -> RemoteAnswer:
        """Answer a question and charge it, as `Session.sql` does; the same question again is free.

        Raises: as `Session.sql`; AllowanceExhausted (nothing charged); NotAuthorised; TooManyRequests; ServiceFault.
        """
        body = _question(text, parameters, epsilon, error, delta)
        key = read_exactly(SystemEntropy(), 16).hex()
        return RemoteAnswer(self._connection, self._connection.post(f"{self._path}/query", body, key))

    def explain(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
    ) -> Preview:
        """Return price, mechanisms and promised errors, as `Session.explain` does; free."""
        body = _question(text, parameters, epsilon, error, delta) | {"assuming_count": assuming_count}
        return preview_of(self._connection.post(f"{self._path}/explain", body))

    def budget(self) -> BudgetView:
        """Return what was granted, spent and is left, with the history of one's own charges."""
        return account_of(self._connection.get(f"{self._path}/budget"))

    def answer(self, id: str) -> RemoteAnswer:
        """Open an answer again, for nothing.

        Raises: NotFound if there is none of this id that one may see.
        """
        return RemoteAnswer(self._connection, self._connection.get(f"/v1/answers/{quote(id, safe='')}"))

    def close(self) -> None:
        """Do nothing: a remote session holds nothing. So that `with` is as for a `Session`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _question(
    text: str, parameters: Parameters, epsilon: Number | None, error: Number | None, delta: Number | None
) -> dict[str, object]:
    """Return the body of a request; amounts as exact texts."""
    prices = {"epsilon": epsilon, "error": error, "delta": delta}
    amounts = {name: None if value is None else _amount(value, name) for name, value in prices.items()}
    if isinstance(parameters, Mapping):
        return {"sql": text, "parameters": {name: _sent(value) for name, value in parameters.items()}, **amounts}
    return {"sql": text, "parameters": [_sent(value) for value in parameters], **amounts}


def _amount(value: Number, name: str) -> object:
    amount = exact(value, name)
    return float(amount) if amount < 0 else written(amount)  # a negative one is for the server to refuse


def _sent(value: object) -> object:
    """Return a parameter as JSON has it, or with its type."""
    match value:
        case None | bool() | float() | str():
            return value
        case Integral():
            return int(value)
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
        case Fraction():
            return {"fraction": str(value)}
        case _:
            raise InvalidParameter(
                f"A parameter is a {type(value).__name__}; give bool, int, float, Decimal, Fraction, str, date, "
                "datetime or None."
            )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
