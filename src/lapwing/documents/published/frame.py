"""The height of a frame of another site that shows a published page: titles, charts, errors, and the rest folded.

A site cannot ask how tall a page in its frame is. So the height is estimated once, for the width at which it is
largest, and stands in the HTML that a publisher copies. If the estimate is too small, the frame scrolls.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.svg import svg_of
from lapwing.documents.published.page import facts_of
from lapwing.documents.published.snapshots import read

PHONE: Final = 290
"""Pixels that a text has in a frame on a phone."""
CHARACTER: Final = 0.58
"""The width of a character, in sizes of its font: of wide fonts, and with the end of each line left empty."""
WIDE, NARROW = 720, 416
"""Pixels to which the style of a frame stretches the two drawings of a chart at most: 45 and 26 rem."""
TALLEST: Final = 2400
REPORT: Final = 800
"""Of a method report, which has many tables and is read by scrolling."""
_BOX: Final = re.compile(r'viewBox="\S+ \S+ ([0-9.]+) ([0-9.]+)"')
_SUMMARY, _ROW, _GAP, _SENTENCE, _AROUND = 32, 36, 16, 95, 170


def frame_height(content: str) -> int:
    """Return the pixels of a frame in which the page of a snapshot fits, also on a phone.

    Raises:
        Fault: If a later release wrote the snapshot.
    """
    page = read(content)
    if "method_page" in page:
        return REPORT
    facts = facts_of(page)
    height = _AROUND + _text(page["title"], 20) + (_SENTENCE if facts["level"] is not None else 0)
    for part in facts["parts"]:
        height += _GAP + (_result(facts["results"][part["result"]]) if "result" in part else _written(part))
    return min(TALLEST, -(-int(height) // 10) * 10)


def _result(result: Mapping[str, Any]) -> float:
    document, chart = result["document"], result["chart"]
    height = _text(result["title"], 16) + _text(document.get("about", ""), 14)
    height += _SUMMARY if document["query"] else 0
    if len(document["rows"]) == 1 and not document["keys"]:
        return height + 60 * len(document["columns"])
    if chart is None:
        return height + _ROW * (1 + len(document["rows"]))
    drawn = max(_drawn(chart, WIDE), _drawn(chart.narrow or chart, NARROW))
    return height + drawn + _SUMMARY + (_SUMMARY if chart.left_out else 0)


def _drawn(chart: Chart, pixels: int) -> float:
    """Return the height of a drawing that is so many pixels wide."""
    width, height = map(float, _BOX.findall(svg_of(chart))[0])
    return pixels * height / width


def _written(part: Mapping[str, Any]) -> float:
    lines = (_text(line, 16) for block in part["blocks"] for line in block.lines)
    return _text(part["title"], 16) + sum(lines) + _GAP * len(part["blocks"])


def _text(text: str, size: int) -> float:
    """Return the height of a text that is broken on a phone; 0 of an empty one."""
    return 1.5 * size * (1 + int(len(text) * size * CHARACTER) // PHONE) + 6 if text else 0.0
