"""Routes of invites: curators make and withdraw them, and people set a first password by them."""

from typing import Annotated, Final

from fastapi import Depends, Request
from pydantic import Field, StrictFloat, StrictInt

from lapwing.documents.people_document import InviteDocument, IssuedToken
from lapwing.errors import InvalidParameter, NotAuthorised, TooManyRequests
from lapwing.server.authentication import address_of
from lapwing.server.bodies import Body, Text
from lapwing.server.directory import issued
from lapwing.server.invites import LONGEST_DAYS, USUAL_DAYS
from lapwing.server.listing import require_known_parameters
from lapwing.server.people import Caller
from lapwing.server.people_routes import HOUR, Password
from lapwing.server.problems import may_raise
from lapwing.server.routing import CURATOR, OfService, new_router

INVITED: Final = "(invite)"
"""Replaces a name in the log if a token was wrong."""


class InviteBody(Body):
    """For how many days an invite is valid."""

    days: Annotated[StrictFloat | StrictInt, Field(gt=0, le=LONGEST_DAYS)] = USUAL_DAYS


class AcceptBody(Body):
    """The token of an invite, and the password that its person chooses."""

    token: Annotated[Text, Field(max_length=200)]
    password: Password
    hours: Annotated[StrictFloat | StrictInt, Field(gt=0, le=8784)] = 12


router: Final = new_router(prefix="/v1")


@router.post("/people/{name}/invite", tags=["admin"], status_code=201, openapi_extra=may_raise(InvalidParameter))
def make_invite(service: OfService, name: str, body: InviteBody, caller: Caller = CURATOR) -> InviteDocument:
    """Make an invite for somebody without a password. Its token is shown once; an earlier one ends."""
    token, invite = service.invites.make(name, days=body.days, by=caller.name)
    return {"token": token, "person": invite.person, "expires": invite.expires}


@router.delete("/people/{name}/invite", tags=["admin"], status_code=204)
def withdraw_invite(service: OfService, name: str, caller: Caller = CURATOR) -> None:
    """End somebody's invite."""
    service.invites.withdraw(name, by=caller.name)


@router.post(
    "/invites/accept",
    tags=["people"],
    status_code=201,
    dependencies=[Depends(require_known_parameters)],
    openapi_extra=may_raise(NotAuthorised, InvalidParameter, TooManyRequests),
)
def accept(service: OfService, body: AcceptBody, request: Request) -> IssuedToken:
    """Set one's first password by an invite, which ends, and get a token as a login gives it."""
    service.callers.stranger(request)
    try:
        name, kept = service.invites.accept(body.token, body.password)
    except NotAuthorised:
        service.failed_logins.note(INVITED, address_of(request))
        raise
    rights, seconds = service.people.named(name).rights, body.hours * HOUR
    return issued(*service.people.issue(name, label="login", scopes=rights, seconds=seconds, by=name, proven=kept))
