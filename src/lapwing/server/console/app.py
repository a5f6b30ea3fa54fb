"""How a request comes to a page, and how its answer leaves.

1. Whoever has no session is led to the sign-in, and from there to where they wanted to go.
2. A form is taken only if a page of this service sent it: by what browsers say of where it comes from, and by a secret
   of the session which every form of its pages bears. Cookies are not sent along from other sites either (`SameSite`).
3. What a page asks of the service may be refused; then the refusal is the page.

The cookie is out of reach of scripts, and where callers come over TLS it is sent over TLS alone and bound to this host.
"""

import gzip
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, Router

from lapwing.errors import LapwingError
from lapwing.server.compression import accepts
from lapwing.server.console.browser_sessions import BrowserSession, BrowserSessions
from lapwing.server.console.forms import form_of, require_own
from lapwing.server.console.inside import Api, ApiRefusal, Application
from lapwing.server.console.multipart import SentFile, is_multipart, upload_of
from lapwing.server.console.pages import PAGES
from lapwing.server.console.policy import POLICY
from lapwing.server.console.requests import open_requests_of
from lapwing.server.console.sign_in import CODE, PROVIDER, SignInPages
from lapwing.server.console.sign_in.invites import INVITE, InvitePages
from lapwing.server.console.templates import STATIC, all_templates
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.log import log
from lapwing.server.problems import Problem, internal, place_of, problem, problem_of
from lapwing.server.service import Service
from lapwing.server.uploads.refused import UploadRefused

if TYPE_CHECKING:
    from lapwing.server.console.sign_in.provider import ProviderSignIn


@cache
def _packed(file: Path) -> bytes:
    """Return a file as it is sent to most: compressed once, as all files of the package are public."""
    return gzip.compress(file.read_bytes(), mtime=0)


Endpoint = Callable[[Request], Awaitable[Response]]
YEAR: Final = "public, max-age=31536000, immutable"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SCRIPTED: Final = "Lapwing-Scripted"
"""A script that sends a form says so by this header: scripts see no redirect."""
LEADS: Final = "Lapwing-Location"
"""The answer to such a form names the page that follows."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # so that browsers say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@final
class Console:
    """The application below `/console`.

    Args:
        inner: The service's requests.
        address: At which callers find the service.
        secure: Whether they come by TLS.
    """

    def __init__(self, service: Service, inner: Application, address: str, *, secure: bool) -> None:
        self._service, self._inner, self._address, self._secure = service, inner, address, secure
        self._sessions = BrowserSessions(service.store, service.people)
        self._templates = all_templates()
        self._cookie = "__Host-lapwing" if secure else "lapwing"
        openid = service.settings.openid
        label = None if openid is None else openid.label
        self._sign_in = SignInPages(service, self._sessions, self._templates, label, secure=secure)
        self._invites = InvitePages(service, self._sessions, self._sign_in)
        self._provider: ProviderSignIn | None = None
        if openid is not None:
            from lapwing.server.console.sign_in import provider  # here: few services have one

            self._provider = provider.ProviderSignIn(
                service, openid, self._sessions, self._sign_in, address, secure=secure
            )
        self._router = Router(
            [
                self._route("/console/static/{file}", "GET", self._static),
                self._route("/console/sign-in", "GET", self._sign_in.show),
                self._route("/console/sign-in", "POST", self._letting_in(self._sign_in.proven)),
                self._route(INVITE, "GET", self._invites.show),
                self._route(INVITE, "POST", self._letting_in(self._invites.sent)),
                self._route(CODE, "GET", self._sign_in.show_code),
                self._route(CODE, "POST", self._letting_in(self._sign_in.proven_twice)),
                *self._of_provider(),
                self._route("/console/sign-out", "POST", self._let_out),
                *(self._route(page.path, page.method, self._visited(page)) for page in PAGES),
            ],
            redirect_slashes=False,
            default=self._nowhere,
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._router(scope, receive, send)

    # ---- What is around every page ----

    def _route(self, path: str, method: str, endpoint: Endpoint) -> Route:
        async def guarded(request: Request) -> Response:
            request.scope["route"] = route  # for the log, which names no part of a path that is filled in
            try:
                response = await endpoint(request)
            except ApiRefusal as refusal:
                response = self._problem(request, refusal.document)
            except UploadRefused as refusal:
                response = self._problem(request, refusal.document)
            except LapwingError as error:
                response = self._problem(request, problem_of(error))
            except Exception as error:
                log("bug", kind=type(error).__name__, place=place_of(error))
                response = self._problem(request, internal())
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            if response.status_code == 303 and request.headers.get(SCRIPTED):
                response.status_code, response.headers[LEADS] = 200, response.headers["location"]
                del response.headers["location"]
            return response

        route = Route(path, guarded, methods=[method])
        return route

    async def _nowhere(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        request, document = Request(scope, receive), problem("not_found", 404, "This page does not exist.")
        try:
            await self._session(request)  # who is signed in finds the way back
        except LapwingError as error:
            document = problem_of(error)
        response = self._problem(request, document)
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    def _problem(self, request: Request, document: Problem) -> Response:
        """Return the page of what was refused, with the way back for those who are signed in."""
        session: BrowserSession | None = getattr(request.state, "session", None)
        text = self._templates.render(
            "problem.html",
            problem=document,
            caller=None if session is None else session.caller,
            everywhere=None if session is None else session.caller,
            form_secret="" if session is None else session.form,
            path=request.url.path,
            done="",
        )
        response = HTMLResponse(text, document["status"])
        if session is not None and session.secret is not None:  # else the next page would ask for the password
            self._keep(response, session.secret)
        return response

    async def _static(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in self._templates.digests:
            raise ApiRefusal(problem("not_found", 404, "This file does not exist."))
        file = STATIC / name
        headers = {"Vary": "Accept-Encoding"}
        if request.query_params.get("v") == self._templates.digests[name]:
            headers["Cache-Control"] = YEAR
        if not accepts(request.scope["headers"]):
            return Response(file.read_bytes(), media_type=MEDIA_TYPES[file.suffix], headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(await run_in_threadpool(_packed, file), media_type=MEDIA_TYPES[file.suffix], headers=headers)

    # ---- Who is there ----

    def _of_provider(self) -> list[Route]:
        """Return the addresses of the sign-in by an identity provider, if there is one."""
        if self._provider is None:
            return []
        return [
            self._route(PROVIDER, "GET", self._provider.leave),
            self._route(f"{PROVIDER}/callback", "GET", self._letting_in(self._provider.come_back)),
        ]

    async def _session(self, request: Request) -> BrowserSession | None:
        secret = request.cookies.get(self._cookie)
        if not secret:
            return None
        session = await run_in_threadpool(self._sessions.find, secret)
        if session is None:
            self._service.callers.stranger(request)
            return None
        if session.secret is not None and self._provider is not None:  # as often as the secret is another one
            holds = await run_in_threadpool(self._provider.identities.holds, session.caller.token)
            if not holds:
                await run_in_threadpool(self._sessions.end, session)
                return None
        request.state.session, request.state.caller = session, session.caller
        return session

    def _keep(self, response: Response, secret: str) -> None:
        response.set_cookie(self._cookie, secret, httponly=True, samesite="lax", secure=self._secure, path="/")

    def _letting_in(self, proven: Callable[[Request], Awaitable[tuple[Response, BrowserSession | None]]]) -> Endpoint:
        """Return what begins a session for who proves who they are; the one that was there before ends."""

        async def let_in(request: Request) -> Response:
            before = await self._session(request)
            response, session = await proven(request)
            if session is not None and session.secret is not None:
                if before is not None:
                    await run_in_threadpool(self._sessions.end, before)
                self._keep(response, session.secret)
            return response

        return let_in

    async def _let_out(self, request: Request) -> Response:
        session = await self._session(request)
        if session is not None:
            require_own(request, await form_of(request), session)
            await run_in_threadpool(self._sessions.end, session)
        response = redirect("/console/sign-in?out=1")
        if session is not None and self._provider is not None:
            response = await self._provider.signed_out(request, session) or response
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    async def _form(self, request: Request, page: ConsolePage) -> tuple[Mapping[str, str], SentFile | None]:
        """Return the fields of a form; of one that uploads a file, those before the file, which is not read yet."""
        if page.streamed and is_multipart(request):
            return await upload_of(request, self._service.settings.uploads)
        return await form_of(request), None

    def _visited(self, page: ConsolePage) -> Endpoint:
        """Return a page behind the door."""

        async def visited(request: Request) -> Response:
            session = await self._session(request)
            if session is None:
                where = request.url.path if page.method == "GET" else ""
                where += f"?{request.url.query}" if where and request.url.query else ""
                return redirect(f"/console/sign-in?next={quote(where, safe='')}" if where else "/console/sign-in")
            form, file = await self._form(request, page)
            if page.method == "POST":
                require_own(request, form, session)
            api = Api(application=self._inner, request=request, caller=session.caller)
            visit = PageRequest(
                request=request,
                session=session,
                api=api,
                form=form,
                templates=self._templates,
                address=self._address,
                tour=self._service.settings.tour,
                file=file,
                open_requests=0 if file is not None else await open_requests_of(api),
            )
            response = await page.handle(visit)
            if visit.toast is not None:
                await run_in_threadpool(self._sessions.keep_toast, session, visit.toast)
            if session.secret is not None:
                self._keep(response, session.secret)
            return response

        return visited
