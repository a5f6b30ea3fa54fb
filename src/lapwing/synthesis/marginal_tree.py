"""A distribution over many columns as tables of few: the calibrated tables of a junction tree.

Theory of operation. Each node of the tree is a set of columns with a table of how many rows have each combination of
their cells; where two neighbours share columns, their tables agree about these. Such tables are those of one
distribution: the product of all nodes, divided by what neighbours share. What it says of any other columns is had by
summing products along the smallest part of the tree that has them; rows are drawn node by node. (Lauritzen and
Spiegelhalter 1988.) Everything here is post-processing of released numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import uniform_integers
from lapwing.synthesis.attributes import Integers
from lapwing.synthesis.reading import Clique

Floats = NDArray[np.float64]
_FINE = 1 << 52


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalTree:
    """Tables of sets of columns that agree, on a tree.

    Args:
        nodes: Sets of columns.
        above: Of each node the place of the one above it, which comes before it, −1 if there is none.
        tables: Counts of rows, an axis for each column of a node, every table adding up to `total`.
    """

    sizes: tuple[int, ...]
    nodes: tuple[Clique, ...]
    above: tuple[int, ...]
    tables: tuple[Floats, ...]
    total: float

    @classmethod
    def calibrated(
        cls,
        sizes: tuple[int, ...],
        nodes: Sequence[Clique],
        edges: Sequence[tuple[Clique, Clique]],
        potentials: Mapping[Clique, Floats],
        total: float,
    ) -> "MarginalTree":
        """Return the distribution whose logarithm is, but for a constant, the sum of tables inside of nodes."""
        order, above = _rooted(nodes, edges)
        logs = [np.zeros([sizes[place] for place in node]) for node in order]
        for clique, table in potentials.items():
            home = next(i for i, node in enumerate(order) if set(clique) <= set(node))
            logs[home] += _spread(table, clique, order[home])
        shared = [_both(node, order[up]) if up >= 0 else () for node, up in zip(order, above, strict=True)]
        sent = list[Floats]()
        for i in reversed(range(len(order))):  # from the leaves upwards
            message = _log_sum(logs[i], order[i], shared[i])
            sent.append(message)
            if above[i] >= 0:
                logs[above[i]] += _spread(message, shared[i], order[above[i]])
        sent.reverse()
        for i, up in enumerate(above):  # and down again
            if up >= 0:
                known = _log_sum(logs[up], order[up], shared[i])
                logs[i] += _spread(known - sent[i], shared[i], order[i])
        weights = [np.exp(log - log.max()) for log in logs]
        tables = tuple(np.asarray(total * table / table.sum(), dtype=np.float64) for table in weights)
        return cls(sizes=sizes, nodes=tuple(order), above=tuple(above), tables=tables, total=total)

    def marginal(self, clique: Clique) -> Floats:
        """Return how many rows have each combination of the cells of some columns."""
        for node, table in zip(self.nodes, self.tables, strict=True):
            if set(clique) <= set(node):
                return _summed(table, node, clique)
        found, having = np.array(self.total), tuple[int, ...]()
        for root in [i for i, up in enumerate(self.above) if up < 0]:
            own = frozenset(place for place in clique if self._reaches(root, frozenset({place})))
            part, columns = self._below(self._lowest(root, own), -1, own)
            if columns:
                found = np.multiply.outer(found, part / self.total)
                having = (*having, *columns)
        return np.asarray(np.transpose(found, [having.index(place) for place in clique]), dtype=np.float64)

    def _below(self, node: int, up: int, wanted: frozenset[int]) -> tuple[Floats, Clique]:
        """Return the table of the wanted columns at and below a node, and of those that it shares with the one above.

        With a node above it is given those shared columns, so that tables multiply.
        """
        columns, table = self.nodes[node], self.tables[node]
        shared = _both(columns, self.nodes[up]) if up >= 0 else ()
        parts: list[tuple[Floats, Clique]] = []
        for child in [i for i, above in enumerate(self.above) if above == node]:
            if self._reaches(child, wanted - set(columns)):
                parts.append(self._below(child, node, wanted - set(columns)))
        kept = tuple(place for place in columns if place in wanted and place not in shared)
        if not kept and not parts and up >= 0:
            return np.ones(()), ()
        if up >= 0:
            # Where no row is, none is divided: what stands there is never multiplied by more than nothing.
            base = _spread(_summed(table, columns, shared), shared, columns)
            table = np.divide(table, base, out=np.zeros_like(table), where=base > 0)
        result = tuple(
            dict.fromkeys((*shared, *kept, *(place for _, own in parts for place in own if place in wanted)))
        )
        operands: list[object] = [table, list(columns)]
        for part, own in parts:
            operands += [part, list(own)]
        return np.asarray(np.einsum(*operands, list(result), optimize="greedy")), result  # type: ignore[call-overload]

    def _lowest(self, root: int, wanted: frozenset[int]) -> int:
        """Return the node furthest below a root that has all wanted columns at it or below."""
        for child in [i for i, up in enumerate(self.above) if up == root]:
            if wanted and all(self._reaches(child, frozenset({place})) for place in wanted):
                return self._lowest(child, wanted)
        return root

    def _reaches(self, node: int, wanted: frozenset[int]) -> bool:
        """Tell whether a wanted column is at a node or below it."""
        if wanted & set(self.nodes[node]):
            return True
        return any(self._reaches(i, wanted) for i, up in enumerate(self.above) if up == node)

    def draw(self, count: int, entropy: Entropy) -> Integers:
        """Draw rows of cells: column by column, each given those of its node that are drawn already.

        Of the rows that are alike in these, each cell gets its share, rounded at random, and which of them get it is
        random: so counts come closer to what they should be than if every row were drawn by itself.
        """
        cells = np.zeros((count, len(self.sizes)), dtype=np.int64)
        drawn = set[int]()
        for node, table in zip(self.nodes, self.tables, strict=True):
            for place in node:
                if place in drawn:
                    continue
                given = tuple(other for other in node if other in drawn)
                joint = _summed(table, node, (*given, place)).reshape(-1, self.sizes[place])
                shape = [self.sizes[other] for other in given]
                group = (
                    np.ravel_multi_index(tuple(cells[:, other] for other in given), shape)
                    if given
                    else np.zeros(count, dtype=np.int64)
                )
                cells[:, place] = _allotted(np.asarray(group, dtype=np.int64), joint, entropy)
                drawn.add(place)
        return cells


def _allotted(group: Integers, joint: Floats, entropy: Entropy) -> Integers:
    """Return a cell for every row, by the table of its group; of a group without rows in the table, any cell."""
    count, size = group.size, joint.shape[1]
    if not count:
        return np.zeros(0, dtype=np.int64)
    shuffled = np.argsort(np.asarray(uniform_integers(_FINE, count, entropy), dtype=np.int64), kind="stable")
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    there, first, many = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.arange(count) - np.repeat(first, many)
    inside = np.asarray(uniform_integers(_FINE, count, entropy), dtype=np.float64) / _FINE
    weights = np.maximum(joint[there], 0.0)
    weights[weights.sum(axis=1) <= 0] = 1.0
    ends = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    ends[:, -1] = 1.0
    # All groups on one line, one after another: the k-th row of n looks up a place between k/n and (k + 1)/n.
    line = (ends + np.arange(there.size)[:, None]).reshape(-1)
    looked_up = np.repeat(np.arange(there.size), many) + np.minimum((rank + inside) / np.repeat(many, many), 1 - 1e-12)
    found = np.searchsorted(line, looked_up, side="right") - np.repeat(np.arange(there.size), many) * size
    cells = np.zeros(count, dtype=np.int64)
    cells[order] = np.clip(found, 0, size - 1)
    return cells


# ---- tables and trees ------------------------------------------------------------------------------------------------


def _rooted(nodes: Sequence[Clique], edges: Sequence[tuple[Clique, Clique]]) -> tuple[list[Clique], list[int]]:
    """Return nodes in an order in which each comes after the one above it, and the places of those."""
    beside: dict[Clique, list[Clique]] = {node: [] for node in nodes}
    for one, other in edges:
        beside[one].append(other)
        beside[other].append(one)
    order, above, seen = list[Clique](), list[int](), set[Clique]()
    for root in nodes:
        waiting = [(root, -1)] if root not in seen else []
        while waiting:
            node, up = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            order.append(node)
            above.append(up)
            waiting += [(other, len(order) - 1) for other in sorted(beside[node], reverse=True) if other not in seen]
    return order, above


def _both(one: Clique, other: Clique) -> Clique:
    return tuple(place for place in one if place in other)


def _summed(table: Floats, columns: Clique, kept: Clique) -> Floats:
    """Return the table of some of its columns, in this order."""
    left = tuple(place for place in columns if place in kept)
    summed = table.sum(axis=tuple(axis for axis, place in enumerate(columns) if place not in kept))
    return np.asarray(np.transpose(summed, [left.index(place) for place in kept]), dtype=np.float64)


def _spread(table: Floats, columns: Clique, over: Clique) -> Floats:
    """Return a table with an axis for each of more columns, which are in the same order."""
    ordered = np.transpose(table, sorted(range(len(columns)), key=lambda axis: over.index(columns[axis])))
    places = iter(ordered.shape)
    return cast(Floats, ordered.reshape([next(places) if place in columns else 1 for place in over]))


def _log_sum(logs: Floats, columns: Clique, kept: Clique) -> Floats:
    """Return logarithms of sums over all columns but some, which are in the same order."""
    axes = tuple(axis for axis, place in enumerate(columns) if place not in kept)
    most = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - most).sum(axis=axes)) + np.squeeze(most, axis=axes), dtype=np.float64)


def cells_of(sizes: Sequence[int], clique: Clique) -> int:
    """Return the number of cells of a table."""
    return prod(sizes[place] for place in clique)
