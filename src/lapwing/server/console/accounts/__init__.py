"""Service accounts, for curators: names for programs, each with an owner, an end, and tokens that are shown once."""

from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.rights import RightsForms, days_of, names_of_datasets
from lapwing.server.console.searching import SEARCH, part_of
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/accounts"
ACCOUNT: Final = f"{HERE}/{{name}}"
DAYS: Final = "90"
MOST: Final = 50
ONLY_CURATORS: Final = "Only curators can open this page. Auditors see the service accounts on the page People."


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List the accounts, with forms that are for curators; auditors read the same list on People."""
    if not visit.caller.may("admin"):
        raise ApiRefusal(problem("not_authorised", 403, ONLY_CURATORS))
    found = part_of(visit, await visit.api.get("accounts"), _texts, MOST)
    status = refused["status"] if refused else 200
    facts = {"accounts": found.items, "found": found, "refused": refused, "typed": visit.form}
    return visit.show("accounts/page.html", status, **facts)


def _texts(one: Any) -> tuple[object, ...]:
    """Return the texts of an account in which words are looked for."""
    return one["name"], one["owner"], one["role"], one["team"], *one["datasets"]


async def add(visit: PageRequest) -> Response:
    """Add an account."""
    form = visit.form
    body: dict[str, Any] = {name: form.get(name, "").strip() for name in ("name", "owner")}
    body |= {"role": form.get("role", "analyst"), "days": days_of(form.get("days", DAYS))}
    if form.get("team"):
        body["team"] = form["team"]
    change = visit.api.send("POST", "accounts", body=body)
    return await act(visit, change, f"{HERE}/{segment(body['name'])}?done=added", show, {"not_found": "owner"})


async def show_account(visit: PageRequest, refused: Problem | None = None, issued: Any = None) -> Response:
    """Show an account, with its tokens; one that was made just now is shown this once."""
    name = visit.part("name")
    account = await visit.api.get("accounts", name)
    tokens = await visit.api.get("people", name, "tokens", limit=200)
    sets = await names_of_datasets(visit)
    grants = await visit.api.get("people", name, "grants")
    facts = {"account": account, "tokens": tokens, "refused": refused, "issued": issued, "sets": sets, "grants": grants}
    return visit.show("accounts/account.html", refused["status"] if refused else 200, **facts)


async def change(visit: PageRequest) -> Response:
    """Change its owner or its end, or let it in or not."""
    name, form = visit.part("name"), visit.form
    body: dict[str, Any] = {"owner": form["owner"].strip()} if form.get("owner") else {}
    if form.get("days"):
        body["days"] = days_of(form["days"])
    if "active" in form:
        body["active"] = form["active"] == "yes"
    changing = visit.api.send("PATCH", "accounts", name, body=body)
    return await act(visit, changing, f"{HERE}/{segment(name)}?done=changed", show_account, {"not_found": "owner"})


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("after", SEARCH)),
    ConsolePage(method="POST", path=HERE, handle=add),
    ConsolePage(method="GET", path=ACCOUNT, handle=show_account, query=("done",)),
    ConsolePage(method="POST", path=ACCOUNT, handle=change),
    *RightsForms(HERE, show_account).pages,
)
