"""Routes of people: logging in, one's own tokens, and, for curators, everybody."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt

from lapwing.documents.people_document import (
    DatasetRole,
    IssuedToken,
    NewSecondFactor,
    RecoveryCodes,
    Right,
    Role,
    SecondFactorDocument,
    TokenDocument,
)
from lapwing.errors import InvalidParameter, NotAuthorised, SecondFactorNeeded, TooManyRequests
from lapwing.server import one_time_codes
from lapwing.server.authentication import address_of
from lapwing.server.bodies import Body, Name, Text
from lapwing.server.directory import issued, token_document
from lapwing.server.listing import Page, PageOf, cut, require_known_parameters
from lapwing.server.people import DAY, LONGEST_LABEL, RIGHTS, Caller, Person
from lapwing.server.problems import may_raise
from lapwing.server.routing import new_router
from lapwing.server.service import Service

HOUR: Final = 3600
Password = Annotated[Text, Field(max_length=1000)]
Label = Annotated[Text, Field(max_length=LONGEST_LABEL)]
Code = Annotated[Text, Field(max_length=64)]


class LoginBody(Body):
    """A name and a password, for a token; and for who has a second factor a code of the app, or a recovery code."""

    name: Name
    password: Password
    code: Code | None = None
    hours: Annotated[StrictFloat | StrictInt, Field(gt=0, le=8784)] = 12
    label: Label = "login"
    scopes: list[Right] | None = None


class PasswordBody(Body):
    """A new password, and the one that it replaces."""

    password: Password
    new_password: Password


class ProofBody(Body):
    """One's password."""

    password: Password


class CodeBody(Body):
    """A code of the app."""

    code: Code


class ProofsBody(Body):
    """One's password, and a code of the app or a recovery code."""

    password: Password
    code: Code


class PersonBody(Body):
    """Somebody to be added."""

    name: Name
    role: Role
    password: Password | None = None
    team: Name | None = None


class DatasetRoleBody(Body):
    """A role at one data set."""

    role: DatasetRole


class PersonChangeBody(Body):
    """What is to be changed about somebody; what is not given stays."""

    role: Role | None = None
    password: Password | None = None
    active: StrictBool | None = None
    team: Name | None = None
    leave_team: StrictBool = False


class TokenBody(Body):
    """A token for somebody; of all that their role gives but `admin`, unless it has scopes."""

    label: Label = ""
    scopes: Annotated[list[Right], Field(min_length=1)] | None = None
    days: Annotated[StrictFloat | StrictInt, Field(gt=0, le=366)] = 30


class Me(BaseModel):
    """Who the caller is, and what they may do."""

    name: str
    role: Role
    rights: list[Right]
    token: str
    datasets: dict[str, DatasetRole]


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = new_router(prefix="/v1")
    people, callers, failed_logins = service.people, service.callers, service.failed_logins
    factors = people.second_factors
    anybody = Depends(callers.caller)
    curator = Depends(callers.demand("admin"))

    @router.post(
        "/login",
        tags=["people"],
        dependencies=[Depends(require_known_parameters)],
        openapi_extra=may_raise(NotAuthorised, SecondFactorNeeded, InvalidParameter, TooManyRequests),
    )
    def login(body: LoginBody, request: Request) -> IssuedToken:
        """Get a token for a name and a password, and a code if one has a second factor."""
        callers.stranger(request)
        try:
            seconds = body.hours * HOUR
            return issued(*people.login(body.name, body.password, body.scopes, body.label, seconds, body.code))
        except NotAuthorised:
            failed_logins.note(body.name, address_of(request))
            raise

    @router.get("/me", tags=["people"])
    def me(caller: Caller = anybody) -> Me:
        """Say who one is, and what one may do."""
        rights = [right for right in RIGHTS if caller.may(right)]
        there = dict(caller.datasets)
        return Me(name=caller.name, role=caller.role, rights=rights, token=caller.token, datasets=there)

    @router.post("/me/password", tags=["people"], status_code=204, openapi_extra=may_raise(InvalidParameter))
    def change_password(body: PasswordBody, request: Request, caller: Caller = anybody) -> None:
        """Change one's own password; all of one's tokens end."""
        prove(request, caller, body.password)
        people.change(caller.name, password=body.new_password, by=caller.name)

    def prove(request: Request, caller: Caller, password: str, code: str | None = None) -> None:
        """Let go on who knows the password, whatever token they have; and with a code who has the second factor."""
        callers.stranger(request)
        try:
            people.require_password(caller.name, password)
            if code is not None:
                factors.require(caller.name, code)
        except NotAuthorised:
            failed_logins.note(caller.name, address_of(request), by=caller.name)
            raise

    @router.get("/me/second-factor", tags=["people"])
    def second_factor(caller: Caller = anybody) -> SecondFactorDocument:
        """Say whether one has a second factor, since when, and how many recovery codes are left."""
        known = factors.of(caller.name)
        return {"on": known.on, "since": known.since, "recovery_codes_left": known.recovery_codes_left}

    @router.post("/me/second-factor", tags=["people"], status_code=201, openapi_extra=may_raise(InvalidParameter))
    def begin_second_factor(body: ProofBody, request: Request, caller: Caller = anybody) -> NewSecondFactor:
        """Get a secret for one's authenticator app; nothing is asked for until a code of it was confirmed."""
        prove(request, caller, body.password)
        secret = factors.begin(caller.name)
        return {"secret": secret, "address": one_time_codes.address_of(caller.name, secret)}

    @router.post("/me/second-factor/confirm", tags=["people"], openapi_extra=may_raise(InvalidParameter))
    def confirm_second_factor(body: CodeBody, request: Request, caller: Caller = anybody) -> RecoveryCodes:
        """Switch the second factor on, by a code that the app shows now; returns the recovery codes, this once."""
        callers.stranger(request)
        return {"recovery_codes": factors.confirm(caller.name, body.code)}

    @router.post("/me/second-factor/recovery-codes", tags=["people"], openapi_extra=may_raise(InvalidParameter))
    def make_recovery_codes(body: ProofsBody, request: Request, caller: Caller = anybody) -> RecoveryCodes:
        """Get new recovery codes, in the place of all old ones; shown this once."""
        prove(request, caller, body.password, body.code)
        return {"recovery_codes": factors.renew(caller.name)}

    @router.post(
        "/me/second-factor/remove", tags=["people"], status_code=204, openapi_extra=may_raise(InvalidParameter)
    )
    def remove_own_second_factor(body: ProofsBody, request: Request, caller: Caller = anybody) -> None:
        """Switch one's second factor off."""
        prove(request, caller, body.password, body.code)
        factors.remove(caller.name, by=caller.name)

    def listed(name: str, page: Page, request: Request, response: Response) -> list[TokenDocument]:
        """Return somebody's tokens, a page of them."""
        tokens = people.tokens(name, page.most, **page.beginning)
        shown, headers = cut(request, page.limit, tokens, lambda token: token.id)
        response.headers.update(headers)
        return [token_document(token) for token in shown]

    @router.get("/me/tokens", tags=["people"])
    def own_tokens(request: Request, response: Response, page: PageOf, caller: Caller = anybody) -> list[TokenDocument]:
        """List one's own tokens, the newest first; the tokens themselves are kept by nobody."""
        return listed(caller.name, page, request, response)

    @router.delete("/me/tokens/{token}", tags=["people"], status_code=204)
    def end_own_token(token: str, caller: Caller = anybody) -> None:
        """End one of one's own tokens; with a token of fewer rights than one has, that token alone."""
        if token != caller.token and not caller.is_whole:
            raise NotAuthorised("A token with fewer rights than its owner ends no token but itself.")
        people.revoke(token, of=caller.name, by=caller.name)

    @router.get("/people", tags=["admin"])
    def everybody(request: Request, response: Response, page: PageOf, caller: Caller = curator) -> list[Person]:
        """List everybody, by name."""
        shown, headers = cut(
            request, page.limit, people.listed(page.most, **page.beginning), lambda person: person.name
        )
        response.headers.update(headers)
        return list(shown)

    @router.post("/people", tags=["admin"], status_code=201, openapi_extra=may_raise(InvalidParameter))
    def add(body: PersonBody, caller: Caller = curator) -> Person:
        """Add somebody. The name is theirs for ever, as the ledger keeps it."""
        return people.add(body.name, body.role, body.password, team=body.team, by=caller.name)

    @router.patch("/people/{name}", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
    def change(name: str, body: PersonChangeBody, caller: Caller = curator) -> Person:
        """Change somebody's role, password or team, or close or open them."""
        return people.change(name, by=caller.name, **body.model_dump())

    @router.delete(
        "/people/{name}/second-factor", tags=["admin"], status_code=204, openapi_extra=may_raise(InvalidParameter)
    )
    def remove_second_factor(name: str, caller: Caller = curator) -> None:
        """Switch somebody's second factor off, who has lost the app and the recovery codes."""
        people.remove_second_factor(name, by=caller.name)

    @router.put("/people/{name}/datasets/{of}", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
    def give_role(name: str, of: str, body: DatasetRoleBody, caller: Caller = curator) -> Person:
        """Make somebody the curator or the auditor of a data set, and of no other by that."""
        return people.give_role(name, service.datasets.visible(caller, of).name, body.role, by=caller.name)

    @router.delete("/people/{name}/datasets/{of}", tags=["admin"])
    def take_role(name: str, of: str, caller: Caller = curator) -> Person:
        """Let somebody look after a data set no more."""
        return people.give_role(name, of, None, by=caller.name)

    @router.get("/people/{name}/tokens", tags=["admin"])
    def tokens(
        name: str, request: Request, response: Response, page: PageOf, caller: Caller = curator
    ) -> list[TokenDocument]:
        """List somebody's tokens, the newest first."""
        return listed(name, page, request, response)

    @router.post("/people/{name}/tokens", tags=["admin"], status_code=201, openapi_extra=may_raise(InvalidParameter))
    def make_token(name: str, body: TokenBody, caller: Caller = curator) -> IssuedToken:
        """Make a token for somebody. It is shown once."""
        seconds = body.days * DAY
        return issued(*people.issue(name, label=body.label, scopes=body.scopes, seconds=seconds, by=caller.name))

    @router.delete("/people/{name}/tokens/{token}", tags=["admin"], status_code=204)
    def end_token(name: str, token: str, caller: Caller = curator) -> None:
        """End somebody's token."""
        people.revoke(token, of=name, by=caller.name)

    return router
