"""A monitor on a published page: what it has released up to now, as lines over time with bands.

Guarantee:
    The page has numbers of ticks that were released, and no others: `Monitor.ticks` reads what was released, and never
    what was counted. Everybody who may see the data set reads the same ticks for nothing. A page is a snapshot, so a
    later tick is not on it. Its cost is the loss of one unit by all releases up to now. It is read after the ticks, so
    a horizon that begins meanwhile makes it larger, and never too small.
"""

from collections.abc import Mapping
from typing import Any, Final

from lapwing.answer.charts.chart_options import NAMES, ChartOptions
from lapwing.documents.answer_document import answer_document, facts_document
from lapwing.documents.over_time import LINES, TICKS, over_time
from lapwing.documents.published.snapshots import ResultToShow
from lapwing.monitors.describing import limit_in_words
from lapwing.monitors.monitor import Monitor
from lapwing.server.monitor_routes import CONFIDENCE
from lapwing.server.saved_routes import USUAL_WIDTH

OWN: Final = ("title", "column")
"""Choices of a chart that a snapshot has in places of their own."""


def monitor_to_show(dataset: str, monitor: Monitor, tile: Mapping[str, Any], *, query: bool) -> ResultToShow | None:
    """Return the latest ticks of a monitor as one result; None if it has released none.

    Args:
        tile: Of a dashboard: the width and the choices of the chart.
        query: Whether the page shows its text.
    """
    ticks = list(monitor.ticks(max(0, monitor.released - TICKS)))
    if not ticks:
        return None
    last, cost = ticks[-1], monitor.loss_so_far
    released = over_time(
        [{"time": tick.time.isoformat(), "answer": answer_document(tick.answer, CONFIDENCE)} for tick in ticks]
    )
    chosen = {**LINES, **{name: tile[name] for name in NAMES if name in tile and name not in OWN}}
    limit = limit_in_words(monitor)
    return ResultToShow(
        id=f"monitor {monitor.name}",
        dataset=dataset,
        document={**released, "facts": [facts_document(column) for column in last.answer.describe()]},
        released=f"{last.time:%Y-%m-%d}",
        query=monitor.definition.text if query else None,
        cost=cost.to_record(),
        title=tile.get("title") or monitor.name,
        column=tile.get("column"),
        chart=ChartOptions.from_texts(chosen).texts,
        width=tile.get("width", USUAL_WIDTH),
        about=f"A monitor that releases numbers over time, up to {last.time:%Y-%m-%d %H:%M} UTC: {limit}.",
    )
