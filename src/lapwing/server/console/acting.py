"""Forms that change something: what was done is told on the page that follows, and a refusal on the page itself."""

import re
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from starlette.responses import HTMLResponse, Response

from lapwing.errors import InvalidParameter
from lapwing.privacy.decimal_comma import with_point
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.toasts import Toast
from lapwing.server.console.visits import PageRequest, redirect
from lapwing.server.problems import Problem, problem

Again = Callable[[PageRequest, Problem], Awaitable[Response]]


async def act(
    visit: PageRequest,
    change: Awaitable[object],
    done: str | Toast,
    again: Again,
    fields: Mapping[str, str] | None = None,
) -> Response:
    """Do something, and lead to a page; or show the page again with why it was refused.

    Args:
        done: An address, or the toast that a page shows.
        again: Shows the page with a refusal, at its status.
        fields: The names of fields in the form, by those in the request where they differ. `not_found` is a request
            that names something which does not exist.
    """
    try:
        await change
    except ApiRefusal as refusal:
        return await again(visit, renamed(refusal.document, fields or {}))
    return redirect(done) if isinstance(done, str) else visit.tell(done)


def guess_shown(visit: PageRequest, neighbouring: str, times: int, delta: str, noun: str = "") -> Response:
    """Return the part of a page that says what a budget means for a guess, while figures are typed.

    Args:
        noun: For one of those whom the data set protects; empty: a person.
    """
    return HTMLResponse(visit.render("guess.html", neighbouring=neighbouring, times=times, delta=delta, noun=noun))


def renamed(document: Problem, fields: Mapping[str, str]) -> Problem:
    """Return a problem whose field has the name that it has in the form."""
    field = fields.get(document.get("field") or document["code"])
    return document if field is None else {**document, "field": field}


PLAIN: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?", re.ASCII)
SCIENTIFIC: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?[eE][+-]?[0-9]{1,2}")


def decimal_of(text: str, field: str | None = None) -> str:
    """Return a number with a decimal point, if it was typed with a decimal comma.

    Raises:
        ApiRefusal: If the comma may also divide thousands.

    >>> decimal_of(" 0,5 "), decimal_of("0,125"), decimal_of("12,5 %"), decimal_of("2.5"), decimal_of("1/3")
    ('0.5', '0.125', '12.5 %', '2.5', '1/3')
    """
    try:
        return with_point(text)
    except InvalidParameter as ambiguous:
        raise ApiRefusal(problem("invalid_parameter", 422, str(ambiguous), field)) from None


def default_cost_of(form: Mapping[str, str]) -> dict[str, str | None]:
    """Return the body of a default cost from a form; an empty epsilon is none.

    Raises:
        ApiRefusal: If a number can mean two.
    """
    return {
        "epsilon": decimal_of(form.get("epsilon", ""), "epsilon") or None,
        "daily_share": share_of(form.get("daily_share", ""), "daily_share"),
    }


def number_of(text: str, field: str | None = None) -> str:
    """Return a number as the service takes it: as a decimal, where it was written with a comma or a power of ten.

    Raises:
        ApiRefusal: As `decimal_of`.

    >>> number_of(" 1e-6 "), number_of("1/3"), number_of("2,5")
    ('0.000001', '1/3', '2.5')
    """
    text = decimal_of(text, field)
    return f"{Decimal(text):f}" if SCIENTIFIC.fullmatch(text) else text


def share_of(text: str, field: str = "share") -> str | None:
    """Return a share as the service takes it: exactly, and None for none.

    A number above 1 is a percentage, as forms say "like 20 %". A bare 1 could mean 1 % or all, and is refused.

    Raises:
        ApiRefusal: What the service refused, as it says it.

    >>> share_of("20 %"), share_of("20"), share_of("0,2"), share_of("1/3"), share_of(" ")
    ('1/5', '1/5', '0.2', '1/3', None)
    """
    text = decimal_of(text, field)
    number = text.removesuffix("%").strip()
    bare = text == number
    if bare and (not PLAIN.fullmatch(number) or Fraction(number) < 1):
        return text or None
    if bare and Fraction(number) == 1:
        text = "1 can mean 1 % or the whole budget. Write 1 % or 100 %."
        raise ApiRefusal(problem("invalid_request", 422, text, field))
    try:
        if len(number) > 20 or "e" in number.lower():
            raise ValueError
        return str(Fraction(number) / 100)
    except (ValueError, ZeroDivisionError):
        raise ApiRefusal(
            problem("invalid_request", 422, "A share is a number from 0 to 1, or a percentage such as 20 %.", field)
        ) from None
