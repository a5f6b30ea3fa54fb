"""Publish results and dashboards, list published pages, withdraw them, and let people publish."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from lapwing.answer.charts.chart_options import NAMES
from lapwing.server.console.acting import act
from lapwing.server.console.answer import CHART
from lapwing.server.console.ask.question import single
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.saved.charts import FIELD, chart_in, fields_of, kept_chart
from lapwing.server.console.templates import segment
from lapwing.server.console.toasts import Toast
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem, problem

LIST: Final = "/console/data/{dataset}/published"
OF_ANSWER: Final = "/console/answers/{answer}/publish"
OF_DASHBOARD: Final = "/console/dashboards/{dashboard}/publish"
OF_MONITOR: Final = "/console/data/{dataset}/monitors/{monitor}/publish"
ONE: Final = "/console/published/{page}"
MOST: Final = 200


async def show(visit: PageRequest, refused: Problem | None = None, made: Any = None) -> Response:
    """List published pages; a page that was published just now is shown with its address."""
    dataset = visit.part("dataset") if "dataset" in visit.request.path_params else visit.form.get("dataset", "")
    return await _listed(visit, dataset, refused, made)


def frame(address: str, title: str, height: int) -> str:
    """Return the HTML that shows a page on another site, in its shorter view.

    >>> frame("https://a.example/published/plans", "A & B", 480)
    '<iframe src="https://a.example/published/plans?frame" title="A &amp; B" width="100%" height="480"></iframe>'
    """
    return f'<iframe src="{escape(address)}?frame" title="{escape(title)}" width="100%" height="{height}"></iframe>'


async def _listed(visit: PageRequest, dataset: str, refused: Problem | None = None, made: Any = None) -> Response:
    return visit.show(
        "published/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        rule=await visit.api.get("datasets", dataset, "publishing"),
        pages=await visit.api.get("datasets", dataset, "published", limit=MOST),
        typed=visit.form,
        refused=refused,
        made=made,
        frame=None if made is None else _frame(visit, made),
        address=visit.address,
    )


def _frame(visit: PageRequest, page: Mapping[str, Any]) -> str:
    return frame(f"{visit.address}{page['address']}", page["title"], page["frame_height"])


async def embed(visit: PageRequest) -> Response:
    """Show the HTML that embeds a page with a public name, later than when it was published."""
    page = await visit.api.get("published", visit.part("page"))
    if "address" not in page:
        detail = "Lapwing showed the address of this page only once, or the page was withdrawn. Publish it again."
        raise ApiRefusal(problem("not_found", 404, detail))
    rule = await visit.api.get("datasets", page["dataset"], "publishing")
    return visit.show("published/embed.html", dataset=page["dataset"], page=page, rule=rule, frame=_frame(visit, page))


async def set_rule(visit: PageRequest) -> Response:
    """Let people publish, name origins, or turn it off."""
    dataset, allowed = visit.part("dataset"), visit.form.get("allowed") == "yes"
    origins = visit.form.get("origins", "").split() if allowed else []
    body, sites = {"allowed": allowed, "origins": origins}, len({*origins})
    framed = f" {sites} site{'s' if sites > 1 else ''} may show their pages in a frame." if sites else ""
    text = f"Saved. People can publish results.{framed}" if allowed else "Stopped publishing. All pages were withdrawn."
    toast = Toast(at=f"/console/data/{segment(dataset)}/published", text=text)
    return await act(visit, visit.api.send("PUT", "datasets", dataset, "publishing", body=body), toast, show)


async def form_of_answer(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show the form that publishes a result."""
    id_ = visit.part("answer")
    document = await visit.api.get("answers", id_)
    request = single((await visit.api.get("answers", id_, "request"))["request"])
    title, fields = request.get("label") or "", {name: visit.form.get(FIELD + name, "") for name in NAMES}
    if visit.request.method == "GET":
        fields = {name: visit.asked(name) for name in CHART}
        fields |= {"column": fields["chart"]}
    saved = await visit.api.get("datasets", document["dataset"], "saved", limit=1000)
    place, chart = _chart(saved, id_, request, visit.caller.name, fields)
    return await _form(
        visit, document["dataset"], chart.get("title") or title, "result", refused, chart=fields_of(chart), place=place
    )


def _chart(
    saved: Sequence[Mapping[str, Any]], answer: str, request: Mapping[str, Any], person: str, chosen: Mapping[str, str]
) -> tuple[str, Mapping[str, Any]]:
    """Return the chart with which a result is published, and the title of the dashboard that it is from, if of one.

    Choices in the address come first. Then the tile of one's own dashboards counts, and then the saved query.

    >>> tile = {"answer": "a", "width": "half", "kind": "lines"}
    >>> saved = [{"title": "Wards", "person": "eve", "tiles": [{"answer": "b"}, tile]}]
    >>> _chart(saved, "a", {}, "eve", {})
    ('Wards', {'kind': 'lines'})
    >>> _chart(saved, "a", {}, "eve", {"kind": "bars"}), _chart(saved, "a", {}, "bob", {})
    (('', {'kind': 'bars'}), ('', {}))
    """
    if any(chosen.values()):
        return "", {name: text for name, text in chosen.items() if name in NAMES and text}
    for one in saved:
        for tile in one.get("tiles", ()) if one["person"] == person else ():
            chart = {name: tile[name] for name in NAMES if name in tile}
            if tile.get("answer") == answer and chart:
                return one["title"], chart
    return "", kept_chart([one for one in saved if "question" in one], request, person)


async def form_of_dashboard(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show the form that publishes the results of a dashboard."""
    item = await visit.api.get("saved", visit.part("dashboard"))
    if "tiles" not in item:
        raise ApiRefusal(problem("not_found", 404, "This dashboard does not exist, or you have no access to it."))
    return await _form(visit, item["dataset"], item["title"], "dashboard", refused)


async def form_of_monitor(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show the form that publishes what a monitor has released."""
    dataset = visit.part("dataset")
    monitor = await visit.api.get("datasets", dataset, "monitors", visit.part("monitor"))
    return await _form(visit, dataset, monitor["name"], "monitor", refused)


async def _form(
    visit: PageRequest, dataset: str, title: str, what: str, refused: Problem | None, **facts: Any
) -> Response:
    return visit.show(
        "published/form.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        rule=await visit.api.get("datasets", dataset, "publishing"),
        title=visit.form.get("title", title),
        what=what,
        typed=visit.form,
        refused=refused,
        address=visit.address,
        **facts,
    )


async def publish_answer(visit: PageRequest) -> Response:
    """Publish a result."""
    id_ = visit.part("answer")
    dataset = (await visit.api.get("answers", id_))["dataset"]
    try:
        return await publish_with(visit, dataset, {"answers": [id_], "chart": chart_in(visit.form)})
    except ApiRefusal as refusal:
        return await form_of_answer(visit, refusal.document)


async def publish_dashboard(visit: PageRequest) -> Response:
    """Publish the results of a dashboard."""
    id_ = visit.part("dashboard")
    dataset = (await visit.api.get("saved", id_))["dataset"]
    try:
        return await publish_with(visit, dataset, {"dashboard": id_})
    except ApiRefusal as refusal:
        return await form_of_dashboard(visit, refusal.document)


async def publish_with(visit: PageRequest, dataset: str, body: dict[str, Any]) -> Response:
    """Publish results or a report, and list the pages with the new address.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    return await _listed(visit, dataset, made=await _published(visit, dataset, body))


async def publish_monitor(visit: PageRequest) -> Response:
    """Publish what a monitor has released."""
    dataset = visit.part("dataset")
    try:
        made = await _published(visit, dataset, {"monitor": visit.part("monitor")})
    except ApiRefusal as refusal:
        return await form_of_monitor(visit, refusal.document)
    return await _listed(visit, dataset, made=made)


async def _published(visit: PageRequest, dataset: str, body: dict[str, Any]) -> Any:
    form = visit.form
    body |= {"title": form.get("title", "").strip(), "show_query": form.get("show_query") == "yes"}
    body |= {name: form[name].strip() for name in ("author", "name") if form.get(name, "").strip()}
    return (await visit.api.send("POST", "datasets", dataset, "published", body=body)).document


async def withdraw(visit: PageRequest) -> Response:
    """Withdraw a page."""
    page = await visit.api.get("published", visit.part("page"))

    asked = visit.form.get("dataset", "")  # a curator of one of its data sets may see only that one
    dataset = asked if asked in page["datasets"] else page["dataset"]

    async def again(visit: PageRequest, refused: Problem) -> Response:
        return await _listed(visit, dataset, refused)

    toast = Toast(at=f"/console/data/{segment(dataset)}/published", text="Withdrew the page.")
    return await act(visit, visit.api.send("DELETE", "published", page["id"]), toast, again)


async def export(visit: PageRequest) -> Response:
    """Return a page as one HTML file."""
    reply = await visit.api.send("GET", "published", visit.part("page"), "page")
    headers = {
        "Content-Disposition": reply.headers["content-disposition"],
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return HTMLResponse(reply.content, headers=headers)


async def look(visit: PageRequest) -> Response:
    """Show a page as its readers see it, to who may withdraw it: also one at an address that was shown once.

    The page has no script, form or picture. The policy lets it have its own style, and nothing else.
    """
    reply = await visit.api.send("GET", "published", visit.part("page"), "page")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
    return HTMLResponse(reply.content, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})


PAGES: Final = (
    ConsolePage(method="GET", path=LIST, handle=show, query=("done",)),
    ConsolePage(method="POST", path=LIST, handle=set_rule),
    ConsolePage(method="GET", path=OF_ANSWER, handle=form_of_answer, query=CHART),
    ConsolePage(method="POST", path=OF_ANSWER, handle=publish_answer),
    ConsolePage(method="GET", path=OF_DASHBOARD, handle=form_of_dashboard),
    ConsolePage(method="POST", path=OF_DASHBOARD, handle=publish_dashboard),
    ConsolePage(method="GET", path=OF_MONITOR, handle=form_of_monitor),
    ConsolePage(method="POST", path=OF_MONITOR, handle=publish_monitor),
    ConsolePage(method="POST", path=f"{ONE}/withdraw", handle=withdraw),
    ConsolePage(method="GET", path=f"{ONE}/page", handle=look),
    ConsolePage(method="GET", path=f"{ONE}/embed", handle=embed),
    ConsolePage(method="GET", path=f"{ONE}/file.html", handle=export),
)
