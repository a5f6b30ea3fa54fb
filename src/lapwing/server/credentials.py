"""Passwords and tokens, of which the store keeps only hashes.

A password is chosen by a person, so it is kept as an argon2id hash, which is slow on purpose; a name that nobody has
takes as long as a wrong password. A token is 256 random bits, which nobody can guess: so SHA-256 of it is enough, and
fast, and looking it up by its hash takes no time that depends on a secret.

Two passwords are hashed at a time, and some more wait. Beyond that, logins are refused, as they would occupy the
threads that everybody's requests run in.
"""

import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lapwing.errors import InvalidParameter, TooManyRequests
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.server.passwords import LONGEST, SHORTEST

PREFIX: Final = "lapwing_"
HASHER: Final = PasswordHasher()
"""Argon2id with the parameters that the library argon2-cffi recommends. Each takes a tenth of a second, and 64 MiB."""
MOST_HASHES: Final = 16
_ROOM: Final = threading.BoundedSemaphore(MOST_HASHES)
_AT_ONCE: Final = threading.BoundedSemaphore(2)  # each takes 64 MB
_NOBODY: Final = "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def new_token() -> str:
    """Return a token of 256 random bits, as text."""
    return PREFIX + urlsafe_b64encode(read_exactly(SystemEntropy(), 32)).decode().rstrip("=")


def new_name() -> str:
    """Return a name of 128 random bits."""
    return read_exactly(SystemEntropy(), 16).hex()


def kept_of(token: str) -> str:
    """Return what is kept of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def password_hash(password: str) -> str:
    """Return what is kept of a password.

    Raises:
        InvalidParameter: If it is too short or too long.
        TooManyRequests: If there are too many requests.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidParameter(f"The password must have from {SHORTEST} to {LONGEST} characters.")
    with _hashing():
        return HASHER.hash(password)


def is_password(kept: str | None, password: str) -> bool:
    """Tell whether a password is the one of which this was kept; None, of a name that nobody has, takes as long.

    Raises:
        TooManyRequests: If there are too many requests.
    """
    with _hashing():
        try:
            return HASHER.verify(kept or _NOBODY, password[:LONGEST]) and kept is not None
        except (VerificationError, InvalidHashError):
            return False


@contextmanager
def _hashing() -> Iterator[None]:
    """Wait for the turn of a hash, if not too many wait."""
    if not _ROOM.acquire(blocking=False):
        raise TooManyRequests("Too many sign-ins are waiting. Try again later.")
    try:
        with _AT_ONCE:
            yield
    finally:
        _ROOM.release()
