"""Questions that one has saved or that one's team shares, and answers that the team shares."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act
from lapwing.server.console.ask.question import QuestionForm, question_of, single
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.saved.charts import chart_in, fields_of
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.templates import segment
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem, problem

MOST: Final = 50
"""Of each list, on one page."""
STARTS: Final = ("after", "after_results")
SAVED: Final = ("sql", "epsilon", "error", "delta", "assuming_count")
"""The fields of a query that are saved."""


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List what is saved of a data set."""
    dataset = visit.part("dataset")
    items = await listed(
        visit, "datasets", dataset, "saved", texts=_texts, most=MOST, belongs=lambda one: "question" in one
    )
    answers = await listed(visit, "datasets", dataset, "shared", texts=_answer_texts, most=MOST, start=STARTS[1])
    return visit.show(
        "saved/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        items=items.items,
        found=items,
        found_answers=answers,
        links={one["id"]: question_of({**one["question"], "label": one["title"]}).link for one in items.items},
        answers=[{**answer, "request": single(answer["request"])} for answer in answers.items],
        refused=refused,
    )


def _texts(item: Any) -> tuple[object, ...]:
    """Return the texts of a saved query in which words are looked for."""
    return item["title"], item["question"]["sql"], item["person"], item["team"]


def _answer_texts(answer: Any) -> tuple[object, ...]:
    request = single(answer["request"])
    return request.get("label"), request.get("sql"), answer["person"]


async def save(visit: PageRequest) -> Response:
    """Save the question of a form; or show why it is not."""
    dataset, question = visit.part("dataset"), QuestionForm.read(visit.form)
    priced = {name: value for name, value in question.priced.items() if name in SAVED and value}
    title = visit.form.get("title", "").strip() or question.label or " ".join(question.sql.split())[:60]
    chart = chart_in(visit.form)
    body: dict[str, Any] = {"title": title, "question": priced, "shared": "shared" in visit.form}
    here = f"/console/data/{segment(dataset)}/saved"
    before = await _own(visit, dataset, title)
    if before is not None and not chart:
        chart = before.get("chart", {})
    body |= {"chart": chart} if chart else {}
    if before is None:
        change = visit.api.send("POST", "datasets", dataset, "saved", body=body)
        return await act(visit, change, Toast(at=here, text=f"Saved {named(title)}."), show)
    body["shared"] = body["shared"] or before["team"] is not None
    action = f"/console/saved/{segment(before['id'])}/change"
    undo = {"what": "question", **{name: str(value) for name, value in before["question"].items()}}
    undo |= fields_of(before.get("chart", {}))
    toast = Toast(at=here, text=f"Replaced your query {named(title)}.", action=action, fields=undo)
    return await act(visit, visit.api.send("PUT", "saved", before["id"], body=body), toast, show)


async def _own(visit: PageRequest, dataset: str, title: str) -> Any:
    """Return the query that one has saved under a title; None if there is none."""
    items = await visit.api.get("datasets", dataset, "saved", limit=1000)
    own = (one for one in items if "question" in one and one["person"] == visit.caller.name)
    return next((one for one in own if one["title"] == title), None)


async def follow(visit: PageRequest) -> Response:
    """Lead to a saved question, or to a dashboard: an address that a team can pass on."""
    id_ = visit.part("saved")
    item = await visit.api.get("saved", id_)
    if "tiles" in item:
        return redirect(f"/console/dashboards/{segment(id_)}")
    question = question_of({**item["question"], "label": item["title"]})
    return redirect(f"/console/data/{segment(item['dataset'])}/ask?{question.link}")


async def change(visit: PageRequest) -> Response:
    """Share something saved, or no longer; remove it, or restore it."""
    id_, what = visit.part("saved"), visit.form.get("what")
    action = f"/console/saved/{segment(id_)}/change"
    if what == "restore":
        item = (await visit.api.send("POST", "saved", id_, "restore")).document
        return visit.tell(Toast(at=_list_of(item), text=f"{named(item['title'])} is back."))
    item = await visit.api.get("saved", id_)
    if what == "remove":
        await visit.api.send("DELETE", "saved", id_)
        text = f"Removed {named(item['title'])}. You can undo this for one hour."
        return visit.tell(Toast(at=_list_of(item), text=text, action=action, fields={"what": "restore"}))
    if what == "question":
        question: dict[str, Any] = {name: visit.form[name] for name in SAVED if name in visit.form}
        if question.get("assuming_count", "").isdigit():
            question["assuming_count"] = int(question["assuming_count"])
        chart = chart_in(visit.form)
        body = {"title": item["title"], "question": question, "shared": item["team"] is not None}
        body |= {"chart": chart} if chart else {}
        await visit.api.send("PUT", "saved", id_, body=body)
        return visit.tell(Toast(at=_list_of(item), text=f"{named(item['title'])} is as it was."))
    content: dict[str, Any] = {name: item[name] for name in ("question", "chart", "tiles") if name in item}
    body = {"title": item["title"], **content, "shared": what == "share"}
    item = (await visit.api.send("PUT", "saved", id_, body=body)).document
    return visit.tell(shared_toast(_list_of(item), named(item["title"]), item["team"], action))


def _list_of(item: Mapping[str, Any]) -> str:
    """Return the address of the list that has something saved."""
    return f"/console/data/{segment(item['dataset'])}/{'dashboards' if 'tiles' in item else 'saved'}"


def shared_toast(at: str, what_is: str, team: str | None, action: str) -> Toast:
    """Return the toast of a change of sharing.

    Args:
        what_is: What is shared, with quotes around a name.
    """
    if team is None:
        text, what = f"Stopped sharing {what_is}. Only you can open it now.", "share"
    else:
        text, what = f"Shared {what_is} with your team {named(team)}.", "keep"
    return Toast(at=at, text=text, action=action, fields={"what": what})


async def share(visit: PageRequest) -> Response:
    """Let one's team open an answer, or no longer."""
    id_, what = visit.part("answer"), visit.form.get("what")
    if what not in ("share", "keep"):
        raise ApiRefusal(problem("invalid_request", 422, "Choose whether to share the result."))
    shared = (await visit.api.send("PUT", "answers", id_, "team", body={"shared": what == "share"})).document
    here = f"/console/answers/{segment(id_)}"
    request = single((await visit.api.get("answers", id_, "request"))["request"])
    what_is = named(request["label"]) if request.get("label") else "this result"
    return visit.tell(shared_toast(here, what_is, shared["team"], f"{here}/share"))


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/saved", handle=show, query=(*STARTS, SEARCH)),
    ConsolePage(method="POST", path="/console/data/{dataset}/saved", handle=save),
    ConsolePage(method="GET", path="/console/saved/{saved}", handle=follow),
    ConsolePage(method="POST", path="/console/saved/{saved}/change", handle=change),
    ConsolePage(method="POST", path="/console/answers/{answer}/share", handle=share),
)
