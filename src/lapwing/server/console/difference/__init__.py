"""Two answers beside each other: what is in both by the same keys, and by how much their numbers differ.

If the interval of each of two numbers holds but with a chance of α/2, both hold but with a chance of α, whatever their
noises have to do with each other: so their difference is between the low end of the one less the high end of the
other, and the high end less the low. For 95 % both answers are therefore opened at 97.5 %; where that is not to be had
any more, their intervals of 95 % say 90 % of the difference.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from lapwing.answer.answer_table import NUMERIC, CellText, cells_of
from lapwing.answer.charts.answer_chart import chart_of
from lapwing.answer.key_texts import LABELS
from lapwing.answer.truncated_times import TRUNCATED
from lapwing.server.console.ask.question import question_of, single
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.labels import with_labels
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import problem

EACH: Final = "0.975"
ROWS: Final = 500
OFFERED: Final = 20
"""The number of latest results among which Lapwing looks for comparable ones."""
Document = Mapping[str, Any]


async def show(visit: PageRequest) -> Response:
    """Show by how much the numbers of two answers differ."""
    ids = visit.part("answer"), visit.asked("other")
    if not ids[1]:
        return await _offer(visit, ids[0])
    requests = [single((await visit.api.get("answers", id_, "request"))["request"]) for id_ in ids]
    (one, other), confidence = await _opened(visit, ids)
    shown = {**subtracted(await with_labels(visit, one), other), "confidence": confidence}
    columns = [name for name in shown["columns"] if name not in shown["keys"]]
    cells: list[list[CellText]] = cells_of(shown, range(min(len(shown["rows"]), ROWS)))
    return visit.show(
        "difference/page.html",
        dataset=one["dataset"],
        ids=ids,
        requests=requests,
        answers=(one, other),
        shown=shown,
        cells=cells,
        numeric=set(columns),
        chart=chart_of(shown),
        confidence=confidence,
        only=[_only(one, other), _only(other, one)],
    )


async def _offer(visit: PageRequest, id_: str) -> Response:
    """Show with which of the latest results this one can be compared."""
    one = {"keys": [], **await visit.api.get("answers", id_)}
    latest = await visit.api.get("datasets", one["dataset"], "answers", limit=OFFERED)
    others = []
    for other in latest:
        if other["id"] == id_:
            continue
        try:
            document = {"keys": [], **await visit.api.get("answers", other["id"])}
        except ApiRefusal:  # a result that is not kept any more
            continue
        if _numbers_in_both(one, document):
            others.append({**other, "request": single(other["request"])})
    request = single((await visit.api.get("answers", id_, "request"))["request"])
    question = question_of(request) if "sql" in request else None
    facts = {"dataset": one["dataset"], "id": id_, "request": request, "question": question, "others": others}
    return visit.show("difference/choice.html", **facts)


async def _opened(visit: PageRequest, ids: tuple[str, str]) -> tuple[tuple[Document, Document], float]:
    """Return both answers, with the confidence of differences between them."""
    try:
        pair = [await visit.api.get("answers", id_, confidence=EACH) for id_ in ids]
    except ApiRefusal as refusal:
        if refusal.document["code"] != "data_changed":
            raise
        pair = [await visit.api.get("answers", id_) for id_ in ids]
    chance = sum(1 - document["confidence"] for document in pair)
    return ({"keys": [], **pair[0]}, {"keys": [], **pair[1]}), round(1 - chance, 6)


def subtracted(one: Document, other: Document) -> dict[str, Any]:
    """Return the second answer less the first, by the keys that they have in common, as a document of the same form.

    Raises:
        ApiRefusal: If there is nothing to subtract.
    """
    keys, numbers = list(one["keys"]), _numbers_in_both(one, other)
    if not numbers:
        raise ApiRefusal(
            problem(
                "invalid_parameter",
                422,
                "Lapwing can compare only results with the same keys and a noisy number of the same name.",
            )
        )
    there = {tuple(row[key] for key in keys): place for place, row in enumerate(other["rows"])}
    pairs = [(place, there.get(tuple(row[key] for key in keys))) for place, row in enumerate(one["rows"])]
    both = [(a, b) for a, b in pairs if b is not None]
    rows: list[dict[str, Any]] = [{key: one["rows"][a][key] for key in keys} for a, _ in both]
    ends: dict[str, dict[str, list[float | None]]] = {name: {"low": [], "high": []} for name in numbers}
    types = {key: one["types"][key] for key in keys}
    for name in numbers:
        whole = one["types"][name] == other["types"][name] == "integer"
        types[name] = "integer" if whole else "real"
        for row, (a, b) in zip(rows, both, strict=True):
            row[name] = _less(other["rows"][b][name], one["rows"][a][name])
            first, second = one["intervals"][name], other["intervals"][name]
            ends[name]["low"].append(_less(second["low"][b], first["high"][a]))
            ends[name]["high"].append(_less(second["high"][b], first["low"][a]))
    labels = {name: one[LABELS][name] for name in keys if name in one.get(LABELS, {}) and _same_key(name, one, other)}
    units = {name: unit for name, unit in one.get(TRUNCATED, {}).items() if other.get(TRUNCATED, {}).get(name) == unit}
    return {
        "columns": [*keys, *numbers], "rows": rows, "types": types, "keys": keys, "intervals": ends, LABELS: labels,
        TRUNCATED: units,
    }  # fmt: skip


def _same_key(name: str, one: Document, other: Document) -> bool:
    declared = [document.get("key_columns", {}).get(name) for document in (one, other)]
    return declared[0] is not None and declared[0] == declared[1]


def _numbers_in_both(one: Document, other: Document) -> list[str]:
    """Return the noisy numbers that two results share; none if their keys differ."""
    if sorted(one["keys"]) != sorted(other["keys"]):
        return []
    return [
        name
        for name in one["intervals"]
        if name in other["intervals"] and {one["types"].get(name), other["types"].get(name)} <= set(NUMERIC)
    ]


def _less(value: Any, other: Any) -> Any:
    if value is None or other is None:
        return None
    return value - other if isinstance(value, int) and isinstance(other, int) else float(value) - float(other)


def _only(one: Document, other: Document) -> int:
    keys = one["keys"]
    there = {tuple(row[key] for key in keys) for row in other["rows"]}
    return sum(tuple(row[key] for key in keys) not in there for row in one["rows"])


PAGES: Final = (ConsolePage(method="GET", path="/console/answers/{answer}/difference", handle=show, query=("other",)),)
