"""Requests to the service from within its process, on behalf of who is signed in.

A page asks for what it shows as a program would, by the same routes; only who asks is known already. That is told by a
key of the ASGI scope, which no peer can set: servers make scopes, and put in what was sent under fixed keys alone.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import quote, urlencode

from starlette.requests import Request

from lapwing.server.authentication import INSIDE
from lapwing.server.people import Caller
from lapwing.server.problems import Problem, problem

Message = MutableMapping[str, Any]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
JSON: Final = "application/json"


@final
class ApiRefusal(Exception):
    """What the service refused, as it says it."""

    def __init__(self, document: Problem) -> None:
        self.document = document
        super().__init__(document["detail"])


def in_form(document: Problem) -> Problem:
    """Return a refusal as a form shows it: what to write in the field, without the names of the API.

    >>> in_form({"detail": "body.epsilon: ...", "fault": "Fill in this field.", "field": "most_epsilon"})["detail"]
    'most epsilon: Fill in this field.'
    """
    fault, field = document.get("fault"), document.get("field", "")
    if fault is None:
        return document
    return {**document, "detail": f"{field.rpartition('.')[2].replace('_', ' ')}: {fault}" if field else fault}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApiReply:
    """What the service answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        """The JSON document that it is, None if there is none."""
        return json.loads(self.content) if self.content else None

    @property
    def following(self) -> bool:
        """Whether a list goes on after this page of it."""
        return 'rel="next"' in self.headers.get("link", "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The service's requests, in somebody's name.

    Args:
        request: Of the browser; if it goes away, what waits in the service is dropped as for any other caller. Its body
            must have been read.
    """

    application: Application
    request: Request
    caller: Caller

    async def get(self, *path: str, **query: object) -> Any:
        """Return the document at a path below `/v1`.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        return (await self.send("GET", *path, query=query)).document

    async def send(
        self,
        method: str,
        *path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiReply:
        """Send a request to a path below `/v1`.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        if any("/" in part or part in ("", ".", "..") for part in path):
            raise ApiRefusal(problem("not_found", 404, "This address does not exist."))
        return await self._sent("/".join(("", "v1", *path)), method, body=body, query=query, headers=headers)

    async def upload(self, chunks: AsyncIterator[bytes], **query: object) -> Any:
        """Send a file in pieces to a folder of the service, and return the document of the stored file.

        Raises:
            ApiRefusal: If the service refuses the file.
        """
        return (await self._sent("/v1/files", "PUT", query=query, chunks=chunks)).document

    async def metrics(self) -> str:
        """Return what the service counts.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        return (await self._sent("/metrics", "GET")).content.decode()

    async def _sent(
        self,
        where: str,
        method: str,
        *,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        chunks: AsyncIterator[bytes] | None = None,
    ) -> ApiReply:
        content = b"" if body is None else json.dumps(body).encode()
        size = {"content-length": str(len(content))} if chunks is None else {}
        sent = {"accept": JSON, "content-type": JSON, **size, **(headers or {})}
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        outer = self.request.scope
        scope = {
            "type": "http",
            "asgi": outer["asgi"],
            "http_version": "1.1",
            "method": method,
            "scheme": outer["scheme"],
            "path": where,
            "raw_path": quote(where).encode(),
            "query_string": urlencode(asked).encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": outer["client"],
            "server": outer["server"],
            "state": {},
            INSIDE: self.caller,
        }
        return await self._answered(scope, content, chunks)

    async def _answered(
        self, scope: MutableMapping[str, Any], content: bytes, chunks: AsyncIterator[bytes] | None
    ) -> ApiReply:
        told, status, headers, parts = False, 0, dict[str, str](), list[bytes]()

        async def receive() -> Message:
            nonlocal told
            if told:
                return await self.request.receive()
            if chunks is not None:
                async for chunk in chunks:
                    return {"type": "http.request", "body": chunk, "more_body": True}
            told = True
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers.update((name.decode().lower(), value.decode("latin-1")) for name, value in message["headers"])
            else:
                parts.append(message.get("body", b""))

        with suppress(Exception):  # what nobody expected is logged and answered before it is raised again
            await self.application(scope, receive, send)
        reply = ApiReply(status=status, headers=headers, content=b"".join(parts))
        if status >= 400:
            raise ApiRefusal(in_form(reply.document))
        if not status:
            raise RuntimeError("The service sent no response.")
        return reply
