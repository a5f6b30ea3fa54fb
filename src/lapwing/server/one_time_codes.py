"""One-time codes of authenticator apps, and recovery codes: pure functions of secrets and times.

A code is the one of RFC 6238 with what all apps can do: HMAC-SHA-1, six digits, a new one every thirty seconds. A clock
may be wrong by one step, so three codes hold at a moment. A guess is right with probability 3/10⁶: how many may be made
is for `server.second_factors` to say.
"""

import hmac
from base64 import b32decode, b32encode
from hashlib import sha256
from typing import Final
from urllib.parse import quote, urlencode

from lapwing.exact.entropy import SystemEntropy, read_exactly

STEP: Final = 30
"""Seconds for which a code is shown."""
DIGITS: Final = 6
APART: Final = 1
"""Steps by which the two clocks may differ."""
ISSUER: Final = "Lapwing"


def new_secret() -> str:
    """Return a secret of 160 random bits, as apps take it: in base 32."""
    return b32encode(read_exactly(SystemEntropy(), 20)).decode()


def new_recovery_code() -> str:
    """Return a recovery code of 80 random bits, in groups of four."""
    text = b32encode(read_exactly(SystemEntropy(), 10)).decode().lower()
    return "-".join(text[place : place + 4] for place in range(0, len(text), 4))


def code_at(secret: str, step: int) -> str:
    """Return the code of a time step.

    Source:
        RFC 4226, section 5.3, over the counter of RFC 6238.

    >>> code_at(b32encode(b"12345678901234567890").decode(), 59 // STEP)
    '287082'
    """
    digest = hmac.digest(b32decode(secret), step.to_bytes(8, "big"), "sha1")
    place = digest[-1] & 0xF
    number = int.from_bytes(digest[place : place + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def step_of(secret: str, code: str, now: float) -> int | None:
    """Return the time step of which a code is the one, None if it is of no step that holds now.

    All steps are looked at, whichever is the right one.
    """
    present = int(now) // STEP
    steps = range(max(0, present - APART), present + APART + 1)
    typed = code.encode("utf-8", "replace")
    matching = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), typed)]
    return matching[-1] if matching else None


def plain(code: str) -> str:
    """Return a code without what people type between its parts.

    >>> plain(" 123 456"), plain("abcd-EFGH-2345-6723")
    ('123456', 'ABCDEFGH23456723')
    """
    return "".join(code.split()).replace("-", "").upper()


def kept_of(recovery_code: str) -> str:
    """Return what is kept of a recovery code: of 80 random bits, so a quick hash is enough."""
    return sha256(plain(recovery_code).encode("utf-8", "replace")).hexdigest()


def address_of(name: str, secret: str) -> str:
    """Return what the QR code says to an app.

    >>> address_of("alice", "GEZDGNBV")
    'otpauth://totp/Lapwing:alice?secret=GEZDGNBV&issuer=Lapwing'
    """
    return f"otpauth://totp/{ISSUER}:{quote(name, safe='')}?{urlencode({'secret': secret, 'issuer': ISSUER})}"
