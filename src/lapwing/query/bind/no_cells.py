"""A question of which no cell can have a row: its result is empty, and free.

    SELECT day, COUNT(*) FROM visits WHERE day BETWEEN DATE '1999-01-01' AND DATE '1999-12-31' GROUP BY day

Which cells a result has is public: it follows from the text, the catalog and the public tables (`possible_keys`). Where
none is left, SQL's result has no rows, in any data, and no number is released.
"""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Output
from lapwing.query.derivation.source_values import SourceValue
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import NULL
from lapwing.query.measures.measures import Key
from lapwing.query.plan.composition import Composition, impossible_in
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.text.parse import Parsed


def require_possible(plan: Plan, node: exp.Expression, rows: RowScope) -> None:
    """Refuse a result that has no rows in any data, where something is to be compared with it.

    Raises:
        QueryRefused: If no row can have a value of its keys.
    """
    for named in impossible_in(plan):
        reason = f"No row can have a value of {named}, in any data: there is nothing to compare with"
        remedy = "Look at WHERE inside, and at what the public tables hold."
        raise rows.refusal(node, RefusalCause.NO_POSSIBLE_KEYS, reason, remedy)


def without_cells(question: Question, outputs: Sequence[Output], parsed: Parsed) -> Plan:
    """Return the plan of an empty result with these columns.

    Guarantee:
        PureDP(0) for all neighbours: it has no leaf that touches data.
    """
    nothing = Question(selection=question.selection, keys=(), measures=())
    keys = tuple(Key(expression=ColumnReference(name=output.name, type=NULL), values=()) for output in outputs)
    named = [
        (output.name, KeyValue(key=key, shape=output.value.shape)) for key, output in zip(keys, outputs, strict=True)
    ]
    empty = Plan(
        question=nothing,
        keys=(),
        outputs=tuple(Output(name=name, value=value) for name, value in named),
        composition=Composition(sources=(), joins=(), public=keys),
    )
    impossible = " and ".join(dict.fromkeys(key.name for key in question.keys))
    return Plan(
        question=nothing,
        keys=(),
        outputs=tuple(Output(name=name, value=SourceValue(source=0, value=value)) for name, value in named),
        price_request=PriceRequest(epsilon=parsed.options.epsilon, delta=parsed.options.delta),
        explain=parsed.explain,
        composition=Composition(sources=(empty,), joins=(), impossible=impossible),
        moment=parsed.moment,
    )
