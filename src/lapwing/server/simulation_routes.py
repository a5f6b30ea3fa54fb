"""The routes that add noise to made-up numbers, so that one sees before paying what an error looks like.

Guarantee:
    The responses are functions of the request, the catalog and fresh random bits. `release.simulated` has the proof
    for questions. The other route knows no data set, ledger or session. Bits come from the operating system for each
    call, so they tell nothing about the noise of any result.
"""

from fractions import Fraction
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, StrictInt
from typing_extensions import TypedDict

from lapwing import errors
from lapwing.answer.json_values import JsonValue
from lapwing.documents.answer_document import EndsDocument, answer_document, description_document
from lapwing.exact.entropy import SYSTEM
from lapwing.query.pricing.quote import CONFIDENCE, MECHANISMS
from lapwing.release.simulated import AssumedGroup, simulated
from lapwing.server.bodies import Amount, Body, PricedBody, Text, number
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.routing import READER, OfService, new_router

LARGEST: Final = 10**15
MOST_ROWS: Final = 10**12
MOST_GROUPS: Final = 100
MOST_COLUMNS: Final = 100
LAWS: Final = {mechanism.name: mechanism for mechanism in MECHANISMS["gdp"]}


class SimulationBody(Body):
    """Made-up integers, and the noise to add: the mechanism and scale that a preview names."""

    mechanism: Literal["rounded Gaussian", "discrete Laplace"]
    scale: Amount
    values: Annotated[
        list[Annotated[StrictInt, Field(ge=-LARGEST, le=LARGEST)]], Field(min_length=1, max_length=MOST_GROUPS)
    ]


class SimulationDocument(Body):
    """The made-up integers with noise."""

    simulated: Literal[True]
    values: list[int]


class SimulatedQueryBody(PricedBody):
    """A question with its price, and what is assumed of every group: `assuming_count` rows, and typical results."""

    assuming_count: Annotated[StrictInt, Field(ge=1, le=MOST_ROWS)] = 500
    groups: Annotated[StrictInt, Field(ge=1, le=MOST_GROUPS)] = 12
    typical: Annotated[dict[Text, Amount], Field(max_length=MOST_COLUMNS, default_factory=dict)]


class SimulatedAnswer(TypedDict):
    """Made-up groups with the noise of a price; `simulated` is always true. No group is real, so there are no keys."""

    simulated: Literal[True]
    columns: list[str]
    types: dict[str, str]
    rows: list[dict[str, JsonValue]]
    confidence: float
    intervals: dict[str, EndsDocument]
    facts: list[dict[str, Any]]


router: Final = new_router(prefix="/v1", tags=["questions"])


@router.post("/simulate", openapi_extra=may_raise(errors.InvalidParameter))
def simulate(service: OfService, body: SimulationBody, caller: Caller = READER) -> SimulationDocument:
    """Add noise to made-up integers: free, and no data are read."""
    scale = number(body.scale, "scale")
    with service.callers.pricing(caller):
        law = LAWS[body.mechanism].from_record([str(scale)])
        values = [int(value) for value in law.release(np.array(body.values, dtype=np.int64))]
    return SimulationDocument(simulated=True, values=values)


@router.post("/datasets/{dataset}/simulate", openapi_extra=may_raise(errors.QueryRefused, errors.InvalidParameter))
def simulate_query(
    service: OfService, dataset: str, body: SimulatedQueryBody, caller: Caller = READER
) -> SimulatedAnswer:
    """Answer a question with made-up groups, and the noise of its price: free, and no data are read."""
    served = service.datasets.visible(caller, dataset)
    typical = {name: _typical(result) for name, result in body.typical.items()}
    with service.callers.pricing(caller):
        session, prices = served.for_caller(caller, service.policies), body.prices()
        asked = (prices["epsilon"], prices["error"], prices["delta"])
        request = session._planned(body.sql, body.values(), *asked, assuming_count=body.assuming_count)
        group = AssumedGroup(rows=body.assuming_count, typical=typical)
        answer = simulated(request, group, body.groups, SYSTEM)
        facts = answer.describe()
        shown, public = answer_document(answer, CONFIDENCE, facts), description_document(answer, facts)
    keys = set(public["keys"])
    columns = [name for name in shown["columns"] if name not in keys]
    return {
        "simulated": True,
        "columns": columns,
        "types": {name: kind for name, kind in answer.types.items() if name in columns},
        "rows": [{name: row[name] for name in columns} for row in shown["rows"]],
        "confidence": shown["confidence"],
        "intervals": {name: ends for name, ends in shown["intervals"].items() if name in columns},
        "facts": [column for column in public["facts"] if column["name"] in columns],
    }


def _typical(result: Amount) -> Fraction:
    typical = number(result, "typical")
    if abs(typical) > LARGEST:
        raise errors.InvalidParameter(f"A typical result is at most {LARGEST:,}.")
    return typical
