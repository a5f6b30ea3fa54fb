"""Pages with the editor, whose styles are let in by a nonce of each page."""

from typing import Any

from starlette.responses import HTMLResponse

from lapwing.server.console.policy import policy
from lapwing.server.console.visits import PageRequest, at_field
from lapwing.server.credentials import new_name
from lapwing.server.problems import Problem


def with_editor(
    visit: PageRequest,
    template: str,
    /,
    status: int = 200,
    *,
    faulty: Problem | None = None,
    action: str = "",
    **facts: Any,
) -> HTMLResponse:
    """Return a page whose text area may become the editor: of a form with `data-nonce`, marked by `data-editor`.

    Args:
        faulty: A problem of a field, which the page shows there if it has the field.
        action: Where the form with this field goes.
    """
    nonce = new_name()
    page = visit.show(template, status, nonce=nonce, **facts)
    page = page if faulty is None else at_field(page, action, faulty)
    page.headers["Content-Security-Policy"] = policy(nonce)
    return page
