"""What an analyst holds: one data set, its engine, its ledger."""

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from lapwing.answer import Answer
from lapwing.catalog.column import Bound, Column
from lapwing.catalog.infer import draft
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load, write
from lapwing.engines import DuckDB, Engine
from lapwing.errors import CatalogError, CatalogMismatch, InvalidParameter
from lapwing.exact.entropy import Entropy, SystemEntropy
from lapwing.ledger.records import HistoryRow, Registration
from lapwing.ledger.sqlite import SqliteLedger
from lapwing.preview import Preview, bound_of, clamping_notes, column_previews, measure_names, measure_previews
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss, Number, PureDP
from lapwing.privacy.odometers import WHENEVER, Odometer, Reading, as_if_cap
from lapwing.query.bind import bind
from lapwing.query.calibrate import calibrate, request
from lapwing.release import release, stored_answer

ODOMETER_STEPS: Final = 12
ODOMETER_RATIO: Final = Fraction(3, 2)
"""The caps of the odometer of every ledger. An odometer holds if it is fixed before the first answer: so they stay."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """What a data set may lose, has lost and can still lose, in the ledger's measure.

    Guarantee: (epsilon, delta)-DP of everything ever released, whatever is asked, in whatever order: that is `total`.
        What is spent so far has two readings in (epsilon, delta), and each says when it holds: `as_if_cap`, "as if this
        total had been the cap from the start", and `whenever`, "at whatever moment one stops", which is wider. In a
        pure ledger they are the same: a sum of epsilons holds at any moment.
    """

    total: Loss
    spent: Loss
    remaining: Loss
    epsilon: Fraction
    delta: Fraction
    as_if_cap: Reading
    whenever: Reading
    version: int
    history: tuple[HistoryRow, ...]

    @property
    def spent_epsilon(self) -> float:
        """The epsilon of `as_if_cap`."""
        return self.as_if_cap.epsilon

    @property
    def share_spent(self) -> float:
        """The spent share of the budget, between 0 and 1."""
        return float(self.spent.amount / self.total.amount)

    def fits(self, loss: Loss) -> int:
        """Return how many more questions of this price the budget holds."""
        return fits(Account(budget=self.total, spent=self.spent), loss)


@final
class Session:
    """Ask questions of one protected data set. Thread-safe.

    Made by `lapwing.connect` and `lapwing.protect`.
    """

    def __init__(
        self, catalog: Catalog, engine: Engine, ledger: SqliteLedger, entropy: Entropy, principal: str
    ) -> None:
        self.catalog = catalog
        self._engine = engine
        self._ledger = ledger
        self._entropy = entropy
        self._principal = principal
        self._closed = False

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidParameter("This session is closed; open another with lapwing.connect. Nothing was charged.")

    def sql(self, text: str, *, epsilon: Number | None = None, error: Number | None = None) -> Answer:
        """Answer a question and charge it; the same question again is free.

        Args:
            epsilon: the price: the question alone is (epsilon, delta)-DP, with the budget's delta.
            error: instead of a price, the wanted half-width of the 95 % intervals of every COUNT and SUM; the
                cheapest price that promises it is charged.

        Guarantee: the loss is charged durably before any row is read; the budget is never exceeded.
        Raises: QueryRefused, InvalidParameter, BudgetExhausted, DataChanged (nothing charged); EngineFault (charged).
        """
        self._require_open()
        plan = bind(text, self.catalog)
        priced = calibrate(plan, self.catalog.budget, epsilon=epsilon, error=error)
        released = release(
            priced,
            catalog=self.catalog,
            engine=self._engine,
            ledger=self._ledger,
            entropy=self._entropy,
            principal=self._principal,
        )
        return Answer(
            plan=plan,
            mechanisms=released.mechanisms,
            values=released.values,
            cost=released.cost,
            stored=released.stored,
            notes=clamping_notes(plan),
        )

    def explain(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        assuming_count: int | None = None,
    ) -> Preview:
        """Return price, mechanisms and promised errors without touching data or budget.

        Args: assuming_count: a number of rows in a cell, to see how wide the interval of an AVG would be there.
        """
        self._require_open()
        if assuming_count is not None and (isinstance(assuming_count, bool) or assuming_count < 1):
            raise InvalidParameter(
                f"assuming_count is {assuming_count!r}; it must be a whole number of rows from 1 up."
            )
        plan = bind(text, self.catalog)
        priced = calibrate(plan, self.catalog.budget, epsilon=epsilon, error=error)
        account = self._ledger.state().account
        stored = stored_answer(priced, self._ledger)
        names, table, budget = measure_names(plan), plan.question.table, self.catalog.budget
        remaining = account.remaining
        return Preview(
            cost=priced.loss if stored is None else type(priced.loss).from_amount(Fraction(0)),
            price=priced.loss,
            epsilon=priced.loss.to_epsilon(delta=budget.delta - budget.delta_keys),
            share_of_remaining=float(priced.loss.amount / remaining.amount) if remaining.amount else float("inf"),
            remaining=remaining,
            fits=fits(account, priced.loss),
            cells=plan.question.cells,
            unit="each row" if table.privacy_unit == "row" else f"each {table.privacy_unit}",
            bound=bound_of(table),
            measures=measure_previews(priced, names),
            columns=column_previews(plan, priced, names, assuming_count),
            notes=clamping_notes(plan),
            assuming_count=assuming_count,
        )

    def budget(self) -> BudgetView:
        """Return what was granted, spent and is left, with the history of charges."""
        self._require_open()
        state, budget = self._ledger.state(), self.catalog.budget
        account, delta = state.account, budget.delta - budget.delta_keys
        return BudgetView(
            total=account.budget,
            spent=account.spent,
            remaining=account.remaining,
            epsilon=budget.epsilon,
            delta=budget.delta,
            as_if_cap=as_if_cap(account.spent, delta),
            whenever=_whenever(account.spent, account.budget, delta),
            version=state.version,
            history=self._ledger.history(),
        )

    def price(self, epsilon: Number) -> Loss:
        """Return the loss that a question's `epsilon` is charged."""
        return request(epsilon, self.catalog.budget)

    def accept_data(self) -> int:
        """Make the data as they are now the ledger's current version, and return its number. The curator's act.

        Spending stays: it belongs to the people in the data, not to a version of them.
        """
        self._require_open()
        return self._ledger.accept(digests(self.catalog, self._engine), self._principal)

    def close(self) -> None:
        """Let go of the engine and the ledger; the session answers nothing any more."""
        self._closed = True
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _whenever(spent: Loss, total: Loss, delta: Fraction) -> Reading:
    """Return what is spent as an (epsilon, delta) that holds whenever one stops.

    While nothing is spent, what was answered has one law for all data, so that nothing is to be taken from delta: the
    sum in the proof of `Odometer` has one part more, which is P(E) = Q(E).
    """
    if isinstance(spent, PureDP):
        return as_if_cap(spent, delta)
    if spent <= spent.nothing():
        return Reading(epsilon=0.0, delta=delta, holds=WHENEVER)
    return Odometer.up_to(total, delta, steps=ODOMETER_STEPS, ratio=ODOMETER_RATIO).reading(spent)


def digests(catalog: Catalog, engine: Engine) -> dict[str, str]:
    """Return the digest of every table's data."""
    return {table.name: engine.digest(table) for table in catalog.tables}


def registration(catalog: Catalog) -> Registration:
    """Return what a catalog's ledger is registered for."""
    budget = catalog.budget
    return Registration(
        dataset=catalog.name,
        privacy_unit=", ".join(sorted({f"{table.privacy_unit}" for table in catalog.tables})),
        neighbouring=budget.neighbouring,
        budget=budget.loss,
        epsilon=budget.epsilon,
        delta=budget.delta,
        delta_keys=budget.delta_keys,
    )


def open_session(catalog: Catalog, *, entropy: Entropy | None = None) -> Session:
    """Open a session on a catalog; a new ledger takes the data as they are as version 1."""
    if catalog.engine != "duckdb":
        raise CatalogError(f'dataset.engine = "{catalog.engine}" is not available in this version; use "duckdb".')
    engine = DuckDB(catalog)
    try:
        if not catalog.ledger_path.exists():
            digests(catalog, engine)  # missing or unreadable data leave no ledger behind
        ledger = SqliteLedger.open(catalog.ledger_path, registration(catalog))
        try:
            if ledger.state().version == 0:
                ledger.accept(digests(catalog, engine), principal())
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        engine.close()
        raise
    return Session(catalog, engine, ledger, entropy or SystemEntropy(), principal())


def principal() -> str:
    """Return who asks: the name of the operating system's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def connect(catalog: str | Path = "lapwing.toml") -> Session:
    """Open the data set that a catalog describes.

    Args: catalog: the path of a TOML file, as `lapwing init` writes it.
    Raises: CatalogError, CatalogMismatch, DataFault, LedgerFault.
    """
    return open_session(load(Path(catalog)))


def protect(
    source: str | Path,
    *,
    privacy_unit: str,
    epsilon: Number,
    delta: Number = 0,
    max_rows_per_unit: int | None = None,
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    domains: Mapping[str, Sequence[object]] | None = None,
    measure: str | None = None,
    neighbouring: str = "add_remove",
) -> Session:
    """Put one file behind differential privacy, keeping catalog and ledger beside it.

    The curator's call: bounds and domains must be public knowledge; taken from the data they are outside the guarantee.

    Args:
        source: a Parquet or CSV file; the table is named after it.
        privacy_unit: the column that says whose row it is, or "row".
        epsilon, delta: the budget of everything ever asked; delta = 0 for pure differential privacy.
        max_rows_per_unit: rows of a unit beyond it do not exist for any question.
        bounds: public (lower, upper) of numeric columns. domains: public values of columns to group by. Left out for a
            file that is protected already, they stay as its catalog has them.

    Raises: CatalogMismatch if the file, or another of the same stem, is already protected with another unit, epsilon,
        delta or measure; nothing is changed then. Bounds and domains may change: the ledger stays.
    """
    path = Path(source)
    beside = path.parent / f"{path.stem}.lapwing.toml"
    before = load(beside) if beside.exists() else None
    known = before.tables[0].columns if before is not None else ()
    drafted = draft(
        path,
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        delta=delta,
        max_rows_per_unit=max_rows_per_unit,
        bounds=_known_bounds(known) if bounds is None else bounds,
        values=_known_values(known) if domains is None else domains,
        measure=measure,
        neighbouring=neighbouring,
    ).catalog
    if before is not None:
        _require_same(before, drafted)
        rows = drafted.tables[0].max_rows_per_unit
        if bounds is None and domains is None and rows == before.tables[0].max_rows_per_unit:
            return open_session(before)
    session = open_session(drafted)
    if before != drafted:
        write(drafted, beside, overwrite=True)
    return session


def _known_bounds(columns: Sequence[Column]) -> dict[str, tuple[Bound, Bound]]:
    return {c.name: (c.lower, c.upper) for c in columns if c.lower is not None and c.upper is not None}


def _known_values(columns: Sequence[Column]) -> dict[str, Sequence[object]]:
    return {c.name: c.values for c in columns if c.values is not None and c.type != "boolean"}


def _require_same(before: Catalog, after: Catalog) -> None:
    """Refuse a second protection of the same file that promises something else."""
    old, new = before.tables[0], after.tables[0]
    pairs = [
        ("source", old.source, new.source),
        ("privacy_unit", old.privacy_unit, new.privacy_unit),
        ("epsilon", before.budget.epsilon, after.budget.epsilon),
        ("delta", before.budget.delta, after.budget.delta),
        ("measure", before.budget.measure, after.budget.measure),
        ("neighbouring", before.budget.neighbouring, after.budget.neighbouring),
    ]
    different = [f"{name} was {was} and is now {now}" for name, was, now in pairs if was != now]
    if different:
        raise CatalogMismatch(
            f"{before.tables[0].source} is already protected: {'; '.join(different)}. Nothing was changed. "
            "Open it with lapwing.connect, or protect it as before."
        )
