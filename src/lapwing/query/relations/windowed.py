"""Window functions over the rows of one unit: what they compute, in which order they see rows, and which of them.

`Windowed` is unit-local, as it looks around within the rows of one unit alone, and adds none. ROW_NUMBER() OVER
(PARTITION BY unit …) <= n leaves at most n of them, as no two rows of a unit have the same number (`row_numbers`).

Proof of the law that windows keep: what they add to the rows of a unit is a function of these rows alone, as a bag.
Let r₁ … rₘ be the rows of a unit that a window sees. A function of the bag of rows in a part, or of those whose ORDER
BY values lie before or between given ones (its *peers* included), is such a function, whoever holds the rows in which
order: RANK, DENSE_RANK, CUME_DIST, PERCENT_RANK, and aggregates over whole parts or RANGE frames. What counts rows one
by one is *positional*: ROW_NUMBER, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, and aggregates over ROWS
frames. Where ORDER BY leaves ties it needs one more rule, and the printed SQL gives it: ties are broken by all columns
of the relation, in their order. Then only rows that are equal in every column are still tied. Swap two of them: the
i-th row has the same values as before for every i, so the bag of (row, what the window adds) is the same. ∎

Of two positional functions each could swap equal rows in its own way, and the bag of (row, first, second) would depend
on it. So where there are several, the rows are numbered once, by all columns, and every order ends in that number: the
bag of (row, number) is a function of the unit's rows, as above, and in it no two rows are equal.

Frames in ROWS are cut off at the most rows of a unit, and those in RANGE are over integers whose sum with the offset
stays inside 64 bits, so that none can overflow on data.
"""

from dataclasses import dataclass, replace
from typing import Literal as Choice
from typing import Self

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.types import Type
from lapwing.query.relations.fresh_columns import named
from lapwing.query.relations.identity import at_most_one
from lapwing.query.relations.inputs import OneSource
from lapwing.query.relations.node import ColumnDefinition
from lapwing.query.relations.row_numbers import Admitted, count

POSITIONAL = {"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"}
"""The functions that count rows one by one."""
PASSING = frozenset({"lag", "lead", "first_value", "last_value", "nth_value", "least", "greatest"})
"""The functions whose value is one that their argument has in some row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortTerm:
    """One ORDER BY term of a window."""

    value: Expression
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        return f"{self.value}{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFrame:
    """Which rows around its own a window function sees: from `start` to `end`, both included, 0 being its own.

    Args:
        unit: Whether the ends are numbers of rows, or distances of the ORDER BY value in its steps.
        start: None for the first or last row of the part.
        end: None for the first or last row of the part.
    """

    unit: Choice["rows", "range"]
    start: int | None
    end: int | None

    def __str__(self) -> str:
        return f"{self.unit} {'' if self.start is None else self.start}:{'' if self.end is None else self.end}"

    @property
    def whole(self) -> bool:
        """Whether it is all rows of the part."""
        return self.start is None and self.end is None

    def most(self, rows: int) -> int:
        """Return the most rows in it, of so many."""
        if self.unit == "range" or self.start is None or self.end is None:
            return rows
        return min(rows, self.end - self.start + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window function over the rows of one unit.

    Args:
        frame: None for the function's own: with an order the rows up to the last peer, else all.
        ignores_nulls: Whether rows whose argument is NULL are passed over.
    """

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[SortTerm, ...]
    type: Type
    frame: WindowFrame | None = None
    ignores_nulls: bool = False

    def __str__(self) -> str:
        nulls = " IGNORE NULLS" if self.ignores_nulls else ""
        called = f"{self.function}({', '.join(map(str, self.arguments))}{nulls})"
        frame = f"; {self.frame}" if self.frame is not None else ""
        return f"{called} OVER (unit; {', '.join(map(str, self.partition))}; {', '.join(map(str, self.order))}{frame})"

    @property
    def positional(self) -> bool:
        """Whether it counts rows one by one, so that ties must be broken."""
        return self.function in POSITIONAL or (self.frame is not None and self.frame.unit == "rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed(OneSource):
    """A selection's rows with window functions as further columns."""

    windows: tuple[Window, ...]
    added: tuple[ColumnReference, ...]

    construct = "window functions"
    hands_on = True
    reads_whole_rows = True

    def __str__(self) -> str:
        return f"({named(self.added, self.windows)} OVER {self.source})"

    @property
    def uses(self) -> tuple[str, ...]:
        """The functions, the units of their frames, and whether one passes over NULL."""
        frames = [f"frames in {window.frame.unit}" for window in self.windows if window.frame is not None]
        nulls = ["IGNORE NULLS" for window in self.windows if window.ignores_nulls]
        return (*(window.function for window in self.windows), *frames, *nulls)

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The source's columns, then the window functions."""
        return (*self.source.relation.columns, *self.added)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit: as many as numbers, where a window gives each row one of its own."""
        pairs = zip(self.windows, self.added, strict=True)
        numbered = [c.name for window, c in pairs if window.function == "row_number" and not window.partition]
        limits = [count(numbers[name]) for name in numbered if name in numbers]
        return min([self.source.rows_within(numbers), *(limit for limit in limits if limit is not None)])

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the node without windows over values as they are read, where nobody looks at them."""
        pairs = zip(self.added, self.windows, strict=True)
        kept = [(column, window) for column, window in pairs if column.cleaned is None or column.name in read]
        if len(kept) == len(self.windows):
            return self
        return replace(self, added=tuple(column for column, _ in kept), windows=tuple(window for _, window in kept))

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """What the windows look at."""
        parts = ((*w.arguments, *w.partition, *(term.value for term in w.order)) for w in self.windows)
        return (tuple(value for part in parts for value in part),)

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return the source's column, or the argument of a window that passes a value on, and nothing else."""
        below = self.source.relation
        if column not in self.added:
            return (ColumnDefinition(column, below),)
        window = self.windows[self.added.index(column)]
        passed = window.arguments[:1] if window.function in PASSING and len(window.arguments) < 3 else ()
        return tuple(ColumnDefinition(value, below, exact=False) for value in passed)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell it of the source, whose rows it has; or by a number that no other row of a unit, or of its part, has.

        ROW_NUMBER gives the rows of a part of a unit the numbers 1, 2, 3 and so on, each once. So rows that agree in
        the number and in what their part is made of are one row.
        """
        for window, column in zip(self.windows, self.added, strict=True):
            if window.function == "row_number" and column in values and values.issuperset(window.partition):
                return True
        return at_most_one(self.source, values, catalog)
