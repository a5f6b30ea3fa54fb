"""Routes of curators for service accounts and teams."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from lapwing.documents.people_document import ServiceAccountDocument, TeamDocument, TeamShareDocument
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import written
from lapwing.server.accounts import AccountRole, Accounts, ServiceAccount
from lapwing.server.bodies import Body, Name
from lapwing.server.people import LONGEST_DAYS, Caller
from lapwing.server.problems import may_raise
from lapwing.server.routing import CURATOR, OVERSEER, OfService, new_router
from lapwing.server.service import Service
from lapwing.server.teams import Team, Teams

Days = Annotated[StrictInt | StrictFloat, Field(gt=0, le=LONGEST_DAYS)]


class AccountBody(Body):
    """A service account: who answers for it, and for how many days it lasts."""

    name: Name
    role: AccountRole = "analyst"
    owner: Name
    days: Days = 90
    team: Name | None = None


class AccountChangeBody(Body):
    """What is to be changed about an account; `days` are counted from now."""

    owner: Name | None = None
    days: Days | None = None
    active: StrictBool | None = None


class TeamBody(Body):
    """A team that is to be made."""

    name: Name


router: Final = new_router(prefix="/v1", tags=["admin"])


def _accounts(service: Service) -> Accounts:
    return Accounts(service.store, service.people)


def _teams(service: Service) -> Teams:
    return Teams(service.store, service.policies)


@router.get("/accounts")
def list_accounts(service: OfService, caller: Caller = OVERSEER) -> list[ServiceAccountDocument]:
    """List the service accounts, by name: names for programs, with tokens and nothing else."""
    return [_account(one) for one in _accounts(service).all()]


@router.post("/accounts", status_code=201, openapi_extra=may_raise(InvalidParameter))
def add_account(service: OfService, body: AccountBody, caller: Caller = CURATOR) -> ServiceAccountDocument:
    """Add a service account. The name is its for ever, as the ledger keeps it."""
    return _account(
        _accounts(service).add(body.name, body.role, owner=body.owner, days=body.days, team=body.team, by=caller.name)
    )


@router.get("/accounts/{name}")
def account(service: OfService, name: str, caller: Caller = CURATOR) -> ServiceAccountDocument:
    """Show a service account."""
    return _account(_accounts(service).named(name))


@router.patch("/accounts/{name}", openapi_extra=may_raise(InvalidParameter))
def change_account(
    service: OfService, name: str, body: AccountChangeBody, caller: Caller = CURATOR
) -> ServiceAccountDocument:
    """Give an account another owner, let it last for so many days from now, or shut it out or in."""
    return _account(_accounts(service).change(name, by=caller.name, **body.model_dump()))


@router.get("/teams")
def list_teams(service: OfService, caller: Caller = CURATOR) -> list[TeamDocument]:
    """List the teams, by name, with who is in them and who was."""
    return [_team(one) for one in _teams(service).all()]


@router.post("/teams", status_code=201, openapi_extra=may_raise(InvalidParameter))
def add_team(service: OfService, body: TeamBody, caller: Caller = CURATOR) -> TeamDocument:
    """Make a team, in which nobody is yet."""
    return _team(_teams(service).add(body.name, by=caller.name))


@router.get("/teams/{team}")
def team(service: OfService, team: str, caller: Caller = CURATOR) -> TeamDocument:
    """Show a team, with its share of each data set and what counts for that."""
    found = _teams(service).named(team)
    parts: list[TeamShareDocument] = []
    for served in service.datasets.all_visible(caller):
        share, spent = _teams(service).part(found, served)
        told = None if share is None else written(share)
        parts.append({"dataset": served.name, "share": told, "spent": spent})
    return {**_team(found), "datasets": parts}


def _account(account: ServiceAccount) -> ServiceAccountDocument:
    return {
        "name": account.name,
        "role": account.role,
        "team": account.team,
        "owner": account.owner,
        "active": account.active,
        "let_in": account.let_in,
        "created": account.created,
        "expires": datetime.fromtimestamp(account.expires, UTC).isoformat(timespec="seconds"),
        "datasets": dict(account.datasets),
    }


def _team(team: Team) -> TeamDocument:
    return {
        "name": team.name,
        "created": team.created,
        "members": list(team.members),
        "earlier": list(team.earlier),
        "datasets": [],
    }
