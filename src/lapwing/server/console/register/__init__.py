"""Registering a data set, step by step: a file, what is said of it in public, the catalog with its check, and done.

No code of the data is proposed as one that means missing before the check. The first rows would decide what the form
has, and a catalog is public. In the check a curator sees the codes, and ticks those that the questionnaire has.
What the check shows is exact and private. It stands on the page that answers the form, once: in no address, in no
field that is sent on but codes for missing values that the curator ticks, and in nothing that is kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from lapwing.server.console.acting import guess_shown, number_of, renamed
from lapwing.server.console.catalog_words import in_editor
from lapwing.server.console.editing import with_editor
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.register.fields import (
    LABELS,
    NAME_RULE,
    READING,
    TEXTS,
    TYPES,
    draft_of,
    fields_of,
    in_form,
    proposed,
    with_missing,
)
from lapwing.server.console.register.summary import PRESENCE, examples, guess_of, summary_of
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.datasets import NAME
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/register"
LONGEST_NUMBER: Final = 60


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Step 1: the files of which one can be registered."""
    files = await visit.api.get("files")
    folders = sorted({file["folder"] for file in files})
    status = refused["status"] if refused else 200
    rules = await visit.api.get("uploads")
    return visit.show("register/files.html", status, files=files, folders=folders, rules=rules, refused=refused, step=1)


async def upload(visit: PageRequest) -> Response:
    """Store a file that is uploaded, and show what was found in it, as step 2."""
    if visit.file is None or not visit.file.name:
        return await show(visit, problem("invalid_request", 422, "Choose a file.", "upload"))
    asked = {"name": visit.file.name, "folder": visit.form.get("folder") or None}
    replace = "true" if "replace" in visit.form else None
    try:
        stored = await visit.api.upload(visit.file.chunks, **asked, replace=replace)
    except ApiRefusal as refusal:
        return await show(visit, renamed(refusal.document, {"file": "upload", "name": "upload"}))
    if stored["datasets"]:
        return redirect(f"/console/data/{segment(stored['datasets'][0])}/versions?done=replaced")
    try:
        found = await _read(visit, stored["folder"], stored["file"])
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    typed = proposed(found["columns"])
    return _columns(
        visit,
        stored["folder"],
        stored["file"],
        found["columns"],
        declared=found["declared"],
        typed=typed,
        encoding=found["encoding"],
        uploaded=stored,
    )


async def show_columns(visit: PageRequest) -> Response:
    """Step 2: what is said in public of a file: whose rows, what the columns may hold, the budget."""
    folder, file = visit.asked("folder"), visit.asked("file")
    try:
        found = await _read(visit, folder, file)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    typed = proposed(found["columns"])
    return _columns(
        visit, folder, file, found["columns"], declared=found["declared"], typed=typed, encoding=found["encoding"]
    )


async def draft(visit: PageRequest) -> Response:
    """Step 3: the catalog that follows, to be read and changed."""
    form = visit.form
    try:
        made = (await visit.api.send("POST", "catalogs", "draft", body=draft_of(form))).document
    except ApiRefusal as refusal:
        folder, file = form.get("folder", ""), form.get("file", "")
        found = await _read(visit, folder, file)
        columns, declared, encoding = found["columns"], found["declared"], found["encoding"]
        refused = in_form(form, refusal.document)
        return _columns(visit, folder, file, columns, declared=declared, encoding=encoding, refused=refused)
    if wrong := await _name_at_fault(visit, made["catalog"]):
        return await _filled(visit, fields_of(form), wrong)
    return _catalog(visit, made["catalog"], notes=made["notes"])


async def _name_at_fault(visit: PageRequest, catalog: str) -> Problem | None:
    """Return what is wrong with the name of a drafted data set, which may be the name of the file."""
    summary = summary_of(catalog, {})
    if summary is None:
        return None
    if not NAME.fullmatch(summary["name"]):
        return problem("invalid_parameter", 422, NAME_RULE, "dataset")
    if any(one["name"] == summary["name"] for one in await visit.api.get("datasets")):
        taken = f"There is a data set {summary['name']} already. Choose another name."
        return problem("invalid_parameter", 422, taken, "dataset")
    return None


async def guess(visit: PageRequest) -> Response:
    """Say how often a guess can be right with the budget that is typed; nothing where it is none."""
    try:
        epsilon, delta = (number_of(visit.form.get(name, ""), name) for name in ("epsilon", "delta"))
    except ApiRefusal:
        return HTMLResponse("")
    times = None if max(len(epsilon), len(delta)) > LONGEST_NUMBER else guess_of(epsilon, delta or "0")
    noun = visit.form.get("noun", "").strip() or "unit"
    return HTMLResponse("") if times is None else guess_shown(visit, PRESENCE, times, delta or "0", noun)


async def back(visit: PageRequest) -> Response:
    """Step 2 again, with what was typed there."""
    return await _filled(visit, fields_of(visit.form))


async def add_missing(visit: PageRequest) -> Response:
    """Add the codes that are ticked in the check to the fields of step 2, and draft the catalog anew."""
    typed = with_missing(visit.form)
    try:
        made = (await visit.api.send("POST", "catalogs", "draft", body=draft_of(typed))).document
    except ApiRefusal as refusal:
        return await _filled(visit, typed, in_form(typed, refusal.document))
    return _catalog(visit, made["catalog"], notes=made["notes"], typed=typed, done="missing")


async def _filled(visit: PageRequest, typed: Mapping[str, str], refused: Problem | None = None) -> Response:
    folder, file = typed.get("folder", ""), typed.get("file", "")
    try:
        found = await _read(visit, folder, file)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    columns, declared, encoding = found["columns"], found["declared"], found["encoding"]
    return _columns(visit, folder, file, columns, declared=declared, encoding=encoding, typed=typed, refused=refused)


async def check(visit: PageRequest) -> Response:
    """Read the data that the catalog describes, and show what they are like, this once."""
    try:
        found = (await visit.api.send("POST", "catalogs", "check", body=_sent(visit))).document
    except ApiRefusal as refusal:
        return _catalog(visit, visit.form.get("catalog", ""), refused=refusal.document)
    return _catalog(visit, visit.form.get("catalog", ""), check=found)


async def register(visit: PageRequest) -> Response:
    """Register it."""
    try:
        made = (await visit.api.send("POST", "datasets", body=_sent(visit))).document
    except ApiRefusal as refusal:
        return _catalog(visit, visit.form.get("catalog", ""), refused=refusal.document)
    return redirect(f"/console/data/{segment(made['name'])}/access?done=registered")


async def show_catalog(visit: PageRequest) -> Response:
    """Step 3 alone: a catalog that one has."""
    files = await visit.api.get("files")  # who may register nothing is told so here
    return _catalog(visit, "", folders=sorted({file["folder"] for file in files}))


async def _read(visit: PageRequest, folder: str, file: str) -> Any:
    """Return the columns of a file.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    body = {"folder": folder or None, "file": file}
    return (await visit.api.send("POST", "files", "columns", body=body)).document


def _sent(visit: PageRequest) -> dict[str, Any]:
    return {"catalog": visit.form.get("catalog", ""), "folder": visit.form.get("folder") or None}


def _columns(
    visit: PageRequest,
    folder: str,
    file: str,
    columns: Any,
    *,
    declared: bool,
    encoding: str | None,
    refused: Problem | None = None,
    typed: Mapping[str, str] | None = None,
    uploaded: Any = None,
) -> Response:
    return visit.show(
        "register/columns.html",
        refused["status"] if refused else 200,
        folder=folder,
        file=file,
        columns=columns,
        declared=declared,
        encoding=encoding,
        types=TYPES,
        labels=LABELS,
        examples=examples(),
        stored=("other", "unreadable", *TEXTS, *READING),
        typed=visit.form if typed is None else typed,
        refused=refused,
        uploaded=uploaded,
        step=2,
    )


def _catalog(
    visit: PageRequest,
    catalog: str,
    *,
    notes: Any = (),
    check: Any = None,
    refused: Problem | None = None,
    folders: Sequence[str] = (),
    typed: Mapping[str, str] | None = None,
    done: str = "",
) -> Response:
    typed = fields_of(visit.form) if typed is None else typed
    return with_editor(
        visit,
        "register/catalog.html",
        refused["status"] if refused else 200,
        catalog=catalog,
        folder=visit.form.get("folder", ""),
        typed={name: value for name, value in typed.items() if name != "folder"},
        places={value: key.removeprefix("column-") for key, value in typed.items() if key.startswith("column-")},
        summary=summary_of(catalog, typed) if typed else None,
        added=done == "missing",
        folders=folders,
        notes=notes,
        check=check,
        refused=in_editor(refused),
        step=3,
    )


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show),
    ConsolePage(method="POST", path=f"{HERE}/upload", handle=upload, streamed=True),
    ConsolePage(method="GET", path=f"{HERE}/file", handle=show_columns, query=("folder", "file")),
    ConsolePage(method="POST", path=f"{HERE}/file", handle=draft),
    ConsolePage(method="GET", path=f"{HERE}/catalog", handle=show_catalog),
    ConsolePage(method="POST", path=f"{HERE}/guess", handle=guess),
    ConsolePage(method="POST", path=f"{HERE}/back", handle=back),
    ConsolePage(method="POST", path=f"{HERE}/missing", handle=add_missing),
    ConsolePage(method="POST", path=f"{HERE}/check", handle=check),
    ConsolePage(method="POST", path=HERE, handle=register),
)
