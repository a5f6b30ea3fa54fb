"""From a question to the SQL that Spark runs, and from its rows to exact integers per cell.

As in `engines.duckdb.queries` the SQL is printed from the plan alone, and stands on the rows that exist (`cleaned`). A
measure is an exact integer: sums are taken in 38 digits, of which 2⁴⁰ steps of 10¹⁹ rows need 32. Integers are added
in whatever order tasks end, and their sum is the same. No noise is drawn here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from lapwing.engines.base import Exact
from lapwing.engines.duckdb.expressions import group_by
from lapwing.engines.duckdb.leaves import LEAF
from lapwing.engines.duckdb.queries import Batch, together
from lapwing.engines.holders import DEGREE, UNITS
from lapwing.engines.spark.expressions import expression, have_keys, keys_as_columns
from lapwing.engines.spark.literals import clamp, whole, wide
from lapwing.engines.spark.relations import carried, selected
from lapwing.engines.spark.unit_values import inside, summed
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, NumberMeasure
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.plan.plan import Question

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[tuple[Any, ...]]


def run(question: Question, layers: str, rows: Callable[[str], Rows], columns: "Callable[[str], pa.Table]") -> Exact:
    """Ask a question.

    Args:
        layers: The common table expressions that it reads.
        rows: Run a query.
        columns: Run a query.
    """
    head = f"WITH {layers} "
    known = bool(question.private_keys) and question.private_keys == question.keys
    counted = tuple(m for m in question.numbers if not (known and m == CountUnits()))
    batch = Batch(
        cells=_plain(rows(head + answer(replace(question, measures=counted)))) if counted else [],
        holders=[_narrowed(columns(head + holders(question)))] if question.private_keys else [],
        leaves=[_plain(rows(head + leaves(question, measure))) for measure in question.distributions],
    )
    return together([batch], question)


def _plain(rows: Rows) -> Rows:
    """Return integers as integers: those of 38 digits come as decimals."""
    return [tuple(int(value) if isinstance(value, Decimal) else value for value in row) for row in rows]


def _narrowed(table: "pa.Table") -> "pa.Table":
    """Return who holds keys with numbers as they are put together: degrees and units of 64 bits."""
    import pyarrow as pa

    for name in (DEGREE, UNITS):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(pa.int64()))
    return table


# ---- measures of one integer -----------------------------------------------------------------------------------------


def answer(question: Question) -> str:
    """Return the query of all measures of one integer a cell."""
    if question.sets:
        return _by_set(question, answer, [f"measure{i}" for i in range(len(question.numbers))])
    keys, rows = keys_as_columns(question.keys), selected(question.selection, have_keys(question.keys))
    if any(measure.clamp is not None for measure in question.numbers):
        return _by_unit(question, keys, rows)
    measures = [f"{measured(measure, question)} AS measure{i}" for i, measure in enumerate(question.numbers)]
    return f"SELECT {', '.join([*keys, *measures])} {rows}{group_by(len(keys))}"


def measured(measure: NumberMeasure, question: Question) -> str:
    """Return the aggregate of a measure: an exact integer, 0 where there are no rows."""
    match measure:
        case CountUnits(where=None):
            return f"COUNT(DISTINCT {_unit(question)})"
        case CountUnits(where=where):
            return f"COUNT(DISTINCT CASE WHEN {expression(cast(Expression, where))} THEN {_unit(question)} END)"
        case CountDistinct(argument=argument):
            return f"COUNT(DISTINCT {expression(argument)})"
        case CountOfSets(terms=terms):
            return f"({' + '.join(f'{factor} * COUNT(DISTINCT {expression(term)})' for factor, term in terms)})"
        case Count(argument=None):
            return "COUNT(*)"
        case Count(argument=argument):
            return f"COUNT({expression(cast(Expression, argument))})"
    low, high = (cast(int, end) for end in (measure.type.low, measure.type.high))
    value = expression(measure.argument)
    if not isinstance(measure.argument, ColumnReference):  # doubles inside may stray past a proven bound by a rounding
        value = inside(value, low, high)
    distinct = "DISTINCT " if isinstance(measure, SumDistinct) else ""
    total = summed(value).replace("SUM(", f"SUM({distinct}", 1)
    if distinct or not measure.origin:
        return f"COALESCE({total}, {wide(0)})"
    # The same integer, of what other measures add up too.
    return f"try_subtract(COALESCE({total}, {wide(0)}), try_multiply({wide(measure.origin)}, COUNT({value})))"


def _unit(question: Question) -> str:
    return carried(question.selection.relation)[0]


# ---- clamped, unit by unit -------------------------------------------------------------------------------------------


def _by_unit(question: Question, keys: Sequence[str], rows: str) -> str:
    """Aggregate unit by unit and cell by cell, and add up what units add to a cell, clamped."""
    own = [f"{_of_unit(measure, question)} AS measure{i}" for i, measure in enumerate(question.numbers)]
    names = [f"key{i}" for i in range(len(keys))]
    # Added up for each unit, then clamped, then added up over units: only so one unit adds no more than the clamp.
    partials = f"SELECT {', '.join([*keys, f'{_unit(question)} AS holder', *own])} {rows}{group_by(len(keys) + 1)}"
    added = [
        f"COALESCE({summed(_clamped(i, measure))}, {wide(0)}) AS measure{i}"
        for i, measure in enumerate(question.numbers)
    ]
    return f"SELECT {', '.join([*names, *added])} FROM ({partials}){group_by(len(names))}"


def _of_unit(measure: NumberMeasure, question: Question) -> str:
    if isinstance(measure, CountUnits):
        return "1L" if measure.where is None else f"MAX(CASE WHEN {expression(measure.where)} THEN 1L ELSE 0L END)"
    return measured(measure, question)


def _clamped(place: int, measure: NumberMeasure) -> str:
    return f"measure{place}" if measure.clamp is None else clamp(f"measure{place}", *measure.clamp)


# ---- grouping sets ---------------------------------------------------------------------------------------------------


def _by_set(question: Question, ask: Callable[[Question], str], names: Sequence[str]) -> str:
    """Ask for every grouping set by itself; the keys that a set does not have are NULL in its cells."""
    selects = []
    for part in question.parts:
        keys = [
            f"key{part.keys.index(key)} AS key{i}"
            if key in part.keys
            else f"{expression(Literal(value=None, type=key.expression.type))} AS key{i}"
            for i, key in enumerate(question.keys)
        ]
        selects.append(f"SELECT {', '.join([*keys, *names])} FROM ({ask(part)})")
    return " UNION ALL ".join(selects)


# ---- distributions ---------------------------------------------------------------------------------------------------


def leaves(question: Question, measure: Distribution) -> str:
    """Return the query for the numbers of rows in the leaves of a distribution, as `engines.duckdb.leaves` has it."""
    if question.sets:
        return _by_set(question, lambda part: leaves(part, measure), ["leaves"])
    keys = keys_as_columns(question.keys)
    names = [f"key{i}" for i in range(len(keys))]
    value = expression(measure.argument)
    rows = selected(question.selection, [*have_keys(question.keys), f"{value} IS NOT NULL"])
    # Clamped first, the distance from the lower end is not negative, so that it does not matter how `div` rounds.
    distance = f"try_subtract({clamp(value, measure.low, measure.high)}, {whole(measure.low)})"
    leaf = f"LEAST({distance} div {measure.width}L, {measure.sizes[-1] - 1}L)"
    counted = f"SELECT {', '.join([*keys, f'{leaf} AS leaf', 'COUNT(*) AS n'])} {rows}{group_by(len(keys) + 1)}"
    packed = f"collect_list(leaf * {LEAF}L + n) AS leaves"
    return f"SELECT {', '.join([*names, packed])} FROM ({counted}){group_by(len(names))}"


# ---- private keys ----------------------------------------------------------------------------------------------------


def holders(question: Question) -> str:
    """Return the query for how many units hold each value of the private keys, by how many values they hold.

    A unit's number of values is counted among its own rows; then only numbers of units leave the cluster, and no unit.
    """
    keys = keys_as_columns(question.private_keys)
    rows = selected(question.selection, have_keys(question.keys))
    names = [f"key{i}" for i in range(len(keys))]
    if question.table.unit_is_row:
        return f"SELECT {', '.join(keys)}, 1L AS {DEGREE}, COUNT(*) AS {UNITS} {rows}{group_by(len(keys))}"
    # Different values before they are counted: a unit that holds one twice would seem to hold two.
    held = f"SELECT DISTINCT {_unit(question)} AS holder, {', '.join(keys)} {rows}"
    degrees = f"SELECT {', '.join(names)}, COUNT(*) OVER (PARTITION BY holder) AS {DEGREE} FROM ({held})"
    return f"SELECT {', '.join(names)}, {DEGREE}, COUNT(*) AS {UNITS} FROM ({degrees}){group_by(len(names) + 1)}"
