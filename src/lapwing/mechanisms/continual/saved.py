"""Integers in arrays as bytes, so that what a stream has come to can be written down and taken up again."""

import json
from collections.abc import Sequence

import numpy as np

from lapwing.exact.arrays import IntArray


def to_bytes(arrays: Sequence[IntArray]) -> bytes:
    """Return the shapes and the integers, each of as many bytes as the largest of its array needs."""
    shapes, parts = [], []
    for array in arrays:
        if array.dtype == np.int64:
            width, part = 8, array.astype("<i8").tobytes()
        else:
            numbers = array.ravel().tolist()
            width = max((number.bit_length() for number in numbers), default=0) // 8 + 1
            part = b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)
        shapes.append([*array.shape, width if array.dtype != np.int64 else 0])
        parts.append(part)
    return b"\n".join((json.dumps(shapes).encode(), b"".join(parts)))


def from_bytes(data: bytes) -> list[IntArray]:
    """Return the arrays that `to_bytes` was given."""
    header, _, body = data.partition(b"\n")
    arrays: list[IntArray] = []
    for *shape, width in json.loads(header):
        count = int(np.prod(shape))
        part, body = body[: count * (width or 8)], body[count * (width or 8) :]
        if width:
            numbers = [int.from_bytes(part[i : i + width], "little", signed=True) for i in range(0, len(part), width)]
            wide = np.empty(count, dtype=object)
            wide[:] = numbers
            arrays.append(wide.reshape(shape))
        else:
            arrays.append(np.frombuffer(part, dtype="<i8").astype(np.int64).reshape(shape))
    return arrays
