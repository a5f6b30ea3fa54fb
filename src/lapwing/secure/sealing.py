"""Sealed parts: what a client sends through a relay, so that only the server that it is for can read it.

HPKE of RFC 9180 in its base mode: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. P-256 is what all browsers have.
The `info` is the task, the client's id and the server's name; so what is sealed for one of them opens as no other's.

A server's sealing key stands in its certificate, beside the key of TLS, and so in every task.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lapwing.errors import Fault, InvalidParameter
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.wire import ID_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import hpke

SEALING_KEY: Final = "sealing.key"
MARK: Final = "lapwing://sealing/1/"
"""Before the key in hexadecimal digits, as a name in the certificate."""
SEALED_BYTES: Final = 65 + 16
"""How much longer what is sealed is: a point of P-256, and a tag."""
_SEAL: Final = b"lapwing secure seal 1\n"


def make_sealing_key(folder: Path) -> str:
    """Make a server's private key for sealed parts, in its folder, and return the name that its certificate has."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(folder / SEALING_KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    return f"{MARK}{point.hex()}"


def sealing_key_of(server: Server) -> ec.EllipticCurvePublicKey:
    """Return the key in a server's certificate.

    Raises:
        InvalidParameter: If it has none: it was made by an older version.
    """
    certificate = x509.load_pem_x509_certificate(server.certificate.encode("ascii"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = [name for name in names.get_values_for_type(x509.UniformResourceIdentifier) if name.startswith(MARK)]
    try:
        (name,) = found
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes.fromhex(name.removeprefix(MARK)))
    except ValueError:
        raise InvalidParameter(
            f"The server {server.name} has no key for sealed parts. Send without a relay, or ask its operator to run "
            f"`lapwing secure join` again."
        ) from None


def sealed_bytes(task: Task, place: int = 0) -> int:
    """Return how long a sealed part for the server at a place is."""
    return SEALED_BYTES + task.part_bytes(place)


def envelope_bytes(task: Task) -> int:
    """Return how long an envelope is: an id, and a sealed part for each server."""
    return ID_BYTES + sum(sealed_bytes(task, place) for place in range(len(task.servers)))


def envelope_of(task: Task, records: dict[str, bytes]) -> bytes:
    """Return one client's envelope for a relay: the id, and a sealed part for each server, in their order.

    Args:
        records: Of the client, by the server's name, as `device.records_of` returns them.

    Raises:
        InvalidParameter: As `sealing_key_of`.
    """
    suite = _suite()
    client = records[task.servers[0].name][:ID_BYTES]
    parts = (
        suite.encrypt(records[server.name][ID_BYTES:], sealing_key_of(server), info=_info(task, client, server.name))
        for server in task.servers
    )
    return client + b"".join(parts)


@final
class Opener:
    """Opens what was sealed for one server of a task.

    Args:
        folder: The server's own, with its key.
        name: Of the server.

    Raises:
        Fault: If the folder has no key for sealed parts.
    """

    def __init__(self, folder: Path, task: Task, name: str) -> None:
        try:
            key = serialization.load_pem_private_key((folder / SEALING_KEY).read_bytes(), password=None)
        except (OSError, ValueError):
            raise Fault(f"The folder {folder} has no readable key for sealed parts.") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise Fault(f"`lapwing secure join` did not create the key for sealed parts in {folder}.")
        self._key, self._task, self._name, self._suite = key, task, name, _suite()

    def opened(self, client: bytes, sealed: bytes) -> bytes | None:
        """Return a client's cells; None if these are not sealed for this server, this task and this client."""
        try:
            return self._suite.decrypt(sealed, self._key, info=_info(self._task, client, self._name))
        except (InvalidTag, ValueError):
            return None


def _suite() -> "hpke.Suite":
    try:
        from cryptography.hazmat.primitives import hpke  # here: older versions have none, and the rest works with them
    except ImportError:
        raise InvalidParameter(
            "Sealing needs a version of cryptography that has HPKE: run `pip install --upgrade cryptography`."
        ) from None
    return hpke.Suite(hpke.KEM.P256, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


def _info(task: Task, client: bytes, server: str) -> bytes:
    return _SEAL + bytes.fromhex(task.digest) + client + server.encode("ascii")
