"""Signing in: a name and a password, as `POST /v1/login` takes them, for a session of the browser.

What is counted, logged and written down of failed logins is the same as there. The form bears a secret of the cookie
that came with it, so that nobody can sign a browser in as somebody else from another site.
"""

import re
from hmac import compare_digest
from typing import Final, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lapwing.errors import LapwingError, NotAuthorised, TooManyRequests
from lapwing.server import credentials
from lapwing.server.authentication import address_of
from lapwing.server.console.browser_sessions import BrowserSession, BrowserSessions
from lapwing.server.console.forms import FIELD, foreign, form_of, is_from_here
from lapwing.server.console.templates import Templates
from lapwing.server.console.visits import go
from lapwing.server.service import Service

START: Final = "/console"
OWN: Final = re.compile(r"/console(?:/[A-Za-z0-9._~%@-]+)*(?:\?[!-\[\]-~]*)?")
"""Where a sign-in may lead: pages of the console, and no other host."""
MOST_NAME: Final = 64
MOST_PASSWORD: Final = 1000
SECONDS: Final = 3600


@final
class SignIn:
    """The page on which one signs in."""

    def __init__(self, service: Service, sessions: BrowserSessions, templates: Templates, *, secure: bool) -> None:
        self._service, self._sessions, self._templates, self._secure = service, sessions, templates, secure
        self._cookie = "__Host-lapwing-sign-in" if secure else "lapwing-sign-in"

    async def show(self, request: Request) -> Response:
        """Ask for a name and a password."""
        out = "You are signed out." if request.query_params.get("out") else ""
        return self._page(request, own_path(request.query_params.get("next", "")), note=out)

    async def proven(self, request: Request) -> tuple[Response, BrowserSession | None]:
        """Begin a session for who knows the password, or ask again.

        Raises: Refusal.
        """
        form = await form_of(request)
        cookie = request.cookies.get(self._cookie, "")
        own = cookie and compare_digest(credentials.kept_of(cookie).encode(), form.get(FIELD, "").encode())
        if not (own and is_from_here(request)):
            raise foreign()
        name, password = form.get("name", "")[:MOST_NAME], form.get("password", "")[:MOST_PASSWORD]
        where = own_path(form.get("next", ""))
        try:
            self._service.callers.stranger(request)
            _, session = await run_in_threadpool(self._sessions.begin, name, password)
        except NotAuthorised as error:
            await run_in_threadpool(self._service.failed_logins.note, name, address_of(request))
            return self._page(request, where, name=name, error=error), None
        except TooManyRequests as error:
            return self._page(request, where, name=name, error=error), None
        response = go(where)
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response, session

    def _page(
        self, request: Request, where: str, *, name: str = "", note: str = "", error: LapwingError | None = None
    ) -> Response:
        secret = request.cookies.get(self._cookie) or credentials.new_token()
        text = self._templates.render(
            "sign_in/page.html",
            caller=None,
            form_secret=credentials.kept_of(secret),
            path=request.url.path,
            done="",
            next=where,
            name=name,
            note=note,
            error="" if error is None else str(error),
        )
        status = 200 if error is None else 429 if isinstance(error, TooManyRequests) else 401
        response = HTMLResponse(text, status)
        response.set_cookie(
            self._cookie, secret, max_age=SECONDS, httponly=True, samesite="strict", secure=self._secure, path="/"
        )
        return response


def own_path(wanted: str) -> str:
    """Return where a sign-in leads: to a page of the console, whatever was asked for.

    >>> own_path("/console/people"), own_path("//evil.example"), own_path("/console@evil.example")
    ('/console/people', '/console', '/console')
    """
    return wanted if OWN.fullmatch(wanted) and len(wanted) < 4000 else START
