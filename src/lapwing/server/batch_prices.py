"""What several questions would cost together, and how good each answer would be; free, and no row is read.

The errors are those of each by itself. Answers that are bought together may be better, as each may say
something of others.
"""

from fractions import Fraction
from functools import partial
from typing import Final

from typing_extensions import TypedDict

from lapwing.documents.answer_document import Record
from lapwing.documents.preview_document import PreviewDocument, preview_document
from lapwing.errors import BudgetExhausted
from lapwing.privacy.amounts import written
from lapwing.query.pricing.joint_price import asked_by
from lapwing.release.affordability import NO_LIMITS, delta_left
from lapwing.release.answering import sum_of
from lapwing.release.batching import batch_of
from lapwing.release.explaining import explain
from lapwing.server.bodies import BatchBody, number
from lapwing.session import Session, access_of

TOO_DEAR: Final = "Together they cost more than is left for you. Nothing would be charged."


class BatchPreviewDocument(TypedDict):
    """What all together would cost, what is left for the caller, and the preview of each, in their order.

    `delta` and `delta_remaining` are the same of the delta that is kept for private keys.

    `refusal` is what they would be refused with now, all of them.
    """

    cost: Record
    remaining: Record
    refusal: str | None
    refusal_code: str | None
    delta: str
    delta_remaining: str
    questions: list[PreviewDocument]


def explain_together(session: Session, body: BatchBody) -> BatchPreviewDocument:
    """Price a batch as it would be bought: what stands there twice counts once, and what was bought before is free.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    delta = None if body.delta is None else number(body.delta, "delta")
    pairs = [(question.sql, question.values()) for question in body.questions]
    state, access = session._state(), access_of(session)
    bind_now = partial(session._bind, session.moment())  # of all of them
    requests = batch_of(pairs, bind_now, session.catalog.budget, epsilon=number(body.epsilon, "epsilon"), delta=delta)
    previews = [explain(request, state, access, None) for request in requests]
    once = {asked_by(request.plan): preview for request, preview in zip(requests, previews, strict=True)}
    nothing = previews[0].cost.nothing()
    cost = sum_of([nothing, *(preview.cost for preview in once.values())])
    remaining = min((preview.remaining for preview in previews), key=lambda loss: loss.amount)
    refused = ((one.refusal, one.refusal_code) for one in previews if one.refusal is not None)
    refusal, code = next(refused, (None, None))
    keys = sum((preview.delta for preview in once.values() if not preview.stored), Fraction(0))
    limits = NO_LIMITS if access.limits is None else access.limits()
    keys_left = delta_left(None, state=state, principal=access.principal, limits=limits)
    if refusal is None and (cost.amount > remaining.amount or keys > keys_left):
        refusal, code = TOO_DEAR, BudgetExhausted.code
    neighbouring = session.catalog.budget.neighbouring
    return {
        "cost": cost.to_record(),
        "remaining": remaining.to_record(),
        "refusal": refusal,
        "refusal_code": code,
        "delta": written(keys),
        "delta_remaining": written(keys_left),
        "questions": [preview_document(preview, neighbouring) for preview in previews],
    }
