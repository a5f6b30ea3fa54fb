"""The route that adds noise to made-up numbers, so that one sees before paying what an error looks like.

Guarantee:
    The response is a function of the request and of fresh random bits. The route knows no data set, ledger or session.
    Bits come from the operating system for each call, so they tell nothing about the noise of any result.
"""

from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field, StrictInt

from lapwing import errors
from lapwing.query.pricing.quote import MECHANISMS
from lapwing.server.bodies import Amount, Body, number
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.routing import READER, OfService, new_router

LARGEST: Final = 10**15
MOST_GROUPS: Final = 100
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


router: Final = new_router(prefix="/v1", tags=["questions"])


@router.post("/simulate", openapi_extra=may_raise(errors.InvalidParameter))
def simulate(service: OfService, body: SimulationBody, caller: Caller = READER) -> SimulationDocument:
    """Add noise to made-up integers: free, and no data are read."""
    scale = number(body.scale, "scale")
    with service.callers.pricing(caller):
        law = LAWS[body.mechanism].from_record([str(scale)])
        values = [int(value) for value in law.release(np.array(body.values, dtype=np.int64))]
    return SimulationDocument(simulated=True, values=values)
