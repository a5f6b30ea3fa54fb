"""The page of an invite: it takes the token, shows the name, and takes a first password.

No request has the token in its address: in the link it follows `#`, and browsers do not send that part. A script copies
it into the form and removes it from the address. Without scripts, people copy it. The body of the form has it.
"""

from typing import Final, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lapwing.errors import InvalidParameter, LapwingError, NotAuthorised
from lapwing.server.authentication import address_of
from lapwing.server.console.browser_sessions import BrowserSession, BrowserSessions
from lapwing.server.console.sign_in import MOST_PASSWORD, START, SignInPages
from lapwing.server.faulty_field import at_field
from lapwing.server.invite_routes import INVITED
from lapwing.server.service import Service

INVITE: Final = "/console/invite"
MOST_TOKEN: Final = 200
PAGE: Final = "sign_in/invite.html"


@final
class InvitePages:
    """The page of an invite."""

    def __init__(self, service: Service, sessions: BrowserSessions, sign_in: SignInPages) -> None:
        self._service, self._sessions, self._sign_in = service, sessions, sign_in

    async def show(self, request: Request) -> Response:
        """Ask for the token."""
        return self._page(request)

    async def sent(self, request: Request) -> tuple[Response, BrowserSession | None]:
        """Take the token, then the password, and begin a session; or show the form again.

        Raises:
            ApiRefusal: If no page of this browser sent the form.
        """
        form = await self._sign_in.own_form(request)
        token, name = form.get("token", "").strip()[:MOST_TOKEN], ""
        try:
            self._service.callers.stranger(request)
            name = await run_in_threadpool(self._service.invites.invited, token)
            if "password" not in form:
                return self._page(request, name, token), None
            if form["password"] != form.get("again"):
                raise at_field("again", InvalidParameter("The two passwords differ. Type the same password twice."))
            password = form["password"][:MOST_PASSWORD]
            name, kept = await run_in_threadpool(self._service.invites.accept, token, password)
            session = await run_in_threadpool(self._sessions.begin, name, kept)
        except NotAuthorised as error:
            await run_in_threadpool(self._service.failed_logins.note, INVITED, address_of(request))
            return self._page(request, error=error), None
        except LapwingError as error:
            return self._page(request, name, token, error=error), None
        return self._sign_in.led(START), session

    def _page(
        self, request: Request, name: str = "", token: str = "", *, error: LapwingError | None = None
    ) -> Response:
        return self._sign_in.own_page(request, PAGE, error, name=name, token=token)
