"""What a page is, and what it is given of the request that it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lapwing.server.console.browser_sessions import BrowserSession
from lapwing.server.console.inside import Api
from lapwing.server.console.multipart import SentFile
from lapwing.server.console.refused_forms import with_error
from lapwing.server.console.templates import Templates
from lapwing.server.console.toasts import Toast
from lapwing.server.credentials import new_name
from lapwing.server.people import Caller
from lapwing.server.problems import Problem


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request of somebody who is signed in.

    Args:
        form: What a form sent, without what every form has.
        address: At which callers find the service.
        tour: The name by which browsers remember the tour, None if there is no tour.
        file: The file of a form that uploads one; not read yet.
        open_requests: How many requests of others wait for this person.
    """

    request: Request
    session: BrowserSession
    api: Api
    form: Mapping[str, str]
    templates: Templates
    address: str
    tour: str | None = None
    file: SentFile | None = None
    open_requests: int = 0

    @property
    def caller(self) -> Caller:
        """Who is signed in."""
        return self.session.caller

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name])

    def asked(self, name: str, usual: str = "") -> str:
        """Return a query parameter."""
        return self.request.query_params.get(name, usual)

    @property
    def toast(self) -> str | None:
        """The toast that this request leaves, in JSON."""
        toast: Toast | None = getattr(self.request.state, "toast", None)
        return None if toast is None else toast.stored

    def tell(self, toast: Toast, element: str = "") -> Response:
        """Lead the browser to a page that says what was done, under an address that the page has this once.

        Args:
            element: The id of the element that browsers scroll to, and give the focus if it can have it.
        """
        told = replace(toast, at=f"{toast.at}?done={new_name()[:12]}")
        self.request.state.toast = told
        return redirect(f"{told.at}#{element}" if element else told.at)

    def show(self, template: str, /, status: int = 200, **facts: Any) -> HTMLResponse:
        """Return a page; of a refused form with the error at its field, if the page has the field."""
        refused: Problem | None = facts.get("refused")
        field = refused.get("field") if refused is not None else None
        if refused is None or field is None or self.request.method != "POST":
            return HTMLResponse(self.render(template, **facts), status)
        page, action = self.render(template, **{**facts, "refused": None}), self.request.url.path
        marked = with_error(page, action, field, refused.get("fault", refused["detail"]), self.form)
        return HTMLResponse(marked or self.render(template, **facts), status)

    def render(self, template: str, /, **facts: Any) -> str:
        """Return the text of a template, which may ask who is signed in, and where.

        `caller` is who it is at the data set that the page is of, if it is of one, and `everywhere` at none.
        """
        toast, url = Toast.read(self.session.toast), self.request.url
        here = url.path + (f"?{url.query}" if url.query else "")
        common = {
            "caller": self.caller.at(facts["dataset"]) if "dataset" in facts else self.caller,
            "everywhere": self.caller,
            "form_secret": self.session.form,
            "path": self.request.url.path,
            "open_requests": self.open_requests,
            "method": self.request.method,
            "done": self.asked("done"),
            "toast": toast if toast is not None and toast.at == here else None,
        }
        return self.templates.render(template, **common, **facts)


def at_field(page: HTMLResponse, action: str, problem: Problem) -> HTMLResponse:
    """Return a page with a problem at its field of a form, if the page has it. The form has what was typed already."""
    marked = with_error(bytes(page.body).decode(), action, problem.get("field", ""), problem["detail"], {})
    return HTMLResponse(marked, page.status_code) if marked else page


def redirect(path: str) -> Response:
    """Lead the browser to a page, by GET."""
    return RedirectResponse(path, 303)


Handler = Callable[[PageRequest], Awaitable[Response]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """What answers a method at a path.

    Args:
        query: The query parameters that it takes.
        streamed: Whether its form uploads a file.
    """

    method: Literal["GET", "POST"]
    path: str
    handle: Handler
    query: tuple[str, ...] = ()
    streamed: bool = False
