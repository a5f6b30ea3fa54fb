"""A PostgreSQL server over a network proves by a certificate who it is, or nothing is read from it."""

import shutil
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lapwing.errors import DataFault
from tests.support.postgres import kept
from tests.support.sources import rows
from tests.support.sources.rows import fetched, visits

ROWS = visits(50)


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate of 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a table behind a server that speaks TLS alone, up to its options."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with kept() as server:
        settings = {"ssl": "on", "listen_addresses": "127.0.0.1", "port": str(port), "fsync": "off"}
        server.create(settings)
        for file, name in zip(certificate(tmp_path, "server"), ("server.crt", "server.key"), strict=True):
            there = server.folder / "data" / name
            shutil.copy(file, there)
            there.chmod(0o600)
            if server.user:
                shutil.chown(there, server.user["user"], server.user["group"])  # type: ignore[call-overload]
        (server.folder / "data" / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
        server.start()
        rows.fill_postgres(f"{server.url()}&port={port}", ROWS)
        yield f"postgresql://lapwing@127.0.0.1:{port}/postgres?sslmode=%s#visits"


def test_a_server_whose_certificate_is_known(address: str, tmp_path: Path) -> None:
    certificate(tmp_path, "another")
    known = f"verify-full&sslrootcert={tmp_path}/server.crt"
    assert fetched(tmp_path, address % known)[1].tables["visits"].rows == ROWS.num_rows
    assert fetched(tmp_path, address % "require")[1].tables["visits"].rows == ROWS.num_rows
    with pytest.raises(DataFault, match="cannot prove its identity"):
        fetched(tmp_path, address % f"verify-full&sslrootcert={tmp_path}/another.crt")
    with pytest.raises(DataFault, match="rejects this user"):
        fetched(tmp_path, address % "disable")
    elsewhere = (address % known).replace("127.0.0.1", "localhost")
    with pytest.raises(DataFault, match="cannot prove its identity"):
        fetched(tmp_path, elsewhere)
