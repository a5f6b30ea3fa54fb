"""Routes of holdouts: a data set that answers questions chosen one after another, with intervals for its population.

A holdout stays here, and with it the count of its questions; what it asks is charged as any question of its owner is,
within the same grants, at the same deadlines, and stands in the same ledger.
"""

from fractions import Fraction
from typing import Annotated, Final, final

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StrictInt

from lapwing import errors
from lapwing.budget import BudgetView
from lapwing.documents.answer_document import value_of
from lapwing.documents.holdout_document import HoldoutAnswerDocument, HoldoutDocument
from lapwing.errors import InvalidParameter, LapwingError, was_charged
from lapwing.exact.floats import float_up
from lapwing.holdout.answer import HoldoutAnswer
from lapwing.holdout.terms import NAME, HoldoutTerms, bought_before, question_of, strategy_of, sum_of
from lapwing.privacy.amounts import probability, written
from lapwing.privacy.measures import Loss
from lapwing.query.measures.measures import Sum
from lapwing.server import credentials
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.bodies import MOST_SQL, Amount, Body, Label, Name, QueryBody, Text, number
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask, RepeatedProblem
from lapwing.server.holdout_store import Holdout
from lapwing.server.listing import MOST, PageOf, cut
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.question_routes import MAY_ASK, After, Key, Limit, allowance_view, hung_up
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import ASKER, READER, OfService, new_router
from lapwing.server.service import Service

_UPWARDS: Final = 1 + Fraction(1, 10**12)
"""Makes up for the last digit of a scale that a document has as a float."""
NOT_ASKED: Final = (errors.KeyConflict, errors.AnswerDropped, RepeatedProblem)
"""Raised where this request drew no noise, whatever an earlier one did."""


class HoldoutBody(Body):
    """A holdout: the public number of rows, one a person, and how many questions it will be asked at most."""

    people: Annotated[StrictInt, Field(ge=1, le=1 << 40)]
    questions: Annotated[StrictInt, Field(ge=1, le=10**6)]
    confidence: Amount = 0.95


class HoldoutQuestionBody(Body):
    """A question to a holdout: one AVG of an expression over all rows of a table."""

    sql: Annotated[Text, Field(min_length=1, max_length=MOST_SQL)]
    table: Name | None = None
    label: Label | None = None


@final
class HoldoutQuestions:
    """Puts the questions of holdouts to their data sets."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def make(self, caller: Caller, served: ServedDataset, body: HoldoutBody) -> Holdout:
        """Make a holdout out of what is left for somebody; it costs nothing, and reserves nothing."""
        confidence = probability(number(body.confidence, "confidence"), "confidence")
        view, budget = served.session.budget(history=False), served.session.catalog.budget
        terms = HoldoutTerms.of(
            budget,
            view,
            self._left_for(caller, served, view, body.questions),
            people=body.people,
            questions=body.questions,
            chance=1 - confidence,
        )
        return self._service.holdouts.make(
            caller.name,
            served.name,
            terms,
            confidence=confidence,
            half_width=float_up(terms.half_width(budget)),
            strategy=strategy_of(budget),
            why=terms.said(budget),
        )

    def _left_for(self, caller: Caller, served: ServedDataset, view: BudgetView, questions: int) -> Loss:
        """Return what somebody may spend on so many questions, by budget and policy as they are now."""
        limits = self._service.policies.limits(served.name, caller.name, served.session.price)
        amounts = [view.remaining.amount]
        amounts += [allowance_view(allowance, view).remaining.amount for allowance in limits.allowances]
        if limits.most is not None:
            amounts.append(questions * limits.most.amount)
        left, least = min(amounts), limits.least * view.total.amount
        if left and left < questions * least:
            raise InvalidParameter(
                f"With {questions:,} queries, each would cost less than the lowest cost of a query here; use at most "
                f"{left // least:,} queries."
            )
        return view.total.from_amount(left)

    def priced(
        self, caller: Caller, served: ServedDataset, held: Holdout, body: HoldoutQuestionBody
    ) -> tuple[QueryBody, Sum]:
        """Return what is to be asked, and the sum that it is; free.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
            InvalidParameter: If a value is not allowed.
        """
        session = served.for_caller(caller, self._service.policies)
        held.terms.require_same(session.budget(history=False))
        tables = [table.name for table in session.catalog.tables]
        text = question_of(body.sql, body.table, tables)
        epsilon = held.terms.price(session.catalog.budget)
        with self._service.callers.pricing(caller):
            measure = sum_of(session.plan(text, (), epsilon=epsilon))
            if session.explain(text, epsilon=epsilon).sharpens:  # of one at this price the answer will say it
                raise bought_before()
        return QueryBody(sql=text, epsilon=written(epsilon), label=body.label), measure

    def told(
        self, held: Holdout, body: HoldoutQuestionBody, measure: Sum, record: AnswerRecord
    ) -> HoldoutAnswerDocument:
        """Return what the noisy sum of a kept answer says of the population.

        Raises:
            QueryRefused: If its noise is not fresh.
        """
        document = record.document
        if document["stored"]:
            raise bought_before()
        ((noise,),) = (column["measures"] for column in document["facts"])
        total = Fraction(value_of(document["rows"][0][NAME], document["types"][NAME]))  # type: ignore[arg-type]
        scale = Fraction(noise["scale"]) / measure.step * _UPWARDS
        reply, low, high = held.terms.reply(total, measure, noise["mechanism"], scale)
        answer = HoldoutAnswer.of(reply, low, high, confidence=held.confidence, question=0, strategy=held.strategy)
        return {
            "question": 0,
            "sql": body.sql,
            "value": answer.value,
            "low": answer.bounds[0] if answer.low is None else answer.low,
            "high": answer.bounds[1] if answer.high is None else answer.high,
            "confidence": answer.confidence,
            "strategy": answer.strategy,
            "source": "noise",
            "bounds": list(answer.bounds),
            "created": record.created,
            "answer": record.id,
        }


router: Final = new_router(prefix="/v1", tags=["holdouts"])


def _visible(service: Service, caller: Caller, holdout: str) -> tuple[Holdout, ServedDataset]:
    """Return a holdout that somebody may see, and its data set."""
    held = service.holdouts.find(holdout)
    if not (held.person == caller.name or caller.at(held.dataset).may("audit")):
        raise missing("holdout")
    return held, service.datasets.visible(caller, held.dataset)


def _own(service: Service, caller: Caller, holdout: str) -> tuple[Holdout, ServedDataset]:
    """Return a holdout of one's own: nobody asks that of another, as its count is a promise to its owner."""
    held, served = _visible(service, caller, holdout)
    if held.person != caller.name:
        raise errors.NotAuthorised("Only the person who created a holdout can query it; create your own.")
    return held, served


@router.post(
    "/datasets/{dataset}/holdouts",
    status_code=201,
    responses=described_by(HoldoutDocument, status=201),
    openapi_extra=may_raise(errors.InvalidParameter, errors.BudgetExhausted),
)
def make(service: OfService, dataset: str, body: HoldoutBody, caller: Caller = ASKER) -> Response:
    """Make a holdout of so many questions, out of what is left of the budget. It is free, and reserves nothing."""
    served = service.datasets.visible(caller, dataset)
    with service.callers.pricing(caller):
        held = HoldoutQuestions(service).make(caller, served, body)
    return json_response(_document(held), {"Location": f"/v1/holdouts/{held.id}"}, status=201)


@router.get("/datasets/{dataset}/holdouts", responses=described_by(list[HoldoutDocument]))
def list_own(service: OfService, dataset: str, request: Request, page: PageOf, caller: Caller = READER) -> Response:
    """List one's own holdouts of a data set, the newest first."""
    served = service.datasets.visible(caller, dataset)
    found = service.holdouts.of(caller.name, served.name, page.most, **page.beginning)
    shown, headers = cut(request, page.limit, found, lambda held: held.id)
    return json_response([_document(held) for held in shown], headers)


@router.get("/holdouts/{holdout}", responses=described_by(HoldoutDocument))
def show(service: OfService, holdout: str, caller: Caller = READER) -> Response:
    """Say what a holdout promises, and how many questions are left."""
    return json_response(_document(_visible(service, caller, holdout)[0]))


@router.get("/holdouts/{holdout}/answers", responses=described_by(list[HoldoutAnswerDocument]))
def answers(
    service: OfService, holdout: str, request: Request, caller: Caller = READER, limit: Limit = MOST, after: After = 0
) -> Response:
    """List what a holdout answered, in order: those after a `question`, a page; free."""
    held, _ = _visible(service, caller, holdout)
    shown, headers = cut(
        request, limit, service.holdouts.answers(held, limit + 1, after), lambda answer: answer["question"]
    )
    return json_response(shown, headers)


@router.post("/holdouts/{holdout}/query", responses=described_by(HoldoutAnswerDocument), openapi_extra=MAY_ASK)
async def ask(
    service: OfService,
    holdout: str,
    body: HoldoutQuestionBody,
    request: Request,
    caller: Caller = ASKER,
    idempotency_key: Key = None,
) -> Response:
    """Answer a question about the population, and charge it. The same request with its key again is free."""
    held, served = await run_in_threadpool(_own, service, caller, holdout)
    key = held.sealed_key(credentials.new_name() if idempotency_key is None else idempotency_key)
    known = await run_in_threadpool(service.holdouts.answer_of, held, key)
    if known is not None:
        if known["sql"] != body.sql:
            raise errors.KeyConflict(
                "This Idempotency-Key was sent with another request. Nothing was charged. Send a new key."
            )
        return json_response(known)
    priced, measure = await run_in_threadpool(HoldoutQuestions(service).priced, caller, served, held, body)
    counts = not await run_in_threadpool(service.answers.knows, caller.name, key)
    if counts:
        await run_in_threadpool(service.holdouts.count, held)
    try:
        ask = Ask(caller=caller, served=served, body=priced, key=key)
        (record,) = await service.executor.ask(ask, lambda: hung_up(request))
    except LapwingError as error:
        if counts and (was_charged(error) is False or isinstance(error, NOT_ASKED)):
            await run_in_threadpool(service.holdouts.give_back, held)
        raise
    if counts and record.document["stored"]:
        counts = False
        await run_in_threadpool(service.holdouts.give_back, held)
    told, counted = await run_in_threadpool(
        lambda: service.holdouts.keep(
            held, key, HoldoutQuestions(service).told(held, body, measure, record), counted=counts
        )
    )
    if counts and not counted:  # another request of the same key was quicker, and counted it too
        await run_in_threadpool(service.holdouts.give_back, held)
    return json_response(told)


def _document(held: Holdout) -> HoldoutDocument:
    return {
        "id": held.id,
        "person": held.person,
        "dataset": held.dataset,
        "created": held.created,
        "people": held.terms.people,
        "questions": held.terms.questions,
        "confidence": float(held.confidence),
        "strategy": held.strategy,
        "half_width": held.half_width,
        "why": held.why,
        "asked": held.asked,
        "left": held.terms.questions - held.asked,
    }
