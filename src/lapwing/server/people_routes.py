"""Routes of people: logging in, one's own tokens, and, for curators, everybody."""

from typing import Annotated, Final

from fastapi import Depends, Request, Response
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt

from lapwing.documents.people_document import (
    DatasetRole,
    GrantDocument,
    IssuedToken,
    NewSecondFactor,
    RecoveryCodes,
    Right,
    Role,
    SecondFactorDocument,
    TokenDocument,
)
from lapwing.errors import InvalidParameter, NotAuthorised, SecondFactorNeeded, TooManyRequests
from lapwing.privacy.amounts import written
from lapwing.server import one_time_codes
from lapwing.server.access import DatasetAccess
from lapwing.server.authentication import address_of
from lapwing.server.bodies import Amount, Body, Name, Text, number
from lapwing.server.directory import issued, token_document
from lapwing.server.faulty_field import at_field
from lapwing.server.listing import PageOf, Pagination, cut, require_known_parameters
from lapwing.server.people import DAY, LONGEST_LABEL, RIGHTS, Caller, Person
from lapwing.server.problems import may_raise
from lapwing.server.routing import ANYBODY, CURATOR, OVERSEER, OfService, new_router
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
    """Somebody to be added; with a `dataset` that they may ask, up to a `share` of its budget if there is one."""

    name: Name
    role: Role
    password: Password | None = None
    team: Name | None = None
    dataset: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    share: Amount | None = None


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
    team: str | None
    access_ended: bool
    """Whether a curator withdrew the caller's last grant."""


router: Final = new_router(prefix="/v1")


@router.post(
    "/login",
    tags=["people"],
    dependencies=[Depends(require_known_parameters)],
    openapi_extra=may_raise(NotAuthorised, SecondFactorNeeded, InvalidParameter, TooManyRequests),
)
def login(service: OfService, body: LoginBody, request: Request) -> IssuedToken:
    """Get a token for a name and a password, and a code if one has a second factor."""
    service.callers.stranger(request)
    try:
        seconds = body.hours * HOUR
        return issued(*service.people.login(body.name, body.password, body.scopes, body.label, seconds, body.code))
    except NotAuthorised:
        service.failed_logins.note(body.name, address_of(request))
        raise


@router.get("/me", tags=["people"])
def me(service: OfService, caller: Caller = ANYBODY) -> Me:
    """Say who one is, and what one may do."""
    rights = [right for right in RIGHTS if caller.may(right)]
    there = dict(caller.datasets)
    return Me(
        name=caller.name,
        role=caller.role,
        rights=rights,
        token=caller.token,
        datasets=there,
        team=caller.team,
        access_ended=not service.datasets.all_visible(caller) and service.policies.withdrew(caller.name),
    )


@router.post("/me/password", tags=["people"], status_code=204, openapi_extra=may_raise(InvalidParameter))
def change_password(service: OfService, body: PasswordBody, request: Request, caller: Caller = ANYBODY) -> None:
    """Change one's own password; all of one's tokens end."""
    _prove(service, request, caller, body.password)
    try:
        service.people.change(caller.name, password=body.new_password, by=caller.name)
    except InvalidParameter as error:
        raise at_field("new_password", error) from None


def _prove(service: Service, request: Request, caller: Caller, password: str, code: str | None = None) -> None:
    """Let go on who knows the password, whatever token they have; and with a code who has the second factor."""
    service.callers.stranger(request)
    try:
        _require_password(service, caller.name, password)
        if code is not None:
            service.people.second_factors.require(caller.name, code)
    except NotAuthorised:
        service.failed_logins.note(caller.name, address_of(request), by=caller.name)
        raise


def _require_password(service: Service, name: str, password: str) -> None:
    try:
        service.people.require_password(name, password)
    except NotAuthorised as error:
        raise at_field("password", error) from None


@router.get("/me/second-factor", tags=["people"])
def second_factor(service: OfService, caller: Caller = ANYBODY) -> SecondFactorDocument:
    """Say whether one has a second factor, since when, and how many recovery codes are left."""
    known = service.people.second_factors.of(caller.name)
    return {"on": known.on, "since": known.since, "recovery_codes_left": known.recovery_codes_left}


@router.post("/me/second-factor", tags=["people"], status_code=201, openapi_extra=may_raise(InvalidParameter))
def begin_second_factor(
    service: OfService, body: ProofBody, request: Request, caller: Caller = ANYBODY
) -> NewSecondFactor:
    """Get a secret for one's authenticator app; nothing is asked for until a code of it was confirmed."""
    _prove(service, request, caller, body.password)
    secret = service.people.second_factors.begin(caller.name)
    return {"secret": secret, "address": one_time_codes.address_of(caller.name, secret)}


@router.post("/me/second-factor/confirm", tags=["people"], openapi_extra=may_raise(InvalidParameter))
def confirm_second_factor(
    service: OfService, body: CodeBody, request: Request, caller: Caller = ANYBODY
) -> RecoveryCodes:
    """Switch the second factor on, by a code that the app shows now; returns the recovery codes, this once."""
    service.callers.stranger(request)
    return {"recovery_codes": service.people.second_factors.confirm(caller.name, body.code)}


@router.post("/me/second-factor/recovery-codes", tags=["people"], openapi_extra=may_raise(InvalidParameter))
def make_recovery_codes(
    service: OfService, body: ProofsBody, request: Request, caller: Caller = ANYBODY
) -> RecoveryCodes:
    """Get new recovery codes, in the place of all old ones; shown this once."""
    _prove(service, request, caller, body.password, body.code)
    return {"recovery_codes": service.people.second_factors.renew(caller.name)}


@router.post("/me/second-factor/remove", tags=["people"], status_code=204, openapi_extra=may_raise(InvalidParameter))
def remove_own_second_factor(service: OfService, body: ProofsBody, request: Request, caller: Caller = ANYBODY) -> None:
    """Switch one's second factor off."""
    _prove(service, request, caller, body.password, body.code)
    service.people.second_factors.remove(caller.name, by=caller.name)


def _tokens_of(
    service: Service, name: str, page: Pagination, request: Request, response: Response
) -> list[TokenDocument]:
    """Return somebody's tokens, a page of them."""
    tokens = service.people.tokens(name, page.most, **page.beginning)
    shown, headers = cut(request, page.limit, tokens, lambda token: token.id)
    response.headers.update(headers)
    return [token_document(token) for token in shown]


@router.get("/me/tokens", tags=["people"])
def own_tokens(
    service: OfService, request: Request, response: Response, page: PageOf, caller: Caller = ANYBODY
) -> list[TokenDocument]:
    """List one's own tokens, the newest first; the tokens themselves are kept by nobody."""
    return _tokens_of(service, caller.name, page, request, response)


@router.delete("/me/tokens/{token}", tags=["people"], status_code=204)
def end_own_token(service: OfService, token: str, caller: Caller = ANYBODY) -> None:
    """End one of one's own tokens; with a token of fewer rights than one has, that token alone."""
    if token != caller.token and not caller.is_whole:
        raise NotAuthorised("A token with fewer rights than its owner can revoke only itself.")
    service.people.revoke(token, of=caller.name, by=caller.name)


@router.get("/people", tags=["audit"])
def everybody(
    service: OfService, request: Request, response: Response, page: PageOf, caller: Caller = OVERSEER
) -> list[Person]:
    """List everybody, by name."""
    shown, headers = cut(
        request, page.limit, service.people.listed(page.most, **page.beginning), lambda person: person.name
    )
    response.headers.update(headers)
    return list(shown)


@router.post("/people", tags=["admin"], status_code=201, openapi_extra=may_raise(InvalidParameter))
def add(service: OfService, body: PersonBody, caller: Caller = CURATOR) -> Person:
    """Add somebody, with a grant if they are to ask a data set. The name is theirs for ever, as the ledger keeps it."""
    who = (body.name, body.role, body.password)
    if body.dataset is None:
        if body.share is not None:
            raise at_field("dataset", InvalidParameter("Name the data set that the limit is for."))
        return service.people.add(*who, team=body.team, by=caller.name)
    share = None if body.share is None else number(body.share, "share")
    served = service.datasets.visible(caller, body.dataset)
    access = DatasetAccess(served, service.policies, service.default_costs, by=caller.name)
    granting = access.granting(body.name, share)
    person = service.people.add(*who, team=body.team, by=caller.name, granting=granting)
    access.settle()
    return person


@router.patch("/people/{name}", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
def change(service: OfService, name: str, body: PersonChangeBody, caller: Caller = CURATOR) -> Person:
    """Change somebody's role, password or team, or close or open them."""
    return service.people.change(name, by=caller.name, **body.model_dump())


@router.delete(
    "/people/{name}/second-factor", tags=["admin"], status_code=204, openapi_extra=may_raise(InvalidParameter)
)
def remove_second_factor(service: OfService, name: str, caller: Caller = CURATOR) -> None:
    """Switch somebody's second factor off, who has lost the app and the recovery codes."""
    service.people.remove_second_factor(name, by=caller.name)


@router.put("/people/{name}/datasets/{of}", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
def give_role(service: OfService, name: str, of: str, body: DatasetRoleBody, caller: Caller = CURATOR) -> Person:
    """Make somebody the curator or the auditor of a data set, and of no other by that."""
    return service.people.give_role(name, service.datasets.visible(caller, of).name, body.role, by=caller.name)


@router.delete("/people/{name}/datasets/{of}", tags=["admin"])
def take_role(service: OfService, name: str, of: str, caller: Caller = CURATOR) -> Person:
    """Let somebody look after a data set no more."""
    return service.people.give_role(name, of, None, by=caller.name)


@router.get("/people/{name}/grants", tags=["audit"])
def grants_of(service: OfService, name: str, caller: Caller = OVERSEER) -> list[GrantDocument]:
    """List the data sets that somebody may ask, by name, with their share of each budget."""
    granted = service.policies.grants_of(name)
    seen = {served.name for served in service.datasets.all_visible(caller)}
    return [
        {
            "dataset": dataset,
            "share": None if grant.share is None else written(grant.share),
            "trusted_with_time": grant.trusted_with_time,
        }
        for dataset, grant in granted.items()
        if dataset in seen
    ]


@router.get("/people/{name}/tokens", tags=["admin"])
def tokens(
    service: OfService, name: str, request: Request, response: Response, page: PageOf, caller: Caller = CURATOR
) -> list[TokenDocument]:
    """List somebody's tokens, the newest first."""
    return _tokens_of(service, name, page, request, response)


@router.post("/people/{name}/tokens", tags=["admin"], status_code=201, openapi_extra=may_raise(InvalidParameter))
def make_token(service: OfService, name: str, body: TokenBody, caller: Caller = CURATOR) -> IssuedToken:
    """Make a token for somebody. It is shown once."""
    seconds = body.days * DAY
    return issued(*service.people.issue(name, label=body.label, scopes=body.scopes, seconds=seconds, by=caller.name))


@router.delete("/people/{name}/tokens/{token}", tags=["admin"], status_code=204)
def end_token(service: OfService, name: str, token: str, caller: Caller = CURATOR) -> None:
    """End somebody's token."""
    service.people.revoke(token, of=name, by=caller.name)
