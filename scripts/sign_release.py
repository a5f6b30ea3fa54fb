"""Sign the files of a release, and verify such signatures without a network, in the format of minisign.

    openssl genpkey -algorithm ed25519 -out release.key
    python scripts/sign_release.py public-key --key release.key > lapwing.pub
    python scripts/sign_release.py sign --key release.key dist/*
    python scripts/sign_release.py verify --public-key lapwing.pub dist/*

`minisign -V -p lapwing.pub -m FILE` verifies the same signatures. This script needs `cryptography`, and no Lapwing.

A signature is a file `FILE.minisig` of four lines: a comment that nobody signed; in base64 the algorithm, the number of
the key (8 bytes) and an Ed25519 signature; a trusted comment; and in base64 a signature over the first signature and
the trusted comment. With the algorithm `ED` the first one is over the BLAKE2b-512 of the file, with `Ed`, which older
releases of minisign wrote, over the file itself. The two take different bytes, so neither passes for the other.

Source: https://jedisct1.github.io/minisign/, *Signature format* and *Public key format*.
"""

import argparse
import base64
import binascii
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Final, Self, final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

ENDING: Final = ".minisig"
_WHOLE: Final = b"Ed"
_HASHED: Final = b"ED"
_NUMBER: Final = 8
"""Bytes of the number of a key."""
_UNTRUSTED: Final = "untrusted comment: "
_TRUSTED: Final = "trusted comment: "
_FILE: Final = "file:"
_LARGEST: Final = 1 << 14
"""Bytes of a file with a key or a signature; minisign's own are shorter."""


@final
class NotGenuine(Exception):
    """A key, a signature or a file is not what it has to be."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A public key and its number, which says for people which key to look for."""

    number: bytes
    key: Ed25519PublicKey

    @classmethod
    def of(cls, secret: Ed25519PrivateKey) -> Self:
        """Return the public half of a key, with a number that follows from it."""
        public = secret.public_key()
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return cls(number=blake2b(raw, digest_size=_NUMBER).digest(), key=public)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a file of minisign, or its second line alone."""
        lines = text.splitlines()
        if len(lines) not in {1, 2} or (len(lines) == 2 and not lines[0].startswith(_UNTRUSTED)):
            raise NotGenuine("This is no public key of minisign.")
        content = _decoded(lines[-1], len(_WHOLE) + _NUMBER + 32, "the public key")
        if content[:2] != _WHOLE:
            raise NotGenuine("The public key is for another algorithm.")
        return cls(number=content[2 : 2 + _NUMBER], key=Ed25519PublicKey.from_public_bytes(content[2 + _NUMBER :]))

    def to_text(self) -> str:
        """Return the file that minisign reads."""
        raw = self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        shown = int.from_bytes(self.number, "little")
        return f"{_UNTRUSTED}minisign public key {shown:016X}\n{_encoded(_WHOLE + self.number + raw)}\n"


def signature_of(file: Path, secret: Ed25519PrivateKey, moment: int) -> str:
    """Return the text of a file's signature; the trusted comment has its name and the time."""
    first = secret.sign(_hash_of(file))
    trusted = f"timestamp:{moment}\t{_FILE}{file.name}\thashed"
    both = secret.sign(first + trusted.encode())
    head = _HASHED + PublicKey.of(secret).number + first
    return f"{_UNTRUSTED}signature of a release of Lapwing\n{_encoded(head)}\n{_TRUSTED}{trusted}\n{_encoded(both)}\n"


def verified(file: Path, signature: str, public: PublicKey) -> str:
    """Return the trusted comment of a file's signature.

    Raises:
        NotGenuine: If the file, the comment or the name of the file is not what was signed, or the key is another.
    """
    lines = signature.removesuffix("\n").split("\n")
    if len(lines) != 4 or not lines[0].startswith(_UNTRUSTED) or not lines[2].startswith(_TRUSTED):
        raise NotGenuine("The signature has another form than minisign's.")
    head = _decoded(lines[1], len(_HASHED) + _NUMBER + 64, "the signature")
    both = _decoded(lines[3], 64, "the signature of the trusted comment")
    algorithm, number, first = head[:2], head[2 : 2 + _NUMBER], head[2 + _NUMBER :]
    if algorithm not in {_WHOLE, _HASHED}:
        raise NotGenuine("The signature is of another algorithm.")
    if number != public.number:
        raise NotGenuine("The signature is of another key.")
    trusted = lines[2].removeprefix(_TRUSTED)
    try:
        public.key.verify(first, _hash_of(file) if algorithm == _HASHED else file.read_bytes())
        public.key.verify(both, first + trusted.encode())
    except InvalidSignature:
        raise NotGenuine("The file or its trusted comment is not what was signed.") from None
    names = [part.removeprefix(_FILE) for part in trusted.split("\t") if part.startswith(_FILE)]
    if names and names != [file.name]:
        raise NotGenuine(f"What was signed is called {', '.join(names)}.")
    return trusted


def _hash_of(file: Path) -> bytes:
    with file.open("rb") as content:
        return file_digest(content, "blake2b").digest()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decoded(text: str, length: int, what: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if len(content) != length or _encoded(content) != text:
        raise NotGenuine(f"The base64 of {what} is damaged.")
    return content


def _read(file: Path) -> str:
    """Return the text of a small file."""
    try:
        with file.open("rb") as content:
            text = content.read(_LARGEST + 1).decode("utf-8")
    except FileNotFoundError:
        raise NotGenuine(f"There is no {file.name}.") from None
    except ValueError:
        raise NotGenuine(f"{file.name} is no text.") from None
    if len(text) > _LARGEST:
        raise NotGenuine(f"{file.name} is too long.")
    return text


def _secret(file: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise NotGenuine(f"{file.name} has no Ed25519 private key in PEM without a password.")
    return key


def _signed(files: Sequence[Path], secret: Ed25519PrivateKey) -> None:
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    for file in files:
        beside = file.with_name(file.name + ENDING)
        beside.write_text(signature_of(file, secret, moment), encoding="utf-8")
        print(beside)


def _checked(files: Sequence[Path], public: PublicKey) -> bool:
    """Print what is right or wrong with each file, and return whether all of them are right."""
    good = True
    for file in files:
        try:
            print(f"{file.name}: signed ({verified(file, _read(file.with_name(file.name + ENDING)), public)})")
        except NotGenuine as error:
            good = False
            print(f"{file.name}: NOT GENUINE. {error}", file=sys.stderr)
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    """Sign or verify files; return the exit status: 1 if a file is not genuine, or there is none."""
    parser = argparse.ArgumentParser(description="Sign the files of a release, or verify them, as minisign does.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, option in (("public-key", "--key"), ("sign", "--key"), ("verify", "--public-key")):
        command = commands.add_parser(name)
        command.add_argument(option, dest="key", type=Path, required=True)
        if name != "public-key":
            command.add_argument("files", type=Path, nargs="+")
    said = parser.parse_args(arguments)
    try:
        if said.command == "public-key":
            print(PublicKey.of(_secret(said.key)).to_text(), end="")
            return 0
        files = [file for file in said.files if file.suffix != ENDING]
        if not files:
            raise NotGenuine("There is no file beside signatures.")
        if said.command == "sign":
            _signed(files, _secret(said.key))
            return 0
        return 0 if _checked(files, PublicKey.from_text(_read(said.key))) else 1
    except (NotGenuine, OSError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
