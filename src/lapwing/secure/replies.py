"""What servers and relays of secure sums answer over HTTP: errors as messages, and bodies of a limited length."""

import json
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from lapwing.errors import Fault, InvalidParameter, LapwingError, NotAuthorised, QueryRefused

Handler = Callable[[Request], Awaitable[Response]]
_STATUS: Final = {2: 400, 3: 409, 4: 403, 5: 401}


def told(handler: Handler, failure: str, headers: Mapping[str, str] | None = None) -> Handler:
    """Return a handler whose errors become messages: ours as they are, any other as one constant text."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except LapwingError as error:
            status = _STATUS.get(error.exit_status, 500)
            cause = {"cause": error.cause.value} if isinstance(error, QueryRefused) else {}
            return json_reply({"code": error.code, "detail": str(error), **cause}, status, headers)
        except Exception:
            return json_reply({"code": Fault.code, "detail": failure}, 500, headers)

    return handle


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's body.

    Raises:
        InvalidParameter: As soon as it is too long.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise InvalidParameter(f"A body has {most:,} bytes at most; send several.")
    return bytes(body)


def json_reply(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a reply of a JSON document."""
    return Response(json.dumps(document), status, headers, media_type="application/json")


def require_key(request: Request, digest: str) -> None:
    """Refuse a request that does not show the key of a digest.

    Raises:
        NotAuthorised: If it does not.
    """
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not compare_digest(sha256(given.encode()).hexdigest(), digest):
        raise NotAuthorised("Only the organiser's key closes a task; nothing was done.")
