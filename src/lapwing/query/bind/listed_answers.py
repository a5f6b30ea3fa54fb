"""A list of constants beside results: (VALUES ('a'), ('b')) AS v (x) LEFT JOIN counts ON counts.plan = v.x.

The list is a fact of the text. Like public rows, it asks nothing (`public_answers`).
"""

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.bind.public_answers import constant_rows
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.conversion import fixed, folded
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.types import Fixed, Plain, Type
from lapwing.query.from_clause.scope import Scope
from lapwing.query.plan.plan import Plan


def listed_answer(node: exp.Values, names: Sequence[str], within: Scope) -> Plan:
    """Return the plan that shows a list of constants, and asks nothing.

    Raises:
        QueryRefused: If anything in it is no constant, or the values of a column have several types.
    """
    rows, lists = within.nowhere, list[list[Literal]]()
    rows.only(node, "expressions", "alias")
    for row in node.expressions:
        rows.only(row, "expressions")
        values = [folded(bind_expression(value, rows)) for value in row.expressions]
        lists.append([value for value in values if isinstance(value, Literal)])
    if any(len(row) != len(names) for row in lists):
        reason = "A list of values beside results has only constants, and a name for every column"
        raise rows.refusal(node, RefusalCause.NOT_CONSTANT, reason, "Write (VALUES (1), (2)) AS v (x).")
    columns = dict[str, Expression]()
    for place, name in enumerate(names):
        first = next((row[place] for row in lists if row[place].value is not None), lists[0][place])
        kind = _of_all([row[place].type for row in lists if row[place].value is not None] or [first.type])
        if kind is None:
            reason = f"The values of '{name}' are not of one type"
            raise rows.refusal(node, RefusalCause.INCOMPATIBLE_TYPES, reason, "Write all of them alike.")
        columns[name] = Literal(value=first.value, type=kind)
    return constant_rows(columns, [[value.value for value in row] for row in lists], within)


def _of_all(kinds: Sequence[Type]) -> Type | None:
    """Return the type of several constants, if they have one."""
    first, numbers = kinds[0], [kind for kind in kinds if isinstance(kind, Fixed)]
    if len(numbers) == len(kinds):
        step = min(kind.step for kind in numbers)
        ends = [Fraction(end or 0) * kind.step / step for kind in numbers for end in (kind.low, kind.high)]
        whole = all(end.denominator == 1 for end in ends)
        return fixed(step, int(min(ends)), int(max(ends))) if whole else None
    names = {kind.name if isinstance(kind, Plain) else "" for kind in kinds}
    return Plain(name=first.name) if isinstance(first, Plain) and len(names) == 1 else None
