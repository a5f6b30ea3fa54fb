"""Releases of tables: plan one, see its errors at other costs, run it, download its files, and publish its report.

A release leads to the next one, of the same tables on new data. `changes` compares two of them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from lapwing.errors import LapwingError
from lapwing.privacy.amounts import written
from lapwing.privacy.figures import noisy, separated
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
MOST_CHANGES: Final = 200
"""Changes on a page; the API has all of them."""
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
        previous = {"previous": visit.form["previous"]} if visit.form.get("previous") else {}
        body = {**_body(visit.form, visit.form.get("epsilon", "")), **previous}
        reply = await visit.api.send("POST", "datasets", visit.part("dataset"), "releases", body=body)
    except ApiRefusal as refusal:
        return await _page(visit, visit.form, refused=refusal.document)
    return redirect(f"/console/releases/{segment(reply.document['id'])}")


async def one(visit: PageRequest) -> Response:
    """Show a release: its promise, its errors, its files."""
    found = await visit.api.get("releases", visit.part("release"))
    every = await visit.api.get("releases", limit=MOST)
    others = [other for other in every if other["id"] != found["id"]]
    return visit.show(
        "releases/one.html",
        dataset=found["dataset"],
        found=found,
        text=_as_paid(found["request"]),
        others=others,
        before=_last_period(found, others),
    )


def _last_period(found: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the release that is likely the last period: the one that the report has, or the one with this title."""
    earlier = [one["id"] for one in others if one["title"] == found["title"] and one["created"] <= found["created"]]
    return str(found["request"].get("previous") or next(iter(earlier), ""))


async def changes(visit: PageRequest) -> Response:
    """Compare a release with an earlier one, cell by cell."""
    now, before = visit.part("release"), visit.asked("before")
    document = await visit.api.get("releases", now, "changes", before=before)
    found = [await visit.api.get("releases", one) for one in (before, now)]
    return visit.show(
        "releases/changes.html",
        dataset=found[1]["dataset"],
        before=found[0],
        now=found[1],
        together=document["together"],
        tables=[_counted(one, document["numbers"]) for one in document["numbers"]],
        clear=list(islice(_clear(document["numbers"]), MOST_CHANGES)),
    )


def _counted(number: Mapping[str, Any], numbers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many cells of a table changed."""
    clear = sum(change["is_clear"] for change in number["changes"])
    return {**number, "title": _named(number, numbers), "cells": len(number["changes"]), "changed": clear}


def _clear(numbers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the changes that are larger than their ±: the table, the cell, both figures, the change and its ±."""
    for number in numbers:
        for change in number["changes"]:
            if change["is_clear"]:
                difference, half = change["now"] - change["before"], change["half_width"]
                pairs = zip(number["keys"], change["keys"], strict=True)
                cell = ", ".join(f"{name} {'missing' if key is None else key}" for name, key in pairs)
                figures = (separated(change["before"]), separated(change["now"]))
                yield _named(number, numbers), cell, *figures, *noisy(difference, difference - half, difference + half)


def _named(number: Mapping[str, Any], numbers: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of a table, with the name of the number if it has several."""
    several = sum(other["table"] == number["table"] for other in numbers) > 1
    return f"{number['table']}: {number['name']}" if several else str(number["table"])


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
        previous=typed.get("previous", ""),
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
        "previous": visit.form.get("previous", ""),
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
    ConsolePage(method="GET", path=f"{ONE}/changes", handle=changes, query=("before",)),
    ConsolePage(method="GET", path=f"{ONE}/files.zip", handle=files),
    ConsolePage(method="GET", path=f"{ONE}/files/{{name}}", handle=file),
    ConsolePage(method="GET", path=f"{ONE}/publish", handle=form_to_publish),
    ConsolePage(method="POST", path=f"{ONE}/publish", handle=publish),
)
