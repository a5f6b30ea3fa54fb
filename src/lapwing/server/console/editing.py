"""Pages with the editor, whose styles are let in by a nonce of each page."""

from typing import Any

from starlette.responses import HTMLResponse

from lapwing.server.console.policy import policy
from lapwing.server.console.visits import PageRequest
from lapwing.server.credentials import new_name


def with_editor(visit: PageRequest, template: str, /, status: int = 200, **facts: Any) -> HTMLResponse:
    """Return a page whose text area may become the editor: of a form with `data-nonce`, marked by `data-editor`."""
    nonce = new_name()
    page = visit.show(template, status, nonce=nonce, **facts)
    page.headers["Content-Security-Policy"] = policy(nonce)
    return page
