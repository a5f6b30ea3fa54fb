"""How a process answers for a server or a relay of secure sums: without a log of requests, until it is told to end."""

import signal
from pathlib import Path

import uvicorn
from starlette.applications import Starlette


def configured(
    application: Starlette,
    *,
    host: str,
    port: int,
    most_connections: int,
    idle_seconds: int,
    certificate: Path | None,
    key: Path | None,
) -> uvicorn.Config:
    """Return how an application is served, over TLS if there is a certificate. No request is logged."""
    return uvicorn.Config(
        application,
        host=host,
        port=port,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody is known by an address here
        limit_concurrency=most_connections,
        timeout_keep_alive=idle_seconds,
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def run(config: uvicorn.Config) -> None:
    """Serve until the process is told to end.

    Raises:
        KeyboardInterrupt: When all is closed; whoever told it to end, by Ctrl-C or SIGTERM.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when all is closed
    uvicorn.Server(config).run()
