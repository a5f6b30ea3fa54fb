"""An answer: its table and chart with intervals, and what can be done with it for nothing."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lapwing.answer.answer_table import cells_of, numeric_columns, ordered
from lapwing.answer.charts.answer_chart import chart_of, columns_of
from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.chart_options import NAMES, ORDERS, ChartOptions
from lapwing.answer.charts.svg import svg_of
from lapwing.answer.notes import REFINED
from lapwing.answer.workbooks import can_write_workbooks
from lapwing.documents.answer_document import codes_of, notes_in
from lapwing.documents.tables_with_texts import with_labels_for_codes, with_texts
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import read
from lapwing.privacy.measures import from_record
from lapwing.server.console.answer.files import (
    TABLES,
    notebook_of,
    picture_of,
    snippets,
    table_of,
)
from lapwing.server.console.answer.workbook import KIND, workbook_of
from lapwing.server.console.ask.question import question_of, single
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.labels import with_labels
from lapwing.server.console.saved.charts import KIND_WORDS, kept_chart
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import problem
from lapwing.server.responses import ARROW

ROWS: Final = 200
"""Of an answer, on one page."""
CHART: Final = ("chart", *NAMES[1:])
"""Query parameters that choose the chart: `chart` is its column."""
QUERY: Final = ("done", "page", "sort", "order", "confidence", "view", *CHART)


async def show(visit: PageRequest) -> Response:
    """Show an answer as it was given, or at another confidence, or with numbers that can be true together."""
    id_ = visit.part("answer")
    bare = await visit.api.get("answers", id_, confidence=visit.asked("confidence") or None)
    document = await with_labels(visit, bare)
    shown, consistent = document, visit.asked("view") == "consistent"
    if consistent:
        changed = await visit.api.get("answers", id_, "consistent")
        shown = {**document, "rows": changed["rows"], "intervals": {}}
    bought = await visit.api.get("answers", id_, "request")
    request = single(bought["request"])
    dataset, refined = document["dataset"], REFINED in codes_of(notes_in(document))
    saved = await visit.api.get("datasets", dataset, "saved", limit=1000)
    sort, falling = visit.asked("sort") or None, visit.asked("order") == "falling"
    places = ordered(shown, sort, falling=falling)
    last = max(1, math.ceil(len(places) / ROWS))
    page = min(max(1, _whole(visit.asked("page", "1"))), last)
    columns, options = columns_of(document), _options_of(visit, document, kept_chart(saved, request, visit.caller.name))
    return visit.show(
        "answer/page.html",
        dataset=dataset,
        address=visit.address,
        answer=document,
        request=request,
        bought=bought,
        refined=refined,
        charged=await _charged(visit, document) if refined or request.get("epsilon") is None else None,
        dashboards=[one for one in saved if "tiles" in one and one["person"] == visit.caller.name],
        workbooks=can_write_workbooks(),
        pictures=find_spec("vl_convert") is not None,
        question=question_of(request) if "sql" in request else None,
        cells=cells_of(shown, places[(page - 1) * ROWS : page * ROWS], document if consistent else None),
        noisy=set(shown["intervals"]),
        numeric=numeric_columns(shown),
        chart=None if consistent or page > 1 else _chart_of(document, options),
        options=options,
        changing="arrange" in visit.request.query_params,  # which the form always sends
        kinds=KIND_WORDS,
        orders=ORDERS,
        charted=columns,
        consistent=consistent,
        sort=sort,
        falling=falling,
        page=page,
        last=last,
        snippets=snippets(visit.address, dataset, request) if "sql" in request else [],
    )


async def _charged(visit: PageRequest, document: Mapping[str, Any]) -> float | None:
    """Return what an answer was charged, as the ε of its preview; None without a view of the budget."""
    try:
        budget = await visit.api.get("datasets", document["dataset"], "budget")
    except ApiRefusal:
        return None
    delta = read(budget["guarantee"]["delta"], "delta") - read(budget["delta_keys"], "delta_keys")
    return from_record(document["cost"]).to_epsilon(delta=delta)


async def export(visit: PageRequest) -> Response:
    """Return an answer as a file."""
    id_, form = visit.part("answer"), visit.part("form")
    name = f"answer-{id_[:8]}.{form}"
    document = await visit.api.get("answers", id_)
    if form in TABLES or form == "xlsx":
        reply = await visit.api.send("GET", "answers", id_, headers={"accept": ARROW})
        described = await with_labels(visit, document)
        kind, written = TABLES.get(form, (KIND, lambda table: workbook_of(table, document)))

        def file_content() -> bytes:
            table = with_texts(table_of(reply.content), described)
            return written(with_labels_for_codes(table, described) if visit.asked("labels") == "1" else table)

        return _file(await run_in_threadpool(file_content), kind, name)
    if form == "json":
        return _file(json.dumps(document, ensure_ascii=False, indent=1).encode(), "application/json", name)
    if form == "ipynb":
        request = single((await visit.api.get("answers", id_, "request"))["request"])
        if "sql" in request:
            content = notebook_of(visit.address, document["dataset"], request)
            return _file(content, "application/x-ipynb+json", name)
    drawable = form in ("svg", "png")
    chart = _chart_of(await with_labels(visit, document), _options(visit)) if drawable else None
    if chart is None:
        raise ApiRefusal(problem("not_found", 404, "This result has no such file."))
    drawn = svg_of(chart, alone=True)
    if form == "svg":
        return _file(drawn.encode(), "image/svg+xml", name)
    return _file(await run_in_threadpool(picture_of, drawn), "image/png", name)


def _options_of(visit: PageRequest, document: Mapping[str, Any], kept: Mapping[str, Any]) -> ChartOptions:
    """Return the choices in the address; without any, return those of the saved query.

    Raises:
        ApiRefusal: If a value of the address is not allowed.
    """
    if not kept or any(name in visit.request.query_params for name in CHART):
        return _options(visit)
    options = ChartOptions.from_texts(kept)
    with suppress(InvalidParameter):  # of a key that the result does not have
        chart_of(document, options=options)
        return options
    return _options(visit)


def _options(visit: PageRequest) -> ChartOptions:
    """Read the chart's choices from the address.

    Raises:
        ApiRefusal: If a value is not allowed.
    """
    fields = {name: visit.asked(name) for name in CHART}
    with _refusing():
        return ChartOptions.from_texts({**fields, "column": fields["chart"]})


def _chart_of(document: Mapping[str, Any], options: ChartOptions) -> Chart | None:
    with _refusing():
        return chart_of(document, options=options)


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse a request whose address has choices of a chart that are not allowed."""
    try:
        yield
    except InvalidParameter as wrong:
        raise ApiRefusal(problem("invalid_parameter", 422, str(wrong))) from None


def _file(content: bytes, kind: str, name: str) -> Response:
    headers: dict[str, Any] = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        if kind.startswith("image/")
        else "default-src 'none'; sandbox",
    }
    return Response(content, media_type=kind, headers=headers)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1


PAGES: Final = (
    ConsolePage(method="GET", path="/console/answers/{answer}", handle=show, query=QUERY),
    ConsolePage(method="GET", path="/console/answers/{answer}/file.{form}", handle=export, query=(*CHART, "labels")),
)
