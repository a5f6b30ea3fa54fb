"""Collectors behind an address, in a thread of the tests' own process."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvicorn

from lapwing.collector.collector import Collector
from lapwing.collector.service import configured


@contextmanager
def collecting(collectors: Mapping[str, Collector], rate: float = 0, port: int = 0) -> Iterator[str]:
    """Serve collectors until the block ends; they stay open."""
    server = uvicorn.Server(configured(collectors, host="127.0.0.1", port=port, rate=rate))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
