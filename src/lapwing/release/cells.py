"""The cells of an answer, in order, and the exact integers laid out over them."""

from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType

import numpy as np

from lapwing.engines import Cells, Leaves
from lapwing.exact.arrays import ROOM, IntArray, integer_array
from lapwing.mechanisms.trees import levels_above
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.distribution import Distribution
from lapwing.query.plan.combined_keys import cells_over
from lapwing.query.plan.plan import Question

Chosen = Sequence[tuple[Constant, ...]]


def cells_of(question: Question, chosen: Chosen = ()) -> tuple[tuple[Constant, ...], ...]:
    """Return every cell of the answer, in the order in which answers hold them.

    Without private keys these are all of the public domain; with them, all public values for each that was chosen.
    """
    public = _public_cells(question)
    if not question.private_keys:
        return public
    places = [key.private for key in question.keys]
    return tuple(_merged(places, values, rest) for values in chosen for rest in public)


def _public_cells(question: Question) -> tuple[tuple[Constant, ...], ...]:
    keys = tuple(key for key in question.keys if not key.private)
    sets = question.sets or (keys,)
    if question.combined:
        return tuple(cells_over(keys, sets, question.combined))
    spans = [[key.domain if key in shown else (None,) for key in keys] for shown in sets]
    return tuple(cell for span in spans for cell in product(*span))


def _merged(
    places: Sequence[bool], private: tuple[Constant, ...], public: tuple[Constant, ...]
) -> tuple[Constant, ...]:
    ours, theirs = iter(private), iter(public)
    return tuple(next(ours) if place else next(theirs) for place in places)


def columns_of(cells: Sequence[tuple[Constant, ...]], keys: int) -> tuple[tuple[Constant, ...], ...]:
    """Return the cells key by key."""
    return tuple(zip(*cells, strict=True)) if cells else ((),) * keys


def exact_values(
    question: Question,
    cells: Cells,
    wanted: Sequence[tuple[Constant, ...]],
    leaves: Mapping[Distribution, Leaves] = MappingProxyType({}),
) -> tuple[IntArray, ...]:
    """Lay the engine's integers out over the cells of the answer: an absent cell is one of zeros.

    Of a distribution these are the numbers of rows in all nodes, a row of the array a cell, from the top down.
    """
    zero = (0,) * len(question.numbers)
    rows = [cells.get(cell, zero) for cell in wanted]
    numbers = iter([integer_array([row[i] for row in rows], below=ROOM) for i in range(len(zero))])
    vectors = iter([_nodes(measure, leaves.get(measure, {}), wanted) for measure in question.distributions])
    return tuple([next(vectors if isinstance(m, Distribution) else numbers) for m in question.measures])


def _nodes(measure: Distribution, leaves: Leaves, wanted: Sequence[tuple[Constant, ...]]) -> IntArray:
    counts = np.zeros((len(wanted), measure.sizes[-1]), dtype=np.int64)
    for row, cell in zip(counts, wanted, strict=True):
        if cell in leaves:
            np.add.at(row, *leaves[cell])
    return np.concatenate(levels_above(counts, measure.branching), axis=-1)
