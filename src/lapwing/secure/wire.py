"""What travels between devices, servers and organiser, byte by byte; docs/reference/secure.md has it with vectors.

A **record** is what one client sends one server: the client's id of 16 random bytes, then its part of each cell, 8
bytes little-endian, below 2⁶¹ − 1. With a grid, the part is a seed or points of 3 bytes each (`grid`). A body holds any
number of records, one after another. A **set** of clients is their ids in ascending order, one after another. A
**release** is JSON: the task, the set's digest, how many clients are in it, and for each cell the server's part of the
total with its noise added, in decimal text. A **test** is the servers' nonces of 32 bytes, the number of ranges, where
each begins and ends (4 bytes little-endian each), and the set.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.secure.field import MODULUS

ID_BYTES: Final = 16
CELL_BYTES: Final = 8
NONCE_BYTES: Final = 32
_SET: Final = b"lapwing secure set 1\n"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def record_of(client: bytes, part: Sequence[int]) -> bytes:
    """Return the record of a client's part."""
    return client + b"".join(cell.to_bytes(CELL_BYTES, "little") for cell in part)


def records_in(body: bytes, part_bytes: int, is_part: Callable[[bytes], bool]) -> dict[bytes, bytes]:
    """Return the cells of each record in a body, by client.

    Args:
        part_bytes: How long a part is.
        is_part: Tells whether a part of that length is one: no cell is beyond the modulus.

    Raises:
        InvalidParameter: If the body is not made of whole records, a cell is beyond the modulus, or a client stands
            there twice with different cells.
    """
    size = ID_BYTES + part_bytes
    if not body or len(body) % size:
        raise InvalidParameter(f"A body has {len(body)} bytes; it must hold whole records of {size} bytes each.")
    records: dict[bytes, bytes] = {}
    for at in range(0, len(body), size):
        client, cells = body[at : at + ID_BYTES], body[at + ID_BYTES : at + size]
        if not is_part(cells):
            raise InvalidParameter("A cell of a record is not below the modulus; nothing in the body was accepted.")
        if records.setdefault(client, cells) != cells:
            raise InvalidParameter(
                "A client appears twice in a body, with different cells; nothing in it was accepted."
            )
    return records


def cells_of(cells: bytes) -> list[int]:
    """Return the numbers of a record's cells."""
    return [int.from_bytes(cells[at : at + CELL_BYTES], "little") for at in range(0, len(cells), CELL_BYTES)]


def set_of(clients: Iterable[bytes]) -> bytes:
    """Return a set of clients as it travels: ascending, each once."""
    return b"".join(sorted(set(clients)))


def clients_in(body: bytes) -> list[bytes]:
    """Return the clients of a set.

    Raises:
        InvalidParameter: If the ids are not whole, ascending, each once.
    """
    clients = [body[at : at + ID_BYTES] for at in range(0, len(body), ID_BYTES)]
    whole = len(body) % ID_BYTES == 0
    if not whole or any(first >= second for first, second in pairwise(clients)):
        raise InvalidParameter("A set of clients must hold ids of 16 bytes in ascending order, each once.")
    return clients


def set_digest(task: str, clients: bytes) -> str:
    """Return the name of a set: SHA-256 over the task's digest and the set as it travels."""
    return sha256(_SET + bytes.fromhex(task) + clients).hexdigest()


def opening_of(nonces: Sequence[bytes], ranges: Sequence[tuple[int, int]], clients: bytes) -> bytes:
    """Return a test of ranges of a set."""
    numbers = (len(ranges), *(end for each in ranges for end in each))
    return b"".join(nonces) + b"".join(number.to_bytes(4, "little") for number in numbers) + clients


def opening_in(body: bytes) -> tuple[list[bytes], list[tuple[int, int]], bytes]:
    """Return the nonces, the ranges and the set of a test.

    Raises:
        InvalidParameter: If the body is none.
    """
    at = 3 * NONCE_BYTES
    count = int.from_bytes(body[at : at + 4], "little")
    end = at + 4 + 8 * count
    if len(body) < end:
        raise InvalidParameter("A test must hold nonces, ranges and a set of clients; nothing was opened.")
    numbers = [int.from_bytes(body[place : place + 4], "little") for place in range(at + 4, end, 4)]
    nonces = [body[place : place + NONCE_BYTES] for place in range(0, at, NONCE_BYTES)]
    return nonces, list(zip(numbers[::2], numbers[1::2], strict=True)), body[end:]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRelease:
    """What one server publishes of a closed set: its part of each total, with its own noise in it."""

    task: str
    clients: int
    clients_digest: str
    cells: tuple[int, ...]

    def to_text(self) -> str:
        """Return the release as JSON."""
        return json.dumps(
            {
                "task": self.task,
                "clients": self.clients,
                "set": self.clients_digest,
                "cells": [str(cell) for cell in self.cells],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str, *, task: str, width: int, modulus: int = MODULUS) -> Self:
        """Read what `to_text` wrote, of this task.

        Raises:
            InvalidParameter: If it is anything else.
        """
        try:
            document = json.loads(text)
            release = cls._from_document(document)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidParameter("A server's release is malformed; ask its operator.") from None
        if release.task != task or len(release.cells) != width or max(release.cells) >= modulus:
            raise InvalidParameter("A server's release is of another task; ask its operator.")
        return release

    @classmethod
    def _from_document(cls, document: Mapping[str, object]) -> Self:
        task, digest, clients, cells = (document[name] for name in ("task", "set", "clients", "cells"))
        if not (isinstance(task, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise ValueError
        if isinstance(clients, bool) or not isinstance(clients, int) or clients < 0 or not isinstance(cells, list):
            raise ValueError
        if not all(isinstance(cell, str) and _DECIMAL.fullmatch(cell) for cell in cells):
            raise ValueError
        return cls(task=task, clients=clients, clients_digest=digest, cells=tuple(map(int, cells)))
