"""Answers leave at once: on a connection that is kept, the body does not wait until the head was acknowledged."""

import http.client
import socket
import threading
from contextlib import closing
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lapwing.server import connections
from lapwing.server.listener import Endpoint, listening


async def greet(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})


def delays(protocol: Any) -> bool:
    """Tell whether a connection that the service accepts holds small packets back."""
    with listening(Endpoint(port=0)) as door:
        config = uvicorn.Config(greet, http=protocol, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", door.getsockname()[1], timeout=60)) as asking:
                asking.request("GET", "/")
                assert asking.getresponse().read() == b"{}"
                (connection,) = server.server_state.connections
                held = connection.transport.get_extra_info("socket")
                return not held.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        finally:
            server.should_exit = True
            thread.join()


def test_no_connection_holds_packets_back() -> None:
    assert not delays(connections.protocol(10, 100))


def test_a_protocol_that_leaves_it_to_asyncio_is_noticed() -> None:
    with pytest.raises(AssertionError):
        assert not delays(H11Protocol)
