"""An answer put together anew for nothing: some of its rows, in another order, added up over fewer keys."""

import re
from typing import Any, Final

from starlette.responses import Response

from lapwing.answer.answer_table import NUMERIC, cells_of, numeric_columns, ordered
from lapwing.answer.charts.answer_chart import chart_of
from lapwing.server.console.acting import decimal_of
from lapwing.server.console.ask.question import single
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.labels import with_labels
from lapwing.server.console.rearranged.rows import Arrangement, rearranged
from lapwing.server.console.visits import ConsolePage, PageRequest

HOW: Final = ("sum", "largest", "smallest")
ROWS: Final = 500
"""That are shown."""
MOST_KEYS: Final = 20
QUERY: Final = (
    "how", "key", "holds", "column", "above", "below", "sort", "order", "first", "chosen",
    *(f"k{n}" for n in range(MOST_KEYS)),
)  # fmt: skip


async def show(visit: PageRequest) -> Response:
    """Show an answer as it is wanted."""
    id_ = visit.part("answer")
    document = await visit.api.get("answers", id_)
    request = single((await visit.api.get("answers", id_, "request"))["request"])
    document = {"keys": [], "facts": [], **await with_labels(visit, document)}
    wanted = _wanted(visit, document)
    shown = rearranged(document, wanted, request.get("sql", ""))
    places = ordered(shown, wanted.sort, falling=wanted.falling)[: wanted.first]
    return visit.show(
        "rearranged/page.html",
        dataset=document["dataset"],
        id=id_,
        label=request.get("label"),
        answer=document,
        wanted=wanted,
        numbers=sorted(
            (name for name in document["columns"] if document["types"].get(name) in NUMERIC),
            key=lambda name: name in document["keys"],
        ),
        shown=shown,
        left_out=shown.get("left_out", []),
        total=len(places),
        cells=cells_of(shown, places[:ROWS]),
        numeric=numeric_columns(shown),
        chart=chart_of(_of_rows(shown, places), wanted.column if wanted.column in shown["intervals"] else None),
        typed={name: visit.asked(name) for name in ("above", "below", "first")},
    )


def _of_rows(shown: dict[str, Any], places: list[int]) -> dict[str, Any]:
    """Return a document with rows in an order, for the chart; numbers without intervals are drawn too."""
    nothing = {"low": [None] * len(places), "high": [None] * len(places)}
    named = [name for name in shown["columns"] if name not in shown["keys"] and shown["types"].get(name) in NUMERIC]
    ends = {
        name: {end: [shown["intervals"][name][end][p] for p in places] for end in ("low", "high")}
        if name in shown["intervals"]
        else nothing
        for name in named
    }
    return {**shown, "rows": [shown["rows"][place] for place in places], "intervals": ends}


def _wanted(visit: PageRequest, document: dict[str, Any]) -> Arrangement:
    keys, columns = document["keys"], document["columns"]
    chosen = [key for place, key in enumerate(keys[:MOST_KEYS]) if visit.asked(f"k{place}")]
    how, key, column, sort = (visit.asked(name) for name in ("how", "key", "column", "sort"))
    first = visit.asked("first")
    return Arrangement(
        kept=tuple(chosen if visit.asked("chosen") else keys),
        how=next((one for one in HOW if one == how), "sum"),
        key=key if key in keys and visit.asked("holds") else None,
        holds=visit.asked("holds"),
        column=column if column in columns else None,
        above=_real(visit.asked("above")),
        below=_real(visit.asked("below")),
        sort=sort if sort in columns else None,
        falling=visit.asked("order") == "falling",
        first=int(first) if re.fullmatch("[0-9]{1,9}", first) else None,
    )


def _real(text: str) -> float | None:
    try:
        text = decimal_of(text)
    except ApiRefusal:  # which may be two numbers: it limits nothing
        return None
    return float(text) if re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]{0,30})?", text) else None


PAGES: Final = (ConsolePage(method="GET", path="/console/answers/{answer}/rearranged", handle=show, query=QUERY),)
