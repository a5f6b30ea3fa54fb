"""A synthetic table of a protected one: the price is charged, rows are counted once, and what was paid is released.

Guarantee:
    The whole loss is committed to the ledger before the engine reads a row. The counts go into `PaidMarginals`, which
    proves that whatever is asked of it loses no more than that; everything else here sees released numbers only. What
    can be refused is refused before the charge: columns without public cells, tables with too many cells, a condition
    that cannot be bound, a missing extra, data that are not the ledger's version, a budget that is too small.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from typing import Final, TypedDict, final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import FAILED
from lapwing.errors import (
    EngineFault,
    Interrupted,
    InvalidParameter,
    LapwingError,
    LedgerFault,
    QueryRefused,
    RefusalCause,
)
from lapwing.ledger.faults import given_up
from lapwing.ledger.waiting import UnderWay
from lapwing.ledger.wording import require_label
from lapwing.machine.interrupts import deferred
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.query.bind.bind import bind
from lapwing.query.pricing.quote import request
from lapwing.release.request import Access
from lapwing.release.spending import charge_once
from lapwing.release.versions import current_digests
from lapwing.release.waiting import Waiting
from lapwing.synthesis.attributes import Attribute, Integers, attributes_of
from lapwing.synthesis.choosing import METHODS, Method, SynthesisGoal
from lapwing.synthesis.estimation import Estimator, GraphicalModel
from lapwing.synthesis.kept_table import Measured, SyntheticRelease, kept_in, payload_of
from lapwing.synthesis.marginal_tree import cells_of
from lapwing.synthesis.paid_marginals import GRID, PaidMarginals
from lapwing.synthesis.reading import Clique, TableReading, reading_of
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
    """The options of `synthesize` next to columns and price."""

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

    Guarantee:
        The loss that `epsilon` buys, for everything that is shown. Neighbours and unit are the catalog's. The same
        again, about the same data, is free, unless it was too large to be stored (`kept_table`).

    Args:
        columns: two to 32 names, of columns with listed values or bounds.
        epsilon: the price: all of it together is (epsilon, delta)-DP, with the budget's delta.
        table: which protected table; it may be left out where there is one.
        rows: how many are drawn; about as many as there are if it is left out.
        method: "aim" chooses tables one after another; "mst" chooses a tree of pairs, which is quicker; "residual"
            measures the whole workload at once.
        workload: which tables matter: all of a number of columns, or a list of them.
        bins: into how many a bounded column is cut at most: of all, or by name (16 where none is given).
        where: a condition on rows, in SQL.
        most_cells: of the tables that the distribution is made of, together: more take longer.
        label: what the history calls it.

    Raises:
        QueryRefused: If the question is not understood or not allowed. Nothing is charged.
        InvalidParameter: If a value is not allowed. Nothing is charged.
        BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
        DataChanged: If the data are another version. Nothing is charged.
        DataStopped: If the data set is stopped. Nothing is charged.
        EngineFault: If the question fails after its charge. It says whether it was charged.
        Interrupted: If the user stops it. It says whether it was charged.
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
    sizes = tuple(attribute.size for attribute in attributes)
    wanted, left_out = _workload_of(workload, columns, sizes)
    task = SynthesisGoal(workload=wanted, most_cells=most_cells, kept=CHECKED)
    reading = reading_of(
        protected,
        attributes,
        where,
        lambda text: bind(text, access.catalog, access.public, (), capabilities=access.engine.capabilities),
    )
    price = request(epsilon, access.catalog.budget)
    described = [
        protected.name,
        list(columns),
        [attribute.sql for attribute in attributes],
        where,
        rows,
        method,
        wanted,
        most_cells,
    ]
    asked = _Asked(
        reading=reading,
        price=price,
        choose=METHODS[method],
        task=task,
        rows=rows,
        label=label,
        key=sha256(
            json.dumps(["synthesis", *described, price.to_record(), access.catalog.digest]).encode()
        ).hexdigest(),
    )
    drawn, stored = _released(asked, GraphicalModel(sizes), access)
    return SyntheticTable(
        method=method,
        columns=tuple(columns),
        report=tuple(_reported(attributes, table, drawn) for table in drawn.tables),
        error=drawn.error,
        cost=drawn.cost.nothing() if stored else drawn.cost,
        stored=stored,
        left_out=tuple(tuple(columns[place] for place in clique) for clique in left_out),
        _rows=arrow_rows(attributes, drawn.cells, access.entropy),
        _model=drawn.model,
        _attributes=attributes,
        _entropy=access.entropy,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked for, and its price: public.

    Args:
        key: Names it up to what cannot change what comes out.
    """

    reading: TableReading
    price: Loss
    choose: Method
    task: SynthesisGoal
    rows: int | None
    label: str
    key: str


def _released(asked: _Asked, estimator: Estimator, access: Access) -> tuple[SyntheticRelease, bool]:
    """Return what was released, and whether it was bought before; else charge, read, measure, draw, and keep it."""
    access.engine.prepare(asked.reading.question)
    ledger, waiting, charged = access.ledger, Waiting(access.ledger), list[int]()
    while True:
        state, (kept,) = ledger.look_up([asked.key])
        digests = current_digests(asked.reading.question.lineage, access.engine, state)
        stored = kept_in(kept)
        if stored is not None:
            return stored, True
        _require_trusted(access)
        with deferred():  # Ctrl-C waits until the charge is made and noted, or refused
            outcome = charge_once(asked.price, asked.label, asked.key, access, state)
            if not isinstance(outcome, UnderWay):
                charged.append(outcome)
        if not isinstance(outcome, UnderWay):
            break
        waiting.for_end_of(outcome)
    ended: LapwingError
    try:
        drawn = _drawn(asked, estimator, digests, access)
        with deferred():
            ledger.record_answer(charged[0], payload_of(drawn))
        return drawn, False
    except KeyboardInterrupt:
        ledger.record_unanswered(charged, "interrupt")
        ended = Interrupted(charged=True)
    except LedgerFault:  # it is constant, and holds no sums
        raise
    except BaseException:
        silent = ledger.record_unanswered(charged, "fault")
        ended = given_up() if silent else EngineFault(FAILED)
    raise ended  # out here, so that it does not drag along what happened


def _require_trusted(access: Access) -> None:
    """Refuse people who may not see how long it takes: that follows from which tables were chosen, and from rows."""
    if not access.timing.trusted:
        raise QueryRefused(
            "The time that synthesis takes depends on the data, and this service shows it only to people whom the "
            "curator trusts with time",
            cause=RefusalCause.TIME_DEPENDS_ON_DATA,
            curator_remedy="give you a grant that trusts you with time",
        )


def _drawn(asked: _Asked, estimator: Estimator, digests: Mapping[str, str], access: Access) -> SyntheticRelease:
    """Read, measure and draw, for what was charged."""
    reading, task, replaced = asked.reading, asked.task, access.catalog.budget.neighbouring == "replace_one"
    paid = PaidMarginals(
        reading.read(access.engine, digests),
        asked.price,
        rows_per_unit=reading.rows_per_unit,
        sensitivity=reading.sensitivity(access.catalog.budget.neighbouring),
        replaced=replaced,
        entropy=access.entropy,
    )
    try:
        chosen = asked.choose(paid, estimator, task)
        count = max(1, min(MOST_ROWS, round(chosen.model.total))) if asked.rows is None else asked.rows
        cells = chosen.model.draw(count, access.entropy)
        error = _error_of(paid, cells, chosen.model.total, task)
        newest = {table.clique: table for table in chosen.tables}  # of a table that was measured again, the sharper one
        return SyntheticRelease(
            model=chosen.model,
            tables=tuple(
                Measured(clique=one.clique, counts=one.counts, half_width=one.noise.half_width(Fraction(95, 100)))
                for one in newest.values()
            ),
            error=error,
            cells=cells,
            cost=asked.price.rounded_up(),
            drawn=tuple(paid.drawn),
        )
    finally:
        paid.forget()
        estimator.close()


def _error_of(paid: PaidMarginals, cells: Integers, total: float, task: SynthesisGoal) -> WorkloadError:
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


def _reported(attributes: Sequence[Attribute], table: Measured, drawn: SyntheticRelease) -> MarginalReport:
    """Put a measured table beside that of the drawn rows."""
    sizes = tuple(attribute.size for attribute in attributes)
    return MarginalReport(
        columns=tuple(attributes[place].name for place in table.clique),
        cells=tuple(attributes[place].labels for place in table.clique),
        measured=table.counts,
        half_width=table.half_width,
        synthetic=counted(drawn.cells, table.clique, sizes) * (drawn.model.total / len(drawn.cells)),
    )


# ---- what is asked for -----------------------------------------------------------------------------------------------


def _table_of(catalog: Catalog, name: str | None) -> Table:
    there = ", ".join(table.name for table in catalog.tables)
    if name is None:
        if len(catalog.tables) == 1:
            return catalog.tables[0]
        raise InvalidParameter(f"There are several protected tables; set table to one of {there}. Nothing was charged.")
    for table in catalog.tables:
        if table.name == name:
            return table
    raise InvalidParameter(
        f"{name!r:.60} is not a protected table; the protected tables are {there}. Nothing was charged."
    )


def _require_whole(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InvalidParameter(
            f"{name} is {value!r:.40}; write a whole number from {least:,} to {most:,}. Nothing was charged."
        )


def _workload_of(
    workload: int | Sequence[Sequence[str]], columns: Sequence[str], sizes: tuple[int, ...]
) -> tuple[tuple[Clique, ...], tuple[Clique, ...]]:
    """Return the tables that matter, and those that have too many cells.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    if isinstance(workload, int):
        if type(workload) is not int or not 1 <= workload <= 4:
            raise InvalidParameter(f"workload is {workload!r}; write 1 to 4 columns, or a list. Nothing was charged.")
        every = list(combinations(range(len(columns)), min(workload, len(columns))))
    else:
        every = [_clique(names, columns) for names in workload]
        for clique in every:
            if cells_of(sizes, clique) > MOST_TABLE_CELLS:
                raise InvalidParameter(
                    f"{' and '.join(columns[place] for place in clique)} have {cells_of(sizes, clique):,} "
                    f"combinations of cells; at most {MOST_TABLE_CELLS:,} are allowed. Give them fewer bins. Nothing "
                    f"was charged."
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
            f"{names!r:.80} is not a table of the workload; give lists of 1 to 4 of the columns. Nothing was charged."
        )
    return tuple(sorted(columns.index(name) for name in names))
