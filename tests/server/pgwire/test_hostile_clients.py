"""Clients that mean ill: hostile values in parameters and names, NUL, and a client that does not read its results."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest

from lapwing.server.pgwire import listener as wire_listener
from lapwing.server.pgwire import session
from tests.server.pgwire.test_clients import Wired, sent_raw, wired_in
from tests.server.pgwire.test_scram import Client
from tests.support.server import wire
from tests.support.server.queueing import until

TEXT: Final = "SELECT COUNT(*) AS n FROM visits WHERE plan = $1"
HOSTILE: Final = (
    *("a' OR '1'='1", "a'; DELETE FROM visits; --", "$1", "' UNION SELECT cost FROM visits --", "\\'; SELECT 1; --"),
    *('a"b', "a/*", "*/ OR TRUE", "${jndi:ldap://a}", "%s", "{0}", "E'\\x27'", "\u02bc OR 1=1", "a" * 200),
)
"""Texts that would be something else if they were pasted into a query."""


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("hostile")) as running:
        yield running


def asked(wired: Wired, value: bytes | None, *, format_: int = 0, type_: int = 25) -> dict[str, list[wire.Sent]]:
    """Ask with a parameter, and return what is answered by the types of the messages."""
    run = wire.parse(TEXT, types=[type_]) + wire.bind([value], formats=[format_]) + wire.describe("P") + wire.execute()
    found: dict[str, list[wire.Sent]] = {}
    bugs: list[str] = []
    log = patch.object(session, "log", lambda event, **_: bugs.append(event))
    with log, wired.connect(options="-c lapwing.epsilon=0.01", autocommit=True) as connection:
        for one in sent_raw(connection, run):
            found.setdefault(one.kind, []).append(one)
    assert not bugs
    return found


def test_parameters_never_become_part_of_the_query(wired: Wired) -> None:
    """Each is one value: what comes of it is what HTTP has for the same text and value."""
    for value in HOSTILE:
        reply = wired.world.query("alice", {"sql": TEXT, "epsilon": "0.01", "parameters": [value]})
        for format_ in (0, 1):
            found = asked(wired, value.encode(), format_=format_)
            if reply.status == 200:
                (row,) = found["D"]
                assert row.body.endswith(str(reply.document["rows"][0]["n"]).encode()), value
            else:  # it resembles a listed value, and is taken for a slip
                assert found["E"][0].fields["D"].startswith(f"{reply.document['code']}. "), value


@pytest.mark.parametrize("value", [b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\0", b"\xc0\x80"])
@pytest.mark.parametrize("format_", [0, 1])
def test_nul_and_bad_utf_8_in_parameters_are_refused_or_one_value(wired: Wired, value: bytes, format_: int) -> None:
    found = asked(wired, value, format_=format_)
    if value.count(b"\0") < len(value) and b"\0" not in value:
        (refused,) = found["E"]
        assert refused.fields["C"] in ("22P02", "22P03", "22021")
    assert len(found.get("D", [])) + len(found.get("E", [])) == 1


@pytest.mark.parametrize("name", ["open\x01", "../open", "open'--", "\u0000", "x" * 5_000, "OPEN", "ｏｐｅｎ"])
def test_a_data_set_of_a_hostile_name_is_none(wired: Wired, name: str) -> None:
    client = Client(wired.world.tokens["carol"])
    with socket.create_connection(("127.0.0.1", wired.port), timeout=60) as plain:
        told = sign_in(plain, client, "carol", name)
    if "\0" not in name:
        assert [one.fields["C"] for one in told if one.kind == "E"] == ["3D000"]
    else:
        assert [one.fields["S"] for one in told if one.kind == "E"] == ["FATAL"]


def sign_in(plain: socket.socket, client: Client, who: str, dataset: str) -> list[wire.Sent]:
    """Sign in without a library, and return what the server says last."""

    def answered(data: bytes) -> list[wire.Sent]:
        plain.sendall(data)
        got = b""
        while not got or not _is_whole(got):
            part = plain.recv(1 << 16)
            if not part:
                break
            got += part
        return list(wire.messages_of(got))

    told = answered(wire.startup(who, database=dataset))
    if told[0].kind == "E":
        return told
    first = client.first()
    body = wire.cstring("SCRAM-SHA-256") + len(first).to_bytes(4, "big") + first
    (challenge,) = answered(wire.message("p", body))
    return answered(wire.message("p", client.final(challenge.body[4:])))


def _is_whole(got: bytes) -> bool:
    place = 0
    kinds = b""
    while place + 5 <= len(got):
        kinds += got[place : place + 1]
        place += int.from_bytes(got[place + 1 : place + 5], "big") + 1
    return place == len(got) and (kinds in (b"R", b"E") or kinds[-1:] in b"ZE")


@pytest.mark.long
def test_a_client_that_does_not_read_is_left_and_holds_up_nobody(tmp_path: Path) -> None:
    events: list[str] = []

    def note(event: str, **_: Any) -> None:
        events.append(event)

    many = wire.query("SELECT t.typname, t.oid FROM pg_type t, generate_series(1, 300) g")
    quick = patch.object(wire_listener, "UNREAD_SECONDS", 0.2), patch.object(wire_listener, "log", note)
    with quick[0], quick[1], wired_in(tmp_path) as own, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", own.port))
        assert sign_in(slow, Client(own.world.tokens["alice"]), "alice", "open")[-1].kind == "Z"
        slow.sendall(many * 20)
        with own.connect(autocommit=True) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        until(lambda: events.count("PostgreSQL client left") == 2)


@pytest.mark.parametrize("header", ["y,,", "p=tls-server-end-point,,", "p=tls-unique,,", "n,a=carol,"])
def test_a_binding_that_is_not_there_is_refused(wired: Wired, header: str) -> None:
    """Without TLS, only `n` and `y` are right: `y` says that the client could bind, and that nothing was offered."""
    client = Client(wired.world.tokens["alice"], header, os.urandom(32) if header[0] == "p" else b"")
    with socket.create_connection(("127.0.0.1", wired.port), timeout=60) as plain:
        told = sign_in_with(plain, client)
    assert told == ("Z" if header == "y,," else "E")


def sign_in_with(plain: socket.socket, client: Client) -> str:
    try:
        return sign_in(plain, client, "alice", "open")[-1].kind
    except (KeyError, ValueError):  # the first message was refused
        return "E"
