"""Steps of plain questions: each step of an engine for a row is measured by itself, on rows that nobody has.

Theory of operation. The model (`query.plan.work`) knows one speed for all that an engine does, the worst that any kind
of question shows. A count that compares a number takes less than that for each nominal nanosecond, and one that joins
two conditions by OR takes more. So of plain questions, which are most, each step that an engine takes for a row has a
speed of its own (`QUERIES`). They are counts, sums and means over a table with an index. Their conditions compare small
numbers to constants, joined by AND, OR and NOT. A FILTER has one such comparison. All else is the model's.

How long a step takes depends on the rows. It takes longest where half of them meet a condition at random, and half of
the values are NULL at random. So the rows on which steps are measured are such. That a column has no NULL counts only
where the catalog says so (`nullable = false`), as what the data have is nobody's to know.

Guarantee:
    The reservation follows from the plan, the catalog and made-up rows. No row of the data has a part in it, so that
    moments stay functions of public facts (`docs/theory/deadlines.md`). It is to be above what any data take.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from lapwing.catalog.table import Table
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count, NumberMeasure, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import ProtectedRows

WIDEST: Final = 2**31
"""Numbers of more steps than this are wider than those that are measured, and their sums as well."""
NOTHING: Final = "nothing"
QUERIES: Final[Mapping[str, str]] = {
    NOTHING: "SELECT COUNT(*) FROM plain",
    "compared": "SELECT COUNT(*) FROM plain WHERE even >= 1000000000",
    "compared_null": "SELECT COUNT(*) FROM plain WHERE spotty >= 1000000000",
    "branched": "SELECT COUNT(*) FROM plain WHERE even >= 1200000000 OR even < 600000000",
    "branched_null": "SELECT COUNT(*) FROM plain WHERE spotty >= 1200000000 OR spotty < 600000000",
    "summed": "SELECT SUM(even) FROM plain",
    "summed_null": "SELECT SUM(spotty) FROM plain",
    "count_filtered": "SELECT COUNT(*) FILTER (WHERE even >= 1000000000) FROM plain",
    "count_filtered_null": "SELECT COUNT(*) FILTER (WHERE spotty >= 1000000000) FROM plain",
    "sum_filtered": "SELECT SUM(even) FILTER (WHERE even >= 1000000000) FROM plain",
}
"""By which questions steps are measured: `even` has no NULL, and `spotty` has some."""
LARGEST: Final = 2_000_000_000
"""Values of both columns are below this, at random."""


def seconds_of(took: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each step by those that `QUERIES` took: by the names that `Speed` has for them.

    A step of two is what the question takes beyond the other one. `null` is what a column costs more that has NULLs;
    `known` is that where the engine leaves NULLs out before it compares.
    """
    own = {name: seconds - took[NOTHING] for name, seconds in took.items()}
    return {
        "compared": own["compared"],
        "known": own["compared_null"] - own["compared"],
        "null": max(
            (own["branched_null"] - own["branched"]) / 2,
            own["summed_null"] - own["summed"],
            own["count_filtered_null"] - own["count_filtered"],
        ),
        "branched": own["branched"] - 2 * own["compared"],
        "summed": own["summed"],
        "count_filtered": own["count_filtered"] - own["compared"],
        "sum_filtered": own["sum_filtered"] - own["compared"] - own["summed"],
    }


def steps(question: Question) -> Counter[str] | None:
    """Return how often each step is taken for a row; None of a question of which the model says what it takes.

    If a node of a condition or a measure is not known here, there is no result. Nothing unknown is left out.
    """
    relation = question.selection.relation
    if not isinstance(relation, ProtectedRows) or relation.table.link is not None or question.keys or question.sets:
        return None
    known: list[Counter[str] | None] = [_where(question.selection.where, relation.table)]
    known += [_measure(measure, relation.table) for measure in question.measures]
    total = Counter[str]()
    for one in known:
        if one is None:
            return None
        total += one
    return total or Counter(compared=1)


def _measure(measure: object, table: Table) -> Counter[str] | None:
    if not isinstance(measure, Count | Sum) or measure.clamp is not None:
        return None
    match measure:
        case Count(argument=None):
            return Counter()
        case Count(argument=ColumnReference() as column):
            return _column(column, table, "compared")
        case Sum(argument=ColumnReference() as column):
            return _column(column, table, "summed")
    match measure.argument:
        case Operation(function="case", arguments=(where, chosen, Literal(value=None))):
            return _filtered(measure, where, chosen, table)
    return None


def _filtered(measure: NumberMeasure, where: Expression, chosen: Expression, table: Table) -> Counter[str] | None:
    """Return the steps of a measure with FILTER, whose condition is one comparison."""
    compared = _compared(where, table)
    if compared is None:
        return None
    match measure, chosen:
        case Count(), Literal():
            return compared + Counter(count_filtered=1)
        case Sum(), ColumnReference():
            column = _column(chosen, table, "summed")
            return None if column is None else compared + column + Counter(sum_filtered=1)
    return None


def _where(condition: Expression | None, table: Table) -> Counter[str] | None:
    """Return the steps of a condition: comparisons joined by AND are asked one after the other."""
    match condition:
        case None:
            return Counter()
        case Operation(function="and", arguments=parts):
            return _all([_where(part, table) for part in parts])
    taken = _branched(condition, table)
    match condition:
        case Operation(function="equal" | "not_equal" | "less" | "less_equal" | "greater" | "greater_equal") if taken:
            if isinstance(condition.arguments[0], ColumnReference):  # the engine leaves NULLs out first
                taken["known"] = taken.pop("null", 0)
    return taken


def _branched(condition: Expression, table: Table) -> Counter[str] | None:
    """Return the steps of a condition below OR or NOT: at each of these nodes rows go one way or the other."""
    match condition:
        case Operation(function="or" | "and" | "not", arguments=parts):
            inner = _all([_branched(part, table) for part in parts])
            return None if inner is None else inner + Counter(branched=max(1, len(parts) - 1))
    return _compared(condition, table)


def _all(parts: Sequence[Counter[str] | None]) -> Counter[str] | None:
    total = Counter[str]()
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _compared(condition: Expression, table: Table) -> Counter[str] | None:
    match condition:
        case Operation(function="is_null", arguments=(ColumnReference() as column,)):
            return _column(column, table, "compared")
        case Operation(
            function="equal" | "not_equal" | "less" | "less_equal" | "greater" | "greater_equal",
            arguments=(ColumnReference() as column, Literal()) | (Literal(), ColumnReference() as column),
        ):
            return _column(column, table, "compared")
    return None


def _column(column: ColumnReference, table: Table, step: str) -> Counter[str] | None:
    """Return a step that is taken with a column of small numbers that are held within their bounds."""
    declared, kind = table.column(column.name), column.type
    if declared is None or not isinstance(kind, Fixed) or kind.low is None or kind.high is None:
        return None
    if max(abs(kind.low), abs(kind.high)) > WIDEST:
        return None
    return Counter({step: 1, "null": 1} if declared.nullable else {step: 1})
