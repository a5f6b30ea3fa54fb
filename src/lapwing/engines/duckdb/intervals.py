"""How many public rows one value can meet that is compared with them, as SQL over a public table.

A place on the line is a value, and whether it is at the value (0) or just after it (1). The interval of a public row
begins at the last of its lower ends, and is over at the first of its upper ends. `>= g` begins at g, and `> g` just
after it. `< g` is over at g, and `<= g` just after it. The bounds of what is compared are ends too. Each interval that
is not empty adds one where it begins, and takes one away where it is over. The largest sum is how many overlap.
"""

from collections.abc import Callable, Sequence
from typing import Final

from lapwing.catalog.public import PublicTable
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.expressions import expression
from lapwing.engines.duckdb.literals import engine_type
from lapwing.engines.duckdb.relations import public_layer, public_name
from lapwing.query.expressions.ends import ends_of
from lapwing.query.expressions.expression import Expression
from lapwing.query.relations.public_rows import ComparedRange

_AFTER: Final = {">=": 0, ">": 1, "<": 0, "<=": 1}
"""Whether an interval begins, or is over, just after an end."""


def overlap(wanted: ComparedRange, located: Callable[[PublicTable], tuple[PublicTable, Location]]) -> str:
    """Return the query for the most intervals that overlap.

    Args:
        located: Says where a table is, and which bounds its numbers have.
    """
    rows, low, high = wanted.rows, *ends_of(wanted.value)
    lower = [(symbol, end) for symbol, end in wanted.ends if symbol in (">", ">=")]
    upper = [(symbol, end) for symbol, end in wanted.ends if symbol in ("<", "<=")]
    lower += [] if low is None else [(">=", low)]
    upper += [] if high is None else [("<=", high)]
    named = [f"{expression(end)} AS e{place}" for place, (_, end) in enumerate([*lower, *upper])]
    places = [f"e{place}" for place in range(len(named))]
    kind = engine_type(wanted.value)
    begin = _place(lower, places[: len(lower)], "GREATEST", kind)
    over = _place(upper, places[len(lower) :], "LEAST", kind)
    where = [f"({expression(rows.where)})"] if rows.where is not None else []
    ends = f"SELECT {', '.join(named)} FROM {public_name(rows.table)}{' WHERE ' if where else ''}{''.join(where)}"
    known = " AND ".join(f"{place} IS NOT NULL" for place in places)
    both = f"SELECT {begin[0]} AS b, {begin[1]} AS b_after, {over[0]} AS o, {over[1]} AS o_after"
    some = "b IS NULL OR o IS NULL OR b < o OR (b = o AND b_after < o_after)"
    intervals = f"SELECT * FROM ({both} FROM ({ends}) WHERE {known}) WHERE {some}"
    steps = "SELECT b AS place, b_after AS after, 1 AS step FROM i UNION ALL SELECT o, o_after, -1 FROM i"
    steps += " WHERE o IS NOT NULL"
    sums = f"SELECT SUM(step) OVER (ORDER BY place NULLS FIRST, after) AS n FROM ({steps})"
    return f"WITH {public_layer(*located(rows.table))}, i AS ({intervals}) SELECT MAX(n) FROM ({sums})"


def _place(ends: Sequence[tuple[str, Expression]], names: Sequence[str], chosen: str, kind: str) -> tuple[str, str]:
    """Return the last or the first of some ends, and whether it is just after it; NULL and 0 of none.

    Of lower ends that are equal, the one just after the value is the last; of upper ones, the one at it is the first.
    """
    if not names:
        return f"CAST(NULL AS {kind})", "0"
    value = f"{chosen}({', '.join(names)})"
    decides = 1 if chosen == "GREATEST" else 0
    alike = [f"{name} = {value}" for (symbol, _), name in zip(ends, names, strict=True) if _AFTER[symbol] == decides]
    return value, f"CASE WHEN {' OR '.join(alike) or 'FALSE'} THEN {decides} ELSE {1 - decides} END"
