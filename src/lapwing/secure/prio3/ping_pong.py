"""The messages by which two servers verify a report: the leader begins, the helper finishes, one round trip.

A message is a byte for its type, and for each of its parts 4 bytes of length, big endian, and the part. Prio3 has one
round of verification, so there are two messages: `initialize`, with the leader's verifier share, and `finish`, with the
verifier message.

Source:
    draft-irtf-cfrg-vdaf-20, section 5.7.1.
"""

from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.prio3 import Prio3, Verification

_INITIALIZE: Final = 0
_FINISH: Final = 2


def leader_begins(
    prio3: Prio3, key: bytes, nonce: bytes, public_share: bytes, input_share: bytes
) -> tuple[Verification, bytes]:
    """Return the leader's state of a report, and its message for the helper.

    Raises:
        InvalidParameter: If there are not two servers, or the report is rejected.
    """
    _require_two(prio3)
    kept, share = prio3.begin_verifying(key, 0, nonce, public_share, input_share)
    return kept, _message(_INITIALIZE, share)


def helper_finishes(
    prio3: Prio3, key: bytes, nonce: bytes, public_share: bytes, input_share: bytes, inbound: bytes
) -> tuple[tuple[int, ...], bytes]:
    """Return the helper's share of the measurement of a valid report, and its message for the leader.

    Raises:
        InvalidParameter: If there are not two servers, or the report is rejected.
    """
    _require_two(prio3)
    kept, share = prio3.begin_verifying(key, 1, nonce, public_share, input_share)
    message = prio3.verifier_message([_part(_INITIALIZE, inbound), share])
    return prio3.verified(kept, message), _message(_FINISH, message)


def leader_finishes(prio3: Prio3, kept: Verification, inbound: bytes) -> tuple[int, ...]:
    """Return the leader's share of the measurement of a valid report.

    Raises:
        InvalidParameter: If the report is rejected.
    """
    return prio3.verified(kept, _part(_FINISH, inbound))


def _message(kind: int, part: bytes) -> bytes:
    return bytes([kind]) + len(part).to_bytes(4, "big") + part


def _part(kind: int, message: bytes) -> bytes:
    """Return the part of a message of a kind; its length must be that of the rest."""
    if len(message) < 5 or message[0] != kind or int.from_bytes(message[1:5], "big") != len(message) - 5:
        raise InvalidParameter("The other server's message is none that is due now; the report is rejected.")
    return message[5:]


def _require_two(prio3: Prio3) -> None:
    if prio3.servers != 2:
        raise InvalidParameter(f"There are {prio3.servers} servers; these messages are for two.")
