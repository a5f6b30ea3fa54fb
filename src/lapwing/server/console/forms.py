"""Forms: what they sent, and whether a page of this service sent them."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from lapwing.server.console.browser_sessions import BrowserSession
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.problems import problem

FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 5000
FIELD: Final = "form_secret"
"""By which a form shows that it is one of a page of the session."""
KEY: Final = "Idempotency-Key"
"""The header of a request that is charged once, however often it is sent."""
KEYS: Final = re.compile("[0-9a-f]{32}")
"""The keys that forms have."""
FOREIGN: Final = (
    "This form belongs to another sign-in. Nothing was changed or charged. Go back, reload the page "
    "and submit the form again."
)


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form, each once, with line ends as texts have them; none of what has no body.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    body = await request.body()
    if not body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise ApiRefusal(
            problem("invalid_request", 415, "This address accepts only forms. Programs can use the API at /v1.")
        )
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ApiRefusal(
            problem("invalid_request", 422, "Lapwing cannot read this form. Reload the page and try again.")
        ) from None
    if len(dict(fields)) != len(fields):
        raise ApiRefusal(
            problem("invalid_request", 422, "The form has the same field twice. Reload the page and try again.")
        )
    return {name: value.replace("\r\n", "\n") for name, value in fields}


def require_own(request: Request, form: Mapping[str, str], session: BrowserSession) -> None:
    """Refuse a form that no page of this session sent.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    if not (is_from_here(request) and session.sent(form.get(FIELD, ""))):
        raise foreign()


def is_from_here(request: Request) -> bool:
    """Tell whether a form comes from a page of this service, as far as the browser says it."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def foreign() -> ApiRefusal:
    """Return the refusal of a form that came from elsewhere."""
    return ApiRefusal(problem("not_authorised", 403, FOREIGN))
