"""The sign-in of a PostgreSQL client, by SCRAM with the API tokens of a person.

Theory of operation. An attempt is counted when it begins, by the limiter of logins over HTTP, and given back once
somebody has proven who they are (`sign_in_attempts`). So a stranger who is over the limit makes the service do no work.
A dashboard that opens many connections at once is not refused.

Nothing shows whether a name exists. Until the client sends its proof, the server computes the salt of the name, and
looks up nothing. Then it looks up the verifiers of the name and compares as many for every name (`scram`). A refusal
leaves at a whole multiple of `STEP` after the proof arrived. So the time of the look-up and of the note in the audit
log is not seen.
"""

import asyncio
import math
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from hashlib import new as new_hash
from typing import Final, final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from fastapi.concurrency import run_in_threadpool

from lapwing.errors import LapwingError, TooManyRequests
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.server.pgwire import protocol, scram
from lapwing.server.pgwire.connection_statements import Wire
from lapwing.server.pgwire.refusals import fatal
from lapwing.server.pgwire.sign_in_attempts import Attempts
from lapwing.server.problems import told
from lapwing.server.service import Service

STEP: Final = 0.25
"""Seconds."""
WRONG: Final = "The name or the token is wrong, or the token is no longer valid."
TOO_MANY: Final = "Too many attempts to sign in came from this network without the right token. Try again later."
OLDER: Final = (
    "The password is an API token of this person. Tokens that were issued before this service spoke PostgreSQL's "
    "protocol do not work here: issue a new one."
)


@final
class SignInAttempt:
    """One attempt to sign in, from an address; `end` is called when its connection signs in or ends.

    Args:
        attempts: Those of all connections.
        certificate: Returns the certificate that clients are shown, as PEM; None without TLS.
    """

    def __init__(
        self, service: Service, wire: Wire, address: str, attempts: Attempts, certificate: Callable[[], bytes | None]
    ) -> None:
        self._service, self._wire, self._address, self._certificate = service, wire, address, certificate
        self._attempts, self._is_counted = attempts, False
        self._binding = b""
        self._event: protocol.SignIn | None = None
        self._exchange: scram.Exchange | None = None

    def note_handshake(self) -> None:
        """Bind what follows to the certificate of this moment: a renewal may put another in its place."""
        self._binding = binding_of(self._certificate() or b"")

    async def begin(self, event: protocol.SignIn) -> None:
        """Ask somebody for a proof, by the same steps whoever they are."""
        try:
            await self._attempts.begin(self._address)
            self._is_counted = True
            salt = await run_in_threadpool(self._service.people.scram_salt, event.user)
        except TooManyRequests:
            self._wire.close(fatal("53000", TOO_MANY))
            return
        except LapwingError as error:
            self._wire.close(fatal("58000", str(told(error, None, None))))
            return
        nonce = b64encode(read_exactly(SystemEntropy(), 18)).decode()
        self._event, self._exchange = event, scram.Exchange(salt, nonce, self._binding)
        self._wire.request_sasl(self._exchange.mechanisms)

    def challenge(self, event: protocol.SaslInitial) -> None:
        """Go on with the first message of the exchange."""
        if self._exchange is not None:
            try:
                self._wire.challenge(self._exchange.first(event.mechanism, event.data))
            except scram.ExchangeFailed as refused:
                self._wire.close(fatal("28000", str(refused)))

    async def finish(self, event: protocol.SaslResponse) -> tuple[protocol.SignIn, str, bytes] | None:
        """Return who signs in, the id of their token and the proof of the server; None if it is refused."""
        if self._exchange is None or self._event is None:
            return None
        arrived = asyncio.get_running_loop().time()
        try:
            known = await run_in_threadpool(self._service.people.scram_verifiers, self._event.user)
            place, proof = self._exchange.final(event.data, [verifier for _, verifier in known])
        except scram.ExchangeFailed:
            self.end()
            await self._refuse(self._event.user[:100], arrived)
            return None
        except LapwingError as error:
            self._wire.close(fatal("58000", str(told(error, None, None))))
            return None
        self.end(good=True)
        return self._event, known[place][0], proof

    def end(self, *, good: bool = False) -> None:
        """Note whether somebody has proven who they are; what comes later changes nothing."""
        if self._is_counted:
            self._is_counted = False
            self._attempts.end(self._address, good=good)

    async def _refuse(self, user: str, arrived: float) -> None:
        try:
            await run_in_threadpool(self._service.failed_logins.note, user, self._address)
        except LapwingError as error:
            self._wire.close(fatal("58000", str(told(error, None, None))))
        await next_step(arrived)
        self._wire.close(fatal("28P01", WRONG, OLDER))


async def next_step(since: float) -> None:
    """Wait until a whole multiple of `STEP` has passed since a time."""
    passed = asyncio.get_running_loop().time() - since
    await asyncio.sleep(max(1, math.ceil(passed / STEP)) * STEP - passed)


@lru_cache(maxsize=4)
def binding_of(pem: bytes) -> bytes:
    """Return the hash of a certificate that a sign-in is bound to; empty where RFC 5929 defines none."""
    if not pem:
        return b""
    certificate = x509.load_pem_x509_certificates(pem)[0]
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        return b""
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    return new_hash(name, certificate.public_bytes(Encoding.DER)).digest()
