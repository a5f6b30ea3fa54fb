"""Routes of curators and auditors: grants, policies, data, the audit log, the metrics."""

import json
from fractions import Fraction
from typing import Any, Final

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse

from lapwing.documents.budgets import history_document
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import written
from lapwing.server import auditing
from lapwing.server.bodies import NewPolicy, NewShare, Stop, number
from lapwing.server.datasets import Served
from lapwing.server.policies import Policy
from lapwing.server.rights import Caller
from lapwing.server.service import Service

LINES: Final = "application/x-ndjson"


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    policies, store = service.policies, service.store
    curator, auditor = Depends(service.callers.demand("admin")), Depends(service.callers.demand("audit"))

    @router.get("/v1/datasets/{dataset}/grants", tags=["admin"])
    def grants(dataset: str, caller: Caller = curator) -> dict[str, Any]:
        """List who may ask, and the shares of people and teams."""
        served = service.datasets.visible(caller, dataset)
        teams = {team: written(share) for team, share in policies.team_shares(served.name).items()}
        people = {grant.person: _text(grant.share) for grant in policies.grants(served.name)}
        return {"people": people, "teams": teams}

    @router.put("/v1/datasets/{dataset}/grants/{name}", tags=["admin"], status_code=204)
    def grant(dataset: str, name: str, body: NewShare, caller: Caller = curator) -> None:
        """Let somebody ask, with a share of the budget or without one of their own."""
        served = service.datasets.visible(caller, dataset)
        view = served.session.budget()
        policies.grant(served.name, name, body.exactly(), view.spending, view.total, by=caller.name)
        served.settle()

    @router.delete("/v1/datasets/{dataset}/grants/{name}", tags=["admin"], status_code=204)
    def withdraw(dataset: str, name: str, caller: Caller = curator) -> None:
        """Let somebody ask no more."""
        served = service.datasets.visible(caller, dataset)
        policies.withdraw(served.name, name, by=caller.name)
        served.settle()

    @router.put("/v1/datasets/{dataset}/teams/{team}", tags=["admin"], status_code=204)
    def give_team(dataset: str, team: str, body: NewShare, caller: Caller = curator) -> None:
        """Give a team a share of the budget, or with null take it away."""
        served = service.datasets.visible(caller, dataset)
        view = served.session.budget()
        policies.give_team(served.name, team, body.exactly(), view.spending, view.total, by=caller.name)
        served.settle()

    @router.get("/v1/datasets/{dataset}/policy", tags=["admin"])
    def policy(dataset: str, caller: Caller = curator) -> dict[str, Any]:
        """Say how the budget is shared out."""
        served = service.datasets.visible(caller, dataset)
        return _policy(policies.policy(served.name))

    @router.put("/v1/datasets/{dataset}/policy", tags=["admin"])
    def set_policy(dataset: str, body: NewPolicy, caller: Caller = curator) -> dict[str, Any]:
        """Say whether allowances share or split the budget, and the most that one question may cost."""
        served = service.datasets.visible(caller, dataset)
        most = None if body.most_epsilon is None else number(body.most_epsilon, "most_epsilon")
        if most is not None:
            _require_price(served, most)
        view = served.session.budget()
        chosen = policies.divide(served.name, body.division, most, view.spending, view.total, by=caller.name)
        served.settle()
        return _policy(chosen)

    @router.put("/v1/datasets/{dataset}/stop", tags=["admin"])
    def stop(dataset: str, body: Stop, caller: Caller = curator) -> dict[str, Any]:
        """Stop the data set: nothing is charged once this returns; or let it go on."""
        served = service.datasets.visible(caller, dataset)
        changed = policies.stop(served.name, stopped=body.stopped, by=caller.name)
        served.settle()
        return _policy(changed)

    @router.post("/v1/datasets/{dataset}/accept", tags=["admin"])
    def accept(dataset: str, caller: Caller = curator) -> dict[str, Any]:
        """Make the data as they are now the current version; spending stays."""
        served = service.datasets.visible(caller, dataset)
        version = served.session.acting_for(caller.name).accept_data()
        with store.transaction() as connection:
            auditing.note(connection, caller.name, "data accepted", served.name, version=version)
        return {"version": version}

    @router.get("/v1/datasets/{dataset}/faults", tags=["admin"])
    def faults(dataset: str, caller: Caller = curator) -> list[dict[str, Any]]:
        """List the questions that failed after their charge, since the curator last looked."""
        served = service.datasets.visible(caller, dataset)
        return [
            {
                "sequence": fault.sequence,
                "time": fault.time,
                "cause": fault.cause,
                "charges": [history_document(row) for row in fault.charges],
            }
            for fault in served.session.faults()
        ]

    @router.post("/v1/datasets/{dataset}/resume", tags=["admin"])
    def resume(dataset: str, caller: Caller = curator) -> dict[str, Any]:
        """Say that the faults were looked at; nothing is refunded."""
        served = service.datasets.visible(caller, dataset)
        count = served.session.acting_for(caller.name).resume()
        with store.transaction() as connection:
            auditing.note(connection, caller.name, "faults looked at", served.name, faults=count)
        return {"faults": count}

    @router.get("/v1/audit", tags=["audit"], response_class=Response, responses={200: {"content": {LINES: {}}}})
    def audit(caller: Caller = auditor) -> Response:
        """Export the audit log: a JSON document a line, each sealed over the one before."""
        with store.reading() as connection:  # which others wait for: no longer than it takes to read
            lines = list(auditing.lines(connection))
        return Response("".join(json.dumps(line) + "\n" for line in lines), media_type=LINES)

    @router.get("/metrics", tags=["audit"], response_class=PlainTextResponse)
    def metrics(caller: Caller = auditor) -> PlainTextResponse:
        """Show counts of requests and questions, in the text form of Prometheus."""
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router


def _require_price(served: Served, epsilon: Fraction) -> None:
    """Refuse an epsilon that is no price."""
    if not served.session.price(epsilon).amount > 0:
        raise InvalidParameter("most_epsilon must be above 0.")


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "division": policy.division,
        "most_epsilon": _text(policy.most_epsilon),
        "stopped": policy.stopped,
    }


def _text(number_: Fraction | None) -> str | None:
    return None if number_ is None else written(number_)
