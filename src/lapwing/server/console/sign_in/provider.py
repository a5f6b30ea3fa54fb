"""Signing in by the identity provider: the browser is sent there, and comes back with a code.

It comes back by a link from another site, so what was begun is found by a cookie that is sent along then
(`SameSite=Lax`), and believed only with the `state` that was sent out, once. What the provider says is checked in
`server.openid`. A second factor of this service is not asked for: the provider asks for its own.
"""

from hmac import compare_digest
from typing import Final, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lapwing.errors import LapwingError, NotAuthorised
from lapwing.server.authentication import address_of
from lapwing.server.console.browser_sessions import BrowserSession, BrowserSessions
from lapwing.server.console.sign_in import PROVIDER, START, SignInPages, own_path
from lapwing.server.console.sign_in.steps import MINUTES, SignInSteps
from lapwing.server.console.visits import redirect
from lapwing.server.openid.identities import ProviderIdentities
from lapwing.server.openid.provider import Provider
from lapwing.server.openid.settings import OpenIdSettings
from lapwing.server.service import Service

LEFT: Final = "provider"
"""The kind of a step: the browser was sent to the provider."""
LOST: Final = "This sign-in started in another browser or expired. You are not signed in. Start again."
REFUSED: Final = "The identity provider refused the sign-in. You are not signed in."


@final
class ProviderSignIn:
    """The way to the identity provider and back."""

    def __init__(
        self,
        service: Service,
        settings: OpenIdSettings,
        sessions: BrowserSessions,
        sign_in: SignInPages,
        address: str,
        *,
        secure: bool,
    ) -> None:
        self._service, self._sessions, self._sign_in, self._secure = service, sessions, sign_in, secure
        self._address, self._label = address, settings.label
        self._cookie = "__Host-lapwing-provider" if secure else "lapwing-provider"
        self._provider = Provider(settings, address + PROVIDER + "/callback")
        self._steps = SignInSteps(service.store)
        self.identities = ProviderIdentities(service.store, service.people, self._provider)

    async def leave(self, request: Request) -> Response:
        """Send the browser to the provider."""
        where = own_path(request.query_params.get("next", ""))
        try:
            self._service.callers.stranger(request)
            begun = await run_in_threadpool(self._provider.begin)
        except LapwingError as error:
            return self._sign_in.refused(request, where, error)
        step = {"kind": LEFT, "state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier, "next": where}
        response = RedirectResponse(begun.address, 303)
        response.set_cookie(
            self._cookie,
            await run_in_threadpool(self._steps.keep, step),
            max_age=60 * MINUTES,
            httponly=True,
            samesite="lax",
            secure=self._secure,
            path="/",
        )
        return response

    async def come_back(self, request: Request) -> tuple[Response, BrowserSession | None]:
        """Begin a session for who comes back as somebody of this service."""
        query, where, name = request.query_params, START, ""
        try:
            self._service.callers.stranger(request)
            step = await run_in_threadpool(self._steps.take, request.cookies.get(self._cookie, ""), LEFT)
            if step is None or not compare_digest(step["state"].encode(), query.get("state", "").encode()):
                raise NotAuthorised(LOST)
            where = step["next"]
            await run_in_threadpool(self._provider.require_issuer, query.get("iss"))
            if "error" in query or not query.get("code"):
                raise NotAuthorised(REFUSED)
            identity = await run_in_threadpool(self._provider.finish, query["code"], step["verifier"], step["nonce"])
            name = identity.name
            name = await run_in_threadpool(self.identities.person, identity)
            session = await run_in_threadpool(self._sessions.begin, name, None)
            await run_in_threadpool(self.identities.keep, session.caller.token, identity)
        except LapwingError as error:
            if isinstance(error, NotAuthorised):
                await run_in_threadpool(self._service.failed_logins.note, name, address_of(request))
            return self._forgotten(self._sign_in.refused(request, where, error)), None
        return self._forgotten(redirect(where)), session

    async def signed_out(self, request: Request, session: BrowserSession) -> Response | None:
        """Return the page from which one signs out of the provider too; None for a session that it did not begin."""
        back = f"{self._address}/console/sign-in?out=1"
        goodbye = await run_in_threadpool(self.identities.goodbye, session.caller.token, back)
        if goodbye is None:
            return None
        return self._sign_in.said(request, "sign_in/out.html", goodbye=goodbye, provider=self._label)

    def _forgotten(self, response: Response) -> Response:
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response
