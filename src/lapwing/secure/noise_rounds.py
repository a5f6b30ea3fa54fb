"""How three servers draw one noise for a closed set: in rounds, through the organiser, who can read none of it.

Theory of operation. In each round every server gives the organiser a message for the server before it, sealed under the
key that the two share, and bound to the set of clients and the round. A server keeps nothing of it: it is handed all
messages that it got so far, and does the rounds anew. All that is random is read from the keys of pairs, for that set.
So what a server says is a function of its key, of the set and of the other servers, whenever it is asked, and whatever
died in between: the noise of a set is drawn once, however often it is. An organiser who withholds or mixes up messages
gets nothing: what is not the other server's message of that set and round is not opened.

Nor does a server get anything by saying two things in one round, where the masks of what it is answered are the same:
the two answers would differ by what it must not know. The first thing that it said is remembered, durably, before it is
answered, and another one is refused.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.secure.joint_noise import digits_for, joint_noise
from lapwing.secure.pair_keys import SEALED_BYTES, PairKeys
from lapwing.secure.task import Task
from lapwing.secure.transport import TaskServerConnection
from lapwing.secure.wire import set_digest

SET_BYTES: Final = 32
_NOISE: Final = b"lapwing secure noise 1\n"


def message_sizes(task: Task) -> list[int]:
    """Return how long the sealed messages of the rounds are."""
    return [size + SEALED_BYTES for size in digits_for(task.noise.scale).message_bytes(task.asked.width)]


def take_part(
    task: Task, keys: PairKeys, digest: bytes, received: bytes, hold_to: Callable[[bytes, int, bytes], None]
) -> bytes | list[int]:
    """Return a server's next message, sealed; or, if it got the messages of all rounds, its parts of the noise.

    Args:
        digest: Of the set of clients.
        received: The messages that it got, one after another.
        hold_to: Remembers what was said for a set in a round, and refuses another thing.

    Raises:
        InvalidParameter: If these are no such messages, or not those that it got before.
    """
    ends = list(accumulate(message_sizes(task), initial=0))
    if len(received) not in ends:
        raise InvalidParameter(f"{len(received)} bytes are not messages of joint noise; nothing was released.")
    label, before, after = _NOISE + digest, (keys.place - 1) % 3, (keys.place + 1) % 3
    server = joint_noise(
        digits_for(task.noise.scale),
        task.asked.width,
        keys.place,
        keys.stream(before, label),
        keys.stream(after, label),
    )
    rounds = ends.index(len(received))
    message = next(server)
    try:
        for number in range(rounds):
            sealed = received[ends[number] : ends[number + 1]]
            opened = keys.opened(after, label + bytes([number]), sealed)
            hold_to(digest, number, opened)
            message = server.send(opened)
    except StopIteration as ended:
        parts: list[int] = ended.value
        return parts
    return keys.seal(before, label + bytes([rounds]), message)


def drawn_together(
    task: Task, each: Sequence[TaskServerConnection], keys: Sequence[str], clients: bytes
) -> list[bytes]:
    """Let the servers draw the noise of a set, and return what each of them got.

    Args:
        each: A line to each server.
        keys: What each is shown.

    Raises:
        ServiceFault: Naming it, if a server is missing or slow: begin again then, and the noise will be the same.
    """
    digest = bytes.fromhex(set_digest(task.digest, clients))
    received = [b""] * len(each)
    for _ in message_sizes(task):
        sent = [line.noise(digest + got, key) for line, got, key in zip(each, received, keys, strict=True)]
        received = [got + sent[(place + 1) % len(each)] for place, got in enumerate(received)]
    return received
