"""Several questions at one price: what is asked, bound and priced together."""

from collections.abc import Callable, Sequence

from lapwing.catalog.model import Budget
from lapwing.ledger.wording import require_label
from lapwing.privacy.measures import Number
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.joint_price import calibrate_together
from lapwing.query.text.parameters import Parameters
from lapwing.release.request import Request
from lapwing.tables.ibis_questions import Question, texts_of


def batch_of(
    questions: "Sequence[Question | tuple[str, Parameters]]",
    bind: Callable[[str, Parameters], Plan],
    budget: Budget,
    *,
    epsilon: Number,
    delta: Number | None,
    label: str | None = None,
) -> list[Request]:
    """Return questions as requests that share one price.

    Raises:
        LapwingError: As `texts_of`, `bind` and `calibrate_together`.
    """
    if label is not None:
        require_label(label)
    pairs = [(question, ()) if isinstance(question, str) else question for question in texts_of(questions)]
    plans = [bind(text, parameters) for text, parameters in pairs]
    for plan in plans:
        plan.require_answerable()
    batch = calibrate_together(plans, budget, epsilon=epsilon, delta=delta)
    return [
        Request(text=text, parameters=parameters, plan=plan, priced=priced, label=label)
        for (text, parameters), plan, priced in zip(pairs, plans, batch, strict=True)
    ]
