"""From a question to the SQL that an engine runs: bounded rows, then exact integers per cell.

The SQL is printed from the plan alone; no text of an analyst reaches it but constants, quoted by `expressions`. Three
layers, in this order, carry the privacy argument of `stability`: cleaned, kept (both in `cleaned`, for every table that
the question stands on, parents first), and the answer: the filter, then integers summed per cell.

A question may be run in several passes, each over the units of one residue of their hash: units are disjoint, so the
passes' cells add up.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from lapwing.engines.duckdb import expressions
from lapwing.engines.duckdb.cleaned import WHOLE, Pass, Source, kept_name, layer, unit_name
from lapwing.engines.duckdb.expressions import expression, where_clause
from lapwing.engines.duckdb.literals import clamp, whole
from lapwing.engines.duckdb.relations import selected, unit_names
from lapwing.query.expressions.expression import Column, Expression, Literal
from lapwing.query.keys import Key
from lapwing.query.measures import Count, CountDistinct, CountUnits, Distribution, NumberMeasure
from lapwing.query.plan import Question
from lapwing.query.relations.relation import Kept, of_several_units

LEAF: Final = 1 << 40
"""By what a leaf's number is multiplied where it shares an integer with the number of its rows, which is smaller."""


def render(question: Question, sources: Mapping[str, Source], part: Pass = WHOLE) -> str:
    """Return the DuckDB query whose rows are cells: the keys, then one exact integer a measure.

    Of a question about distributions alone, it is the query for the leaves of the first.

    Args: sources: where the tables that the question stands on are, by name.
    """
    if question.units_of_row > 1:
        asked = shared(question)
    elif question.numbers:
        asked = answer(question)
    else:
        asked = leaves(question, question.distributions[0])
    layers = [layer(table, sources[table.name], part) for table in question.lineage]
    return f"WITH {', '.join(layers)} {asked}"


def answer(question: Question) -> str:
    """Return the last layer: what is computed from the kept rows, of all measures of one integer a cell."""
    if question.units_of_row > 1:
        raise of_several_units()
    if question.sets:
        names = [f"measure{i}" for i in range(len(question.numbers))]
        return _by_set(question, answer, names)
    keys = [f"{expressions.key_value(key)} AS key{i}" for i, key in enumerate(question.keys)]
    if any(measure.clamp is not None for measure in question.numbers):
        return _clamped(question, keys)
    unit = unit_name(*question.tables)
    measures = [f"{measured(measure, unit)} AS measure{i}" for i, measure in enumerate(question.numbers)]
    return f"SELECT {', '.join([*keys, *measures])} {_rows(question)}{_by_position(len(keys))}"


def shared(question: Question) -> str:
    """Return the query for rows that several units share.

    Its rows are sets of units, in any order of their places: the keys, the units, and for each of `weights` what the
    rows of these units add, up to more than any level allows.
    """
    # Here: the one loads Arrow and the other a program's solvers, which take longer than most questions.
    from lapwing.engines.shared_rows import weights
    from lapwing.mechanisms.packing import MOST_LEVEL

    keys = [f"{expressions.key_value(key)} AS key{i}" for i, key in enumerate(question.keys)]
    units = [f"{name} AS unit{i}" for i, name in enumerate(unit_names(question.selection.relation))]
    sums = [clamp(measured(measure, ""), 0, MOST_LEVEL) for measure in weights(question)]
    added = [f"CAST({total} AS BIGINT) AS weight{i}" for i, total in enumerate(sums)]
    shown = ", ".join([*keys, *units, *added])
    return f"SELECT {shown} {_rows(question)}{_by_position(len(keys) + len(units))}"


def leaves(question: Question, measure: Distribution) -> str:
    """Return the query for the numbers of rows in the leaves of a distribution.

    Its rows are cells: the keys, then a list with leaf·2⁴⁰ + rows for every leaf that has any. One row of the relation
    is in one leaf, whatever its value, and in none if it is NULL.
    """
    if question.sets:
        return _by_set(question, lambda part: leaves(part, measure), ["leaves"])
    keys = [f"{expressions.key_value(key)} AS key{i}" for i, key in enumerate(question.keys)]
    names = [f"key{i}" for i in range(len(keys))]
    value = expression(measure.argument)
    leaf = clamp(f"(({value} - {whole(measure.low)}) // {whole(measure.width)})", 0, measure.sizes[-1] - 1)
    counted = [*keys, f"CAST({leaf} AS BIGINT) AS leaf", "COUNT(*) AS n"]
    found = f"SELECT {', '.join(counted)} {_rows(question, f'{value} IS NOT NULL')}{_by_position(len(keys) + 1)}"
    packed = f"list(leaf * {whole(LEAF)} + n) AS leaves"
    return f"SELECT {', '.join([*names, packed])} FROM ({found}){_by_position(len(names))}"


def _by_set(question: Question, asked: Callable[[Question], str], names: Sequence[str]) -> str:
    """Ask for every grouping set by itself; the keys that a set does not have are NULL in its cells."""
    selects = []
    for part in question.parts:
        keys = [
            f"key{part.keys.index(key)} AS key{i}" if key in part.keys else f"{_null(key)} AS key{i}"
            for i, key in enumerate(question.keys)
        ]
        selects.append(f"SELECT {', '.join([*keys, *names])} FROM ({asked(part)})")
    return " UNION ALL ".join(selects)


def _null(key: Key) -> str:
    return expression(Literal(value=None, type=key.expression.type))


def holders(question: Question) -> str:
    """Return the query for who holds which values of the private keys: a pair of a unit and values for every row.

    Where rows are the units, it is the query for how many rows have each value, as so many units of one value each.
    That holds while a unit has one row of the relation: a question of which it has more is refused (`calibrate`), as
    nothing would tell them apart.
    """
    keys = [f"{expressions.key_value(key)} AS key{i}" for i, key in enumerate(question.private_keys)]
    if question.table.unit_is_row:
        return f"SELECT {', '.join(keys)}, 1 AS degree, COUNT(*) AS units {_rows(question)}{_by_position(len(keys))}"
    return f"SELECT {unit_name(*question.tables)} AS holder, {', '.join(keys)} {_rows(question)}"


def _rows(question: Question, *conditions: str) -> str:
    """Return the FROM and WHERE clauses of a question: the rows that have a key, and meet further conditions."""
    listed = [expressions.listed(key) for key in question.keys if key.other is None]
    selection = question.selection
    if not isinstance(selection.relation, Kept):
        return selected(selection, [*listed, *conditions])
    return f"FROM {kept_name(selection.relation.table)}{where_clause(selection.where, [*listed, *conditions])}"


def _by_position(count: int) -> str:
    """Return a GROUP BY clause; by position, as a column of the table may be called key0 too."""
    return f" GROUP BY {', '.join(str(i + 1) for i in range(count))}" if count else ""


def _clamped(question: Question, keys: Sequence[str]) -> str:
    """Aggregate unit by unit and cell by cell first, so that what a unit adds to a cell can be clamped."""
    unit = unit_name(*question.tables)
    parts = [f"{measured(measure, unit)} AS measure{i}" for i, measure in enumerate(question.numbers)]
    partials = (
        f"SELECT {', '.join([*keys, f'{unit} AS holder', *parts])} {_rows(question)}{_by_position(len(keys) + 1)}"
    )
    names = [f"key{i}" for i in range(len(keys))]
    sums = [
        f"COALESCE(SUM({_kept_inside(f'measure{i}', measure.clamp)}), 0) AS measure{i}"
        for i, measure in enumerate(question.numbers)
    ]
    return f"SELECT {', '.join([*names, *sums])} FROM ({partials}){_by_position(len(names))}"


def _kept_inside(value: str, clamp_to: tuple[int, int] | None) -> str:
    return value if clamp_to is None else clamp(value, *clamp_to)


def measured(measure: NumberMeasure, unit: str) -> str:
    """Return the aggregate of a measure: an exact integer, 0 where there are no rows."""
    match measure:
        case CountUnits(where=None):
            return f"COUNT(DISTINCT {unit})"
        case CountUnits(where=where):
            return f"COUNT(DISTINCT CASE WHEN {expression(cast(Expression, where))} THEN {unit} END)"
        case CountDistinct(argument=argument):
            return f"COUNT(DISTINCT {expression(argument)})"
        case Count(argument=None):
            return "COUNT(*)"
        case Count(argument=argument):
            return f"COUNT({expression(cast(Expression, argument))})"
    low, high = (cast(int, end) for end in (measure.type.low, measure.type.high))
    value = expression(measure.argument)
    if not isinstance(measure.argument, Column):  # doubles inside may stray past a proven bound by a rounding
        value = f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"
    shifted = value if measure.origin == 0 else f"{value} - {whole(measure.origin)}"
    return f"COALESCE(SUM({shifted}), 0)"
