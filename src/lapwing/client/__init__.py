"""A session on a data set that a server holds: the same questions, prices and answers over HTTP.

A question is sent with an idempotency key: if the connection breaks, it is sent once more with the same key, so that it
is charged once, whichever of the two arrived.
"""

from lapwing.client.answers import RemoteAnswer, RemoteConsistentAnswer
from lapwing.client.pending import Pending
from lapwing.client.registering import register
from lapwing.client.session import RemoteSession

__all__ = ["Pending", "RemoteAnswer", "RemoteConsistentAnswer", "RemoteSession", "register"]
