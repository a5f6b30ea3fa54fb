"""A synthetic table of a protected one: the price is charged, rows are counted once, and what was paid is released.

Guarantee: the whole loss is committed to the ledger before the engine reads a row. The counts go into `PaidMarginals`,
which proves that whatever is asked of it loses no more than that; everything else here sees released numbers only.
What can be refused is refused before the charge: columns without public cells, tables with too many cells, a condition
that cannot be bound, a missing extra, data that are not the ledger's version, a budget that is too small.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final, TypedDict

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import FAILED
from lapwing.errors import EngineFault, Interrupted, InvalidParameter, LapwingError
from lapwing.ledger.wording import require_label
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.query.bind import bind
from lapwing.query.quote import request
from lapwing.release.release import current_digests
from lapwing.release.request import Access
from lapwing.release.spending import spend
from lapwing.synthesis.attributes import Attribute, Integers, attributes_of
from lapwing.synthesis.choosing import METHODS, Chosen, Method, Task
from lapwing.synthesis.estimation import Estimator, GraphicalModel
from lapwing.synthesis.marginal_tree import cells_of
from lapwing.synthesis.paid_marginals import GRID, NoisyTable, PaidMarginals
from lapwing.synthesis.reading import Clique, Reading, reading_of
from lapwing.synthesis.synthetic_table import (
    MOST_ROWS,
    MarginalReport,
    SyntheticTable,
    WorkloadError,
    arrow_rows,
    counted,
)

MOST_COLUMNS: Final = 32
MOST_TABLE_CELLS: Final = 50_000
"""Of one table of a workload."""
MOST_CELLS_IN_ALL: Final = 20_000_000
"""Of all tables that may be looked at, together: they are held in memory."""
MOST_TABLES: Final = 3_000
CHECKED: Final = Fraction(1, 50)
"""Of the price: what the error over the workload is measured for."""


class SynthesisOptions(TypedDict, total=False):
    """What `synthesize` may be told beside columns and price."""

    table: str | None
    rows: int | None
    method: str
    workload: int | Sequence[Sequence[str]]
    bins: int | Mapping[str, int]
    where: str | None
    most_cells: int
    label: str


def synthesize(
    columns: Sequence[str],
    access: Access,
    *,
    epsilon: Number,
    table: str | None = None,
    rows: int | None = None,
    method: str = "aim",
    workload: int | Sequence[Sequence[str]] = 2,
    bins: int | Mapping[str, int] = 16,
    where: str | None = None,
    most_cells: int = 250_000,
    label: str = "synthesize rows",
) -> SyntheticTable:
    """Measure tables of some of the columns with noise, and draw synthetic rows that agree with them.

    Guarantee: the loss that `epsilon` buys, for everything that is shown. Neighbours and unit are the catalog's.

    Args:
        columns: two to 32 names, of columns with listed values or bounds.
        epsilon: the price: all of it together is (epsilon, delta)-DP, with the budget's delta.
        table: which protected table; it may be left out where there is one.
        rows: how many are drawn; about as many as there are if it is left out.
        method: "aim" chooses tables one after another; "mst" chooses a tree of pairs, which is quicker; "residual"
            measures the whole workload at once.
        workload: which tables matter: all of so many columns, or a list of them.
        bins: into how many a bounded column is cut at most: of all, or by name (16 where none is given).
        where: a condition on rows, in SQL.
        most_cells: of the tables that the distribution is made of, together: more take longer.
        label: what the history calls it.
    Raises: QueryRefused, InvalidParameter, BudgetExhausted, DataChanged, DataStopped (nothing charged); EngineFault,
        Interrupted (says whether it was charged).
    """
    require_label(label)
    protected = _table_of(access.catalog, table)
    if isinstance(columns, str) or not 2 <= len(set(columns)) == len(columns) <= MOST_COLUMNS:
        raise InvalidParameter(f"Give 2 to {MOST_COLUMNS} columns, each once. Nothing was charged.")
    if method not in METHODS:
        raise InvalidParameter(f"method is {method!r:.40}; write one of {', '.join(METHODS)}. Nothing was charged.")
    _require_whole("most_cells", most_cells, 1_000, 100_000_000)
    if rows is not None:
        _require_whole("rows", rows, 1, MOST_ROWS)
    attributes = attributes_of(protected, list(columns), bins)
    sizes = tuple(one.size for one in attributes)
    wanted, left_out = _workload_of(workload, columns, sizes)
    task = Task(workload=wanted, most_cells=most_cells, kept=CHECKED)
    reading = reading_of(
        protected,
        attributes,
        where,
        lambda text: bind(text, access.catalog, access.public, (), capabilities=access.engine.capabilities),
    )
    price = request(epsilon, access.catalog.budget)
    estimator = GraphicalModel(sizes)
    chosen, error, cells, charged = _paid(reading, price, estimator, METHODS[method], task, rows, label, access)
    newest = {table.clique: table for table in chosen.tables}  # of a table that was measured again, the sharper one
    report = [_reported(attributes, table, cells, chosen.model.total) for table in newest.values()]
    return SyntheticTable(
        method=method,
        columns=tuple(columns),
        report=tuple(report),
        error=error,
        cost=charged,
        left_out=tuple(tuple(columns[place] for place in clique) for clique in left_out),
        _rows=arrow_rows(attributes, cells, access.entropy),
        _model=chosen.model,
        _attributes=attributes,
        _entropy=access.entropy,
    )


def _paid(
    reading: Reading,
    price: Loss,
    estimator: Estimator,
    choose: Method,
    task: Task,
    rows: int | None,
    label: str,
    access: Access,
) -> tuple[Chosen, WorkloadError, Integers, Loss]:
    """Charge, read, measure and draw: return the distribution, its error, the drawn cells, and what was charged."""
    access.engine.prepare(reading.question)
    digests = current_digests(reading.question.lineage, access.engine, access.ledger.seen())
    charged = spend(price, label, access)
    ended: LapwingError
    try:
        paid = PaidMarginals(
            reading.read(access.engine, digests),
            price,
            rows_per_unit=reading.rows_per_unit,
            sensitivity=reading.sensitivity(access.catalog.budget.neighbouring),
            replaced=access.catalog.budget.neighbouring == "replace_one",
            entropy=access.entropy,
        )
        try:
            chosen = choose(paid, estimator, task)
            count = max(1, min(MOST_ROWS, round(chosen.model.total))) if rows is None else rows
            cells = chosen.model.draw(count, access.entropy)
            return chosen, _error_of(paid, cells, chosen.model.total, task), cells, charged
        finally:
            paid.forget()
            estimator.close()
    except KeyboardInterrupt:
        ended = Interrupted(charged=True)
    except LapwingError as error:
        ended = error if isinstance(error, EngineFault) else EngineFault(FAILED)
    except Exception:
        ended = EngineFault(FAILED)
    raise ended  # out here, so that it does not drag along what happened


def _error_of(paid: PaidMarginals, cells: Integers, total: float, task: Task) -> WorkloadError:
    """Measure how far drawn rows are from the real ones, for what is left of the price."""
    scale = total / len(cells)
    told = {clique: counted(cells, clique, paid.sizes) * scale for clique in task.workload}
    apart, noise = paid.distance(told, paid.left)
    unit = 2 * GRID * len(told) * max(total, 1.0)
    most, half = min(1.0, max(0.0, apart / unit)), noise.half_width(Fraction(95, 100)) / unit
    # What is told is rounded to the grid, by half a part a cell at most.
    half += sum(table.size for table in told.values()) / 2 / unit
    ends = (min(1.0, max(0.0, apart / unit + side)) for side in (-half, half))
    low, high = ends
    return WorkloadError(estimate=most, low=low, high=high, tables=len(told))


def _reported(attributes: Sequence[Attribute], table: NoisyTable, cells: Integers, total: float) -> MarginalReport:
    """Put a measured table beside that of the drawn rows."""
    sizes = tuple(one.size for one in attributes)
    return MarginalReport(
        columns=tuple(attributes[place].name for place in table.clique),
        cells=tuple(attributes[place].labels for place in table.clique),
        measured=table.counts,
        half_width=table.noise.half_width(Fraction(95, 100)),
        synthetic=counted(cells, table.clique, sizes) * (total / len(cells)),
    )


# ---- what is asked for -----------------------------------------------------------------------------------------------


def _table_of(catalog: Catalog, name: str | None) -> Table:
    there = ", ".join(table.name for table in catalog.tables)
    if name is None:
        if len(catalog.tables) == 1:
            return catalog.tables[0]
        raise InvalidParameter(f"There are several protected tables; give table, one of {there}. Nothing was charged.")
    for table in catalog.tables:
        if table.name == name:
            return table
    raise InvalidParameter(f"{name!r:.60} is no protected table; there is {there}. Nothing was charged.")


def _require_whole(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InvalidParameter(
            f"{name} is {value!r:.40}; write a whole number from {least:,} to {most:,}. Nothing was charged."
        )


def _workload_of(
    workload: int | Sequence[Sequence[str]], columns: Sequence[str], sizes: tuple[int, ...]
) -> tuple[tuple[Clique, ...], tuple[Clique, ...]]:
    """Return the tables that matter, and those that have too many cells. Raises: InvalidParameter."""
    if isinstance(workload, int):
        if type(workload) is not int or not 1 <= workload <= 4:
            raise InvalidParameter(f"workload is {workload!r}; write 1 to 4 columns, or a list. Nothing was charged.")
        every = list(combinations(range(len(columns)), min(workload, len(columns))))
    else:
        every = [_clique(names, columns) for names in workload]
        for clique in every:
            if cells_of(sizes, clique) > MOST_TABLE_CELLS:
                raise InvalidParameter(
                    f"{' and '.join(columns[place] for place in clique)} have {cells_of(sizes, clique):,} combinations "
                    f"of cells, of which {MOST_TABLE_CELLS:,} are allowed; give them fewer bins. Nothing was charged."
                )
    if not 1 <= len(every) <= MOST_TABLES or len(set(every)) < len(every):
        raise InvalidParameter(
            f"The workload has {len(every):,} tables; give 1 to {MOST_TABLES:,}, each once. Nothing was charged."
        )
    wanted = tuple(clique for clique in every if cells_of(sizes, clique) <= MOST_TABLE_CELLS)
    if not wanted:
        raise InvalidParameter(
            f"Every table of the workload has more than {MOST_TABLE_CELLS:,} cells; give fewer bins. Nothing was "
            "charged."
        )
    if sum(cells_of(sizes, clique) for clique in wanted) > MOST_CELLS_IN_ALL:
        raise InvalidParameter(
            f"The tables of the workload have more than {MOST_CELLS_IN_ALL:,} cells together; give fewer columns or "
            "bins, or smaller tables. Nothing was charged."
        )
    return wanted, tuple(clique for clique in every if clique not in set(wanted))


def _clique(names: Sequence[str], columns: Sequence[str]) -> Clique:
    if isinstance(names, str) or not 1 <= len(set(names)) == len(names) <= 4 or not set(names) <= set(columns):
        raise InvalidParameter(
            f"{names!r:.80} is no table of the workload: give lists of 1 to 4 of the columns. Nothing was charged."
        )
    return tuple(sorted(columns.index(name) for name in names))
