"""Sign a manifest, and check the files of a release: Ed25519 over the manifest, SHA-256 over each file in it."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self, final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from lapwing.errors import InvalidParameter

ENDING: Final = ".sig"
FORMAT: Final = 1
"""Of a manifest. One that says none has the first format."""
MAKE_ONE: Final = "`openssl genpkey -algorithm ed25519 -out release.key` makes one"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SigningKey:
    """A private key that signs manifests."""

    key: Ed25519PrivateKey

    @classmethod
    def from_file(cls, file: str | Path) -> Self:
        """Read a private key in PEM, without a password.

        Raises:
            InvalidParameter: For any other file.
        """
        try:
            key = load_pem_private_key(Path(file).read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidParameter(
                f"{file} has no Ed25519 private key in PEM without a password; {MAKE_ONE}. Nothing was charged."
            )
        return cls(key=key)

    def sign(self, manifest: Path) -> None:
        """Write the signature beside a manifest, in hexadecimal digits."""
        signed = self.key.sign(manifest.read_bytes()).hex()
        manifest.with_name(manifest.name + ENDING).write_text(f"{signed}\n", encoding="ascii")


def faults_of(manifest: str | Path, public_key: str | Path | None = None) -> list[str]:
    """Return what is wrong with the files of a release; an empty list if nothing is.

    Args:
        public_key: A file with the publisher's key in PEM. Without it, only the hashes are checked.

    Raises:
        InvalidParameter: If the manifest or the key cannot be read.
    """
    file = Path(manifest)
    content, listed = _content_of(file)
    faults = [] if public_key is None else _faults_of_signature(file, content, public_key)
    for name, expected in listed:
        one = file.parent / name
        if not one.is_file():
            faults.append(f"{name} is missing")
        elif sha256(one.read_bytes()).hexdigest() != expected:
            faults.append(f"{name} is not the file that was published")
    return faults


def unlisted_files(manifest: str | Path, public_key: str | Path | None = None) -> list[str]:
    """Return the names in the folder of a release that its manifest does not list, in order.

    Nobody signed such a file, and readers may take it for a part of the release. The manifest, its signature and the
    public key count as listed.

    Raises:
        InvalidParameter: If the manifest cannot be read.
    """
    file = Path(manifest)
    known = {file.name, file.name + ENDING, *(name for name, _ in _content_of(file)[1])}
    key = None if public_key is None else Path(public_key).resolve()
    return sorted(one.name for one in file.parent.iterdir() if one.name not in known and one.resolve() != key)


def _content_of(manifest: Path) -> tuple[bytes, list[tuple[str, str]]]:
    """Return the bytes of a manifest, and the names and hashes of the files that it lists."""
    try:
        content = manifest.read_bytes()
        document = json.loads(content)
        later = document.get("format", FORMAT)
        if isinstance(later, int) and later > FORMAT:
            raise InvalidParameter(
                f"{manifest} has format {later}, and this Lapwing knows format {FORMAT}. Use a newer release."
            )
        parts = [*document["tables"], {"files": document.get("files", [])}]
        return content, [(Path(entry["file"]).name, entry["sha256"]) for part in parts for entry in part["files"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidParameter(f"{manifest} is not the manifest of a release; give its manifest.json.") from None


def _faults_of_signature(manifest: Path, content: bytes, public_key: str | Path) -> list[str]:
    try:
        key = load_pem_public_key(Path(public_key).read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(f"{public_key} has no Ed25519 public key in PEM; give the publisher's.")
    try:
        signed = bytes.fromhex(manifest.with_name(manifest.name + ENDING).read_text("ascii"))
        key.verify(signed, content)
    except OSError:
        return ["the manifest has no signature"]
    except (ValueError, InvalidSignature):
        return ["the signature of the manifest does not match this key"]
    return []
