"""Several questions at one price: what is asked, bound and priced together."""

from collections.abc import Callable, Sequence

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.ledger.wording import require_label
from lapwing.privacy.measures import Number
from lapwing.query.joint_price import calibrate_together
from lapwing.query.plan import Plan
from lapwing.query.text.parameters import Parameters
from lapwing.release.request import Request


def batch_of(
    questions: Sequence[str | tuple[str, Parameters]],
    bind: Callable[[str, Parameters], Plan],
    budget: Budget,
    *,
    epsilon: Number,
    delta: Number | None,
    label: str | None = None,
) -> list[Request]:
    """Return questions as requests that share one price.

    Raises: InvalidParameter for what is no list of questions; as `bind` and `calibrate_together`.
    """
    if isinstance(questions, str):
        raise InvalidParameter("A batch is a list of questions, and this is a text; give [text], or call sql.")
    if label is not None:
        require_label(label)
    pairs = [(question, ()) if isinstance(question, str) else question for question in questions]
    if not pairs:
        raise InvalidParameter("The batch holds no question; give at least one.")
    plans = [bind(text, parameters) for text, parameters in pairs]
    for plan in plans:
        plan.require_answerable()
    batch = calibrate_together(plans, budget, epsilon=epsilon, delta=delta)
    return [
        Request(text=text, parameters=parameters, plan=plan, priced=priced, label=label)
        for (text, parameters), plan, priced in zip(pairs, plans, batch, strict=True)
    ]
