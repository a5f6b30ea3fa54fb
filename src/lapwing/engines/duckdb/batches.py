"""What a question asks of kept rows, and how the answers of batches of units are put together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lapwing.engines.base import Cells, Exact
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.engines.duckdb.queries import LEAF, answer, holders, leaves, shared
from lapwing.query.expressions.expression import Constant
from lapwing.query.expressions.types import Fixed
from lapwing.query.keys import Key
from lapwing.query.measures import CountDistinct, CountUnits, NumberMeasure
from lapwing.query.plan import Question

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.engines.holders import Holders

Rows = list[tuple[Any, ...]]
Taken = TypeVar("Taken")


class Columns(Protocol):
    """Runs a query, and returns what a function makes of its columns."""

    def __call__(self, query: str, take: "Callable[[pa.RecordBatchReader], Taken]", /) -> Taken:
        """Return what was taken."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Batch:
    """What was found of some units: private data.

    `cells` are the rows of `answer`, `holders` tables as `Holders.of_parts` takes them, `leaves` rows of `leaves` for
    every distribution.
    """

    cells: Rows
    holders: "list[pa.Table]" = field(default_factory=list)
    leaves: list[Rows] = field(default_factory=list)


def queries_of(question: Question) -> int:
    """Return how many queries a question takes."""
    return bool(_asked(question)) + bool(question.private_keys) + len(question.distributions)


def is_additive(question: Question) -> bool:
    """Tell whether the cells of disjoint sets of units add up to the cells of all.

    Different values do not, nor rows that units of several sets share.
    """
    return question.units_of_row == 1 and not any(isinstance(measure, CountDistinct) for measure in question.measures)


def ask(
    question: Question,
    rows: Callable[[Pass], str],
    fetch: Callable[[str], Rows],
    columns: Columns,
    parts: Sequence[Pass] = (WHOLE,),
) -> Batch:
    """Ask a question of a batch of units.

    Args:
        rows: the common table expressions that the question reads, of all these units or a part of them.
        fetch, columns: run a query.
        parts: into what parts the units are divided to be seen which keys each holds; that is done in memory.
    """
    if question.units_of_row > 1:
        from lapwing.engines.shared_rows import taken, truncated  # here: Arrow takes longer to load than most questions

        return Batch(cells=list(truncated(question, columns(f"WITH {rows(WHOLE)} {shared(question)}", taken))))
    asked = _asked(question)
    numbers = replace(question, measures=asked)
    return Batch(
        cells=fetch(f"WITH {rows(WHOLE)} {answer(numbers)}") if asked else [],
        holders=_held(question, rows, columns, parts) if question.private_keys else [],
        leaves=[fetch(f"WITH {rows(WHOLE)} {leaves(question, measure)}") for measure in question.distributions],
    )


def _held(question: Question, rows: Callable[[Pass], str], columns: Columns, parts: Sequence[Pass]) -> "list[pa.Table]":
    """Return who holds which keys, of every part of the units."""
    from pyarrow import RecordBatchReader  # here, as above

    from lapwing.engines.holders import counted

    take = RecordBatchReader.read_all if question.table.unit_is_row else counted
    return [columns(f"WITH {rows(part)} {holders(question)}", take) for part in parts]


def _asked(question: Question) -> tuple[NumberMeasure, ...]:
    """Return what is to be counted or summed: not the units of cells that have private keys alone, which are known."""
    known = bool(question.private_keys) and question.private_keys == question.keys
    return tuple(measure for measure in question.numbers if not (known and measure == CountUnits()))


def together(batches: Sequence[Batch], question: Question) -> Exact:
    """Add what was found of disjoint sets of units."""
    held = None
    if question.private_keys:
        from lapwing.engines.holders import Holders  # here, as above

        held = Holders.of_parts([part for batch in batches for part in batch.holders], _steps(question.private_keys))
    cells = _cells(batches, question)
    if held is not None and _asked(question) != question.numbers:
        cells = _with_units(cells, held, question)
    found = {measure: _leaves(batches, question, place) for place, measure in enumerate(question.distributions)}
    return Exact(cells=cells, holders=held, leaves=found)


def _cells(batches: Sequence[Batch], question: Question) -> Cells:
    cells: dict[tuple[Constant, ...], tuple[int, ...]] = {}
    read = _reader(question.keys)
    for batch in batches:
        for row in batch.cells:
            key, values = read(row)
            sums = cells.get(key)
            cells[key] = values if sums is None else tuple(map(sum, zip(sums, values, strict=True)))
    return cells


def _with_units(cells: Cells, held: "Holders", question: Question) -> Cells:
    """Put the numbers of units where they belong among the measures of a cell."""
    zero = (0,) * len(_asked(question))
    place = question.numbers.index(CountUnits())
    pairs = zip(held.named(), held.units_at.tolist(), strict=True)
    if not zero:
        return {key: (units,) for key, units in pairs}
    found = {key: (units, cells.get(key, zero)) for key, units in pairs}
    return {key: (*others[:place], units, *others[place:]) for key, (units, others) in found.items()}


def _leaves(
    batches: Sequence[Batch], question: Question, place: int
) -> dict[tuple[Constant, ...], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    packed: dict[tuple[Constant, ...], list[int]] = {}
    read = _reader(question.keys)
    for batch in batches:
        for row in batch.leaves[place]:
            packed.setdefault(read(row)[0], []).extend(row[-1] or ())
    return {key: _unpacked(values) for key, values in packed.items()}


def _unpacked(values: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return leaves and their numbers of rows."""
    array = np.array(values, dtype=np.int64)
    return array // LEAF, array % LEAF


def _steps(keys: Sequence[Key]) -> list[Any]:
    """Return of each key what its integers count, None where its values are as they are."""
    return [key.expression.type.step if isinstance(key.expression.type, Fixed) else None for key in keys]


def _reader(keys: Sequence[Key]) -> Callable[[tuple[Any, ...]], tuple[tuple[Constant, ...], tuple[int, ...]]]:
    """Return a function that takes a row apart: its keys, as answers hold them, and its integers."""
    count, steps = len(keys), _steps(keys)
    if not any(steps):
        return lambda row: (row[:count], row[count:])

    def read(row: tuple[Any, ...]) -> tuple[tuple[Constant, ...], tuple[int, ...]]:
        pairs = zip(row, steps, strict=False)
        return tuple(x if step is None or x is None else x * step for x, step in pairs), row[count:]

    return read
