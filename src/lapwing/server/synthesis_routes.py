"""The route of synthetic rows: charged as a question is, for people who are trusted with time.

How long it takes follows from which tables were chosen, and so from the data: nobody else may ask, but for what was
bought before. What was bought is in the ledger, so that a request that was broken off is sent again for nothing.
"""

from typing import Annotated, Final

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StrictInt

from lapwing import errors
from lapwing.documents.synthesis_document import SynthesisDocument
from lapwing.server.bodies import MOST_SQL, Amount, Body, Label, Name, Text, number
from lapwing.server.people import Caller
from lapwing.server.problems import may_raise
from lapwing.server.question_routes import hung_up
from lapwing.server.responses import ARROW, described_by, json_response
from lapwing.server.routing import ASKER, OfService, new_router

MOST_ROWS: Final = 1_000_000
MOST_CELLS: Final = 2_000_000
"""Of the tables of a distribution: a service has memory for others, too."""
ABOUT: Final = "By the Accept header the report as JSON, or the rows as Arrow with the report in the schema's metadata."
Columns = Annotated[list[Name], Field(min_length=2, max_length=32)]


class SynthesisBody(Body):
    """Synthetic rows of some columns, and their price; all as `Session.synthesize` takes it."""

    columns: Columns
    epsilon: Amount
    table: Name | None = None
    rows: Annotated[StrictInt, Field(ge=1, le=MOST_ROWS)] | None = None
    method: Annotated[Text, Field(max_length=20)] = "aim"
    workload: StrictInt | Annotated[list[list[Name]], Field(min_length=1, max_length=3_000)] = 2
    bins: StrictInt | dict[Name, StrictInt] = 16
    where: Annotated[Text, Field(min_length=1, max_length=MOST_SQL)] | None = None
    most_cells: Annotated[StrictInt, Field(ge=1_000, le=MOST_CELLS)] = 250_000
    label: Label = "synthesize rows"


router: Final = new_router(prefix="/v1", tags=["questions"])


@router.post(
    "/datasets/{dataset}/synthesize",
    responses=described_by(SynthesisDocument, ABOUT, ARROW),
    openapi_extra=may_raise(
        errors.QueryRefused,
        errors.InvalidParameter,
        errors.BudgetExhausted,
        errors.AllowanceExhausted,
        errors.DataChanged,
        errors.DataStopped,
        errors.DataFault,
        errors.EngineFault,
        errors.Interrupted,
    ),
)
async def synthesize(
    service: OfService, dataset: str, body: SynthesisBody, request: Request, caller: Caller = ASKER
) -> Response:
    """Measure tables with noise and draw rows that nobody has; the same again is free."""
    served = await run_in_threadpool(service.datasets.visible, caller, dataset)
    options = body.model_dump(exclude={"columns", "epsilon"})
    epsilon, wants_rows = number(body.epsilon, "epsilon"), ARROW in request.headers.get("accept", "")

    def work() -> Response:
        from lapwing.synthesis.documents import arrow_of, document_of  # here: few services need it

        session = served.for_caller(caller, service.policies)
        made = session.synthesize(body.columns, epsilon=epsilon, **options)
        return Response(arrow_of(made), media_type=ARROW) if wants_rows else json_response(document_of(made))

    return await service.executor.carry_out(caller, work, lambda: hung_up(request))
