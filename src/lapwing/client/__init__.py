"""A session on a data set that a server holds: the same questions, prices and answers over HTTP.

A question is sent with an idempotency key: if the connection breaks, it is sent once more with the same key, so that it
is charged once, whichever of the two arrived.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.client.remote_answer import Pending, RemoteAnswer, RemoteConsistentAnswer
    from lapwing.client.remote_session import RemoteSession, register

_HOMES = {
    **dict.fromkeys(("Pending", "RemoteAnswer", "RemoteConsistentAnswer"), "remote_answer"),
    **dict.fromkeys(("RemoteSession", "register"), "remote_session"),
}

__all__ = ["Pending", "RemoteAnswer", "RemoteConsistentAnswer", "RemoteSession", "register"]


def __getattr__(name: str) -> object:
    """Import a name when it is first used: who administers a server needs no answers, which take most of a second."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing.client' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.client.{_HOMES[name]}"), name)
