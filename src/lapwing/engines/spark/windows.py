"""Window functions over the rows of one unit, as Spark's SQL; `relations.windowed` says on what they may depend.

They are total. No unit has more than 10⁹ rows in any relation (`relations.size`). Numbers of rows, ranks and tiles have
32 bits. So have offsets and frames, which Spark takes in no other width. Sums are taken in 38 digits (`unit_values`). A
frame in RANGE adds a distance to an order value: both are at most 2⁶¹ (`window_frames`), and 64 bits hold the sum. No
other function computes anything: it hands on a value of some row, or a constant.

They are deterministic. Every order is the one that DuckDB has. NULL is first or last as the query says. A count
of rows one by one breaks ties by all columns, or by one number of the unit's rows if there are several. It sorts for
every different order anew, and a task that runs again may find equal rows the other way round. By the proof it makes no
difference. Doubles in an order or a part are no NaN and have no -0.0 (`unit_values.column_of`).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, cast

from lapwing.engines.spark.literals import engine_type
from lapwing.engines.spark.unit_values import FUNCTIONS, aggregate, column_of
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.types import Fixed, Type
from lapwing.query.relations.windowed import SortTerm, Window, WindowFrame

_COUNTING: Final = frozenset({"row_number", "rank", "dense_rank", "ntile"})
_SHARES: Final = frozenset({"percent_rank", "cume_dist"})
_SHIFTED: Final = frozenset({"lag", "lead"})
_OF_ONE_ROW: Final = frozenset({"first_value", "last_value", "nth_value"})
_AGGREGATES: Final = frozenset({"sum", "average", *FUNCTIONS}) - {"count_distinct"}
ANSWERED: Final = _COUNTING | _SHARES | _SHIFTED | _OF_ONE_ROW | _AGGREGATES
"""The functions that are printed; Spark has no DISTINCT in a window."""


def positions(window: Window) -> int:
    """Return how often a window's text counts rows one by one: an average is a sum over a count."""
    return (2 if window.function == "average" else 1) if window.positional else 0


def numbered(unit: str, order: Sequence[str]) -> str:
    """Return the number of a row among the rows of its unit."""
    return f"row_number() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)})"


def window(node: Window, ties: Sequence[str], unit: str) -> str:
    """Return a window function.

    Args:
        ties: The terms that break ties where rows are counted one by one.
        unit: The column that says whose a row is.
    """
    over, function = f" {_over(node, ties, unit)}", node.function
    nulls = " IGNORE NULLS" if node.ignores_nulls else ""
    if function in _AGGREGATES:
        return aggregate(function, node.arguments[0] if node.arguments else None, node.type, over)
    if function in _SHARES:
        return f"LEAST(GREATEST({function}(){over}, 0.0D), 1.0D)"
    if function in _COUNTING:
        return f"CAST({function}({', '.join(map(_whole, node.arguments))}){over} AS BIGINT)"
    value, *numbers = node.arguments
    given = [_of_type(value, node.type), *map(_whole, numbers[:1]), *(_of_type(one, node.type) for one in numbers[1:])]
    return f"{function}({', '.join(given)}){nulls}{over}"


def _whole(argument: Expression) -> str:
    """Return a constant as an integer of 32 bits."""
    return str(int(cast(Fraction, cast(Literal, argument).value)))


def _of_type(value: Expression, kind: Type) -> str:
    """Return a value in the type of the result: those of a row and a default have one type."""
    return f"TRY_CAST({column_of(value)} AS {engine_type(kind)})" if isinstance(kind, Fixed) else column_of(value)


def _over(node: Window, ties: Sequence[str], unit: str) -> str:
    partition = ", ".join([unit, *map(column_of, node.partition)])
    terms = [*map(_sorted, node.order), *(ties if node.positional else [])]
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    return f"OVER (PARTITION BY {partition}{order}{'' if node.frame is None else _framed(node.frame)})"


def _framed(frame: WindowFrame) -> str:
    mark = "L" if frame.unit == "range" else ""
    start = "UNBOUNDED PRECEDING" if frame.start is None else _distance(frame.start, mark)
    end = "UNBOUNDED FOLLOWING" if frame.end is None else _distance(frame.end, mark)
    return f" {frame.unit.upper()} BETWEEN {start} AND {end}"


def _distance(rows: int, mark: str) -> str:
    return f"{abs(rows)}{mark} {'PRECEDING' if rows < 0 else 'FOLLOWING'}" if rows else "CURRENT ROW"


def _sorted(term: SortTerm) -> str:
    direction = " DESC" if term.descending else ""
    return f"{column_of(term.value)}{direction} NULLS {'FIRST' if term.nulls_first else 'LAST'}"
