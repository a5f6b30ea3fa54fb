"""A small identity provider in this process, which says what a test lets it say, true or not."""

import hmac
import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT: Final = "lapwing"
SECRET: Final = "a secret/with: signs"


@dataclass(slots=True)
class Issuer:
    """What it knows and does; tests change it.

    Args: claims: what ID tokens say beside what they must; ended: whether refresh tokens are refused; down: whether it
        answers nothing; changed: of the claims that they must have; algorithm, key: by which they are signed.
    """

    address: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    ended: bool = False
    down: bool = False
    algorithm: str = "ES256"
    key: Any = field(default_factory=lambda: ECKey.generate_key("P-256", {"kid": "one"}))
    signing: Any = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refreshes: list[str] = field(default_factory=list)
    userinfo: dict[str, Any] = field(default_factory=dict)

    def metadata(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "jwks"}
        names |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "out"}
        return {"issuer": self.address, **{name: f"{self.address}/{end}" for name, end in names.items()}, **self.facts}

    def authorized(self, address: str, **more: str) -> str:
        """Sign somebody in who was sent to an address; return where the browser is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], **more}
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "sub": "1234", "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"]} if "nonce" in asked else {}
        claims = {name: value for name, value in {**claims, **self.claims, **self.changed}.items() if value is not None}
        if self.algorithm in ("HS256", "none"):
            return by_hand(claims, self.algorithm, self.key.as_pem(private=False))
        key = self.signing or self.key
        return jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, key, algorithms=[self.algorithm])

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "refresh_token":
            if self.ended or form["refresh_token"] not in self.refreshes:
                return 400, {"error": "invalid_grant"}
            self.refreshes.remove(form["refresh_token"])
            return 200, self._granted({})
        asked = self.codes.pop(form["code"], None)
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return 200, self._granted(asked)

    def _granted(self, asked: dict[str, str]) -> dict[str, Any]:
        refresh = f"refresh-{time.monotonic_ns()}"
        self.refreshes.append(refresh)
        return {"id_token": self.id_token(asked), "access_token": "access", "refresh_token": refresh}


def by_hand(claims: dict[str, Any], algorithm: str, secret: bytes) -> str:
    """Return a token that is signed by a secret which everybody knows, or not at all."""
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "kid": "one"}, claims)]
    said = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    seal = hmac.digest(secret, said.encode(), "sha256") if algorithm == "HS256" else b""
    return f"{said}.{urlsafe_b64encode(seal).decode().rstrip('=')}"


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run an identity provider on a port of this machine."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            end = urlsplit(self.path).path
            if end == "/.well-known/openid-configuration":
                return self.told(200, issuer.metadata())
            if end == "/jwks":
                return self.told(200, {"keys": [issuer.key.as_dict(private=False)]})
            if end == "/userinfo" and self.headers["Authorization"] == "Bearer access":
                return self.told(200, issuer.userinfo)
            return self.told(404, {})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(content).items()}
            pair = b64encode(f"{CLIENT}:{quote(SECRET, safe='')}".encode()).decode()
            if self.headers["Authorization"] != f"Basic {pair}":
                return self.told(401, {"error": "invalid_client"})
            return self.told(*issuer.token(form))

        def told(self, status: int, document: Any) -> None:
            content = json.dumps(document).encode()
            self.send_response(503 if issuer.down else status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
