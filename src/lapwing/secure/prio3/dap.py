"""Pure encoders and decoders of DAP's messages for a client and a collector. Nothing here is sent or sealed.

All numbers are big endian. An opaque field begins with its length. A decoder takes exactly the bytes of one message.

DAP seals input shares and aggregate shares by HPKE with additional data. `sealing_of_input_share` returns the inputs
of HPKE. The HPKE of `cryptography` takes no additional data, so your program needs another implementation for that.

Source:
    draft-ietf-ppm-dap-18, sections 4.1, 4.2, 4.4 and 4.6. The draft has no recorded bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.circuits import Circuit, CountCircuit, HistogramCircuit, SumCircuit, SumVecCircuit
from lapwing.secure.prio3.dap_fields import Reader, number_of, opaque_of
from lapwing.secure.prio3.prio3 import NONCE_BYTES, Prio3

VERSION: Final = b"dap-18"
COLLECTOR, CLIENT, LEADER, HELPER = range(4)
"""Roles."""
TIME_INTERVAL, LEADER_SELECTED = 1, 2
"""Batch modes."""
_TASK_BYTES: Final = 32
Extensions = tuple[tuple[int, bytes], ...]
"""Of a report: the type and the data of each extension."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapTask:
    """A task: the parameters on which all parties agree.

    Args:
        task_id: 32 bytes.
        info: 1 to 255 bytes that tell tasks apart.
        leader: The address of the leader.
        helper: The address of the helper.
        time_precision: Seconds of a unit of time.
        min_batch_size: With fewer reports, nothing is collected.
        batch_mode: TIME_INTERVAL or LEADER_SELECTED.
        circuit: Of the measurements.
    """

    task_id: bytes
    info: bytes
    leader: str
    helper: str
    time_precision: int
    min_batch_size: int
    batch_mode: int
    circuit: Circuit

    def __post_init__(self) -> None:
        if len(self.task_id) != _TASK_BYTES or self.batch_mode not in (TIME_INTERVAL, LEADER_SELECTED):
            raise InvalidParameter("A task has an id of 32 bytes, and a batch mode of 1 or 2.")

    @property
    def prio3(self) -> Prio3:
        """The protocol of the task; the nonce of a report is its id."""
        return Prio3(circuit=self.circuit, context=VERSION + self.task_id)

    def encode(self) -> bytes:
        """Return the task's configuration. It has no extensions."""
        return (
            opaque_of(self.info, 1, least=1)
            + opaque_of(self.leader.encode("ascii"), 2, least=1)
            + opaque_of(self.helper.encode("ascii"), 2, least=1)
            + number_of(self.time_precision, 8)
            + number_of(self.min_batch_size, 8)
            + number_of(self.batch_mode, 1)
            + opaque_of(b"", 2)
            + number_of(self.circuit.algorithm, 4)
            + opaque_of(_configuration(self.circuit), 2)
            + opaque_of(b"", 2)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapHpkeConfig:
    """A server's public key, and the algorithms of HPKE with it, by their numbers in RFC 9180."""

    config_id: int
    kem: int
    kdf: int
    aead: int
    public_key: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapCiphertext:
    """A sealed message: for which key, the encapsulated key, and the ciphertext."""

    config_id: int
    enc: bytes
    payload: bytes

    def encode(self) -> bytes:
        """Return the bytes of it."""
        return number_of(self.config_id, 1) + opaque_of(self.enc, 2, least=1) + opaque_of(self.payload, 4, least=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapReport:
    """A client's report. Its id is the nonce of Prio3, and its time is in units of the task."""

    report_id: bytes
    time: int
    public_share: bytes
    leader_share: DapCiphertext
    helper_share: DapCiphertext
    extensions: Extensions = ()

    def encode(self) -> bytes:
        """Return the report; an upload is one report after another."""
        return (
            metadata(self.report_id, self.time, self.extensions)
            + opaque_of(self.public_share, 4)
            + self.leader_share.encode()
            + self.helper_share.encode()
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapCollection:
    """A leader's answer to a collector: how many reports, of which interval, and both sealed aggregate shares."""

    report_count: int
    start: int
    duration: int
    leader_share: DapCiphertext
    helper_share: DapCiphertext

    def encode(self) -> bytes:
        """Return the bytes of it."""
        head = number_of(self.report_count, 8) + number_of(self.start, 8) + number_of(self.duration, 8)
        return head + self.leader_share.encode() + self.helper_share.encode()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapSealing:
    """The inputs of HPKE in base mode for one message; the plaintext is not shown."""

    info: bytes
    aad: bytes
    plaintext: bytes = field(repr=False)


def metadata(report_id: bytes, time: int, extensions: Extensions = ()) -> bytes:
    """Return the metadata of a report."""
    if len(report_id) != NONCE_BYTES:
        raise InvalidParameter("A report has an id of 16 bytes.")
    return report_id + number_of(time, 8) + _extensions(extensions)


def sealing_of_input_share(
    task: DapTask, role: int, head: bytes, public_share: bytes, input_share: bytes, private: Extensions = ()
) -> DapSealing:
    """Return the inputs of HPKE with which a client seals the share of the leader or the helper.

    Args:
        role: LEADER or HELPER.
        head: The report's `metadata`.
        private: Extensions for this server only.
    """
    return DapSealing(
        info=VERSION + b" input share" + bytes([CLIENT, role]),
        aad=task.task_id + task.encode() + head + opaque_of(public_share, 4),
        plaintext=_extensions(private) + opaque_of(input_share, 4, least=1),
    )


def collection_request(task: DapTask, interval: tuple[int, int] | None = None) -> bytes:
    """Return a collector's request.

    Args:
        interval: Start and duration in units of the task; None if the leader selects batches.
    """
    if (interval is None) != (task.batch_mode == LEADER_SELECTED):
        raise InvalidParameter("A request has an interval if, and only if, the task's batches are intervals of time.")
    config = b"" if interval is None else b"".join(number_of(each, 8) for each in interval)
    return number_of(task.batch_mode, 1) + opaque_of(config, 2) + opaque_of(b"", 4) + opaque_of(b"", 2)


def opening_of_aggregate_share(task: DapTask, role: int, request: bytes) -> tuple[bytes, bytes]:
    """Return the info and the additional data with which a collector opens a server's aggregate share."""
    return VERSION + b" aggregate share" + bytes([role, COLLECTOR]), task.task_id + task.encode() + request


def hpke_configs_in(data: bytes) -> list[DapHpkeConfig]:
    """Return a server's keys, the preferred one first."""
    reader = Reader(data)
    inner = Reader(reader.opaque(2, least=10))
    reader.end()
    configs = []
    while inner.left:
        config_id, kem, kdf, aead = (inner.number(size) for size in (1, 2, 2, 2))
        public_key = inner.opaque(2, least=1)
        configs.append(DapHpkeConfig(config_id=config_id, kem=kem, kdf=kdf, aead=aead, public_key=public_key))
    return configs


def reports_in(data: bytes) -> list[DapReport]:
    """Return the reports of an upload."""
    reader, reports = Reader(data), []
    while reader.left:
        report_id, time = reader.take(NONCE_BYTES), reader.number(8)
        extensions = _extensions_in(reader)
        public_share = reader.opaque(4)
        leader, helper = _ciphertext_in(reader), _ciphertext_in(reader)
        reports.append(
            DapReport(
                report_id=report_id,
                time=time,
                extensions=extensions,
                public_share=public_share,
                leader_share=leader,
                helper_share=helper,
            )
        )
    return reports


def upload_errors_in(data: bytes) -> list[tuple[bytes, int]]:
    """Return the reports that a leader did not take: the id and the number of the error of each."""
    reader, errors = Reader(data), list[tuple[bytes, int]]()
    while reader.left:
        report_id = reader.take(NONCE_BYTES)
        errors.append((report_id, reader.number(1)))
    return errors


def collection_in(data: bytes) -> DapCollection:
    """Return a leader's answer to a collector."""
    reader = Reader(data)
    count, start, duration = (reader.number(8) for _ in range(3))
    leader, helper = _ciphertext_in(reader), _ciphertext_in(reader)
    reader.end()
    return DapCollection(report_count=count, start=start, duration=duration, leader_share=leader, helper_share=helper)


def _ciphertext_in(reader: Reader) -> DapCiphertext:
    config_id = reader.number(1)
    enc = reader.opaque(2, least=1)
    return DapCiphertext(config_id=config_id, enc=enc, payload=reader.opaque(4, least=1))


def _extensions_in(reader: Reader) -> Extensions:
    inner, found = Reader(reader.opaque(2)), list[tuple[int, bytes]]()
    while inner.left:
        kind = inner.number(2)
        found.append((kind, inner.opaque(2)))
    return tuple(found)


def _extensions(extensions: Sequence[tuple[int, bytes]]) -> bytes:
    return opaque_of(b"".join(number_of(kind, 2) + opaque_of(data, 2) for kind, data in extensions), 2)


def _configuration(circuit: Circuit) -> bytes:
    """Return the parameters of a circuit in the encoding of DAP."""
    match circuit:
        case CountCircuit():
            return b""
        case SumCircuit():
            return number_of(circuit.most, 8)
        case SumVecCircuit():
            return number_of(circuit.length, 4) + number_of(circuit.most, 8) + number_of(circuit.chunk, 4)
        case HistogramCircuit():
            return number_of(circuit.length, 4) + number_of(circuit.chunk, 4)
