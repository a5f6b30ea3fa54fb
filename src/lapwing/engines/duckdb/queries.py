"""From a question to the SQL that an engine runs, and from its rows to exact integers per cell.

The SQL is printed from the plan alone; no text of an analyst reaches it but constants, quoted by `expressions`. Three
layers, in this order, carry the privacy argument of `stability`: cleaned, kept (both in `cleaned`, for every table that
the question stands on, parents first), and the answer: the filter, then integers summed per cell.

A question may be run in several passes, each over the units of one residue of their hash: units are disjoint, so the
passes' cells add up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from lapwing.engines.base import Cells, Exact
from lapwing.engines.duckdb import leaves, relations
from lapwing.engines.duckdb.clamped_sums import by_unit, is_limited
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.engines.duckdb.database import ColumnReader, Rows
from lapwing.engines.duckdb.expressions import expression, group_by, have_keys, keys_as_columns, where_clause
from lapwing.engines.duckdb.literals import clamp, kept_name, unit_name, whole, width_of
from lapwing.engines.duckdb.set_queries import by_set
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.measures import Count, Key, NumberMeasure, OnceEach, Sum
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import ProtectedRows, of_several_units

if TYPE_CHECKING:
    import pyarrow as pa

# ---- SQL -------------------------------------------------------------------------------------------------------------


def answer(question: Question) -> str:
    """Return the last layer: what is computed from the kept rows, of all measures of one integer a cell."""
    if question.units_of_row > 1:
        raise of_several_units()
    if question.sets:
        return by_set(question, answer, [f"measure{i}" for i in range(len(question.numbers))])
    unit = unit_name(*question.tables)
    measures = [f"{measured(measure, unit)} AS measure{i}" for i, measure in enumerate(question.numbers)]
    if _goes_by_unit(question):
        return by_unit(question, keys_as_columns(question.keys), measures, _rows(question))
    return grouped(question, measures)


def _goes_by_unit(question: Question) -> bool:
    clamped = any(measure.clamp is not None for measure in question.numbers)
    return clamped or (not isinstance(question.selection.relation, ProtectedRows) and is_limited(question))


def grouped(question: Question, aggregates: Sequence[str]) -> str:
    """Return aggregates by the keys of a question, over its rows."""
    keys = keys_as_columns(question.keys)
    return f"SELECT {', '.join([*keys, *aggregates])} {_rows(question)}{group_by(len(keys))}"


def _rows(question: Question) -> str:
    """Return the FROM and WHERE clauses of a question: the rows that have its keys."""
    selection, keys = question.selection, have_keys(question.keys)
    if isinstance(selection.relation, ProtectedRows):
        return f"FROM {kept_name(selection.relation.table)}{where_clause(selection.where, keys, quick=True)}"
    return relations.selected(selection, keys)


def measured(measure: NumberMeasure, unit: str) -> str:
    """Return the aggregate of a measure: an exact integer, 0 where there are no rows."""
    match measure:
        case CountUnits(where=None):
            return f"COUNT(DISTINCT {unit})"
        case CountUnits(where=where):
            return f"COUNT(DISTINCT CASE WHEN {expression(cast(Expression, where))} THEN {unit} END)"
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
    if isinstance(measure.argument, ColumnReference):
        if measure.origin and _is_narrow(measure):  # the same integer, of what other measures sum too
            return f"(COALESCE(SUM({value}), 0) - {measure.origin}::HUGEINT * COUNT({value}))"
    elif choice_of(measure.argument) is None:  # doubles inside may stray past a proven bound by a rounding
        value = f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"
    # Clamped, and then shifted: the bounds are those of the value.
    shifted = value if measure.origin == 0 else f"{value} - {whole(measure.origin)}"
    return f"COALESCE(SUM({'DISTINCT ' if isinstance(measure, SumDistinct) else ''}{shifted}), 0)"


def choice_of(argument: Expression) -> tuple[Expression, int, int] | None:
    """Return a condition and the two constants of which it chooses one, if both are whole steps within its bounds."""
    match argument:
        case Operation(function="case", type=Fixed() as kind, arguments=(where, Literal(value=x), Literal(value=y))):
            steps = [value / kind.step for value in (x, y) if isinstance(value, Fraction)]
            within = [int(k) for k in steps if k.denominator == 1 and (kind.low or 0) <= k <= (kind.high or 0)]
            return (where, within[0], within[1]) if len(within) == 2 else None
    return None


def _parts(measure: NumberMeasure, unit: str) -> dict[str, int]:
    """Return aggregates of which a measure is the sum, each so many times; one that is NULL counts as 0.

    It is the integer of `measured`. Of n rows, let x be known in c. Σ (x − o) over these is Σ x − o·c. A choice of a
    where x is NULL and of b elsewhere adds up to (a − o)·n + (b − a)·c. To plan one word more takes DuckDB longer than
    to read a thousand rows; so numbers share their aggregates, and Python's integers put them together.
    """
    if isinstance(measure, Sum):
        match measure.argument, choice_of(measure.argument):
            case ColumnReference() as column, None if not measure.origin or _is_narrow(measure):
                value = expression(column)
                return {f"SUM({value})": 1, **({f"COUNT({value})": -measure.origin} if measure.origin else {})}
            case _, (Operation(function="is_null", arguments=(asked,)), int(null), int(known)):
                return {"COUNT(*)": null - measure.origin, f"COUNT({expression(asked)})": known - null}
    return {measured(measure, unit): 1}


def _is_narrow(measure: Sum | SumDistinct) -> bool:
    return width_of(cast(int, measure.type.low), cast(int, measure.type.high)) == "BIGINT"


def _cells(question: Question, layers: str, fetch: Callable[[str], Rows]) -> Rows:
    """Return the rows of `answer`, by as few aggregates as give the same integers."""
    if question.sets or question.units_of_row > 1 or _goes_by_unit(question):
        return fetch(f"{layers} {answer(question)}")
    sums = [_parts(measure, unit_name(*question.tables)) for measure in question.numbers]
    keys, aggregates = len(question.keys), list(dict.fromkeys(part for parts in sums for part in parts))
    places = {part: keys + place for place, part in enumerate(aggregates)}
    weights = [[(places[part], times) for part, times in parts.items()] for parts in sums]
    rows = fetch(f"{layers} {grouped(question, aggregates)}")
    return [(*row[:keys], *(sum(times * (row[at] or 0) for at, times in weight) for weight in weights)) for row in rows]


# ---- asking, and adding up -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Batch:
    """The rows of a question about some units: private data.

    `cells` are the rows of `answer`, `holders` tables as `UnitCountsByKey.of_parts` takes them, `leaves` rows of
    `leaves.leaves` for every distribution.
    """

    cells: Rows
    holders: "list[pa.Table]" = field(default_factory=list)
    leaves: list[Rows] = field(default_factory=list)


def queries_of(question: Question) -> int:
    """Return how many queries a question takes."""
    return bool(_summed(question)) + bool(question.private_keys) + len(question.distributions)


def is_additive(question: Question) -> bool:
    """Tell whether the cells of disjoint sets of units add up to the cells of all.

    Different values do not, nor rows that units of several sets share.
    """
    return question.units_of_row == 1 and not any(isinstance(m, OnceEach) for m in question.measures)


def prepare(question: Question) -> None:
    """Load what only some questions need: before they are paid, as a failure to load it must cost nothing."""
    if question.units_of_row > 1:
        import_module("lapwing.engines.duckdb.overlaps")
    if question.private_keys:
        import_module("lapwing.engines.duckdb.held_keys")
        import_module("lapwing.engines.holders")


def ask(
    question: Question,
    rows: Callable[[Pass], str],
    fetch: Callable[[str], Rows],
    columns: ColumnReader,
    parts: Sequence[Pass] = (WHOLE,),
    last_layer: Callable[[Question], str] | None = None,
) -> Batch:
    """Ask a question of a batch of units.

    Args:
        rows: the common table expressions that the question reads, of all these units or a part of them.
        fetch: run a query.
        columns: As `fetch`.
        parts: into what parts the units are divided to be seen which keys each holds; that is done in memory.
        last_layer: in the place of `answer`, with the same integers.
    """
    layers = f"WITH {rows(WHOLE)}"
    if question.units_of_row > 1:
        from lapwing.engines.duckdb.overlaps import ask_shared  # here: Arrow takes longer to load than most questions

        return Batch(cells=ask_shared(question, layers, columns, measured))
    holders: list[pa.Table] = []
    if question.private_keys:
        from lapwing.engines.duckdb.held_keys import ask_holders  # here, as above

        holders = ask_holders(question, rows, columns, parts)
    cells: Rows = []
    if summed := _summed(question):
        numbers = replace(question, measures=summed)
        cells = fetch(f"{layers} {last_layer(numbers)}") if last_layer else _cells(numbers, layers, fetch)
    return Batch(
        cells=cells,
        holders=holders,
        leaves=[fetch(f"{layers} {leaves.leaves(question, measure)}") for measure in question.distributions],
    )


def _summed(question: Question) -> tuple[NumberMeasure, ...]:
    """Return what is to be counted or summed: not the units of cells that have private keys alone, which are known."""
    known = bool(question.private_keys) and question.private_keys == question.keys
    return tuple(measure for measure in question.numbers if not (known and measure == CountUnits()))


def together(batches: Sequence[Batch], question: Question) -> Exact:
    """Add the rows of disjoint sets of units."""
    read = _reader(question.keys)
    cells: Cells = _added([batch.cells for batch in batches], read)
    counts = {
        measure: leaves.put_together((batch.leaves[place] for batch in batches), lambda row: read(row)[0])
        for place, measure in enumerate(question.distributions)
    }
    if not question.private_keys:
        return Exact(cells=cells, leaves=counts)
    from lapwing.engines.duckdb.held_keys import with_units  # here: Arrow takes longer to load than most questions
    from lapwing.engines.holders import UnitCountsByKey

    held = UnitCountsByKey.of_parts(
        [part for batch in batches for part in batch.holders], _steps(question.private_keys)
    )
    summed = _summed(question)
    if summed != question.numbers:
        cells = with_units(cells, held, question.numbers.index(CountUnits()), len(summed))
    return Exact(cells=cells, holders=held, leaves=counts)


Reader = Callable[[tuple[Any, ...]], tuple[tuple[Constant, ...], tuple[int, ...]]]


def _added(batches: Sequence[Rows], read: Reader) -> dict[tuple[Constant, ...], tuple[int, ...]]:
    cells: dict[tuple[Constant, ...], tuple[int, ...]] = {}
    for rows in batches:
        for row in rows:
            key, values = read(row)
            sums = cells.get(key)
            cells[key] = values if sums is None else tuple(map(sum, zip(sums, values, strict=True)))
    return cells


def _steps(keys: Sequence[Key]) -> list[Any]:
    """Return of each key what its integers count, None where its values are as they are."""
    return [key.expression.type.step if isinstance(key.expression.type, Fixed) else None for key in keys]


def _reader(keys: Sequence[Key]) -> Reader:
    """Return a function that takes a row apart: its keys, as answers hold them, and its integers."""
    count, steps = len(keys), _steps(keys)
    if not any(steps):
        return lambda row: (row[:count], row[count:])

    def read(row: tuple[Any, ...]) -> tuple[tuple[Constant, ...], tuple[int, ...]]:
        pairs = zip(row, steps, strict=False)
        return tuple(x if step is None or x is None else x * step for x, step in pairs), row[count:]

    return read
