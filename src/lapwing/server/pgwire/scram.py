"""SCRAM-SHA-256: a client proves that it knows a password, and the server that it has its verifier; neither sends it.

Theory of operation. A server stores two keys for a password (`Verifier`), from which nobody can sign in. A name may
have several passwords, because people have several tokens. The server sends the salt before it knows which of them the
client has. So all passwords of a name have the same salt: a keyed hash of the name (`salt_of`). An unknown name gets
its salt by the same key, so the salt does not show whether a name is known.

The server compares the proof of a client with `VERIFIERS` verifiers, and always with all of them. Where a name has
fewer, `NOBODY` stands for the rest, and takes the same steps. So the time that this takes depends neither on the name
nor on the password. Verifiers are needed for the last message only. So until then, the server does not look whether
somebody has a name.

Over TLS the exchange can be bound to the certificate of the server (`tls-server-end-point`). Then a third party with
another certificate cannot pass it on. A client that can bind and was made to believe that the server cannot says so,
and the server refuses it.

Source:
    RFC 5802, RFC 7677; RFC 5929, section 4, for the binding.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256
from typing import Final, final

PLAIN: Final = "SCRAM-SHA-256"
BOUND: Final = "SCRAM-SHA-256-PLUS"
BINDING: Final = "tls-server-end-point"
ITERATIONS: Final = 4096
"""As many as clients ask for at least. More would protect passwords that can be guessed, and tokens have 256 bits."""
VERIFIERS: Final = 256
"""The most verifiers of one name that count."""
_NONCE: Final = r"r=([\x21-\x2b\x2d-\x7e]{1,200})"
_FIRST: Final = re.compile(rf"((?:[ny]|p=([A-Za-z0-9.-]+)),(?:a=[^,]*)?,)(n=[^,]*,{_NONCE}(?:,.*)?)")
_FINAL: Final = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]{1,400})(?:,[^p].*)?),p=([A-Za-z0-9+/]{43}=)")


@final
class ExchangeFailed(Exception):
    """The exchange ends without a proof; the text says why, if that is not the proof itself."""


@final
@dataclass(frozen=True, slots=True)
class Verifier:
    """The two keys that a server stores for a password, of 32 bytes each."""

    stored_key: bytes
    server_key: bytes


def salt_of(key: bytes, name: str) -> bytes:
    """Return the salt of all passwords of a name, by a secret key of the service."""
    return _mac(key, b"salt\0" + name.encode("utf-8", "surrogatepass"))[:16]


def verifier_of(password: str, salt: bytes) -> Verifier:
    """Return the verifier of a password of ASCII characters."""
    salted = pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    return Verifier(sha256(_mac(salted, b"Client Key")).digest(), _mac(salted, b"Server Key"))


NOBODY: Final = Verifier(bytes(32), bytes(32))
"""A verifier that stands where a name has no more. A proof that fits it is refused, too."""


@final
class Exchange:
    """One authentication, on the side of the server.

    Args:
        salt: Of the name.
        nonce: Random text of printable ASCII without commas, used once.
        binding: The hash of the server's certificate, empty without TLS.
    """

    def __init__(self, salt: bytes, nonce: str, binding: bytes = b"") -> None:
        self._salt, self._nonce, self._binding = salt, nonce, binding
        self._header = self._bare = self._first = ""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that a client may choose, the better one first."""
        return (BOUND, PLAIN) if self._binding else (PLAIN,)

    def first(self, mechanism: str, data: bytes) -> bytes:
        """Return the answer to the first message of a client.

        Raises:
            ExchangeFailed: If it is none, or binds the exchange to something else.
        """
        found = _FIRST.fullmatch(_ascii(data))
        if mechanism not in self.mechanisms or found is None:
            raise ExchangeFailed("The client chose a mechanism that was not offered, or its message is not SCRAM.")
        self._header, binding, self._bare, nonce = found[1], found[2], found[3], found[4]
        if (mechanism == BOUND) != (binding is not None) or binding not in (None, BINDING):
            raise ExchangeFailed(f"The channel can be bound as {BINDING} only, and with {BOUND}.")
        if self._header.startswith("y") and self._binding:
            raise ExchangeFailed("The client was made to believe that this server cannot bind the channel.")
        if not self._header.endswith(",,"):
            raise ExchangeFailed("Nobody may sign in to act for another name.")
        self._nonce = nonce + self._nonce
        self._first = f"r={self._nonce},s={_text(self._salt)},i={ITERATIONS}"
        return self._first.encode()

    def final(self, data: bytes, verifiers: Sequence[Verifier]) -> tuple[int, bytes]:
        """Return which password the client knows, by its place among the verifiers, and the proof of the server.

        Args:
            verifiers: Of all passwords of the name; only the first `VERIFIERS` count.

        Raises:
            ExchangeFailed: If it knows none, or the exchange was not between these two.
        """
        found = _FINAL.fullmatch(_ascii(data))
        if found is None:
            raise ExchangeFailed("The message of the client is not SCRAM.")
        bound = self._binding if self._header.startswith("p=") else b""
        if found[2] != _text(self._header.encode() + bound):
            raise ExchangeFailed("The channel was bound to another certificate.")
        if found[3] != self._nonce:
            raise ExchangeFailed("The message of the client belongs to another exchange.")
        signed = f"{self._bare},{self._first},{found[1]}".encode()
        place = _known_by(verifiers, base64.b64decode(found[4]), signed)
        if place is None:
            raise ExchangeFailed("")
        return place, b"v=" + _text(_mac(verifiers[place].server_key, signed)).encode()


def _known_by(verifiers: Sequence[Verifier], proof: bytes, signed: bytes) -> int | None:
    """Return whose proof this is, after comparing it with as many verifiers for every name."""
    given = int.from_bytes(proof, "big")
    matched = None
    for place, verifier in enumerate([*verifiers, *[NOBODY] * VERIFIERS][:VERIFIERS]):
        client_key = (given ^ int.from_bytes(_mac(verifier.stored_key, signed), "big")).to_bytes(32, "big")
        if hmac.compare_digest(sha256(client_key).digest(), verifier.stored_key):
            matched = place
    return None if matched is None or matched >= len(verifiers) else matched


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ExchangeFailed("The message of the client is not SCRAM.") from None
