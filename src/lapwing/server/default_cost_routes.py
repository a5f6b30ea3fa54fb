"""Routes of default costs: what a query costs that names no cost, as PostgreSQL's clients send it."""

from typing import Final

from lapwing.documents.people_document import DefaultCostDocument
from lapwing.errors import InvalidParameter
from lapwing.server.access import DatasetAccess
from lapwing.server.bodies import Amount, Body, number
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.routing import ASKER, CURATOR, OVERSEER, READER, OfService, new_router
from lapwing.server.service import Service


class DefaultCostBody(Body):
    """A default cost, null for none, and its daily limit as a share of the budget: null or left out, the usual."""

    epsilon: Amount | None
    daily_share: Amount | None = None


router: Final = new_router(prefix="/v1/datasets/{dataset}")


def _access(service: Service, caller: Caller, dataset: str) -> DatasetAccess:
    served = service.datasets.visible(caller, dataset)
    return DatasetAccess(served, service.policies, service.default_costs, by=caller.name)


def _set(access: DatasetAccess, person: str, body: DefaultCostBody) -> DefaultCostDocument:
    epsilon = None if body.epsilon is None else number(body.epsilon, "epsilon")
    share = None if body.daily_share is None else number(body.daily_share, "daily_share")
    return access.set_default_cost(person, epsilon, share)


@router.get("/default-cost", tags=["questions"])
def default_cost(service: OfService, dataset: str, caller: Caller = READER) -> DefaultCostDocument:
    """Say what your queries cost that name no cost."""
    return _access(service, caller, dataset).default_cost(caller.name)


@router.put("/default-cost", tags=["questions"], openapi_extra=may_raise(InvalidParameter))
def set_default_cost(
    service: OfService, dataset: str, body: DefaultCostBody, caller: Caller = ASKER
) -> DefaultCostDocument:
    """Set what your queries cost that name no cost, or with null let them be refused."""
    return _set(_access(service, caller, dataset), caller.name, body)


@router.get("/default-costs", tags=["audit"])
def default_costs(service: OfService, dataset: str, caller: Caller = OVERSEER) -> dict[str, DefaultCostDocument]:
    """List what queries cost that name no cost, by person."""
    return _access(service, caller, dataset).default_costs()


@router.put("/default-costs/{name}", tags=["admin"], openapi_extra=may_raise(InvalidParameter))
def set_default_cost_of(
    service: OfService, dataset: str, name: str, body: DefaultCostBody, caller: Caller = CURATOR
) -> DefaultCostDocument:
    """Set what somebody's queries cost that name no cost, or with null let them be refused."""
    return _set(_access(service, caller, dataset), name, body)
