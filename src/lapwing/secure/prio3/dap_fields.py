"""Fields of DAP's messages: numbers, big endian, and bytes after their length."""

from typing import final

from lapwing.errors import InvalidParameter


@final
class Reader:
    """Reads fields one after another, and refuses a message that ends in a field."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > self.left:
            raise InvalidParameter("The message ends too early.")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        """Return the next number."""
        return int.from_bytes(self.take(size), "big")

    def opaque(self, size: int, least: int = 0) -> bytes:
        """Return the next opaque field, whose length has `size` bytes and is at least `least`."""
        length = self.number(size)
        if length < least:
            raise InvalidParameter("A field of the message is too short.")
        return self.take(length)

    def end(self) -> None:
        """Refuse a message that has more bytes."""
        if self.left:
            raise InvalidParameter("The message is too long.")


def number_of(number: int, size: int) -> bytes:
    """Return a number as `size` bytes."""
    if not 0 <= number < 1 << 8 * size:
        raise InvalidParameter(f"A field of {size} bytes has no room for its number.")
    return number.to_bytes(size, "big")


def opaque_of(data: bytes, size: int, least: int = 0) -> bytes:
    """Return bytes after their length, which has `size` bytes and is at least `least`."""
    if len(data) < least:
        raise InvalidParameter("A field of the message is empty.")
    return number_of(len(data), size) + data
