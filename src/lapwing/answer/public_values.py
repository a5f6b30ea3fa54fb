"""A query over only public rows asks nothing: what it shows is a function of its plan."""

from lapwing.answer.answer import Answer
from lapwing.answer.python_values import Cell, cells
from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import PureDP
from lapwing.query.plan.plan import Plan


def public_values(plan: Plan) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows that a plan without a leaf shows, as Python values.

    Guarantee:
        0-DP. An answer is made with released numbers of each of its measures, and refused without. Here are none.

    Raises:
        InvalidParameter: If it is of rows that have a unit.
    """
    answer = _answer(plan)
    columns = [cells(answer._columns[output.name], output.value.shape) for output in plan.outputs]
    return tuple(zip(*columns, strict=True))


def _answer(plan: Plan) -> Answer:
    if plan.composition is None:
        raise InvalidParameter("Only a query over public rows has a result that nobody paid for.")
    return Answer(
        plan=plan,
        mechanisms=(),
        values=(),
        keys=(),
        cost=PureDP(0),
        sources=[_answer(source) for source in plan.composition.sources],
    )
