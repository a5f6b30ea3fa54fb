"""Releases of tables: plan one, see its errors at other costs, run it, download its files, and publish its report."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from starlette.responses import Response

from lapwing.errors import LapwingError
from lapwing.privacy.amounts import written
from lapwing.server.console.acting import number_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.published import publish_with
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem
from lapwing.server.saved_routes import LONGEST_TITLE
from lapwing.tabulation import TableRelease

LIST: Final = "/console/data/{dataset}/releases"
ONE: Final = "/console/releases/{release}"
MOST: Final = 200
MOST_KEYS: Final = 2
EPSILON: Final = re.compile(r"(?m)^(\s*epsilon\s*=\s*)[^#\s]+")
STEPS: Final = 8
"""Steps of the slider to each side; `STEPS_OF_TWO` of them double the cost, or halve it."""
STEPS_OF_TWO: Final = 4


async def show(visit: PageRequest) -> Response:
    """Show the releases of a data set, and the form that plans one."""
    return await _page(visit, {"release": await _example(visit)})


async def again(visit: PageRequest) -> Response:
    """Show the form again, with its plan."""
    return await _page(visit, visit.form, plan=await _plan(visit))


async def preview(visit: PageRequest) -> Response:
    """Return the plan of the form, while somebody types or moves the slider."""
    return visit.show("releases/preview.html", dataset=visit.part("dataset"), plan=await _plan(visit))


async def run(visit: PageRequest) -> Response:
    """Run a release, and lead to it."""
    try:
        body = _body(visit.form, visit.form.get("epsilon", ""))
        reply = await visit.api.send("POST", "datasets", visit.part("dataset"), "releases", body=body)
    except ApiRefusal as refusal:
        return await _page(visit, visit.form, refused=refusal.document)
    return redirect(f"/console/releases/{segment(reply.document['id'])}")


async def one(visit: PageRequest) -> Response:
    """Show a release: its promise, its errors, its files."""
    found = await visit.api.get("releases", visit.part("release"))
    return visit.show("releases/one.html", dataset=found["dataset"], found=found, text=_as_paid(found["request"]))


def _as_paid(request: Mapping[str, Any]) -> str:
    """Return a release file with the cost that was paid, so that the same file is free; as it is if that fails."""
    text = str(request["release"])
    if request.get("epsilon") is None:
        return text
    epsilon = written(Fraction(str(request["epsilon"])))
    changed = EPSILON.sub(rf"\g<1>{epsilon}", text, count=1)
    try:
        same = TableRelease.from_text(changed) == replace(TableRelease.from_text(text), epsilon=Fraction(epsilon))
    except LapwingError:
        return text
    return changed if same else text


async def files(visit: PageRequest) -> Response:
    """Return all files of a release in one."""
    id_ = visit.part("release")
    reply = await visit.api.send("GET", "releases", id_, "files")
    return _as_file(reply.content, "application/zip", f"release-{id_[:8]}.zip")


async def file(visit: PageRequest) -> Response:
    """Return one file of a release."""
    name = visit.part("name")
    reply = await visit.api.send("GET", "releases", visit.part("release"), "files", name)
    return _as_file(reply.content, "application/octet-stream", name)


async def form_to_publish(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show the form that publishes the method report."""
    found = await visit.api.get("releases", visit.part("release"))
    return visit.show(
        "published/form.html",
        refused["status"] if refused else 200,
        dataset=found["dataset"],
        rule=await visit.api.get("datasets", found["dataset"], "publishing"),
        title=visit.form.get("title", found["title"][:LONGEST_TITLE]),
        what="method report",
        typed=visit.form,
        refused=refused,
        address=visit.address,
    )


async def publish(visit: PageRequest) -> Response:
    """Publish the method report."""
    found = await visit.api.get("releases", visit.part("release"))
    try:
        return await publish_with(visit, found["dataset"], {"release": found["id"]})
    except ApiRefusal as refusal:
        return await form_to_publish(visit, refusal.document)


async def _page(visit: PageRequest, typed: Any, *, plan: Any = None, refused: Problem | None = None) -> Response:
    dataset = visit.part("dataset")
    return visit.show(
        "releases/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        releases=await visit.api.get("datasets", dataset, "releases", limit=MOST),
        text=typed.get("release", ""),
        level=_level(typed.get("level", "")),
        steps=STEPS,
        plan=plan,
        problem=refused,
    )


async def _plan(visit: PageRequest) -> dict[str, Any]:
    """Return the plan at the cost of the slider, with the body of a run; or the refusal."""
    text, level = visit.form.get("release", ""), _level(visit.form.get("level", ""))
    epsilon = _epsilon(text, level)
    try:
        body = _body(visit.form, epsilon)
        reply = await visit.api.send("POST", "datasets", visit.part("dataset"), "releases", "plan", body=body)
    except ApiRefusal as refusal:
        return {"refused": refusal.document, "text": text}
    return {
        "refused": None,
        "document": reply.document,
        "text": text,
        "epsilon": epsilon,
        "rows": _rows(reply.document),
    }


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the numbers of all tables, each with its ± at this cost and at the others."""
    rows = []
    for place, table in enumerate(document["tables"]):
        for at, number in enumerate(table["numbers"]):
            others = [one["half_widths"][place][at] for one in document["other_costs"]]
            several = len(table["numbers"]) > 1
            name = f"{table['name']}: {number['name']}" if several else table["name"]
            rows.append({"name": name, "table": table, "number": number, "others": others})
    return rows


def _level(typed: str) -> int:
    """Return the position of the slider; the middle is the cost in the file."""
    number = int(typed) if typed.removeprefix("-").isdecimal() and typed.isascii() and len(typed) <= 3 else 0
    return max(-STEPS, min(STEPS, number))


def _epsilon(text: str, level: int) -> str:
    """Return the cost at a position of the slider; empty for the cost in the file, or if the file is not valid."""
    if not level:
        return ""
    try:
        epsilon = Fraction(TableRelease.from_text(text).epsilon)
    except LapwingError:
        return ""  # the plan has the refusal
    scaled = float(epsilon) * 2 ** (level / STEPS_OF_TWO)
    return written(Fraction(f"{scaled:.3g}"))


def _body(form: Any, epsilon: str) -> dict[str, Any]:
    more = {"epsilon": number_of(epsilon, "epsilon")} if epsilon.strip() else {}
    return {"release": form.get("release", ""), **more}


async def _example(visit: PageRequest) -> str:
    """Return an example of a release file: counts of the first table by columns with listed values."""
    document = await visit.api.get("datasets", visit.part("dataset"))
    table = next((one for one in document["tables"] if one["protected"]), None)
    if table is None:
        return ""
    keys = [name for name, column in table["columns"].items() if column.get("values")][:MOST_KEYS]
    lists = [[], *([key] for key in keys), *([keys] if len(keys) > 1 else [])]
    count = json.dumps("COUNT(*) AS n")
    return (
        'title = "Counts"\nepsilon = 1\n\n[tables.counts]\n'
        f"select = {count}\nfrom = {json.dumps(_quoted(table['name']))}\n"
        f"by = {json.dumps([[_quoted(key) for key in one] for one in lists])}\nassumed_cell = 100\n"
    )


def _quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return name if name.isascii() and name.isidentifier() and name.islower() else '"' + name.replace('"', '""') + '"'


def _as_file(content: bytes, kind: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(content, media_type=kind, headers=headers)


PAGES: Final = (
    ConsolePage(method="GET", path=LIST, handle=show),
    ConsolePage(method="POST", path=LIST, handle=again),
    ConsolePage(method="POST", path=f"{LIST}/preview", handle=preview),
    ConsolePage(method="POST", path=f"{LIST}/run", handle=run),
    ConsolePage(method="GET", path=ONE, handle=one),
    ConsolePage(method="GET", path=f"{ONE}/files.zip", handle=files),
    ConsolePage(method="GET", path=f"{ONE}/files/{{name}}", handle=file),
    ConsolePage(method="GET", path=f"{ONE}/publish", handle=form_to_publish),
    ConsolePage(method="POST", path=f"{ONE}/publish", handle=publish),
)
