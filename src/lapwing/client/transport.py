"""The way to a server: requests by the standard library, and its errors as those of Lapwing.

Requests follow no redirect and send the token to one address only; over plain HTTP only on this machine. If the
connection breaks, a request is sent once more, where that cannot charge twice.

A busy server says after how many seconds to ask again (`Retry-After`, with 429 or 503). The client waits that long, if
it is not too long, and a few times; then it raises the error. Ctrl-C ends the wait.
"""

import http.client
import json
import re
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, cast, final
from urllib.parse import quote, unquote, urlsplit

from lapwing import errors
from lapwing.errors import (
    AllowanceExhausted,
    Interrupted,
    InvalidParameter,
    LapwingError,
    QueryRefused,
    RefusalCause,
    ServiceFault,
)
from lapwing.machine.one_address import is_this_machine
from lapwing.privacy.amounts import read

ARROW: Final = "application/vnd.apache.arrow.stream"
LINES: Final = "application/x-ndjson"
SECONDS: Final = 300.0
PAGE: Final = 1_000
"""Items of a list that are asked for at a time: as many as a server lists."""
MOST_BYTES: Final = 1 << 30
BUSY: Final = (429, 503)
MOST_WAITS: Final = 5
LONGEST_WAIT: Final = 10
"""Seconds: who is told to wait longer is told so."""
_SECONDS: Final = re.compile(r"[0-9]{1,4}")
_OF_DATASET: Final = re.compile(r"/v1/datasets/([^/]+)/")
_CLASSES: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LapwingError) and kind is not Interrupted
}


@final
class ServerConnection:
    """One server, and the token that it knows its caller by; None for what takes no token."""

    def __init__(self, address: str, token: str | None) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidParameter(
                f"{address[:100]!r} is not the address of a server; write one like https://dp.example.org."
            )
        if parts.username or parts.password:
            raise InvalidParameter("The address has a name or a password; give a token with token= instead.")
        if parts.scheme == "http" and not is_this_machine(parts.hostname):
            raise InvalidParameter(
                f"The token would go to {parts.hostname} unencrypted. Use https, or http on this machine only."
            )
        if token is not None and not (token and token.isascii() and token.isprintable()):
            raise InvalidParameter("token is empty or malformed; give the token that the server issued.")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._netloc, self._token = parts.netloc, token

    def __repr__(self) -> str:
        return f"<Connection: {self.address}>"

    def get(self, path: str) -> Any:
        """Return the document at a path."""
        return json.loads(self._asked("GET", path))

    def listed(self, path: str, name: str) -> list[Any]:
        """Return all items of a list, which comes in pages.

        Args:
            name: The field of an item by which a page begins after it.
        """
        items: list[Any] = self.get(f"{path}?limit={PAGE}")
        page = items
        while len(page) == PAGE:
            page = self.get(f"{path}?limit={PAGE}&after={quote(str(page[-1][name]), safe='')}")
            items += page
        return items

    def post(self, path: str, body: Mapping[str, object], key: str | None = None) -> Any:
        """Send a document and return the one that answers it, None if nothing does.

        Args:
            key: Of a question, by which the server knows it again: it may be sent twice.
        """
        return _document(self._asked("POST", path, body, key))

    def put(self, path: str, body: Mapping[str, object]) -> Any:
        """Make a document what is at a path, however often it is sent, and return the one that answers it, or None."""
        return _document(self._asked("PUT", path, body))

    def patch(self, path: str, body: Mapping[str, object]) -> Any:
        """Change what a document says of what is at a path, and return what it is then."""
        return _document(self._asked("PATCH", path, body))

    def delete(self, path: str) -> Any:
        """Delete what is at a path, and return the document that answers it, or None."""
        return _document(self._asked("DELETE", path))

    def stream(self, path: str) -> bytes:
        """Return an Arrow stream."""
        return self._asked("GET", path, accept=ARROW)

    def stream_of(self, path: str, body: Mapping[str, object]) -> bytes:
        """Send a document and return the Arrow stream that answers it."""
        return self._asked("POST", path, body, accept=ARROW)

    def lines(self, path: str) -> list[str]:
        """Return the lines at a path, each a JSON document."""
        return self._asked("GET", path, accept=LINES).decode().splitlines()

    def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        key: str | None = None,
        accept: str = "application/json",
    ) -> bytes:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token is not None else {}
        headers |= {"Content-Type": "application/json"} if content is not None else {}
        headers |= {"Idempotency-Key": key} if key is not None else {}
        broken, waits = False, 0
        repeatable = method not in ("POST", "PATCH") or key is not None
        while True:
            try:
                return self.send(method, path, content, headers)
            except _Later as later:
                if waits == MOST_WAITS or not (repeatable or later.untouched):
                    raise later.error from None
                waits += 1
                time.sleep(later.seconds)
            except (OSError, http.client.HTTPException) as error:
                if broken or not repeatable:
                    raise _unreachable(self.address, method, error, question=key is not None) from None
                broken = True

    def send(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> bytes:
        """Send a request once, over a connection of its own, and return the body of the answer."""
        connection = self._kind(self._netloc, timeout=SECONDS)
        try:
            connection.request(method, self._path + path, content, dict(headers))
            response = connection.getresponse()
            answer = response.read(MOST_BYTES)
            if response.length or len(answer) == MOST_BYTES:  # cut short, which `read` does not say
                raise http.client.IncompleteRead(answer)
            if response.headers.get("Content-Encoding") == "gzip":
                answer = _unpacked(answer)
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return answer
        error, after = _error(response.status, answer, path), response.headers.get("Retry-After", "")
        if response.status in BUSY and _SECONDS.fullmatch(after) and int(after) <= LONGEST_WAIT:
            raise _Later(error, int(after), untouched=response.status == http.HTTPStatus.TOO_MANY_REQUESTS)
        raise error


@final
class _Later(Exception):
    """The server asks to be asked again after some seconds.

    Args:
        untouched: Whether it has not looked at the request at all.
    """

    def __init__(self, error: LapwingError, seconds: int, *, untouched: bool) -> None:
        super().__init__(str(error))
        self.error, self.seconds, self.untouched = error, seconds, untouched


def _unpacked(answer: bytes) -> bytes:
    """Return what was compressed, if that is all of it, and not too much."""
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # with the header of gzip
    try:
        whole = unpacking.decompress(answer, MOST_BYTES)
    except zlib.error:
        raise http.client.HTTPException from None
    if not unpacking.eof:
        raise http.client.IncompleteRead(whole)
    return whole


def _document(content: bytes) -> Any:
    return json.loads(content) if content else None


def _unreachable(
    address: str, method: str, error: OSError | http.client.HTTPException, *, question: bool
) -> ServiceFault:
    if isinstance(error, ssl.SSLCertVerificationError):
        return ServiceFault(
            f"The certificate of the server at {address} is not trusted ({error.verify_message}). Nothing was sent. "
            f"If your own authority signed it, name the authority's certificate in SSL_CERT_FILE."
        )
    reason = f"The server at {address} cannot be reached, or broke off ({type(error).__name__})."
    if method == "GET" or isinstance(error, ConnectionRefusedError):
        return ServiceFault(f"{reason} Check the address, and whether the service runs.")
    if not question:
        return ServiceFault(f"{reason} We cannot tell whether the service did this. Check before you send it again.")
    return ServiceFault(
        f"{reason} `budget().history` shows whether a query was charged. If it was, running it again is free."
    )


def _error(status: int, content: bytes, path: str) -> LapwingError:
    """Return the error that the content of a response tells of."""
    try:
        error = error_of(json.loads(content))
        if isinstance(error, AllowanceExhausted) and (named := _OF_DATASET.match(path)):
            error.dataset = unquote(named[1])
        return error
    except (ValueError, KeyError, TypeError):
        return ServiceFault(
            f"The server answered with status {status}, and not like a Lapwing server; ask its operator."
        )


def error_of(document: Mapping[str, Any]) -> LapwingError:
    """Return the error that a problem document tells of."""
    error = _known_error(str(document["code"]), str(document["detail"]), document)
    error.charged = document.get("charged", error.charged)
    error.curator_remedy = document.get("curator_remedy", "")  # `detail` says already to ask the curator for it
    if isinstance(error, AllowanceExhausted) and "larger_limit" in document:
        error.larger_limit = read(document["larger_limit"], "larger_limit")
    return error


def _known_error(code: str, detail: str, document: Mapping[str, Any]) -> LapwingError:
    kind = _CLASSES.get(code)
    if kind is QueryRefused:
        position = document.get("position")
        where = (int(position[0]), int(position[1])) if position else None
        return QueryRefused(
            document["reason"],
            cause=RefusalCause(document.get("cause")),
            remedy=document["remedy"],
            position=where,
            suggestion=document.get("suggestion"),
        )
    if code == Interrupted.code:
        return Interrupted(charged=document["charged"])
    if kind is None:
        return (ServiceFault if document["status"] >= 500 else InvalidParameter)(detail)
    return cast(Callable[[str], LapwingError], kind)(detail)


def chosen_dataset(connection: ServerConnection, dataset: str | None) -> str:
    """Return the name of the data set that is meant: the only one that the caller may see, unless one is named.

    Raises:
        InvalidParameter: If there are several, or none.
    """
    seen = [str(served["name"]) for served in connection.listed("/v1/datasets", "name")]
    if dataset is None and not seen:
        raise InvalidParameter("You may see no data set here yet. Ask the curator to grant you one.")
    if dataset is None and len(seen) > 1:
        listed = f"one of {', '.join(seen)}"
        raise InvalidParameter(f"Choose a data set with dataset= (on the command line, --dataset): {listed}.")
    return seen[0] if dataset is None else dataset


def dataset_path(dataset: str) -> str:
    """Return the path of a data set."""
    return f"/v1/datasets/{quote(dataset, safe='')}"
