"""Signing in: a name and a password, as `POST /v1/login` takes them, for a session of the browser.

Who has a second factor is asked for its code on a page of its own, and no session begins before that. What is counted,
logged and written down of failed logins is the same as there. Forms bear a secret of the cookie that came with them, so
that nobody can sign a browser in as somebody else from another site; each step has another cookie.
"""

import re
from hmac import compare_digest
from typing import Any, Final, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lapwing.errors import LapwingError, NotAuthorised, TooManyRequests
from lapwing.server import credentials
from lapwing.server.authentication import address_of
from lapwing.server.console.browser_sessions import BrowserSession, BrowserSessions
from lapwing.server.console.forms import FIELD, foreign, form_of, is_from_here
from lapwing.server.console.refused_forms import with_error
from lapwing.server.console.sign_in.steps import SignInSteps
from lapwing.server.console.templates import Templates
from lapwing.server.console.visits import redirect
from lapwing.server.faulty_field import field_of
from lapwing.server.problems import status_of
from lapwing.server.service import Service

START: Final = "/console"
OWN: Final = re.compile(r"/console(?:/[A-Za-z0-9._~%@-]+)*(?:\?[!-\[\]-~]*)?")
"""Where a sign-in may lead: pages of the console, and no other host."""
MOST_NAME: Final = 64
MOST_PASSWORD: Final = 1000
CODE_PAGE: Final = "sign_in/code.html"
MOST_CODE: Final = 64
SECONDS: Final = 3600
CODE: Final = "/console/sign-in/code"
PROVIDER: Final = "/console/sign-in/provider"
PROVEN: Final = "password"
"""The kind of a step: the password is proven, and the code is still to come."""


@final
class SignInPages:
    """The pages on which one signs in with a password.

    Args:
        provider: What the identity provider is called, if there is one.
    """

    def __init__(
        self,
        service: Service,
        sessions: BrowserSessions,
        templates: Templates,
        provider: str | None = None,
        *,
        secure: bool,
    ) -> None:
        self._provider = provider
        self._service, self._sessions, self._templates, self._secure = service, sessions, templates, secure
        self._cookie = "__Host-lapwing-sign-in" if secure else "lapwing-sign-in"
        self._steps = SignInSteps(service.store)

    async def show(self, request: Request) -> Response:
        """Ask for a name and a password."""
        out = "You are signed out." if request.query_params.get("out") else ""
        return self._page(request, own_path(request.query_params.get("next", "")), note=out)

    def refused(self, request: Request, where: str, error: LapwingError) -> Response:
        """Say why nobody was signed in, and ask again."""
        return self._page(request, where, error=error)

    def said(self, request: Request, template: str, **facts: object) -> Response:
        """Show a page to nobody in particular."""
        return self._shown(request, template, "", None, **facts)

    async def show_code(self, request: Request) -> Response:
        """Ask for a code of the second factor, if the password was proven a moment ago."""
        step = await run_in_threadpool(self._steps.look, request.cookies.get(self._cookie, ""), PROVEN)
        return redirect("/console/sign-in") if step is None else self._code_page(request, step)

    async def proven(self, request: Request) -> tuple[Response, BrowserSession | None]:
        """Begin a session for who knows the password, or ask for the code as well; or ask again.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        form = await self.own_form(request)
        name, password = form.get("name", "")[:MOST_NAME], form.get("password", "")[:MOST_PASSWORD]
        where = own_path(form.get("next", ""))
        try:
            self._service.callers.stranger(request)
            kept = await run_in_threadpool(self._proven, name, password)
        except NotAuthorised as error:
            await run_in_threadpool(self._service.failed_logins.note, name, address_of(request))
            return self._page(request, where, name=name, error=error), None
        except TooManyRequests as error:
            return self._page(request, where, name=name, error=error), None
        if await run_in_threadpool(self._service.people.second_factors.is_on, name):
            step = {"kind": PROVEN, "name": name, "proven": kept, "next": where}
            response = redirect(CODE)
            self._set(response, await run_in_threadpool(self._steps.keep, step))
            return response, None
        return await self._begun(request, name, kept, where)

    async def proven_twice(self, request: Request) -> tuple[Response, BrowserSession | None]:
        """Begin a session for who sends a code of the second factor, after the password; or ask again.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        form = await self.own_form(request)
        cookie = request.cookies.get(self._cookie, "")
        step = await run_in_threadpool(self._steps.look, cookie, PROVEN)
        if step is None:
            return redirect("/console/sign-in"), None
        factors = self._service.people.second_factors
        try:
            self._service.callers.stranger(request)
            await run_in_threadpool(factors.require, step["name"], form.get("code", "")[:MOST_CODE])
        except NotAuthorised as error:
            await run_in_threadpool(self._service.failed_logins.note, step["name"], address_of(request))
            return self._code_page(request, step, error=error), None
        except LapwingError as error:
            return self._code_page(request, step, error=error), None
        if await run_in_threadpool(self._steps.take, cookie, PROVEN) is None:
            return redirect("/console/sign-in"), None
        return await self._begun(request, step["name"], step["proven"], step["next"])

    def _proven(self, name: str, password: str) -> str:
        return self._service.people.proven(name, password)[0]

    async def _begun(
        self, request: Request, name: str, kept: str, where: str
    ) -> tuple[Response, BrowserSession | None]:
        try:
            session = await run_in_threadpool(self._sessions.begin, name, kept)
        except NotAuthorised as error:  # another password was set meanwhile
            return self._page(request, where, name=name, error=error), None
        return self.led(where), session

    def led(self, where: str) -> Response:
        """Lead who is signed in to a page; the sign-in is over."""
        response = redirect(where)
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    async def own_form(self, request: Request) -> Any:
        """Return a form that a page of this sign-in sent.

        Raises:
            ApiRefusal: What the service refused, as it says it.
        """
        form = await form_of(request)
        cookie = request.cookies.get(self._cookie, "")
        own = cookie and compare_digest(credentials.kept_of(cookie).encode(), form.get(FIELD, "").encode())
        if not (own and is_from_here(request)):
            raise foreign()
        return form

    def _page(
        self, request: Request, where: str, *, name: str = "", note: str = "", error: LapwingError | None = None
    ) -> Response:
        facts = {"next": where, "name": name, "note": note, "provider": self._provider}
        return self.own_page(request, "sign_in/page.html", error, **facts)

    def own_page(self, request: Request, template: str, error: LapwingError | None, **facts: object) -> Response:
        """Show a page with a form of the sign-in, and the cookie by which that form is known."""
        secret = request.cookies.get(self._cookie) or credentials.new_token()
        response = self._shown(request, template, secret, error, **facts)
        self._set(response, secret)
        return response

    def _code_page(self, request: Request, step: Any, *, error: LapwingError | None = None) -> Response:
        secret = request.cookies.get(self._cookie, "")
        return self._shown(request, CODE_PAGE, secret, error, name=step["name"])

    def _shown(
        self, request: Request, template: str, secret: str, error: LapwingError | None, **facts: object
    ) -> Response:
        common = {"caller": None, "form_secret": credentials.kept_of(secret), "path": request.url.path, "done": ""}

        def page(said: str) -> str:
            return self._templates.render(template, **common, error=said, **facts)

        if error is None:
            return HTMLResponse(page(""))
        marked, field = None, field_of(error)
        if field is None and isinstance(error, NotAuthorised):
            field = "code" if template == CODE_PAGE else "password"
        if field is not None:
            marked = with_error(page(""), request.url.path, field, str(error), {})
        return HTMLResponse(marked or page(str(error)), _status(error))

    def _set(self, response: Response, secret: str) -> None:
        response.set_cookie(
            self._cookie, secret, max_age=SECONDS, httponly=True, samesite="strict", secure=self._secure, path="/"
        )


def _status(error: LapwingError) -> int:
    """Return the status of a page on which nobody was signed in."""
    return 401 if isinstance(error, NotAuthorised) else status_of(error)


def own_path(wanted: str) -> str:
    """Return where a sign-in leads: to a page of the console, whatever was asked for.

    >>> own_path("/console/people"), own_path("//evil.example"), own_path("/console@evil.example")
    ('/console/people', '/console', '/console')
    """
    return wanted if OWN.fullmatch(wanted) and len(wanted) < 4000 else START
