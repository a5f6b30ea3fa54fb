"""Rows that several units share, taken from an engine set by set, and truncated in memory.

Theory of operation. An engine groups rows by their keys and by the tuple of their units, and returns what the rows of
each tuple add. Units become numbers: a unit has the same number wherever it stands in a tuple, and units of different
kinds have different numbers. Cell by cell `mechanisms.packing` computes the truncated sums, at every threshold that is
asked for. A cell without rows is left out; its sums are 0.

What may fail here (too many tuples, too little memory, a value that is not proven) fails like the engine: after the
charge, with one constant message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.mechanisms.packing import SharedRows
from lapwing.query.measures.measures import Count, NumberMeasure, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.relations.node import Relation
from lapwing.query.relations.shared_join import kinds_of_units

MOST_TUPLES: Final = 1 << 23
"""The most tuples of units that are taken: with what is made of them, 1 GB or so."""

Integers = NDArray[np.int64]


def weights(question: Question) -> tuple[NumberMeasure, ...]:
    """Return what is summed of shared rows, each once, whatever the levels at which it is truncated."""
    sums = (measure for measure in question.numbers if isinstance(measure, Count | Sum))
    return tuple(dict.fromkeys(replace(measure, clamp=None) for measure in sums))


def taken(tuples: pa.RecordBatchReader) -> pa.Table:
    """Return the tuples of units of a question, with what the rows of each add.

    Raises:
        MemoryError: If there are too many.
    """
    batches, count = [], 0
    for batch in tuples:
        count += batch.num_rows
        if count > MOST_TUPLES:
            raise MemoryError
        batches.append(batch)
    return pa.Table.from_batches(batches, tuples.schema)


def truncated(question: Question, tuples: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each cell: its keys, then the truncated sum of every measure."""
    relation = question.selection.relation
    units, count = _numbered(tuples, relation)
    bare = weights(question)
    added = {measure: tuples[f"weight{i}"].to_numpy() for i, measure in enumerate(bare)}
    for keys, places in _cells([tuples[f"key{i}"] for i in range(len(question.keys))], tuples.num_rows):
        rows = {m: SharedRows.of([unit[places] for unit in units], added[m][places], count) for m in bare}
        yield (*keys, *(_value(measure, rows) for measure in question.numbers))


def _value(measure: NumberMeasure, rows: Mapping[NumberMeasure, SharedRows]) -> int:
    """Return a truncated sum; what is not truncated from 0 to a level is not computed."""
    if not isinstance(measure, Count | Sum) or measure.clamp is None or measure.clamp[0] != 0:
        raise TypeError("rows that units share are counted and summed up to a level")
    return rows[replace(measure, clamp=None)].value(measure.clamp[1])


def _numbered(tuples: pa.Table, relation: Relation) -> tuple[list[Integers], int]:
    """Return the units of every place as numbers, and how many numbers there are."""
    kinds = kinds_of_units(relation)
    numbers: list[Integers] = [np.empty(0, dtype=np.int64)] * len(kinds)
    count = 0
    for kind in dict.fromkeys(kinds):
        places = [place for place, found in enumerate(kinds) if found == kind]
        columns = [tuples[f"unit{place}"] for place in places]
        codes, size = _codes(pa.chunked_array([c for column in columns for c in column.chunks], columns[0].type))
        for place, part in zip(places, np.split(codes, len(places)), strict=True):
            numbers[place] = part + count
        count += size
    return numbers, count


def _codes(column: pa.ChunkedArray) -> tuple[Integers, int]:
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _cells(keys: Sequence[pa.ChunkedArray], rows: int) -> Iterator[tuple[tuple[Any, ...], Integers]]:
    """Yield the keys of each cell that has rows, and where these are."""
    if not keys:
        yield (), np.arange(rows)
        return
    if not rows:
        return
    table = np.stack([_codes(column)[0] for column in keys], axis=1)
    _, first, cells = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(cells.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(cells.ravel(), minlength=len(first)))
    for place, part in zip(first, np.split(order, ends[:-1]), strict=True):
        yield tuple(_key(column[int(place)].as_py()) for column in keys), part


def _key(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
