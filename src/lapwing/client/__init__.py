"""A session on a data set that a server holds: the same questions, prices and answers over HTTP.

A question is sent with an idempotency key: if the connection breaks, it is sent once more with the same key, so that it
is charged once, whichever of the two arrived.
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

if TYPE_CHECKING:
    from lapwing.client.remote_answer import Pending as Pending
    from lapwing.client.remote_answer import RemoteAnswer as RemoteAnswer
    from lapwing.client.remote_answer import RemoteConsistentAnswer as RemoteConsistentAnswer
    from lapwing.client.remote_session import RemoteSession as RemoteSession
    from lapwing.client.remote_session import register as register

__all__, __getattr__, __dir__ = exports(
    __name__,
    {
        "remote_answer": "Pending RemoteAnswer RemoteConsistentAnswer",
        "remote_session": "RemoteSession register",
    },
)
