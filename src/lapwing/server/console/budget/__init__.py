"""The budget: what is granted, spent and left; by person and by day; and until when it lasts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

from starlette.responses import Response

from lapwing.answer.charts.answer_chart import chart_of
from lapwing.server.console.acting import act, default_cost_of
from lapwing.server.console.budget.spending import LEAST_DAYS, TeamSpending, by_day, by_team, projection
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.standing import left_for, state_at
from lapwing.server.console.templates import ratio, segment
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

MOST_PAGES: Final = 10
"""Of a thousand charges each, which a page adds up."""


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show the budget as it stands for who looks: of others, an analyst sees the total alone."""
    dataset = visit.part("dataset")
    budget = await visit.api.get("datasets", dataset, "budget")
    default_cost = await visit.api.get("datasets", dataset, "default-cost")
    charges, whole = await _charges(visit, dataset)
    total, today = float(budget["total"]["amount"]), datetime.now(UTC).date()
    days = by_day(charges, total, today)
    left = 1 - budget["share_spent"]
    people = sorted(
        ((name, float(spent["amount"]) / total if total else 0.0) for name, spent in budget["spending"].items()),
        key=lambda one: -one[1],
    )
    keys = Fraction(budget["delta_keys"])
    return visit.show(
        "budget/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        refused=refused,
        default_cost=default_cost,
        budget=budget,
        standing=await state_at(visit.api, visit.caller, dataset, budget),
        people=people,
        teams=await _teams(visit, dataset, dict(people)),
        keys_left=keys - Fraction(budget["delta_keys_spent"]) if keys else None,
        keys_of={name: spent["delta"] for name, spent in budget["spending"].items()} if keys else {},
        left=left,
        yours=left_for(budget),
        days=days,
        chart=_chart([(day.isoformat(), 100 * share) for day, share in days]) if len(days) > 1 else None,
        projection=projection(days, left if visit.caller.at(dataset).may("audit") else left_for(budget), today),
        whole=whole,
        least_days=LEAST_DAYS,
        allowances=[
            {
                "holder": one["holder"],
                "share": ratio(one["share"]),
                "left": float(one["remaining"]["amount"]) / total if total else 0.0,
                "keys_left": Fraction(one["delta_remaining"]) if keys else None,
            }
            for one in budget["allowances"]
        ],
    )


async def set_default_cost(visit: PageRequest) -> Response:
    """Set what queries cost that name no cost."""
    dataset = visit.part("dataset")
    try:
        body = default_cost_of(visit.form)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    change = visit.api.send("PUT", "datasets", dataset, "default-cost", body=body)
    return await act(visit, change, f"/console/data/{segment(dataset)}/budget?done=default", show)


async def _teams(visit: PageRequest, dataset: str, spent: Mapping[str, float]) -> list[TeamSpending]:
    """Return what teams spent, for who may see teams."""
    if not visit.caller.may("audit"):
        return []
    members: list[Any] = []
    for _ in range(MOST_PAGES):
        after = members[-1]["name"] if members else None
        reply = await visit.api.send("GET", "people", query={"limit": 1000, "after": after})
        members += reply.document
        if not reply.following:
            break
    grants = await visit.api.get("datasets", dataset, "grants")
    teams = {person["name"]: person["team"] for person in members if person["team"]}
    return by_team(spent, teams, {team: ratio(share) for team, share in grants["teams"].items()})


async def _charges(visit: PageRequest, dataset: str) -> tuple[list[Any], bool]:
    """Return the charges that one may see, and whether these are all."""
    charges: list[Any] = []
    for _ in range(MOST_PAGES):
        after = charges[-1]["sequence"] if charges else 0
        reply = await visit.api.send("GET", "datasets", dataset, "history", query={"limit": 1000, "after": after})
        charges += reply.document
        if not reply.following:
            return charges, True
    return charges, False


def _chart(days: list[tuple[str, float]]) -> Any:
    name = "% of the budget"
    document = {
        "types": {"day": "text", name: "real"},
        "keys": ["day"],
        "intervals": {name: {"low": [None] * len(days), "high": [None] * len(days)}},
        "rows": [{"day": day, name: share} for day, share in days],
    }
    return chart_of(document)


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/budget", handle=show, query=("done",)),
    ConsolePage(method="POST", path="/console/data/{dataset}/budget/default-cost", handle=set_default_cost),
)
