"""Prio3: sums of measurements that no server sees, each with a proof that it is valid, for two servers or more.

Theory of operation. A client splits its encoded measurement and its proof into shares that add up. Server 0, the
leader, gets its shares in full. Each other server, a helper, gets a seed and expands it to its shares. Every server
queries its shares (`proofs`). The randomness of the query comes from a key that all servers have and no client has. The
sum of the verifier shares shows whether the measurement is valid. Then each server adds its share of it to its total.

A circuit's joint randomness is a hash of all measurement shares, so a client cannot choose it afterwards. Each server
hashes its own share, and at the end compares the result with the claim of the client.

Guarantee:
    Let one server be honest. Take the view of all other servers, the collector and all other clients, before noise. One
    can simulate it from the validity of an honest client's report and the totals of the honest server. Its shares are
    hidden by a one-time pad, or by the output of an XOF. The verifier is zero knowledge (`proofs`).

    There are two conditions. Nonce and public share must reach the honest server unchanged, because the verifier with
    other joint randomness could tell something. And the honest server must verify each report once, because a verifier
    at a second point could tell something.

    A client that lies is accepted with a probability of `soundness_error` for each attempt. Then it may have added any
    vector.

Source:
    draft-irtf-cfrg-vdaf-20, section 7.2; Davis, Patton, Rosulek and Schoppmann 2023, theorems 1 and 2.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3 import proofs
from lapwing.secure.prio3.circuits import Circuit
from lapwing.secure.prio3.range_checks import Measurement
from lapwing.secure.prio3.xof import SEED_BYTES, Xof, tag_of

NONCE_BYTES: Final = 16
PROOFS: Final = 1
"""Proofs for each measurement: one, in all variants here."""
_MEASUREMENT_SHARE, _PROOF_SHARE, _JOINT_RANDOMNESS, _PROVE, _QUERY, _JOINT_SEED, _JOINT_PART = range(1, 8)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prio3Report:
    """A client's report: the public share for every server, and an input share for each."""

    public_share: bytes
    input_shares: tuple[bytes, ...] = field(repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A server's state of a report, before the verifier message: its share of the measurement."""

    output: tuple[int, ...] = field(repr=False)
    joint_seed: bytes = field(repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prio3:
    """Prio3 with a circuit, for one application.

    Args:
        circuit: Of the measurements.
        context: The application's name: shares for one application are worth nothing in another.
        servers: 2 to 255.

    Raises:
        InvalidParameter: If a part is out of its range.
    """

    circuit: Circuit
    context: bytes
    servers: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.servers <= 255:
            raise InvalidParameter(f"There are {self.servers} servers; there must be 2 to 255.")
        if len(self.context) > 65_527:
            raise InvalidParameter("The name of the application has more than 65,527 bytes.")

    @property
    def randomness_bytes(self) -> int:
        """How many random bytes a client takes."""
        return (2 if self.circuit.joint else 1) * self.servers * SEED_BYTES

    def shard(self, measurement: Measurement, nonce: bytes, randomness: bytes) -> Prio3Report:
        """Return a client's report.

        Args:
            measurement: As the circuit has it.
            nonce: 16 random bytes, which are public: one for each report.
            randomness: `randomness_bytes` secret random bytes, for one report.

        Raises:
            InvalidParameter: If the measurement is none; the message does not repeat it.
        """
        if len(nonce) != NONCE_BYTES or len(randomness) != self.randomness_bytes:
            raise InvalidParameter(
                f"A report takes a nonce of {NONCE_BYTES} bytes, and {self.randomness_bytes} random."
            )
        modulo, vector = self.circuit.field, self.circuit.encode(measurement)
        *seeds, prove_seed = _seeds(randomness)
        if self.circuit.joint:
            *seeds, leader_blind = seeds
            helpers, blinds = seeds[::2], [leader_blind, *seeds[1::2]]
        else:
            helpers, blinds = seeds, [b""] * self.servers
        masks = [self._measurement_share(place, seed) for place, seed in enumerate(helpers, 1)]
        leader = modulo.difference(vector, modulo.sum(*masks))
        parts = [
            self._joint_part(place, blind, share, nonce)
            for place, (blind, share) in enumerate(zip(blinds, [leader, *masks], strict=True))
        ]
        joint = self._joint_randomness(self._joint_seed(parts))
        proof = proofs.prove(self.circuit, vector, self._prove_randomness(prove_seed), joint)
        proof_masks = [self._proof_share(place, seed) for place, seed in enumerate(helpers, 1)]
        proof = modulo.difference(proof, modulo.sum(*proof_masks))
        shares = [modulo.encode([*leader, *proof]), *helpers]
        return Prio3Report(
            public_share=b"".join(parts),
            input_shares=tuple(share + blind for share, blind in zip(shares, blinds, strict=True)),
        )

    def begin_verifying(
        self, key: bytes, place: int, nonce: bytes, public_share: bytes, input_share: bytes
    ) -> tuple[Verification, bytes]:
        """Return a server's state of a report, and its verifier share.

        Args:
            key: 32 random bytes that all servers have in common, and no client.
            place: The server's number, 0 for the leader.
            nonce: Of the report.
            public_share: Of the report.
            input_share: This server's.

        Raises:
            InvalidParameter: If the report is malformed, so that it is rejected.
        """
        if len(key) != SEED_BYTES or len(nonce) != NONCE_BYTES or not 0 <= place < self.servers:
            raise InvalidParameter(
                "The key must have 32 bytes and the nonce 16, and the place must be below the number of servers."
            )
        vector, proof, blind = self._expanded(place, input_share)
        parts = self._parts_in(public_share)
        own = self._joint_part(place, blind, vector, nonce)
        if self.circuit.joint:
            parts[place] = own
        seed = self._joint_seed(parts)
        randomness = self._stream(_QUERY, key, bytes([PROOFS]) + nonce).vector(
            self.circuit.field, proofs.query_length(self.circuit)
        )
        joint = self._joint_randomness(seed)
        share = proofs.query(self.circuit, vector, proof, randomness, joint, self.servers)
        kept = Verification(output=tuple(self.circuit.truncate(vector)), joint_seed=seed)
        return kept, self.circuit.field.encode(share) + own

    def verifier_message(self, verifier_shares: Sequence[bytes]) -> bytes:
        """Return the verifier message, from all servers' verifier shares in their order.

        Raises:
            InvalidParameter: If the report is invalid, so that it is rejected.
        """
        size = self.circuit.field.size * proofs.verifier_length(self.circuit)
        tail = SEED_BYTES if self.circuit.joint else 0
        if len(verifier_shares) != self.servers or any(len(share) != size + tail for share in verifier_shares):
            raise InvalidParameter("A verifier share is missing or has the wrong length; the report is rejected.")
        modulo = self.circuit.field
        verifier = modulo.sum(*(modulo.decode(share[:size]) for share in verifier_shares))
        if not proofs.decide(self.circuit, verifier):
            raise InvalidParameter("The proof does not show that the measurement is valid; the report is rejected.")
        return self._joint_seed([share[size:] for share in verifier_shares])

    def verified(self, kept: Verification, message: bytes) -> tuple[int, ...]:
        """Return a server's share of the measurement of a valid report.

        Raises:
            InvalidParameter: If the client did not use the joint randomness of its shares: the report is rejected.
        """
        if not hmac.compare_digest(kept.joint_seed, message):
            raise InvalidParameter("The joint randomness does not belong to the shares; the report is rejected.")
        return kept.output

    def total(self, outputs: Sequence[Sequence[int]]) -> list[int]:
        """Return a server's share of the totals, from its shares of all valid reports. It has no noise."""
        return self.circuit.field.sum([0] * self.circuit.output_length, *outputs)

    def unshard(self, totals: Sequence[Sequence[int]]) -> list[int]:
        """Return the totals, from all servers' shares of them."""
        if len(totals) != self.servers:
            raise InvalidParameter(f"There are {len(totals)} shares of the totals; there must be {self.servers}.")
        return self.circuit.field.sum(*totals)

    def _expanded(self, place: int, input_share: bytes) -> tuple[list[int], list[int], bytes]:
        """Return the measurement share, the proof share and the blind in an input share."""
        at = len(input_share) - (SEED_BYTES if self.circuit.joint else 0)
        share, blind = input_share[: max(at, 0)], input_share[max(at, 0) :]
        length = self.circuit.measurement_length
        sent = self.circuit.field.size * (length + proofs.proof_length(self.circuit))
        if len(share) != (SEED_BYTES if place else sent):
            raise InvalidParameter("An input share has the wrong length; the report is rejected.")
        if place:
            return self._measurement_share(place, share), self._proof_share(place, share), blind
        elements = self.circuit.field.decode(share)
        return elements[:length], elements[length:], blind

    def _parts_in(self, public_share: bytes) -> list[bytes]:
        if len(public_share) != (self.servers * SEED_BYTES if self.circuit.joint else 0):
            raise InvalidParameter("The public share has the wrong length; the report is rejected.")
        return _seeds(public_share)

    def _stream(self, usage: int, seed: bytes, binder: bytes) -> Xof:
        return Xof(seed, tag_of(self.circuit.algorithm, usage, self.context), binder)

    def _measurement_share(self, place: int, seed: bytes) -> list[int]:
        stream = self._stream(_MEASUREMENT_SHARE, seed, bytes([place]))
        return stream.vector(self.circuit.field, self.circuit.measurement_length)

    def _proof_share(self, place: int, seed: bytes) -> list[int]:
        stream = self._stream(_PROOF_SHARE, seed, bytes([PROOFS, place]))
        return stream.vector(self.circuit.field, proofs.proof_length(self.circuit))

    def _prove_randomness(self, seed: bytes) -> list[int]:
        return self._stream(_PROVE, seed, bytes([PROOFS])).vector(self.circuit.field, self.circuit.arity)

    def _joint_part(self, place: int, blind: bytes, share: Sequence[int], nonce: bytes) -> bytes:
        """Return a server's part of the joint randomness; b"" if the circuit has none."""
        if not self.circuit.joint:
            return b""
        return self._stream(_JOINT_PART, blind, bytes([place]) + nonce + self.circuit.field.encode(share)).seed()

    def _joint_seed(self, parts: Sequence[bytes]) -> bytes:
        return self._stream(_JOINT_SEED, bytes(SEED_BYTES), b"".join(parts)).seed() if self.circuit.joint else b""

    def _joint_randomness(self, seed: bytes) -> list[int]:
        if not self.circuit.joint:
            return []
        return self._stream(_JOINT_RANDOMNESS, seed, bytes([PROOFS])).vector(self.circuit.field, self.circuit.joint)


def _seeds(data: bytes) -> list[bytes]:
    return [data[at : at + SEED_BYTES] for at in range(0, len(data), SEED_BYTES)]
