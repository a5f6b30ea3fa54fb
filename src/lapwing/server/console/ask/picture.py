"""A simulated picture of a result before it is bought: made-up groups, all of one size, with the noise of that price.

The picture follows from the preview, which is public, and from fresh noise that the service adds to made-up numbers.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from lapwing.server.console.charts.answer_chart import Chart, chart_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest

SIMULATED: Final = ("rounded Gaussian", "discrete Laplace")
MOST_GROUPS: Final = 12
FINE: Final = 100
"""Steps in one scale of the noise, at least, if the made-up number is no integer."""


async def simulated(visit: PageRequest, preview: Mapping[str, Any], typical: Mapping[str, Fraction]) -> Chart | None:
    """Return a picture of the first noisy column, None if its noise is not simulated."""
    column = next((one for one in preview["columns"] if one["rests_on"]), None)
    if column is None or len(column["rests_on"]) != 1 or not column["half_width"] or column["name"] not in typical:
        return None
    measure = next((one for one in preview["measures"] if one["measure"] == column["rests_on"][0]), None)
    if measure is None or measure["mechanism"] not in SIMULATED:
        return None
    value, parts = float(typical[column["name"]]), 1
    while measure["scale"] * parts < FINE and value * parts % 1 and parts < FINE**3:
        parts *= 10
    made_up = [round(value * parts)] * max(2, min(preview["cells"] or MOST_GROUPS, MOST_GROUPS))
    body = {"mechanism": measure["mechanism"], "scale": measure["scale"] * parts, "values": made_up}
    try:
        noisy = (await visit.api.send("POST", "simulate", body=body)).document["values"]
    except ApiRefusal:
        return None
    name, half = column["name"], column["half_width"]
    rows = [{"group": f"group {place}", name: one / parts} for place, one in enumerate(noisy, 1)]
    ends = {"low": [row[name] - half for row in rows], "high": [row[name] + half for row in rows]}
    facts = [{"name": name, "half_width": half, "measures": [{"mechanism": measure["mechanism"]}]}]
    types = {"group": "string", name: "real"}
    document = {"columns": ["group", name], "keys": ["group"], "types": types, "rows": rows, "facts": facts}
    return chart_of({**document, "intervals": {name: ends}})
