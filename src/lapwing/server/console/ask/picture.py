"""A simulated picture of a result before it is bought: made-up groups, all alike, with the noise of that price.

The picture follows from the query, its price and assumptions, which are public, and from fresh noise that the service
adds to made-up numbers.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from lapwing.answer.charts.answer_chart import chart_of
from lapwing.answer.charts.chart import Chart
from lapwing.server.console.ask.accuracy import MedianWidth, assumed_rows
from lapwing.server.console.ask.question import QuestionForm
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest
from lapwing.server.simulation_routes import MOST_ROWS

MOST_GROUPS: Final = 12


async def simulated(
    visit: PageRequest,
    bought: QuestionForm,
    preview: Mapping[str, Any],
    typical: Mapping[str, Fraction],
    medians: Mapping[str, MedianWidth],
) -> Chart | None:
    """Return a picture of the first noisy column, None if its result is not simulated.

    No ± is promised of a median. The picture has the one that the assumptions lead to.
    """
    column = next((one["name"] for one in preview["columns"] if one["rests_on"]), None)
    if column is None or column not in typical:
        return None
    body = {
        **bought.priced,
        "assuming_count": min(assumed_rows(bought), MOST_ROWS),
        "groups": min(preview["cells"] or MOST_GROUPS, MOST_GROUPS),
        "typical": {name: str(value) for name, value in typical.items()},
    }
    try:
        answer = (await visit.api.send("POST", "datasets", visit.part("dataset"), "simulate", body=body)).document
    except ApiRefusal:
        return None
    rows = [{"group": f"group {place}", **row} for place, row in enumerate(answer["rows"], 1)]
    ends = {**answer["intervals"]}
    if column in medians and not medians[column].whole:
        half, values = float(medians[column].half_width), [row[column] for row in rows]
        low, high = ([None if x is None else float(x) + sign * half for x in values] for sign in (-1, 1))
        ends[column] = {"low": low, "high": high}
    types, columns = {"group": "string", **answer["types"]}, ["group", *answer["columns"]]
    made_up = {**answer, "columns": columns, "keys": ["group"], "types": types, "rows": rows, "intervals": ends}
    return chart_of(made_up, column)
