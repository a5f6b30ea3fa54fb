"""The identity provider: where one is sent to sign in, and who it then says that one is.

The Authorization Code flow of OpenID Connect with PKCE (RFC 7636). What the provider says of somebody is believed if it
comes over the connection that was opened to it, and its ID token is signed by a key that it publishes, by an algorithm
with a public key, for this client, by this issuer, now, and with the nonce of this sign-in. Redirects are not followed.

Source:
    OpenID Connect Core 1.0, sections 3.1 and 12; Discovery 1.0; RP-Initiated Logout 1.0; RFC 9207 for `iss`.
"""

import json
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, final
from urllib.parse import quote, urlencode, urlsplit

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from lapwing.errors import InvalidParameter, NotAuthorised, ServiceFault
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.machine.one_address import opened
from lapwing.server.openid.settings import OpenIdSettings, require_encrypted

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""Those with a public key: a token that is signed by a shared secret, or by nothing, is refused."""
KNOWN_FOR: Final = 3600.0
"""Seconds for which what the provider publishes is not asked for again."""
AGAIN: Final = 60.0
"""Seconds before its keys are asked for again, because a token names one that is not known."""
LEEWAY: Final = 60
SECONDS: Final = 10.0
MOST_BYTES: Final = 1 << 20
UNTRUE: Final = "What the identity provider said cannot be believed ({}). Nobody was signed in. Try again."
UNREACHABLE: Final = "The identity provider cannot be reached, or does not answer as it should ({}). Try again later."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """A sign-in that was begun: `address` is where the browser goes, the others are for when it comes back."""

    address: str
    state: str
    nonce: str
    verifier: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Identity:
    """Who somebody is by the provider; id_token and refresh are secrets."""

    subject: str
    name: str
    groups: frozenset[str]
    id_token: str
    refresh: str | None


@final
class Provider:
    """An identity provider, for all threads.

    Args:
        back: The address to which it sends browsers back.
    """

    def __init__(self, settings: OpenIdSettings, back: str, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.back, self._clock = settings, back, clock
        self._lock = threading.Lock()
        self._facts: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def begin(self) -> PendingSignIn:
        """Begin a sign-in.

        Raises:
            ServiceFault: If the server or the way to it fails.
        """
        state, nonce, verifier = (_random() for _ in range(3))
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.back,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if "offline_access" in self.settings.scopes:
            asked["prompt"] = "consent"  # without which the standard lets no refresh token be given
        address = _with(self._address("authorization_endpoint"), asked)
        return PendingSignIn(address=address, state=state, nonce=nonce, verifier=verifier)

    def require_issuer(self, issuer: str | None) -> None:
        """Refuse an answer of another provider (RFC 9207).

        Raises:
            NotAuthorised: If who asks may not do this.
            ServiceFault: If the server or the way to it fails.
        """
        stated = self._known().get("authorization_response_iss_parameter_supported", False)
        if issuer != self.settings.issuer and (issuer is not None or stated):
            raise NotAuthorised(UNTRUE.format("another issuer"))

    def finish(self, code: str, verifier: str, nonce: str) -> Identity:
        """Return who came back with a code.

        Raises:
            NotAuthorised: If it is not believed.
            ServiceFault: If the server or the way to it fails.
        """
        told = self._tokens(
            {"grant_type": "authorization_code", "code": code, "redirect_uri": self.back, "code_verifier": verifier}
        )
        id_token = told.get("id_token")
        if not isinstance(id_token, str):
            raise NotAuthorised(UNTRUE.format("no ID token"))
        claims = self._claims(id_token, nonce=nonce)
        return self._identity(claims, told, id_token, told.get("refresh_token"))

    def refreshed(self, known: Identity) -> Identity:
        """Return who somebody is now, by a refresh token.

        Raises:
            NotAuthorised: If the provider lets them in no more, or is not believed.
            ServiceFault: If the server or the way to it fails.
        """
        told = self._tokens({"grant_type": "refresh_token", "refresh_token": known.refresh or ""})
        id_token = told.get("id_token")
        claims: dict[str, Any] = {"sub": known.subject}
        if isinstance(id_token, str):
            claims = self._claims(id_token, nonce=None)
            if claims["sub"] != known.subject:
                raise NotAuthorised(UNTRUE.format("another person"))
        return self._identity(claims, told, known.id_token, told.get("refresh_token") or known.refresh)

    def goodbye(self, id_token: str, back: str) -> str | None:
        """Return the address at which one signs out of the provider too, None if it has none."""
        try:
            if "end_session_endpoint" not in self._known():
                return None
            where = self._address("end_session_endpoint")
        except (ServiceFault, InvalidParameter):
            return None
        asked = {"id_token_hint": id_token, "client_id": self.settings.client_id, "post_logout_redirect_uri": back}
        return _with(where, asked)

    # ---- What it says ----

    def _claims(self, id_token: str, *, nonce: str | None) -> dict[str, Any]:
        """Return the claims of an ID token that holds.

        Raises:
            NotAuthorised: If who asks may not do this.
            ServiceFault: If the server or the way to it fails.
        """
        claims = self._signed(id_token)
        wanted: dict[str, Any] = {
            "iss": {"essential": True, "value": self.settings.issuer},
            "aud": {"essential": True, "value": self.settings.client_id},
            "sub": {"essential": True},
            "exp": {"essential": True},
            "iat": {"essential": True},
        }
        if nonce is not None:
            wanted["nonce"] = {"essential": True, "value": nonce}
        try:
            jwt.JWTClaimsRegistry(now=lambda: int(self._clock()), leeway=LEEWAY, **wanted).validate(claims)
        except JoseError as error:
            raise NotAuthorised(UNTRUE.format(error.error)) from None
        others = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if claims.get("azp", self.settings.client_id) != self.settings.client_id or (
            len(others) > 1 and "azp" not in claims
        ):
            raise NotAuthorised(UNTRUE.format("for another client"))
        return claims

    def _signed(self, id_token: str) -> dict[str, Any]:
        """Return the claims of a token that a key of the provider has signed."""
        for fresh in (False, True):
            try:
                return jwt.decode(id_token, self._key_set(fresh=fresh), algorithms=list(ALGORITHMS)).claims
            except (JoseError, ValueError) as error:
                if fresh:
                    raise NotAuthorised(UNTRUE.format(getattr(error, "error", "no signed token"))) from None
        raise AssertionError

    def _identity(self, claims: dict[str, Any], told: Mapping[str, Any], id_token: str, refresh: object) -> Identity:
        settings = self.settings
        wanted = (settings.name_claim, settings.groups_claim)
        if not all(name in claims for name in wanted) and "userinfo_endpoint" in self._known():
            more = self._userinfo(str(told.get("access_token", "")))
            if more.get("sub") != claims["sub"]:
                raise NotAuthorised(UNTRUE.format("another person"))
            claims = {**more, **claims}
        groups = claims.get(settings.groups_claim, [])
        groups = [groups] if isinstance(groups, str) else groups
        return Identity(
            subject=str(claims["sub"]),
            name=str(claims.get(settings.name_claim, "")),
            groups=frozenset(map(str, groups)) if isinstance(groups, list) else frozenset(),
            id_token=id_token,
            refresh=refresh if isinstance(refresh, str) else None,
        )

    # ---- What it is asked ----

    def _known(self) -> Mapping[str, Any]:
        """Return what the provider publishes of itself."""
        with self._lock:
            if self._facts is not None and self._clock() - self._facts[0] < KNOWN_FOR:
                return self._facts[1]
        facts = _asked(self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if facts.get("issuer") != self.settings.issuer:
            raise ServiceFault(UNREACHABLE.format("it calls itself otherwise than the settings do"))
        with self._lock:
            self._facts = self._clock(), facts
        return facts

    def _address(self, name: str) -> str:
        address = self._known().get(name)
        if not isinstance(address, str):
            raise ServiceFault(UNREACHABLE.format(f"no {name}"))
        try:
            require_encrypted(address)
        except InvalidParameter:
            raise ServiceFault(UNREACHABLE.format(f"{name} is not encrypted")) from None
        return address

    def _key_set(self, *, fresh: bool) -> KeySet:
        with self._lock:
            age = None if self._keys is None else self._clock() - self._keys[0]
            if self._keys is not None and age is not None and age < (AGAIN if fresh else KNOWN_FOR):
                return self._keys[1]
        document: Any = _asked(self._address("jwks_uri"))
        try:
            keys = KeySet.import_key_set(document)
        except (JoseError, ValueError, KeyError, TypeError):
            raise ServiceFault(UNREACHABLE.format("no keys")) from None
        with self._lock:
            self._keys = self._clock(), keys
        return keys

    def _tokens(self, form: dict[str, str]) -> Mapping[str, Any]:
        settings, headers = self.settings, {"Content-Type": "application/x-www-form-urlencoded"}
        methods = self._known().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if settings.client_secret is None:
            form["client_id"] = settings.client_id
        elif "client_secret_basic" in methods:
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["Authorization"] = "Basic " + b64encode(pair.encode()).decode()
        else:
            form |= {"client_id": settings.client_id, "client_secret": settings.client_secret}
        return _asked(self._address("token_endpoint"), headers, urlencode(form).encode())

    def _userinfo(self, access: str) -> Mapping[str, Any]:
        return _asked(self._address("userinfo_endpoint"), {"Authorization": f"Bearer {access}"})


def _asked(address: str, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> dict[str, Any]:
    """Return the JSON object at an address.

    Raises:
        NotAuthorised: If a grant is refused.
        ServiceFault: If the server or the way to it fails.
    """
    require_encrypted(address)
    request = urllib.request.Request(address, body, {"Accept": "application/json", **(headers or {})})  # noqa: S310
    try:
        with opened(request, SECONDS) as response:  # what a provider publishes is where it says
            content = response.read(MOST_BYTES)
        document = json.loads(content)
    except urllib.error.HTTPError as error:
        with error:
            refused = body is not None and error.code in (400, 401) and b"invalid_grant" in error.read(MOST_BYTES)
        if refused:
            raise NotAuthorised("The identity provider ended your session. Sign in again.") from None
        raise ServiceFault(UNREACHABLE.format(f"status {error.code} of {urlsplit(address).path}")) from None
    except (OSError, ValueError) as error:
        raise ServiceFault(UNREACHABLE.format(type(error).__name__)) from None
    if not isinstance(document, dict):
        raise ServiceFault(UNREACHABLE.format("no document"))
    return document


def _with(address: str, asked: Mapping[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(asked)}"


def _random() -> str:
    return urlsafe_b64encode(read_exactly(SystemEntropy(), 32)).decode().rstrip("=")
