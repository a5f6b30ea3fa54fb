"""How the service is: its data sets and ledgers, its queue, and what it counts; and a ledger checked entry by entry."""

from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lapwing.errors import LedgerFault
from lapwing.ledger import exporting, reading
from lapwing.server.console.dashboards.monitors import monitors_of
from lapwing.server.console.standing import states
from lapwing.server.console.visits import ConsolePage, PageRequest

MOST: Final = 50


async def show(visit: PageRequest) -> Response:
    """Show data sets, the queue, and what is counted."""
    names = [dataset["name"] for dataset in await visit.api.get("datasets")]
    budgets = {name: await visit.api.get("datasets", name, "budget") for name in names[:MOST]}
    standing = await states(visit.api, visit.caller, budgets)
    datasets = [(name, budget, standing[name]) for name, budget in budgets.items()]
    monitors = [(name, one) for name in budgets for one in await monitors_of(visit, name)]
    metrics = await visit.api.metrics()
    queue = await visit.api.get("queries", limit=MOST, everybody="true")
    open_now = [job for job in queue if job["status"] in ("waiting", "running")]
    facts: dict[str, Any] = {"datasets": datasets, "monitors": monitors, "queue": open_now}
    return visit.show("health/page.html", counts=_counts(metrics), metrics=metrics, **facts)


async def verify(visit: PageRequest) -> Response:
    """Read a whole ledger, and check each entry and the chain of their seals."""
    dataset = visit.part("dataset")
    reply = await visit.api.send("GET", "datasets", dataset, "ledger")

    def verified() -> Any:
        lines = reply.content.decode().splitlines(keepends=True)
        return len(lines), reading.verified(exporting.read(lines))

    try:
        (entries, state), fault = await run_in_threadpool(verified), ""
    except LedgerFault as error:
        entries, state, fault = 0, None, str(error)
    seal = None if state is None else state.hash
    facts = {"dataset": dataset, "entries": entries, "whole": state is not None, "fault": fault, "seal": seal}
    return visit.show("health/ledger.html", **facts)


def _counts(metrics: str) -> list[tuple[str, str]]:
    """Return the numbers of the metrics that have no labels, but for those of the interpreter."""
    lines = (line.rpartition(" ") for line in metrics.splitlines() if line and not line.startswith("#"))
    return [(name, value) for name, _, value in lines if name.startswith("lapwing_") and "_created" not in name][:200]


PAGES: Final = (
    ConsolePage(method="GET", path="/console/health", handle=show),
    ConsolePage(method="GET", path="/console/data/{dataset}/ledger", handle=verify),
)
