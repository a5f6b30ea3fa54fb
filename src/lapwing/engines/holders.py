"""Who holds which private keys, counted in columns.

Theory of operation. An engine returns the pairs of a unit and its keys, one for every row of the relation, in any order
and with repetitions. Keys, and units if necessary, become numbers; a pair becomes one integer; sorting these integers
brings equal pairs, and all pairs of a unit, beside each other. The number of different keys of a unit is its degree. Of
a batch of units remains how many units of each degree hold each key. That is unit-local: a unit adds 1 to each key that
it holds, at its own degree, and nothing else depends on it.

No order of rows is assumed: if a unit's rows were torn apart, it would count as several units, each of a smaller
degree, and would weigh more than is charged.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Final, Self, cast, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lapwing.query.expressions.expression import Constant

DEGREE: Final = "degree"
UNITS: Final = "units"
MOST_PAIRS: Final = 1 << 62
"""So many pairs fit into one integer. Numbers without gaps always do: there are fewer than 2^31 of either."""
CLOSE: Final = 1 << 32
"""Integers whose range is smaller are numbered by their distance from the least, with gaps."""
_READERS: Final = 2

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class UnitCountsByKey:
    """How many units hold each value of the private keys, by how many values they hold: private data.

    Args:
        values: a column a key; a row for every combination of values that any unit holds, in the order of the values.
        steps: of each key what its integers count, or None where values are as they are.
        places: so many units, each of so many values, hold the value at this place. Entries may repeat.
        degrees: As `places`.
        units: As `places`.
    """

    values: pa.Table
    steps: tuple[Fraction | None, ...]
    places: Integers
    degrees: Integers
    units: Integers

    @classmethod
    def of_parts(cls, parts: Sequence[pa.Table], steps: Sequence[Fraction | None]) -> Self:
        """Put the counts of disjoint sets of units together.

        Args:
            parts: Each has a column a key, then `degree` and `units`.
        """
        whole = pa.concat_tables(parts, promote_options="default").combine_chunks()
        keys = whole.select(range(len(steps)))
        # Rows come in the order of their values, so that the order tells nothing.
        ranks = reduce(_joint, [_ranks(column.combine_chunks()) for column in keys.itercolumns()])
        _, first, places = np.unique(ranks.codes, return_index=True, return_inverse=True)
        return cls(
            values=keys.take(_integers(first)),
            steps=tuple(steps),
            places=places.astype(np.int64),
            degrees=_numbers_of(whole[DEGREE]),
            units=_numbers_of(whole[UNITS]),
        )

    @property
    def units_at(self) -> Integers:
        """How many units hold each value."""
        return self.weighed(lambda _: 1)

    def weighed(self, weight: Callable[[int], int]) -> Integers:
        """Return the sum of the weights that units put on each value, which depend on how many they hold."""
        degrees = np.unique(self.degrees)
        weights = np.array([weight(degree) for degree in degrees.tolist()], dtype=np.int64)
        sums = np.zeros(self.values.num_rows, dtype=np.int64)
        np.add.at(sums, self.places, self.units * weights[np.searchsorted(degrees, self.degrees)])
        return sums

    def named(self, chosen: NDArray[np.bool_] | None = None) -> list[tuple[Constant, ...]]:
        """Return the values that are chosen, or all, as answers hold them."""
        values = self.values if chosen is None else self.values.take(_integers(np.flatnonzero(chosen)))
        columns = [
            [cast(Constant, value if step is None else int(value) * step) for value in column.to_pylist()]
            for column, step in zip(values.itercolumns(), self.steps, strict=True)
        ]
        return list(zip(*columns, strict=True))


def _ranks(column: pa.Array) -> "_Codes":
    encoded = column.dictionary_encode()
    order = _order(encoded.dictionary)
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = np.arange(order.size)
    return _Codes(codes=ranks[np.from_dlpack(encoded.indices)], size=order.size, apart=lambda codes: [order[codes]])


def _order(values: pa.Array) -> Integers:
    """Return the places of values in their own order: that in which they were found would tell about the rows."""
    return cast(Integers, np.from_dlpack(pc.sort_indices(values)).astype(np.int64))


# ---- counting pairs --------------------------------------------------------------------------------------------------


def counted(pairs: pa.RecordBatchReader) -> pa.Table:
    """Count how many units hold each value of the keys, by how many values they hold.

    Args:
        pairs: A column for the unit, then one a key; no NULL.

    Returns:
        A column a key, then `degree` and `units`.
    """
    units, *kinds = pairs.schema.types
    with ThreadPoolExecutor(_READERS) as pool:
        batches = [future.result() for future in [pool.submit(_first_encoded, batch) for batch in pairs]]
    encoded = [_encoded([batch[1 + i] for batch in batches], kind) for i, kind in enumerate(kinds)]
    holders = _numbers([batch[0] for batch in batches], units)
    batches.clear()
    holders, keys = _fitting(holders, reduce(_joint, [codes for _, codes in encoded]))
    places, degrees, units = _tally(*_degrees(holders, keys), keys.size)
    named = [values.take(_integers(at)) for (values, _), at in zip(encoded, keys.apart(places), strict=True)]
    return pa.table([*named, _integers(degrees), _integers(units)], names=[*pairs.schema.names[1:], DEGREE, UNITS])


def _numbers_of(column: pa.ChunkedArray) -> Integers:
    """Return the integers of a column, without pandas, too."""
    return cast(Integers, np.from_dlpack(column.combine_chunks()).astype(np.int64))


def _integers(values: Integers) -> pa.Array:
    """Return an Arrow array of integers. `pa.array` would load pandas where it is installed, which takes 0.3 s."""
    whole = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), whole.size, [None, pa.py_buffer(whole)])


def _first_encoded(batch: pa.RecordBatch) -> list[pa.Array]:
    """Return the units, and each key by its different values; an engine may hand it over so."""
    keys = batch.columns[1:]
    return [batch.column(0), *(key if pa.types.is_dictionary(key.type) else key.dictionary_encode() for key in keys)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """Values as numbers from 0 to `size` − 1; `apart` returns the places of numbers in each column's dictionary."""

    codes: Integers
    size: int
    apart: Callable[[Integers], list[Integers]]


def _encoded(chunks: Sequence[pa.Array], kind: pa.DataType) -> tuple[pa.Array, _Codes]:
    """Return the different values of a column, and the column as their places."""
    column = pa.chunked_array(chunks or [pa.array([], kind).dictionary_encode()]).unify_dictionaries()
    codes = np.concatenate([np.from_dlpack(chunk.indices) for chunk in column.chunks], dtype=np.int64)
    values = column.chunk(0).dictionary
    return values, _Codes(codes=codes, size=max(len(values), 1), apart=lambda codes: [codes])


def _numbers(chunks: Sequence[pa.Array], kind: pa.DataType) -> _Codes:
    """Return units as numbers: of integers close to each other, their distance from the least."""
    if any(map(len, chunks)) and pa.types.is_signed_integer(kind):  # an engine may return a batch without rows
        numbers = np.concatenate([np.from_dlpack(chunk) for chunk in chunks], dtype=np.int64)
        low, high = (int(end) for end in (numbers.min(), numbers.max()))
        if high - low < CLOSE:
            numbers -= low
            return _Codes(codes=numbers, size=high - low + 1, apart=lambda codes: [codes])
    return _encoded([chunk.dictionary_encode() for chunk in chunks], kind)[1]


def _joint(first: _Codes, second: _Codes) -> _Codes:
    """Return numbers for the combinations of two columns."""
    first, second = _fitting(first, second)
    size = second.size

    def apart(codes: Integers) -> list[Integers]:
        return [*first.apart(codes // size), *second.apart(codes % size)]

    return _Codes(codes=first.codes * size + second.codes, size=first.size * size, apart=apart)


def _fitting(first: _Codes, second: _Codes) -> tuple[_Codes, _Codes]:
    """Return columns of which a pair fits into one integer: if need be, without gaps between their numbers."""
    return (first, second) if first.size * second.size <= MOST_PAIRS else (_dense(first), _dense(second))


def _dense(column: _Codes) -> _Codes:
    numbers, codes = np.unique(column.codes, return_inverse=True)
    return _Codes(codes=codes.astype(np.int64), size=numbers.size, apart=lambda codes: column.apart(numbers[codes]))


# Fresh memory costs as much as what is done in it: the arrays of codes, which nobody needs afterwards, are used again.


def _degrees(holders: _Codes, keys: _Codes) -> tuple[Integers, NDArray[np.int32]]:
    """Return, of each different pair of a unit and a key, the key and the number of keys that the unit holds."""
    pairs = holders.codes
    pairs *= keys.size
    pairs += keys.codes
    held = _distinct(pairs)
    owners = np.floor_divide(held, keys.size, out=keys.codes[: held.size])
    degrees = np.diff(np.flatnonzero(_new(owners)), append=held.size).astype(np.int32)
    held %= keys.size
    return held, np.repeat(degrees, degrees)


def _distinct(pairs: Integers) -> Integers:
    """Return the different pairs in order, where those of one unit are beside each other.

    Kept rows mostly come unit by unit already, of which a merging sort takes advantage.
    """
    pairs.sort(kind="stable")
    return pairs[_new(pairs)]


def _tally(keys: Integers, degrees: NDArray[np.int32], size: int) -> tuple[Integers, Integers, Integers]:
    """Return the different pairs of a key and a degree, and how many there are of each."""
    top = int(degrees.max(initial=0)) + 1
    entries = keys
    entries *= top
    entries += degrees
    if size * top <= 4 * entries.size:
        counts = np.bincount(entries)
        different = np.flatnonzero(counts)
        return different // top, different % top, counts[different]
    entries.sort()
    starts = np.flatnonzero(_new(entries))
    different = entries[starts]
    return different // top, different % top, np.diff(starts, append=entries.size)


def _new(ordered: Integers) -> NDArray[np.bool_]:
    """Tell which entries differ from the one before."""
    new = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new
