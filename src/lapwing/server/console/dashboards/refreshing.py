"""One refresh of a dashboard: ask all of its queries again, at a price that is shown before it is paid.

A query of several tiles is asked once, and so are queries that were bought together. Results that Lapwing has already
cost nothing. A tile without a title keeps the label of its own result. The form has the total that its reader saw; if
the total is another one when the form arrives, nothing is asked. The idempotency key of each query follows from the key
of the form. So a form that is sent twice charges once. If one query is refused, its tiles keep their results and say
why; the others are asked all the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final, final

from starlette.responses import Response

from lapwing.privacy.amounts import read
from lapwing.privacy.measures import from_record
from lapwing.server.console.ask.question import single
from lapwing.server.console.forms import KEY, KEYS
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest
from lapwing.server.credentials import new_name
from lapwing.server.problems import problem
from lapwing.server.saved_routes import LONGEST_TITLE

PRICED: Final = ("confidence", "label")
"""Fields of a query that its price does not depend on."""
ELSEWHERE: Final = "This result is of another data set. Refresh it there."
CHANGED: Final = (
    "The total cost has changed since you saw it, so this click charged nothing. "
    "If you clicked before, the earlier click counts, and Budget lists its charges. Look at the new total."
)
"""A form that is sent twice comes here too: its first sending has bought the results, and the total is lower."""
TOO_DEAR: Final = "Together they cost more than is left for you. Remove tiles, or ask a curator for a larger limit."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A request that is sent once for all tiles that show its results.

    Args:
        body: The request that bought them.
        tiles: The place of each tile, and of its result among the results of the request.
        cost: The record of its charge; None if it would be refused.
        delta: Of private keys.
        refusal: Why it would be refused.
    """

    body: Mapping[str, Any]
    tiles: Sequence[tuple[int, int]]
    cost: Mapping[str, str] | None = None
    remaining: Mapping[str, str] | None = None
    delta: Fraction = Fraction(0)
    refusal: str = ""

    @property
    def together(self) -> bool:
        """Whether it asks several queries at one price."""
        return "questions" in self.body

    def key(self, of_form: str) -> str:
        """Return its idempotency key: another one for each request of a form."""
        return sha256(f"{of_form} {json.dumps(self.body, sort_keys=True)}".encode()).hexdigest()[:32]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """All requests of a refresh, and the tiles that have none, each with the reason; the labels of tiles by place."""

    requests: Sequence[Again]
    left_out: Mapping[int, str] = field(default_factory=dict)
    labels: Mapping[int, str] = field(default_factory=dict)

    @property
    def total(self) -> Fraction:
        """The sum of all costs, in the unit of the ledger."""
        return sum((Fraction(one.cost["amount"]) for one in self.requests if one.cost), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The sum of what all take for private keys."""
        return sum((one.delta for one in self.requests), Fraction(0))

    @property
    def too_dear(self) -> bool:
        """Whether the total is more than is left."""
        left = [Fraction(one.remaining["amount"]) for one in self.requests if one.remaining]
        return bool(left) and self.total > min(left)

    @property
    def stated(self) -> str:
        """The total as the form states it."""
        return f"{self.total} {self.delta}"


async def refresh_of(visit: PageRequest, item: Mapping[str, Any]) -> Refresh:
    """Return what a refresh would ask, with prices; no row is read."""
    bodies: dict[str, tuple[dict[str, Any], list[tuple[int, int]]]] = {}
    left_out, labels = {}, {}
    for place, tile in enumerate(item["tiles"]):
        if "answer" not in tile:
            continue
        try:
            if (await visit.api.get("answers", tile["answer"]))["dataset"] != item["dataset"]:
                left_out[place] = ELSEWHERE
                continue
            request = dict((await visit.api.get("answers", tile["answer"], "request"))["request"])
        except ApiRefusal as refusal:
            left_out[place] = refusal.document["detail"]
            continue
        of_results = request.pop("place", 0)
        labels[place] = request.get("label") or ""
        known = json.dumps({**request, "label": None}, sort_keys=True)
        bodies.setdefault(known, (request, []))[1].append((place, of_results))
    requests = [await _priced(visit, item["dataset"], body, tiles) for body, tiles in bodies.values()]
    return Refresh(requests=requests, left_out=left_out, labels=labels)


async def _priced(visit: PageRequest, dataset: str, body: Mapping[str, Any], tiles: Sequence[tuple[int, int]]) -> Again:
    path = ("datasets", dataset, "batch", "explain") if "questions" in body else ("datasets", dataset, "explain")
    asked = body if "questions" in body else {name: value for name, value in body.items() if name not in PRICED}
    try:
        preview = (await visit.api.send("POST", *path, body=asked)).document
    except ApiRefusal as refusal:
        return Again(body=body, tiles=tiles, refusal=refusal.document["detail"])
    if preview["refusal"]:
        return Again(body=body, tiles=tiles, refusal=preview["refusal"])
    delta = read(str(preview["delta"]), "delta")
    return Again(body=body, tiles=tiles, cost=preview["cost"], remaining=preview["remaining"], delta=delta)


async def asked_again(
    visit: PageRequest, item: Mapping[str, Any], refresh: Refresh, of_form: str
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Ask all requests that were not refused; return the tiles as they are then, and why some stayed as they were."""
    tiles, refused = [dict(tile) for tile in item["tiles"]], dict(refresh.left_out)
    for one in refresh.requests:
        answers, why = await _sent(visit, item["dataset"], one, of_form)
        for place, of_results in one.tiles:
            if why:
                refused[place] = why
            else:
                tiles[place]["answer"] = answers[of_results]
                label = refresh.labels[place]
                if label and label != one.body.get("label"):  # the result has the label of another tile
                    tiles[place].setdefault("title", label[:LONGEST_TITLE])
    return tiles, refused


async def _sent(visit: PageRequest, dataset: str, one: Again, of_form: str) -> tuple[list[str], str]:
    """Send a request; return the ids of its results, or why it was refused."""
    if one.refusal:
        return [], one.refusal
    last, headers = ("batch" if one.together else "query"), {KEY: one.key(of_form)}
    try:
        reply = (await visit.api.send("POST", "datasets", dataset, last, body=one.body, headers=headers)).document
    except ApiRefusal as refusal:
        return [], refusal.document["detail"]
    return [answer["id"] for answer in (reply["answers"] if one.together else [reply])], ""


async def show(visit: PageRequest, item: Mapping[str, Any], notice: str = "") -> Response:
    """Show what a refresh would cost; for each tile and in total."""
    refresh = await refresh_of(visit, item)
    return await page(visit, item, refresh, refresh.left_out, status=409 if notice else 200, notice=notice)


async def page(
    visit: PageRequest,
    item: Mapping[str, Any],
    refresh: Refresh,
    refused: Mapping[int, str],
    *,
    status: int = 200,
    notice: str = "",
    done: bool = False,
) -> Response:
    """Show a refresh, before it is paid or after."""
    budget = await visit.api.get("datasets", item["dataset"], "budget")
    delta = read(budget["guarantee"]["delta"], "delta") - read(budget["delta_keys"], "delta_keys")

    def epsilon(amount: Fraction) -> float:
        loss = from_record({**budget["total"], "amount": str(amount)})
        return loss.to_epsilon(delta=delta) if amount else 0.0

    costs = {place: one for one in refresh.requests for place, _ in one.tiles}
    rows = [
        {
            "title": await _title(visit, tile),
            "before": place in refresh.left_out or (place in costs and bool(costs[place].refusal)),
            "refused": refused.get(place) or (costs[place].refusal if place in costs else ""),
            "epsilon": epsilon(Fraction(costs[place].cost["amount"])) if place in costs and costs[place].cost else 0.0,  # type: ignore[index]
            "delta": costs[place].delta if place in costs else Fraction(0),
            "shared": place in costs and costs[place].tiles[0][0] != place,
        }
        for place, tile in enumerate(item["tiles"])
        if "answer" in tile
    ]
    return visit.show(
        "dashboards/refresh.html",
        status,
        dataset=item["dataset"],
        item=item,
        rows=rows,
        asks=sum(1 for one in refresh.requests if one.cost),
        total=epsilon(refresh.total),
        delta=refresh.delta,
        stated=refresh.stated,
        too_dear=TOO_DEAR if refresh.too_dear and not done else "",
        notice=notice,
        key=new_name(),
        after=done,
    )


async def _title(visit: PageRequest, tile: Mapping[str, Any]) -> str:
    if tile.get("title"):
        return str(tile["title"])
    try:
        request = single((await visit.api.get("answers", tile["answer"], "request"))["request"])
    except ApiRefusal:
        return "Result"
    return request.get("label") or " ".join(request.get("sql", "Result").split())


async def buy(visit: PageRequest, item: Mapping[str, Any]) -> Response:
    """Ask all queries again if the total is the one that the reader saw, and show each tile with what came of it."""
    refresh, key = await refresh_of(visit, item), visit.form.get("key", "")
    if refresh.too_dear or visit.form.get("total") != refresh.stated or not KEYS.fullmatch(key):
        return await show(visit, item, CHANGED)
    tiles, refused = await asked_again(visit, item, refresh, key)
    body = {"title": item["title"], "tiles": tiles, "shared": bool(item["team"])}
    changed = (await visit.api.send("PUT", "saved", item["id"], body=body)).document
    return await page(visit, changed, refresh, refused, done=True)


def require_own(visit: PageRequest, item: Mapping[str, Any]) -> None:
    """Refuse a refresh of a dashboard of somebody else: its tiles would stay as they are.

    Raises:
        ApiRefusal: If it is not one's own.
    """
    if item["person"] != visit.caller.name:
        text = "Only its owner can refresh this dashboard. Nothing was charged."
        raise ApiRefusal(problem("not_authorised", 403, text))
