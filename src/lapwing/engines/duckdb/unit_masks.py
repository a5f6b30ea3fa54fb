"""How many units are in each of a few cells: one mask for each unit, in the place of its pairs with cells.

`COUNT(DISTINCT unit)` by key looks for distinct pairs of a unit and a key, which are nearly as many as the rows. Where
an answer has at most 64 cells, the rows are grouped by their units instead: a unit's mask has bit c set if the unit has
a row in cell c, and as many units are in cell c as masks have its bit set.

Every cell has the same integers as in `queries.answer`. Proof. Both read the same rows: those of `kept`, as they are
selected there, for which the condition is true and which have a value of every key. The number of a cell stands for one
combination of the keys' values: a key's values are distinct, each has its place among them, and whatever is none of
them has the place after them, if there is an `other`, or else no place, so that its row is in no cell. So to group by
the number is to group by the keys, and what is counted and summed of rows is the same. No row of `kept` lacks a unit,
and GROUP BY holds those values to be equal that DISTINCT does: every unit with a row has one mask. BIT_OR over its rows
sets bit c if a row of it is in cell c (and meets the condition of this count), whatever the number and order of the
rows. So the masks with bit c are the distinct units with such a row. ∎

Two bits that are 32 places apart are added up in one sum, each in a part of its own: a table has fewer than 2³² rows,
so masks are fewer, and what the lower part counts never reaches the upper one.

Not counted so, but as ever: more than 64 cells, and keys whose values are private, of which nobody knows how many there
are; keys of real numbers; units that are single rows, and relations other than a table's own rows; and whatever is
clamped unit by unit.
"""

from math import prod
from typing import Final

from lapwing.engines.duckdb import queries
from lapwing.engines.duckdb.expressions import expression, where_clause
from lapwing.engines.duckdb.literals import free_name, kept_name, text, unit_name
from lapwing.engines.duckdb.queries import measured
from lapwing.engines.duckdb.set_queries import by_set
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.types import TEXT, Real
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import ProtectedRows

LEAST_ROWS: Final = 1_000_000
"""Rows of a table from which on masks take less time than they cost: planning their query takes some milliseconds."""
MOST_ROWS: Final = 1 << 32
MOST_CELLS: Final = 64
HALF: Final = 32
PAIR: Final = (1 << HALF) + 1
"""The lowest bit, and the one that is added up with it."""


def answer(question: Question) -> str:
    """Return the last layer, as `queries.answer` does, of a table with fewer than `MOST_ROWS` rows."""
    if question.sets:
        return by_set(question, answer, [f"measure{i}" for i in range(len(question.numbers))])
    return _by_masks(question) if fits(question) else queries.answer(question)


def fits(question: Question) -> bool:
    """Tell whether a question without grouping sets counts units, in cells of which each has a bit."""
    relation, numbers = question.selection.relation, question.numbers
    if not any(isinstance(m, CountUnits) for m in numbers) or any(m.clamp is not None for m in numbers):
        return False
    if not isinstance(relation, ProtectedRows) or question.table.unit_is_row or not question.keys:
        return False
    return all(map(_has_places, question.keys)) and prod(_sizes(question)) <= MOST_CELLS


def _has_places(key: Key) -> bool:
    """Tell whether a key's values are public, and each is told from all others by its place among them."""
    values = key.values or ()
    if not values or None in values or len(set(values)) < len(values) or isinstance(key.expression.type, Real):
        return False
    return key.other is None or key.expression.type == TEXT


def _sizes(question: Question) -> list[int]:
    return [len(key.domain) for key in question.keys]


def _by_masks(question: Question) -> str:
    """Group the rows by the numbers of their cells, and by their units, and put side by side what either gives."""
    table = question.table
    unit, cell = unit_name(table), free_name("cell", table)
    numbered = f"SELECT *, {_cell(question)} AS {cell} FROM {kept_name(table)}{where_clause(question.where)}"
    counts = [(i, measure) for i, measure in enumerate(question.numbers) if isinstance(measure, CountUnits)]
    others = [(i, measure) for i, measure in enumerate(question.numbers) if not isinstance(measure, CountUnits)]
    of_rows = [f"{measured(measure, unit)} AS measure{i}" for i, measure in others]
    masks = ", ".join(f"BIT_OR({_bit(measure, cell)}) AS mask{i}" for i, measure in counts)
    size = prod(_sizes(question))
    sums = ", ".join(item for i, _ in counts for item in _sums(f"mask{i}", size))
    lists = ", ".join(f"[{', '.join(_counts(f'mask{i}', size))}] AS units{i}" for i, _ in counts)
    known = {i: f"units{i}[{cell}::BIGINT + 1] AS measure{i}" for i, _ in counts}
    shown = [*_keys(question, cell), *(known.get(i, f"measure{i}") for i in range(len(question.numbers)))]
    # Materialized, it is read once, and by both at the same time: nothing is stored.
    return (
        f"SELECT {', '.join(shown)} FROM (WITH numbered AS MATERIALIZED "
        f"(SELECT * FROM ({numbered}) WHERE {cell} IS NOT NULL) "
        f"SELECT * FROM (SELECT {', '.join([cell, *of_rows])} FROM numbered GROUP BY {cell}), "
        f"(SELECT {lists} FROM (SELECT {sums} FROM (SELECT {masks} FROM numbered GROUP BY {unit}))))"
    )


def _cell(question: Question) -> str:
    """Return the number of a row's cell, NULL for none: the places of its keys as digits, the last key's lowest."""
    terms, stride = [], 1
    for key, size in reversed([*zip(question.keys, _sizes(question), strict=True)]):
        terms.append(f"{_place(key)}::UBIGINT * {stride}")
        stride *= size
    return f"({' + '.join(terms)})"


def _place(key: Key) -> str:
    """Return the place of a row's value among a key's values, from 0; if it is none, NULL, or the place of `other`."""
    column, values = expression(key.expression), ", ".join(_values(key))
    if key.expression.type == TEXT:  # texts that come as these codes stay as they are
        place = f"enum_code(TRY_CAST({column} AS ENUM ({values})))"
    else:
        place = f"(NULLIF(list_position([{values}], {column}), 0) - 1)"
    return place if key.other is None else f"COALESCE({place}, {len(key.values or ())})"


def _keys(question: Question, cell: str) -> list[str]:
    """Return the keys of a cell from its number."""
    shown, stride = [], prod(_sizes(question))
    for i, (key, size) in enumerate(zip(question.keys, _sizes(question), strict=True)):
        stride //= size
        values = [*_values(key), *([] if key.other is None else [text(key.other)])]
        shown.append(f"[{', '.join(values)}][{cell}::BIGINT // {stride} % {size} + 1] AS key{i}")
    return shown


def _values(key: Key) -> list[str]:
    kind = key.expression.type
    return [expression(Literal(value=value, type=kind)) for value in key.values or ()]


def _bit(measure: CountUnits, cell: str) -> str:
    """Return the bit of a row's cell, 0 where the row does not count."""
    bit = f"1::UBIGINT << {cell}"
    return bit if measure.where is None else f"CASE WHEN {expression(measure.where)} THEN {bit} ELSE 0::UBIGINT END"


def _sums(mask: str, size: int) -> list[str]:
    """Return the sums of a mask's bits over all units: of bit i, and of bit i + 32 in the same number."""
    return [f"SUM((({mask} >> {i}) & {PAIR}::UBIGINT)::BIGINT) AS {mask}_{i}" for i in range(min(size, HALF))]


def _counts(mask: str, size: int) -> list[str]:
    """Return from these sums how many units are in each cell."""
    low = [f"{mask}_{i} & {(1 << HALF) - 1}::HUGEINT" for i in range(min(size, HALF))]
    return [*low, *(f"{mask}_{i} >> {HALF}" for i in range(size - HALF))]
