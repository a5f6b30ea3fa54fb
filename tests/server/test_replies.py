"""How replies come: to HEAD as to GET, in gzip where that tells nobody anything, by a certificate that is renewed."""

import gzip
import json
import signal
import socket
import ssl
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509

import lapwing as lw
from lapwing.server import compression, listener, middleware
from tests.server.test_authorisation import MATRIX, OPEN, prepared
from tests.server.test_client import certificate, over_tls
from tests.server.test_headers import sent as raw
from tests.server.test_logs import logged
from tests.support.effort import is_long, some
from tests.support.server.crew import crew
from tests.support.server.crew import prepared as prepared_for_crew
from tests.support.server.world import QUESTION, World, service_in

VARIES: Final = ("date", "x-request-id")
GZIP: Final = {"Accept-Encoding": "br;q=1, gzip;q=0.8"}
WIDE: Final = {
    "sql": f"SELECT plan, {', '.join(f'COUNT(*) AS number_{i}' for i in range(40))} FROM visits GROUP BY plan",
    "epsilon": 0.5,
}


# ---- HEAD ----


def other_heads(world: World, who: str | None) -> list[str]:
    """Return the requests by GET to which HEAD is answered otherwise, but for the body."""
    names, found = prepared(world), []
    paths = [path for (method, _), (path, _, _) in MATRIX.items() if method == "GET"] + [path for _, path in OPEN]
    for path in [*some(3, paths), "/nowhere", "/v1/me?x=1", "/v1/login"]:
        for name, told in names.items():
            path = path.replace(name, told)
        got, head = (world.ask(method, path, who) for method in ("GET", "HEAD"))
        headers = [{k: v for k, v in one.headers.items() if k not in VARIES} for one in (got, head)]
        if (head.status, headers[1], head.content) != (got.status, headers[0], b""):
            found.append(f"{path}: {head.status}, not {got.status}")
    return found


@pytest.mark.long
def test_head_is_answered_as_get_without_the_body(world: World) -> None:
    assert world.query("carol", WIDE).status == 200
    for who in (None, "carol", "bob") if is_long() else ("carol",):
        assert [line for line in other_heads(world, who) if not line.startswith(("/metrics", "/v1/audit"))] == []
    answer = raw(world, "HEAD /healthz HTTP/1.1", "Host: x", "Connection: close")
    assert answer.endswith(b"\r\n\r\n")
    length = len(world.ask("GET", "/healthz").content)
    assert f"content-length: {length}\r\n".encode() in answer
    charged = world.charges()
    assert world.ask("HEAD", "/v1/datasets/open/query", "alice", QUESTION).status == 405
    assert world.charges() == charged
    assert 'method="HEAD",route="/v1/me"' in world.ask("GET", "/metrics", "carol").content.decode()


# ---- gzip ----


@pytest.mark.long
def test_large_replies_are_compressed_for_who_accepts_that(world: World) -> None:
    plain = world.query("alice", WIDE)
    packed = world.query("alice", WIDE, **GZIP, **{"Idempotency-Key": "a"})
    assert len(packed.content) < len(plain.content) / 3
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert json.loads(gzip.decompress(packed.content))["rows"] == plain.document["rows"]
    path = f"/v1/answers/{plain.document['id']}"
    for accept in ({}, {"Accept": "application/vnd.apache.arrow.stream"}):
        whole, small = (world.ask("GET", path, "alice", headers={**accept, **more}) for more in ({}, GZIP))
        assert gzip.decompress(small.content) == whole.content
        assert "content-encoding" not in whole.headers
        assert small.headers.get("x-answer") == whole.headers.get("x-answer")
        assert int(small.headers["content-length"]) == len(small.content)
    for path in ("/", "/docs", "/openapi.json"):
        assert gzip.decompress(world.ask("GET", path, headers=GZIP).content) == world.ask("GET", path).content
    for refused in ("gzip;q=0", "identity", "x", "gzip;q=0.000", "*"):
        assert "content-encoding" not in world.ask("GET", "/docs", headers={"Accept-Encoding": refused}).headers
    small = world.ask("GET", "/healthz", headers=GZIP)
    assert "content-encoding" not in small.headers


def compressed(world: World) -> set[str]:
    """Return the routes whose replies to carol are compressed."""
    names, found = prepared(world), set()
    for (method, route), (path, body, told) in MATRIX.items():
        if told["carol"] == 200 and not route.endswith("closed"):
            for name, told_ in names.items():
                path = path.replace(name, told_)
            if "content-encoding" in world.ask(method, path, "carol", body, GZIP).headers:
                found.add(route)
    return found


def test_what_holds_texts_of_others_is_not_compressed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "SHORTEST", 1)
    found = compressed(world)
    assert found <= compression.ROUTES
    assert "/v1/datasets/{dataset}" in found
    assert not found & {"/v1/audit", "/v1/people", "/v1/queries", "/v1/datasets/{dataset}/history", "/v1/me/tokens"}
    monkeypatch.setattr(compression, "ROUTES", {route for _, route in MATRIX})  # planted: everything is
    for route in ("/v1/audit", "/v1/datasets/open/history", "/v1/me/tokens"):
        assert world.ask("GET", route, "carol", headers=GZIP).headers.get("content-encoding") == "gzip", route


@pytest.mark.long
def test_the_client_takes_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = world.connect("alice").sql(str(WIDE["sql"]), epsilon=0.5)
    packed: list[int] = []
    pack = compression.packed_body

    def counted(body: bytes) -> bytes:
        packed.append(len(body))
        return pack(body)

    monkeypatch.setattr(compression, "packed_body", counted)
    assert world.connect("alice").answer(answer.id).rows() == answer.rows()
    assert packed
    monkeypatch.setattr(compression, "packed_body", lambda body: pack(body)[:-20])  # planted: a reply that is cut short
    with pytest.raises(lw.ServiceFault):
        world.connect("alice").answer(answer.id)


# ---- TLS ----


@pytest.mark.long
def test_a_service_that_speaks_tls_says_so_to_browsers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path)
    service = service_in(tmp_path)
    for place, said in (({"certificate": cert, "key": key}, True), ({"behind_proxy": True}, False), ({}, False)):
        app: Any = listener.server(service, listener.Endpoint(**place)).config.app
        assert (middleware.ENCRYPTED_ONLY[0] in app._more_headers) is said
    service.close()
    (tmp_path / "over").mkdir()
    with over_tls(monkeypatch, tmp_path / "over") as world:
        context = ssl.create_default_context(cafile=tmp_path / "over" / "cert.pem")
        port = int(world.address.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.lower().count(b"strict-transport-security: max-age=31536000\r\n") == 1


def shown(port: int) -> bytes:
    """Return the certificate that a service shows."""
    text = ssl.get_server_certificate(("127.0.0.1", port))
    return x509.load_pem_x509_certificate(text.encode()).signature


@pytest.mark.long
def test_a_certificate_is_renewed_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    (tmp_path / "other").mkdir()
    other, other_key = certificate(tmp_path / "other")
    place = listener.Endpoint(certificate=cert, key=key)
    with closing(service_in(tmp_path)) as service:
        server = listener.server(service, place)
        listener.renew_certificate(server.config, place)  # before anything was read: nothing to renew
        server.config.load()
        context: Any = server.config.ssl
        first, shown_first = signature(context), listener.served_certificate(server.config, place)
        cert.write_bytes(other.read_bytes())
        with logged() as lines:
            listener.renew_certificate(server.config, place)  # the key is that of the first
            assert signature(context) == first
            key.write_bytes(b"")
            listener.renew_certificate(server.config, place)
            assert signature(context) == first
            key.write_bytes(other_key.read_bytes())
            assert listener.served_certificate(server.config, place) == shown_first  # and not what the file holds
            listener.renew_certificate(server.config, place)
            assert signature(context) != first
            assert listener.served_certificate(server.config, place) == cert.read_bytes()
    events = [json.loads(line)["event"] for line in lines]
    assert events == ["certificate not renewed", "certificate not renewed", "certificate renewed"]


def signature(context: ssl.SSLContext) -> bytes:
    """Return the certificate that a context shows to whoever connects."""
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    wires = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = context.wrap_bio(wires[0], wires[1], server_side=True)
    there = client.wrap_bio(wires[1], wires[0])
    for side in (there, here, there):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    der = there.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).signature


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_renews_the_certificate_of_every_worker(tmp_path: Path, workers: int) -> None:
    prepared_for_crew(tmp_path)
    cert, key = certificate(tmp_path)
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with crew(tmp_path, *options, number=workers) as running:
        first = shown(running.port)
        certificate(tmp_path)
        running.parent.send_signal(signal.SIGHUP)
        running.wait_for("certificate renewed", workers)
        assert {shown(running.port) for _ in range(10)} != {first}
        assert first not in {shown(running.port) for _ in range(10)}
        running.parent.send_signal(signal.SIGTERM)
        assert running.parent.wait(60) == 0
