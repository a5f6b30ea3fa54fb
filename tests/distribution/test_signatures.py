"""Signatures of a release are those of minisign: its published examples verify, and nothing that was changed does."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
import sign_release
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from sign_release import NotGenuine, PublicKey, main, signature_of, verified

MOMENT: Final = 1_700_000_000
UNTRUSTED: Final = "untrusted comment: signature from minisign secret key"

# Made by minisign and published by its author, who gave his public key with them; what is signed is "test".
AUTHOR: Final = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
PUBLISHED: Final = {
    "Ed": f"""{UNTRUSTED}
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
""",
    "ED": f"""{UNTRUSTED}
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
""",
}


@pytest.fixture
def secret() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def key_file(secret: Ed25519PrivateKey, tmp_path: Path) -> Path:
    file = tmp_path / "release.key"
    file.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    file = tmp_path / "test"
    file.write_bytes(b"test")
    return file


@pytest.mark.parametrize("algorithm", sorted(PUBLISHED))
def test_published_signatures_of_minisign_are_verified(algorithm: str, signed: Path) -> None:
    trusted = verified(signed, PUBLISHED[algorithm], PublicKey.from_text(AUTHOR))
    assert trusted.endswith("\tfile:test")


def in_line(number: int, change: Callable[[str], str]) -> Callable[[str], str]:
    """Return what changes one line of a signature."""

    def changed(text: str) -> str:
        lines = text.split("\n")
        lines[number] = change(lines[number])
        return "\n".join(lines)

    return changed


def flipped(text: str) -> str:
    """Change one character of base64 that lies in a signature."""
    return text[:40] + ("A" if text[40] != "A" else "B") + text[41:]


FORGED: Final[Mapping[str, Callable[[str], str]]] = {
    "signature": in_line(1, flipped),
    "algorithm": in_line(1, lambda line: "RWQ" + line[3:] if line.startswith("RUQ") else "RUQ" + line[3:]),
    "unknown algorithm": in_line(1, lambda line: "AAA" + line[3:]),
    "number of the key": in_line(1, lambda line: line[:4] + ("A" if line[4] != "A" else "B") + line[5:]),
    "trusted comment": in_line(2, lambda line: line.replace("timestamp:1", "timestamp:2")),
    "global signature": in_line(3, flipped),
    "comment is not signed alone": in_line(3, lambda _: ""),
    "base64 with a blank": in_line(1, lambda line: line[:8] + " " + line[8:]),
    "a line more": lambda text: text + "trusted comment: file:test\n",
    "a line less": lambda text: "\n".join(text.split("\n")[1:]),
    "nothing": lambda _: "",
}


@pytest.mark.parametrize("algorithm", sorted(PUBLISHED))
@pytest.mark.parametrize("forged", sorted(FORGED))
def test_no_changed_signature_is_verified(forged: str, algorithm: str, signed: Path) -> None:
    text = FORGED[forged](PUBLISHED[algorithm])
    assert text != PUBLISHED[algorithm]
    with pytest.raises(NotGenuine):
        verified(signed, text, PublicKey.from_text(AUTHOR))


def test_the_untrusted_comment_is_nobody_s(signed: Path) -> None:
    text = PUBLISHED["ED"].replace(UNTRUSTED, "untrusted comment: anything")
    assert verified(signed, text, PublicKey.from_text(AUTHOR))


@pytest.mark.parametrize("algorithm", sorted(PUBLISHED))
def test_a_changed_file_is_noticed(algorithm: str, signed: Path) -> None:
    signed.write_bytes(b"tesT")
    with pytest.raises(NotGenuine):
        verified(signed, PUBLISHED[algorithm], PublicKey.from_text(AUTHOR))


def test_a_genuine_file_under_the_name_of_another_is_noticed(signed: Path) -> None:
    """An older wheel in the place of the newest one has a signature that is right."""
    renamed = signed.rename(signed.with_name("test-2.whl"))
    with pytest.raises(NotGenuine):
        verified(renamed, PUBLISHED["ED"], PublicKey.from_text(AUTHOR))


def test_what_is_signed_is_verified(secret: Ed25519PrivateKey, signed: Path) -> None:
    public = PublicKey.of(secret)
    assert PublicKey.from_text(public.to_text()) == public
    text = signature_of(signed, secret, MOMENT)
    assert verified(signed, text, public) == f"timestamp:{MOMENT}\tfile:test\thashed"
    with pytest.raises(NotGenuine):
        verified(signed, text, PublicKey.from_text(AUTHOR))


def test_the_comment_of_another_signature_is_noticed(secret: Ed25519PrivateKey, signed: Path) -> None:
    """The signature of another comment by the same key is none of this one."""
    text = signature_of(signed, secret, MOMENT)
    other = signature_of(signed, secret, MOMENT + 1)
    mixed = "\n".join([*text.split("\n")[:2], *other.split("\n")[2:3], *text.split("\n")[3:]])
    with pytest.raises(NotGenuine):
        verified(signed, mixed, PublicKey.of(secret))
    without = "\n".join(text.split("\n")[:2])
    with pytest.raises(NotGenuine):
        verified(signed, without, PublicKey.of(secret))


@pytest.mark.parametrize(
    "text", ["", AUTHOR[:-4], AUTHOR.replace("RWQ", "RUQ"), f"comment\n{AUTHOR}", f"{AUTHOR}\n\n{AUTHOR}"]
)
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(NotGenuine):
        PublicKey.from_text(text)


def test_the_command_signs_and_verifies_a_folder(
    key_file: Path, signed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["public-key", "--key", str(key_file)]) == 0
    public = tmp_path / "lapwing.pub"
    public.write_text(capsys.readouterr().out)
    other = tmp_path / "SHA256SUMS"
    other.write_text("0  test\n")
    files = [str(signed), str(other)]
    assert main(["verify", "--public-key", str(public), *files]) == 1, "nothing is signed yet"
    assert main(["sign", "--key", str(key_file), *files]) == 0
    with_signatures = [*files, *(f"{file}{sign_release.ENDING}" for file in files)]
    assert main(["verify", "--public-key", str(public), *with_signatures]) == 0
    other.write_text("1  test\n")
    capsys.readouterr()
    assert main(["verify", "--public-key", str(public), *files]) == 1
    said = capsys.readouterr()
    assert ("test: signed" in said.out, "SHA256SUMS: NOT GENUINE" in said.err) == (True, True)
    assert main(["sign", "--key", str(public), *files]) == 1, "this is no private key"
    assert main(["verify", "--public-key", str(public), f"{signed}.minisig"]) == 1, "no file to verify"


@pytest.mark.skipif(shutil.which("minisign") is None, reason="Debian's minisign is not installed")
def test_minisign_verifies_it(secret: Ed25519PrivateKey, signed: Path, tmp_path: Path) -> None:
    public = tmp_path / "lapwing.pub"
    public.write_text(PublicKey.of(secret).to_text())
    signature = tmp_path / "test.minisig"
    signature.write_text(signature_of(signed, secret, MOMENT))
    command = ["minisign", "-V", "-p", str(public), "-m", str(signed)]
    assert subprocess.run(command, capture_output=True).returncode == 0
    signature.write_text(signature.read_text().replace(str(MOMENT), str(MOMENT + 1)))
    assert subprocess.run(command, capture_output=True).returncode != 0
