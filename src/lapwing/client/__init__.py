"""A session on a data set that a server holds: the same questions, prices and answers over HTTP.

A question is sent with an idempotency key: if the connection breaks, it is sent once more with the same key, so that it
is charged once, whichever of the two arrived.
"""

from lapwing.client.remote_answer import Pending, RemoteAnswer, RemoteConsistentAnswer
from lapwing.client.remote_session import RemoteSession, register

__all__ = ["Pending", "RemoteAnswer", "RemoteConsistentAnswer", "RemoteSession", "register"]
