"""Synthetic tables: rows that nobody has, drawn from noisy tables of all pairs of columns.

Theory of operation. Bought is one batch: how many rows have each combination of values, for every pair of columns,
numbers by bins with public edges. Measured together as one workload, in gdp and zcdp ledgers, these tables agree with
each other and are sharper than one by one. A tree that joins all columns is chosen among the pairs, by how far each
pair is from being independent beyond what noise would show (Chow and Liu 1968), and its tables are moved towards
independence as far as noise explains the difference. Rows are drawn along it: of the root's values first, then of each
column's given its neighbour's. All of that is post-processing.

Guarantee: that of the batch. The draws need no secrecy, and take the session's randomness all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np

from lapwing.catalog.model import Column, Table
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import uniform_integers
from lapwing.learn.columns import Category, Floats, column_of, complete_rows, decimal, quoted, table_of
from lapwing.learn.parameters import require_whole
from lapwing.learn.unit_rows import Integers
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.session import Session

MOST_COLUMNS: Final = 20
MOST_CELLS: Final = 100_000
"""Of one pair of columns."""
WARNING: Final = (
    "Synthetic rows are nobody's. What they show of two columns is as near to the table as the report says; what they "
    "show of three or more, or of rare values, may be far from it, and nothing bounds how far. Ask the table itself."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A column with finitely many public cells: its values, or bins of a number.

    Args: sql: a key; keys: the key's value of each cell; values: of a column of values; steps: of each bin its first
        and last value, in steps of the column.
    """

    column: Column
    sql: str
    keys: tuple[Category, ...]
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.keys)

    def draw(self, cells: Integers, entropy: Entropy) -> list[Any]:
        """Return a value of each cell: of a bin any of its numbers, as likely as another."""
        if not self.steps:
            return [self.keys[cell] for cell in cells.tolist()]
        found = np.zeros(cells.size, dtype=np.int64)
        for cell, (first, last) in enumerate(self.steps):
            here = np.flatnonzero(cells == cell)
            if here.size:
                found[here] = first + np.asarray(uniform_integers(last - first + 1, here.size, entropy), dtype=np.int64)
        step = cast(Fraction, self.column.step)
        return [self._number(place * step) for place in found.tolist()]

    def _number(self, value: Fraction) -> int | float | Decimal:
        if self.column.type == "integer":
            return int(value)
        return float(value) if self.column.type == "float" else Decimal(value.numerator) / Decimal(value.denominator)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairReport:
    """How near a synthetic table comes to two columns.

    Args: distance: half the sum of the differences between shares of rows, of the synthetic and the released table;
        noise: with 95 % probability the released table is no further than this from the real one, about; in_tree:
        whether rows were drawn by it.
    """

    columns: tuple[str, str]
    distance: float
    noise: float
    in_tree: bool

    @property
    def at_most(self) -> float:
        """About how far the synthetic table is from the real one at most, with 95 % probability."""
        return min(1.0, self.distance + self.noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyntheticTable:
    """Synthetic rows, with what is known of how good they are.

    Args: columns: values by name; report: of every pair of columns; tree: the pairs that rows were drawn along; cost:
        what was charged.
    """

    columns: Mapping[str, Sequence[Any]]
    report: tuple[PairReport, ...]
    tree: tuple[tuple[str, str], ...]
    cost: Loss
    warning: str = field(default=WARNING)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_arrow(self) -> "pa.Table":
        """Return a PyArrow table."""
        import pyarrow as pa  # here: it takes longer to load than most of the rest

        return pa.table({name: pa.array(values) for name, values in self.columns.items()})

    def __str__(self) -> str:
        """Return the report as text."""
        worst = sorted(self.report, key=lambda pair: -pair.at_most)
        lines = [f"{len(self):,} synthetic rows of {', '.join(self.columns)}; cost {self.cost}"]
        for pair in worst:
            how = "drawn along it" if pair.in_tree else "not drawn along it"
            lines.append(f"{pair.columns[0]} and {pair.columns[1]}: within {100 * pair.at_most:.1f} % of rows, {how}")
        return "\n".join([*lines, self.warning])


def synthesize(
    session: "Session",
    table: str,
    columns: Sequence[str],
    *,
    epsilon: Number,
    rows: int | None = None,
    bins: int = 16,
    where: str | None = None,
    label: str = "synthesize rows",
) -> SyntheticTable:
    """Buy tables of all pairs of columns, and draw synthetic rows from them. The same again is free, but for new draws.

    Guarantee: that of `Session.batch` with this price. Neighbours and unit are the catalog's.
    Args: columns: two to twenty, with bounds or listed values; rows: how many to draw, None for about as many as there
        are;
        bins: of numbers; where: a condition on rows. Rows with NULL in a column do not count.
    Raises: as `Session.batch`, and InvalidParameter for columns that cannot be used; nothing is charged then.
    """
    there = table_of(session.catalog, table)
    require_whole("bins", bins, least=2, most=256)
    if rows is not None:
        require_whole("rows", rows, most=10_000_000)
    if isinstance(columns, str) or not 2 <= len(set(columns)) == len(columns) <= MOST_COLUMNS:
        raise InvalidParameter(f"Give 2 to {MOST_COLUMNS} columns, each once. Nothing was charged.")
    attributes = [attribute_of(column_of(there, name), bins) for name in columns]
    pairs = list(combinations(range(len(attributes)), 2))
    for i, j in pairs:
        if attributes[i].size * attributes[j].size > MOST_CELLS:
            raise InvalidParameter(
                f"{columns[i]} and {columns[j]} have more than {MOST_CELLS:,} combinations. Nothing was charged."
            )
    answers = session.batch([_question(there, attributes, pair, where) for pair in pairs], epsilon=epsilon, label=label)
    tables, noise = dict[tuple[int, int], Floats](), dict[tuple[int, int], float]()
    for pair, answer in zip(pairs, answers, strict=True):
        tables[pair] = _table([attributes[place] for place in pair], answer.rows())
        noise[pair] = next(iter(answer.mechanisms.values())).standard_deviation
    count = max(1, round(float(np.mean([cells.sum() for cells in tables.values()])))) if rows is None else rows
    margins, entropy = margins_of(tables, len(attributes)), session._access().entropy
    near = {(i, j): shrunk(tables[i, j], margins[i], margins[j], noise[i, j]) for i, j in pairs}
    tree = spanning_tree({pair: dependence for pair, (_, dependence) in near.items()}, len(attributes))
    cells = draw({pair: near[pair][0] for pair in tree}, margins, tree, count, entropy)
    report = tuple(_report(columns, pair, tables[pair], noise[pair], cells, tree) for pair in pairs)
    return SyntheticTable(
        columns={
            name: one.draw(cells[:, k], entropy) for k, (name, one) in enumerate(zip(columns, attributes, strict=True))
        },
        report=report,
        tree=tuple((columns[i], columns[j]) for i, j in tree),
        cost=answers[0].cost.from_amount(sum((answer.cost.amount for answer in answers), Fraction(0))),
    )


def attribute_of(column: Column, bins: int) -> Attribute:
    """Return the cells of a column. Raises: InvalidParameter for one with neither bounds nor listed values."""
    name = quoted(column.name)
    if column.values and not any(isinstance(value, date) for value in column.values):
        keys = tuple(cast(Category, value) for value in column.values)
        return Attribute(column=column, sql=name, keys=keys if column.other is None else (*keys, column.other))
    if not (column.numeric and column.bounded) or column.step is None:
        raise InvalidParameter(
            f"Column {column.name} has neither numeric bounds nor listed values in the catalog. Nothing was charged."
        )
    count = column.steps + 1
    # Bins of as many steps each as make at most so many bins; the last one may be shorter.
    width = -(-count // bins)
    edges = [(first, min(first + width - 1, column.high)) for first in range(column.low, column.high + 1, width)]
    low, above = column.low * column.step, (column.low + width * len(edges)) * column.step
    sql = f"WIDTH_BUCKET({name}, {decimal(low)}, {decimal(above)}, {len(edges)})"
    return Attribute(column=column, sql=sql, keys=tuple(range(1, len(edges) + 1)), steps=tuple(edges))


def _question(table: Table, attributes: Sequence[Attribute], pair: tuple[int, int], where: str | None) -> str:
    first, second = (attributes[place].sql for place in pair)
    needed = [one.column.name for one in attributes if one.column.other is None]
    kept = complete_rows(needed, where) if needed or where is None else f"WHERE {where}"
    source = f"FROM {quoted(table.name)} {kept if kept != 'WHERE ' else ''}"
    return f"SELECT {first} AS a, {second} AS b, COUNT(*) AS n {source} GROUP BY {first}, {second}"


def _table(attributes: Sequence[Attribute], rows: Sequence[Mapping[str, Any]]) -> Floats:
    first, second = ({key: place for place, key in enumerate(one.keys)} for one in attributes)
    found = np.zeros((attributes[0].size, attributes[1].size))
    for row in rows:
        found[first[row["a"]], second[row["b"]]] = row["n"]
    return found


# ---- post-processing -------------------------------------------------------------------------------------------------


def margins_of(tables: Mapping[tuple[int, int], Floats], size: int) -> list[Floats]:
    """Return the table of each column by itself: the mean of what all pairs say of it, without negative cells."""
    found = []
    for place in range(size):
        own = [table.sum(axis=1 - pair.index(place)) for pair, table in tables.items() if place in pair]
        found.append(nonnegative(np.asarray(np.mean(own, axis=0), dtype=np.float64)))
    return found


def shrunk(table: Floats, first: Floats, second: Floats, sigma: float) -> tuple[Floats, float]:
    """Return a pair's table, moved towards that of independent columns as far as noise explains the difference.

    The difference of m cells has a sum of squares of about m·σ² by noise alone; it is multiplied by 1 − m·σ²/(sum of
    squares), or 0 if that is less (James and Stein 1961).

    Returns: the table, without negative cells; how far it is from independent: about chi-squared for each row.
    """
    total = max(float(first.sum()), 1.0)
    expected = np.outer(first, second) / max(float(second.sum()), 1.0)
    apart = table - expected
    kept = max(0.0, 1 - apart.size * sigma**2 / max(float(np.square(apart).sum()), 1e-9))
    dependence = kept * float((np.square(apart) / np.maximum(expected, max(sigma, 1.0))).sum()) / total
    return nonnegative(expected + kept * apart), dependence


def nonnegative(table: Floats) -> Floats:
    """Return the nearest table without negative cells that has the same sum: the same is taken from every cell.

    Left as they are, noise above 0 would stay and noise below would go, and many empty cells would weigh much together.
    """
    total = max(float(table.sum()), 0.0)
    ordered = np.sort(table, axis=None)[::-1]
    taken = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = int(np.count_nonzero(ordered > taken))
    return np.asarray(np.maximum(table - (taken[kept - 1] if kept else 0.0), 0), dtype=np.float64)


def spanning_tree(dependence: Mapping[tuple[int, int], float], size: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a tree over all columns that are furthest from independence in all, the best pair first."""
    joined, tree = list(range(size)), list[tuple[int, int]]()
    for i, j in sorted(dependence, key=lambda pair: -dependence[pair]):
        if joined[i] != joined[j]:
            tree.append((i, j))
            joined = [joined[i] if one == joined[j] else one for one in joined]
    return tuple(tree)


def draw(
    tables: Mapping[tuple[int, int], Floats],
    margins: Sequence[Floats],
    tree: Sequence[tuple[int, int]],
    count: int,
    entropy: Entropy,
) -> Integers:
    """Draw rows of cells along a tree: a column each, of the root first, then of each given its neighbour's."""
    size, root = len(tree) + 1, tree[0][0]
    cells, done = np.zeros((count, size), dtype=np.int64), {root}
    cells[:, root] = _drawn(margins[root], count, entropy)
    while len(done) < size:
        i, j = next(pair for pair in tree if len(done & set(pair)) == 1)
        known, new = (i, j) if i in done else (j, i)
        table = tables[i, j] if known == i else tables[i, j].T
        for cell in np.unique(cells[:, known]).tolist():
            here = np.flatnonzero(cells[:, known] == cell)
            weights = table[cell] if table[cell].sum() >= 1 else margins[new]
            cells[here, new] = _drawn(weights, here.size, entropy)
        done.add(new)
    return cells


def _drawn(weights: Floats, count: int, entropy: Entropy) -> Integers:
    """Draw places by weights, as whole numbers; of weights that are all 0, any place."""
    whole = np.maximum(np.rint(weights), 0).astype(np.int64)
    if not whole.any():
        whole = np.ones_like(whole)
    ends = np.cumsum(whole)
    numbers = np.asarray(uniform_integers(int(ends[-1]), count, entropy), dtype=np.int64)
    return cast(Integers, np.searchsorted(ends, numbers, side="right").astype(np.int64))


def _report(
    names: Sequence[str],
    pair: tuple[int, int],
    table: Floats,
    sigma: float,
    cells: Integers,
    tree: Sequence[tuple[int, int]],
) -> PairReport:
    """Compare the synthetic table of a pair with the released one, and that with the real one by its noise."""
    width = table.shape[1]
    drawn = np.bincount(cells[:, pair[0]] * width + cells[:, pair[1]], minlength=table.size).reshape(table.shape)
    total = max(float(table.sum()), 1.0)
    distance = float(np.abs(drawn / max(len(cells), 1) - table / total).sum()) / 2
    # The sum of m absolute values of Gaussian noise has mean m·σ·√(2/π), and variance m·σ²·(1 − 2/π) if independent.
    largest = table.size * sigma * sqrt(2 / pi) + 1.645 * sigma * sqrt(table.size * (1 - 2 / pi))
    return PairReport(
        columns=(names[pair[0]], names[pair[1]]),
        distance=min(1.0, distance),
        noise=min(1.0, largest / total / 2),
        in_tree=pair in tree,
    )
