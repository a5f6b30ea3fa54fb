"""Questions by the shortest way: what most requests are, without the general machinery of routes.

Theory of operation. A route costs several times what reading its request does: layers around it, the search for it,
what it depends on. So a plain request with one question is recognised by its path and read here. Whoever asks is found,
the question is asked and its answer written by what the route calls too, and refusals are those of all routes
(`problems.refusal`). A request that is not so plain (a query string, another type of content, a key or a body that is
none) goes on to the route, which says what is wrong with it. Nothing was done by then: it was only looked at. The route
also describes both. What this gains is in docs/decisions/fastapi.md.
"""

import json
import re
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any, Final, final

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from lapwing.errors import LapwingError
from lapwing.server import problems
from lapwing.server.bodies import QueryBody
from lapwing.server.compression import Message, Send
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask, RepeatedProblem
from lapwing.server.middleware import Application, Receive
from lapwing.server.people import Caller
from lapwing.server.question_routes import ASKED, KEY, answered
from lapwing.server.service import Service

_PATH: Final = re.compile(ASKED.replace("{dataset}", "([^/]+)"))
_ROUTE: Final = SimpleNamespace(path=ASKED)
"""What the log and the counts call the request, as if the route had answered it."""


@final
class DirectQuestions:
    """An application that answers plain questions itself, and lets another answer all else.

    Args:
        routed: Has the route of questions, too.
    """

    def __init__(self, service: Service, routed: Application) -> None:
        self._service, self._routed = service, routed
        self._near = service.people.is_local
        self._recognise = service.callers.recognise("ask")

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = _PATH.fullmatch(scope["path"]) if scope.get("method") == "POST" and not scope["query_string"] else None
        if path is None:
            return await self._routed(scope, receive, send)
        message = await receive()
        question = _question(scope, message)
        if question is None:
            return await self._routed(scope, _again(message, receive), send)
        scope["route"], scope["path_params"] = _ROUTE, {"dataset": path[1]}  # by which rights at a data set are found
        request = Request(scope, receive)
        try:
            caller, served = await self._found(request, path[1])
            body, key = question
            response = await answered(self._service, Ask(caller=caller, served=served, body=body, key=key), request)
        except RepeatedProblem as error:
            response = problems.response(error.document)
        except LapwingError as error:
            response = problems.refusal(error, request)
        return await response(scope, receive, send)

    async def _found(self, request: Request, dataset: str) -> tuple[Caller, ServedDataset]:
        """Return who asks and of what: at once where that takes no more than a look at a file, else in one thread."""
        if self._near:
            caller = self._recognise(request)
            served = self._service.datasets.known(caller, dataset)
            if served is not None:
                return caller, served
            return caller, await run_in_threadpool(self._service.datasets.visible, caller, dataset)

        def found() -> tuple[Caller, ServedDataset]:
            caller = self._recognise(request)
            return caller, self._service.datasets.visible(caller, dataset)

        return await run_in_threadpool(found)


def _question(scope: MutableMapping[str, Any], message: Message) -> tuple[QueryBody, str | None] | None:
    """Return the question that a request holds, with its key if it has one; None if it is for the route to read."""
    headers = dict(scope["headers"])
    key = headers.get(b"idempotency-key")
    if (
        headers.get(b"content-type") != b"application/json"
        or message["type"] != "http.request"
        or message.get("more_body")
    ):
        return None
    if key is not None and not KEY.fullmatch(key.decode("latin-1")):
        return None
    try:  # as FastAPI reads it: first as JSON, and then value by value
        body = QueryBody.model_validate(json.loads(message["body"]))
    except (ValidationError, ValueError, RecursionError):
        return None
    return body, None if key is None else key.decode("latin-1")


def _again(message: Message, receive: Receive) -> Receive:
    """Return what gives a message once more, and then what comes after it."""
    waiting = [message]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving
