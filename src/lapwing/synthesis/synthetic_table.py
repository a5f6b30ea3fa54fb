"""Synthetic rows, with what is known of how near they are to the real ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.privacy.measures import Loss
from lapwing.synthesis.attributes import Attribute, Integers
from lapwing.synthesis.marginal_tree import MarginalTree
from lapwing.synthesis.paid_marginals import Floats

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS: Final = 10_000_000
WARNING: Final = (
    "Synthetic rows are not real rows, and a query of them has no guarantee of accuracy. Combinations that the report "
    "does not show, such as three columns or rare values, may be far off without a limit. Query the table itself."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalReport:
    """One table that was measured, beside the same table of the synthetic rows.

    Args:
        columns: Their names.
        cells: The labels of each column's cells.
        measured: Released numbers of rows, an axis for each column.
        half_width: With 95 % probability a cell's number is no further than this from the real one.
        synthetic: Numbers of synthetic rows, scaled to as many rows as there are about.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    measured: IntArray
    half_width: int
    synthetic: Floats

    @property
    def inside(self) -> float:
        """The share of cells whose synthetic number lies in the interval around the measured one."""
        return float((np.abs(self.synthetic - self.measured) <= self.half_width).mean())

    @property
    def distance(self) -> float:
        """Half the sum of all differences between measured and synthetic numbers, divided by the number of all rows."""
        return min(1.0, float(np.abs(self.synthetic - self.measured).sum()) / 2 / max(float(self.synthetic.sum()), 1.0))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every cell: its labels, the released number with the ends of its interval, and the synthetic number."""
        for place in np.ndindex(self.measured.shape):
            released = int(self.measured[place])
            labels = {name: self.cells[axis][place[axis]] for axis, name in enumerate(self.columns)}
            ends = {"low": max(0, released - self.half_width), "high": max(0, released + self.half_width)}
            yield {**labels, "measured": released, **ends, "synthetic": round(float(self.synthetic[place]), 1)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadError:
    """How far the synthetic rows are from the real ones over the workload: measured, at a part of the price.

    For each table of the workload it is half the sum of the differences between the real numbers of rows and the
    synthetic ones. These are scaled to the released number of rows, and the sum is divided by it. For all tables it is
    the mean.

    Args:
        estimate: Of the mean, at least 0.
        low: With 95 % probability the mean lies between.
        high: With 95 % probability the mean lies between.
        tables: How many.
    """

    estimate: float
    low: float
    high: float
    tables: int

    def __str__(self) -> str:
        return f"{100 * self.estimate:.2f} % of rows ({100 * self.low:.2f} % to {100 * self.high:.2f} %)"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SyntheticTable:
    """Synthetic rows, with what is known of how good they are.

    Args:
        report: Of every table that was measured, the newest of those measured again.
        error: Over the workload.
        cost: The charge.
        stored: Whether it was bought before, and cost nothing this time.
        left_out: Tables of the workload that were too large to be looked at.
    """

    method: str
    columns: tuple[str, ...]
    report: tuple[MarginalReport, ...]
    error: WorkloadError
    cost: Loss
    stored: bool
    left_out: tuple[tuple[str, ...], ...]
    warning: str = field(default=WARNING)
    _rows: "pa.Table"
    _model: MarginalTree
    _attributes: tuple[Attribute, ...]
    _entropy: Entropy

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def to_arrow(self) -> "pa.Table":
        """Return the rows as a PyArrow table, with the columns' declared types."""
        return self._rows

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame, which must be installed."""
        from lapwing.answer.frames import pandas_frame

        return pandas_frame(self._rows)

    def to_polars(self) -> Any:
        """Return the rows as a Polars data frame, which must be installed."""
        from lapwing.answer.frames import polars_frame

        return polars_frame(self._rows)

    def draw(self, rows: int) -> "pa.Table":
        """Return other rows of the same distribution, in a PyArrow table: free, because it reads nothing private."""
        if type(rows) is not int or not 1 <= rows <= MOST_ROWS:
            raise InvalidParameter(f"rows is {rows!r}; write a whole number from 1 to {MOST_ROWS:,}.")
        return arrow_rows(self._attributes, self._model.draw(rows, self._entropy), self._entropy)

    def __str__(self) -> str:
        """Return the report as text."""
        return as_text(self)


class Described(Protocol):
    """Synthetic rows with their report, here or of a server."""

    columns: tuple[str, ...]
    report: tuple[MarginalReport, ...]
    error: WorkloadError
    cost: Loss
    left_out: tuple[tuple[str, ...], ...]
    warning: str

    def __len__(self) -> int: ...


def as_text(table: "Described | SyntheticTable") -> str:
    """Return a report as text."""
    lines = [
        f"{len(table):,} synthetic rows of {', '.join(table.columns)}; cost {table.cost}",
        f"error over {table.error.tables} tables: {table.error}",
    ]
    for one in sorted(table.report, key=lambda one: (len(one.columns), -one.distance)):
        inside = f"{100 * one.inside:.0f} % of {one.measured.size:,} cells in their intervals (±{one.half_width:,})"
        lines.append(f"{' × '.join(one.columns)}: {inside}")
    if table.left_out:
        lines.append(f"not checked, too many cells: {'; '.join(' × '.join(names) for names in table.left_out)}")
    return "\n".join([*lines, table.warning])


def arrow_rows(attributes: tuple[Attribute, ...], cells: Integers, entropy: Entropy) -> "pa.Table":
    """Return drawn cells as a table of values."""
    import pyarrow as pa  # here: it takes longer to load than most of the rest

    columns: Mapping[str, Any] = {
        attribute.name: attribute.draw(cells[:, place], entropy) for place, attribute in enumerate(attributes)
    }
    return pa.table(columns)


def counted(cells: Integers, clique: tuple[int, ...], sizes: tuple[int, ...]) -> Floats:
    """Return how many drawn rows have each combination of the cells of some columns."""
    shape = tuple(sizes[place] for place in clique)
    places = np.ravel_multi_index(tuple(cells[:, place] for place in clique), shape)
    return np.bincount(places, minlength=int(np.prod(shape))).astype(np.float64).reshape(shape)
