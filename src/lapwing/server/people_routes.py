"""Routes of people: logging in, one's own tokens, and, for curators, everybody."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Depends, Request

from lapwing.server.bodies import ChangedPerson, Login, NewPassword, NewPerson, NewToken
from lapwing.server.people import DAY, Person, Token
from lapwing.server.rights import RIGHTS, Caller
from lapwing.server.service import Service

HOUR: Final = 3600


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1")
    people, callers = service.people, service.callers
    anybody = Depends(callers.caller)
    curator = Depends(callers.demand("admin"))

    @router.post("/login", tags=["people"])
    def login(body: Login, request: Request) -> dict[str, Any]:
        """Get a token for a name and a password."""
        callers.stranger(request)
        secret, token = people.login(body.name, body.password, body.scopes, body.label, body.hours * HOUR)
        return _new_token(secret, token)

    @router.get("/me", tags=["people"])
    def me(caller: Caller = anybody) -> dict[str, Any]:
        """Say who one is, and what one may do."""
        rights = [right for right in RIGHTS if caller.may(right)]
        return {"name": caller.name, "role": caller.role, "rights": rights, "token": caller.token}

    @router.post("/me/password", tags=["people"], status_code=204)
    def change_password(body: NewPassword, request: Request, caller: Caller = anybody) -> None:
        """Change one's own password; all of one's tokens end."""
        callers.stranger(request)
        people.require_password(caller.name, body.password)
        people.change(caller.name, password=body.new_password, by=caller.name)

    @router.get("/me/tokens", tags=["people"])
    def own_tokens(caller: Caller = anybody) -> list[dict[str, Any]]:
        """List one's own tokens; the tokens themselves are kept by nobody."""
        return [_token(token) for token in people.tokens(caller.name)]

    @router.delete("/me/tokens/{token}", tags=["people"], status_code=204)
    def end_own_token(token: str, caller: Caller = anybody) -> None:
        """End one of one's own tokens."""
        people.revoke(token, of=caller.name, by=caller.name)

    @router.get("/people", tags=["admin"])
    def everybody(caller: Caller = curator) -> list[dict[str, Any]]:
        """List everybody."""
        return [_person(person) for person in people.all()]

    @router.post("/people", tags=["admin"], status_code=201)
    def add(body: NewPerson, caller: Caller = curator) -> dict[str, Any]:
        """Add somebody. The name is theirs for ever, as the ledger keeps it."""
        return _person(people.add(body.name, body.role, body.password, team=body.team, by=caller.name))

    @router.patch("/people/{name}", tags=["admin"])
    def change(name: str, body: ChangedPerson, caller: Caller = curator) -> dict[str, Any]:
        """Change somebody's role, password or team, or close or open them."""
        return _person(people.change(name, by=caller.name, **body.model_dump()))

    @router.get("/people/{name}/tokens", tags=["admin"])
    def tokens(name: str, caller: Caller = curator) -> list[dict[str, Any]]:
        """List somebody's tokens."""
        return [_token(token) for token in people.tokens(name)]

    @router.post("/people/{name}/tokens", tags=["admin"], status_code=201)
    def make_token(name: str, body: NewToken, caller: Caller = curator) -> dict[str, Any]:
        """Make a token for somebody. It is shown once."""
        secret, token = people.issue(
            name, label=body.label, scopes=body.scopes, seconds=body.days * DAY, by=caller.name
        )
        return _new_token(secret, token)

    @router.delete("/people/{name}/tokens/{token}", tags=["admin"], status_code=204)
    def end_token(name: str, token: str, caller: Caller = curator) -> None:
        """End somebody's token."""
        people.revoke(token, of=name, by=caller.name)

    return router


def _person(person: Person) -> dict[str, Any]:
    return asdict(person)


def _token(token: Token) -> dict[str, Any]:
    expires = datetime.fromtimestamp(token.expires, UTC).isoformat(timespec="seconds")
    return asdict(token) | {"expires": expires}


def _new_token(secret: str, token: Token) -> dict[str, Any]:
    return {"token": secret, **{name: value for name, value in _token(token).items() if name != "revoked"}}
