"""A source of randomness that sees what every mechanism is given, and gives the same bits to neighbours.

Theory of operation. A session is opened with a source of randomness, by the argument that every session has
(`opening.open_session`). A mechanism can add noise or choose only with bits that it reads from there. So this source
looks up who reads. The outermost function of the room `mechanisms` on the stack is the mechanism, and its arguments are
the true values. Nothing of the shipped path is replaced, and no part of it knows of the audit.

The n-th mechanism that reads gets the n-th stream of bits of a secret, which is drawn for a pair of worlds. On the
neighbour the same secret gives the n-th mechanism the same bits. Mechanisms that add noise read bits that do not depend
on the values. So their noise is the same on both worlds, and the released numbers differ by exactly as much as the
values do. Choices may differ, with a small probability at a small loss; then the pair is asked again with other bits.

This is no way to exact answers about protected data. `asking` alone makes a `Watch`, for a session on rows that are
nobody's, in a folder that it makes and removes (`made_data`). No option, setting or variable leads to it: it is an
argument in a process of the audit's own. It turns no noise off: every mechanism draws as ever, with bits that nobody
can predict. Such a source gets into a session of protected data only by a program on the machine where these data can
be read (`docs/limitations.md`).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from types import FrameType
from typing import Any, Final, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lapwing.engines.holders import UnitCountsByKey
from lapwing.exact.entropy import SystemEntropy, read_exactly

MECHANISMS: Final = "lapwing.mechanisms."
_KEY_BYTES: Final = 32
_NOT_VALUES: Final = frozenset({"self", "cls", "entropy"})


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Call:
    """One use of randomness by a mechanism: which, by which method, and with what values.

    Args:
        mechanism: None where something outside of the mechanisms has drawn.
        values: The arguments by name, copied at the first read.
        labels: Of a selection of private keys, the keys that the values belong to.
        key: Of the stream of bits that it read.
    """

    mechanism: Any
    method: str
    values: Mapping[str, Any]
    labels: tuple[Any, ...] | None = None
    key: bytes = b""

    @property
    def name(self) -> str:
        """The mechanism and its method, for people."""
        return f"{type(self.mechanism).__name__}.{self.method}" if self.mechanism is not None else self.method

    def drawn_again(self) -> Any:
        """Return what the mechanism makes of the same values and the same bits."""
        return getattr(self.mechanism, self.method)(**self.values, entropy=BitStream.of(self.key))


@final
@dataclass(frozen=True, slots=True, repr=False)
class BitStream:
    """Bits that follow from a key."""

    cipher: Any

    @classmethod
    def of(cls, key: bytes) -> "BitStream":
        """Return the stream from its first bit."""
        return cls(Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor())

    def read(self, size: int) -> bytes:
        """Return the next bits."""
        return bytes(self.cipher.update(bytes(size)))


@final
@dataclass(slots=True)
class Watch:
    """Randomness for one session on made rows; see the module. Not for several threads.

    Args:
        secret: The source of all bits; the same for a world and its neighbour.
    """

    secret: bytes
    calls: list[Call] = field(default_factory=list)
    _drawn: int = 0
    _frame: FrameType | None = None
    _stream: BitStream | None = None

    def read(self, size: int) -> bytes:
        """Return the next bits of the mechanism that reads, and note what it was given."""
        frame = _mechanism_of(sys._getframe(1))
        if self._stream is None or frame is None or frame is not self._frame:
            key = self._fresh()
            self._frame, self._stream = frame, BitStream.of(key)
            self.calls.append(_call(frame, sys._getframe(1), key))
        return self._stream.read(size)

    def taken(self) -> tuple[Call, ...]:
        """Return the calls since the last time, and begin the streams of the next question."""
        calls, self.calls, self._frame, self._stream = tuple(self.calls), [], None, None
        return calls

    def begin(self, question: int) -> None:
        """Begin the streams of a question: they are the same on a neighbour, and do not depend on earlier ones."""
        self.taken()
        self._drawn = question << 32

    def _fresh(self) -> bytes:
        self._drawn += 1
        return blake2b(self._drawn.to_bytes(8, "big"), key=self.secret, digest_size=_KEY_BYTES).digest()


def fresh_secret() -> bytes:
    """Return a secret that nobody can predict, for a pair of worlds."""
    return read_exactly(SystemEntropy(), _KEY_BYTES)


def _mechanism_of(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame of the mechanisms' room that is on the stack."""
    found = None
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(MECHANISMS):
            found = frame
        frame = frame.f_back
    return found


def _call(frame: FrameType | None, reader: FrameType, key: bytes) -> Call:
    if frame is None:
        where = f"{reader.f_globals.get('__name__')}.{reader.f_code.co_name}"
        return Call(mechanism=None, method=where, values={}, key=key)
    code, held = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = {name: _copied(held[name]) for name in names if name not in _NOT_VALUES and name in held}
    return Call(mechanism=held.get("self"), method=code.co_name, values=values, labels=_labels(frame.f_back), key=key)


def _labels(frame: FrameType | None) -> tuple[Any, ...] | None:
    """Return the private keys that a selection is about: whoever calls it has them."""
    holders = None if frame is None else frame.f_locals.get("holders")
    return tuple(holders.named()) if isinstance(holders, UnitCountsByKey) else None


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return tuple(map(_copied, value)) if isinstance(value, list | tuple) else value
