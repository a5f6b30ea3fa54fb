"""Charts of saved queries: results of the query show them, and so do tiles of these results.

A saved query has the choices of its chart next to its text. All results with this text show the chart: to the owner,
and to the team if the query is shared. Choices in the address of a result come first.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lapwing.answer.charts.chart_options import KINDS, NAMES, ChartOptions
from lapwing.errors import InvalidParameter
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest
from lapwing.server.problems import problem

FIELD: Final = "chart-"
"""The prefix of the names of choices in a form. The form has another title."""
KIND_WORDS: Final[Mapping[str, str]] = {
    "auto": "automatic",
    **{kind: "table only" if kind == "table" else kind for kind in KINDS if kind != "auto"},
}
"""The types of a chart as forms show them."""


def chart_in(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the choices of a form for a request. They are empty if the form states none.

    Raises:
        ApiRefusal: If one is not allowed.

    >>> chart_in({"chart-kind": "bars", "chart-log": "1", "chart-line": "2,5", "title": "Mine"})
    {'kind': 'bars', 'log': True, 'line': 2.5}
    """
    try:
        options = ChartOptions.from_texts({name: form.get(FIELD + name, "") for name in NAMES})
    except InvalidParameter as wrong:
        raise ApiRefusal(problem("invalid_parameter", 422, str(wrong))) from None
    typed = {"log": True, "line": options.line}
    return {name: typed.get(name, text) for name, text in options.texts.items()}


def fields_of(chart: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a form that states choices.

    >>> fields_of({"kind": "bars", "log": True, "line": 2.5})
    {'chart-kind': 'bars', 'chart-log': '1', 'chart-line': '2.5'}
    """
    return {FIELD + name: text for name, text in ChartOptions.from_texts(chart).texts.items()}


def kept_chart(saved: Sequence[Mapping[str, Any]], request: Mapping[str, Any], person: str) -> Mapping[str, Any]:
    """Return the choices of a saved query with this text: of one's own first, then of the one with this label.

    Args:
        saved: All saved queries and dashboards of the data set.
        request: The query.

    >>> one = {"title": "a", "person": "bob", "question": {"sql": "SELECT 1"}, "chart": {"kind": "bars"}}
    >>> mine = {**one, "person": "eve", "chart": {"kind": "lines"}}
    >>> kept_chart([one, mine], {"sql": "SELECT  1"}, "eve"), kept_chart([one], {"sql": "SELECT 2"}, "eve")
    ({'kind': 'lines'}, {})
    """
    text, label = _words(request.get("sql")), request.get("label")
    found = [one for one in saved if one.get("chart") and _words(one["question"]["sql"]) == text]
    first = sorted(found, key=lambda one: (one["person"] != person, one["title"] != label))
    return first[0]["chart"] if first else {}


def _words(sql: Any) -> list[str]:
    return str(sql or "").split()


async def with_kept_chart(visit: PageRequest, dataset: str, tile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tile. A tile of a result without choices gets the choices of the saved query."""
    if "answer" not in tile or any(name in tile for name in NAMES):
        return dict(tile)
    try:
        request = (await visit.api.get("answers", tile["answer"], "request"))["request"]
    except ApiRefusal:
        return dict(tile)
    saved = await visit.api.get("datasets", dataset, "saved", limit=1000)
    return {**kept_chart(saved, request, visit.caller.name), **tile}
