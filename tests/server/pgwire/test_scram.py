"""SCRAM-SHA-256: the vector of RFC 7677, wrong passwords and bindings, and names that nobody has."""

import base64
import hashlib
import hmac
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import pytest

from lapwing.server.pgwire import scram
from lapwing.server.pgwire.scram import BOUND, PLAIN, Exchange, ExchangeFailed, Verifier, salt_of, verifier_of

SALT: Final = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE: Final = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CERTIFICATE: Final = bytes(range(32))


class Client:
    """The client's side, written from RFC 5802 without the code that it tests."""

    def __init__(self, password: str, header: str = "n,,", binding: bytes = b"") -> None:
        self.password, self.header, self.binding = password, header, binding
        self.bare = "n=,r=rOprNGfwEbeRWgbNEkqO"

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, rounds)
        key = hmac.new(salted, b"Client Key", "sha256").digest()
        stored = hashlib.sha256(key).digest()
        bound = base64.b64encode(self.header.encode() + self.binding).decode()
        without = f"c={bound},r={fields['r']}"
        signed = f"{self.bare},{server_first.decode()},{without}".encode()
        proof = bytes(a ^ b for a, b in zip(key, hmac.new(stored, signed, "sha256").digest(), strict=True))
        self.expected = b"v=" + base64.b64encode(
            hmac.new(hmac.new(salted, b"Server Key", "sha256").digest(), signed, "sha256").digest()
        )
        return f"{without},p={base64.b64encode(proof).decode()}".encode()


def exchanged(
    client: Client, verifiers: list[Verifier], mechanism: str = PLAIN, binding: bytes = b""
) -> tuple[int, bool]:
    exchange = Exchange(SALT, NONCE, binding)
    place, proof = exchange.final(client.final(exchange.first(mechanism, client.first())), verifiers)
    return place, proof == client.expected


def test_the_vector_of_rfc_7677() -> None:
    exchange = Exchange(SALT, NONCE)
    first = exchange.first(PLAIN, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.final(final, [verifier_of("pencil", SALT)]) == (
        0,
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    )


def test_any_of_several_passwords_signs_in() -> None:
    verifiers = [verifier_of(f"token {n}", SALT) for n in range(3)]
    for n in range(3):
        assert exchanged(Client(f"token {n}"), verifiers) == (n, True)


def test_wrong_passwords_and_names_of_nobody_are_refused() -> None:
    for verifiers in ([verifier_of("pencil", SALT)], []):
        with pytest.raises(ExchangeFailed):
            exchanged(Client("pen"), verifiers)


def test_made_up_verifiers_let_nobody_in() -> None:
    """Even a proof that fits a made-up verifier is none, as if somebody had found what hashes to it."""
    made_up = scram.NOBODY.stored_key
    found = SimpleNamespace(sha256=lambda _: SimpleNamespace(digest=lambda: made_up))
    with patch.object(scram, "sha256", found.sha256), pytest.raises(ExchangeFailed):
        exchanged(Client("anything"), [])


def test_more_passwords_than_are_looked_at() -> None:
    verifiers = [Verifier(bytes([n % 256]) * 32, bytes(32)) for n in range(scram.VERIFIERS)]
    with pytest.raises(ExchangeFailed):
        exchanged(Client("pencil"), [*verifiers, verifier_of("pencil", SALT)])
    assert exchanged(Client("pencil"), [*verifiers[1:], verifier_of("pencil", SALT)])[0] == scram.VERIFIERS - 1


@pytest.mark.parametrize("known", [0, 1, 3, 300])
def test_every_name_takes_the_same_steps(known: int) -> None:
    """As many keyed hashes are made and compared for a name of nobody as for one with many passwords."""
    compared: list[int] = []
    verifiers = [Verifier(bytes([n % 256]) * 32, bytes(32)) for n in range(known)]
    exchange = Exchange(SALT, NONCE)
    final = Client("pencil").final(exchange.first(PLAIN, Client("pencil").first()))

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(1)
        return one == other

    def keyed(*given: Any) -> bytes:
        made.append(1)
        return digest(*given)

    digest, made = hmac.digest, list[int]()
    here = "lapwing.server.pgwire.scram.hmac"
    with patch(f"{here}.compare_digest", compare), patch(f"{here}.digest", keyed), pytest.raises(ExchangeFailed):
        exchange.final(final, verifiers)
    assert len(compared) == len(made) == scram.VERIFIERS


def test_the_exchange_is_bound_to_the_certificate() -> None:
    known = [verifier_of("pencil", SALT)]
    bound = "p=tls-server-end-point,,"
    assert Exchange(SALT, NONCE, CERTIFICATE).mechanisms == (BOUND, PLAIN)
    assert Exchange(SALT, NONCE).mechanisms == (PLAIN,)
    assert exchanged(Client("pencil", bound, CERTIFICATE), known, BOUND, CERTIFICATE) == (0, True)
    assert exchanged(Client("pencil"), known, PLAIN, CERTIFICATE) == (0, True)
    refused = (
        (Client("pencil", bound, bytes(32)), BOUND, CERTIFICATE),  # another certificate: somebody stands between
        (Client("pencil", bound), BOUND, CERTIFICATE),
        (Client("pencil", bound, CERTIFICATE), PLAIN, CERTIFICATE),
        (Client("pencil"), BOUND, CERTIFICATE),
        (Client("pencil", "y,,"), PLAIN, CERTIFICATE),  # it was made to believe that nothing can be bound
        (Client("pencil", bound, CERTIFICATE), BOUND, b""),
        (Client("pencil", "p=tls-unique,,", CERTIFICATE), BOUND, CERTIFICATE),
        (Client("pencil", "n,a=carol,"), PLAIN, b""),
    )
    for client, mechanism, binding in refused:
        with pytest.raises(ExchangeFailed):
            exchanged(client, known, mechanism, binding)
    assert exchanged(Client("pencil", "y,,"), known, PLAIN) == (0, True)


@pytest.mark.parametrize(
    "first", [b"", b"n,,", b"n,,n=", b"n,,r=abc", b"x,,n=,r=abc", b"n,,n=,r=", b"n,,m=1,n=,r=abc", b"n,,n=,r=\xc3\xa9"]
)
def test_a_first_message_that_is_none(first: bytes) -> None:
    with pytest.raises(ExchangeFailed):
        Exchange(SALT, NONCE).first(PLAIN, first)


def test_a_last_message_that_is_none_or_belongs_to_another_exchange() -> None:
    good = Client("pencil").final(Exchange(SALT, NONCE).first(PLAIN, Client("pencil").first()))
    for final in (
        b"",
        good.replace(b"c=biws", b"c=eSws"),
        good.replace(b"%hv", b"%hw"),
        good.rsplit(b",", 1)[0],
        good + b"\xff",
        good[:-2] + b"==",
    ):
        exchange = Exchange(SALT, NONCE)
        exchange.first(PLAIN, Client("pencil").first())
        with pytest.raises(ExchangeFailed):
            exchange.final(final, [verifier_of("pencil", SALT)])


def test_the_salt_of_a_name_is_its_own_and_lasts() -> None:
    key = bytes(32)
    assert salt_of(key, "alice") == salt_of(key, "alice")
    assert len({salt_of(key, "alice"), salt_of(key, "alicf"), salt_of(b"\1" * 32, "alice")}) == 3
