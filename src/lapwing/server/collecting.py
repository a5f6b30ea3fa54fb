"""Collectors of noisy reports beside a service: the routes of `lapwing.collector`, at the same address.

They stand before the service's own application. Respondents have no tokens, a page takes scripts that no other page may
have, and what the collector takes has limits of its own. So nothing of the service is in their way, and nothing of
theirs in its: neither store nor ledger know of them.
"""

from collections.abc import Mapping
from typing import Any, Final

from lapwing.collector.collector import Collector
from lapwing.collector.service import RATE
from lapwing.collector.service import application as collector_application
from lapwing.server.compression import Message, Send
from lapwing.server.metrics import Metrics
from lapwing.server.middleware import ENCRYPTED_ONLY, METHODS, Application, Receive

PREFIX: Final = "/local/"


def with_collectors(
    inner: Application, collectors: Mapping[str, Collector], metrics: Metrics, *, encrypted: bool
) -> Application:
    """Return an application that answers what is below /local/ by collectors, and all else as before.

    Requests are counted by route and status. Of respondents nothing is logged.
    """
    local = collector_application(collectors, RATE)

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            return await inner(scope, receive, send)
        status = [500]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message["headers"] = [*message.get("headers", ()), *(ENCRYPTED_ONLY if encrypted else ())]
            await send(message)

        await local(scope, receive, sending)
        route = getattr(scope.get("route"), "path", "unmatched")
        metrics.count_request(scope["method"] if scope["method"] in METHODS else "other", route, status[0])
        return None

    return application
