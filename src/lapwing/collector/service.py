"""The process that serves collectors alone: `lapwing local collect`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from lapwing.collector.collector import Collector
from lapwing.collector.rates import RequestRates
from lapwing.collector.routes import collector_routes

IDLE_SECONDS: Final = 10
MOST_CONNECTIONS: Final = 2000


RATE: Final = 20.0
"""Requests a second of one address, unless another number is wanted."""


def application(collectors: Mapping[str, Collector], rate: float = 0) -> Starlette:
    """Return the application of collectors, by the ids of their tasks."""
    return Starlette(
        routes=list(collector_routes(collectors, RequestRates(rate))),
        middleware=[Middleware(GZipMiddleware, minimum_size=1000)],
    )


def configured(
    collectors: Mapping[str, Collector],
    *,
    host: str,
    port: int,
    rate: float,
    certificate: Path | None = None,
    key: Path | None = None,
) -> uvicorn.Config:
    """Return how collectors are served. Requests are not logged, and addresses go nowhere."""
    return uvicorn.Config(
        application(collectors, rate),
        host=host,
        port=port,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def run(config: uvicorn.Config) -> None:
    """Serve until the process is told to end.

    Raises:
        KeyboardInterrupt: When all is closed.
    """
    uvicorn.Server(config).run()
