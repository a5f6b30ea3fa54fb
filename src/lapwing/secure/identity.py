"""Who a server is: a key that never leaves its folder, and the certificate that a task shows everybody."""

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lapwing.errors import InvalidParameter
from lapwing.secure.sealing import make_sealing_key
from lapwing.secure.servers import require_address, require_name
from lapwing.secure.task import Task

KEY: Final = "server.key"
CERTIFICATE: Final = "server.crt"
_LIFE: Final = timedelta(days=3650)
_NAMESPACE: Final = "lapwing://secure/"


def make_identity(folder: Path, name: str, address: str) -> Path:
    """Make a server's folder with its private key and its certificate, and return the certificate's path.

    Raises:
        InvalidParameter: If the name or address is none, or the folder is there.
    """
    require_name(name)
    require_address(address)
    host = address.rpartition(":")[0]
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise InvalidParameter(f"The folder {folder} already exists, and a server has only one key.") from None
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _LIFE)
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    _host(host),
                    x509.UniformResourceIdentifier(f"{_NAMESPACE}{name}/{address}"),
                    x509.UniformResourceIdentifier(make_sealing_key(folder)),
                ]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(folder / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    (folder / CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / CERTIFICATE


def read_identity(text: str) -> tuple[str, str]:
    """Return the name and the address in a certificate that `make_identity` made.

    Raises:
        InvalidParameter: If it is none.
    """
    try:
        certificate = x509.load_pem_x509_certificate(text.encode("ascii"))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        each = names.get_values_for_type(x509.UniformResourceIdentifier)
        (place,) = (one for one in each if one.startswith(_NAMESPACE))
        name, address = place.removeprefix(_NAMESPACE).split("/")
    except (ValueError, UnicodeError, x509.ExtensionNotFound):
        raise InvalidParameter("This is not the certificate of a server; `lapwing secure join` creates one.") from None
    require_name(name)
    require_address(address)
    return name, address


def place_of(folder: Path, task: Task) -> int:
    """Return which of the task's servers a folder is of, from 0."""
    certificate = (folder / CERTIFICATE).read_text(encoding="ascii")
    return [server.certificate for server in task.servers].index(certificate)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
