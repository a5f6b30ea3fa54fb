"""What an analyst holds: one data set, its engine, its ledger."""

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from lapwing.engines.public import PublicData
from lapwing.errors import CatalogError, CatalogMismatch, InvalidParameter, QueryRefused
from lapwing.exact.entropy import Entropy, SystemEntropy
from lapwing.ledger.entries import State
from lapwing.ledger.parts import Parts
from lapwing.ledger.records import HistoryRow, Registration
from lapwing.ledger.sqlite import SqliteLedger
from lapwing.preview import (
    PartPreview,
    Preview,
    bound_of,
    column_previews,
    measure_previews,
    notes_of,
)
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss, Number, PureDP
from lapwing.privacy.odometers import WHENEVER, Odometer, Reading, as_if_cap
from lapwing.privacy.parts import PartsAccount
from lapwing.query.bind import bind
from lapwing.query.calibrate import Priced, calibrate, calibrate_together, request
from lapwing.query.names import measure_names
from lapwing.query.parameters import Parameters
from lapwing.query.plan import Plan
from lapwing.release import parts_charged, release_all, sharpening, stored_answer

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
        pure ledger they are the same: a sum of epsilons holds at any moment. The delta of both has what private keys
        took, `delta_keys_spent` of the `delta_keys` kept for them.
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
    delta_keys: Fraction = Fraction(0)
    delta_keys_spent: Fraction = Fraction(0)
    by_part: PartsAccount | None = None
    delta_by_part: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Loss]:
        """What each part of the data has spent; empty if the ledger has none. `spent` is then the total over them."""
        return {} if self.by_part is None else self.by_part.spent_by_part()

    @property
    def spent_epsilon(self) -> float:
        """The epsilon of `as_if_cap`."""
        return self.as_if_cap.epsilon

    @property
    def share_spent(self) -> float:
        """The spent share of the budget, between 0 and 1."""
        return float(self.spent.amount / self.total.amount)

    def room(self, parts: Sequence[str] | None = None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.remaining if self.by_part is None else self.by_part.room(parts)

    def fits(self, loss: Loss, parts: Sequence[str] | None = None) -> int:
        """Return how many more questions of this price, about these parts or all, the budget holds."""
        room = self.room(parts)
        return fits(Account(budget=room, spent=room.nothing()), loss)


@final
class Session:
    """Ask questions of one protected data set. Thread-safe.

    Made by `lapwing.connect` and `lapwing.protect`.
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        ledger: SqliteLedger,
        entropy: Entropy,
        principal: str,
        public: PublicData | None = None,
    ) -> None:
        self.catalog = catalog
        self._public = public if public is not None else PublicData(catalog)
        self._engine = engine
        self._ledger = ledger
        self._entropy = entropy
        self._principal = principal
        self._closed = False

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidParameter("This session is closed; open another with lapwing.connect. Nothing was charged.")

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
    ) -> Answer:
        """Answer a question and charge it; the same question again is free.

        Args:
            parameters: values for each `?` in order, or for each `$name` by name.
            epsilon: the price: the question alone is (epsilon, delta)-DP, with the budget's delta.
            error: instead of a price, the wanted half-width of the 95 % intervals of every COUNT and SUM; the
                cheapest price that promises it is charged.
            delta: for a question that groups by a column whose values are not public: what choosing the keys may take
                of the budget's delta_keys.

        Guarantee: the loss is charged durably before any row is read; the budget is never exceeded.
        Raises: QueryRefused, InvalidParameter, BudgetExhausted, DataChanged (nothing charged); EngineFault (charged).
        """
        self._require_open()
        plan = bind(text, self.catalog, self._public, parameters)
        if plan.explain:
            raise QueryRefused("EXPLAIN PRIVACY asks for a price, not for an answer", remedy="Call session.explain.")
        priced = calibrate(plan, self.catalog.budget, epsilon=epsilon, error=error, delta=delta)
        (answer,) = self._answered([plan], [priced])
        return answer

    def batch(
        self, questions: Sequence[str | tuple[str, Parameters]], *, epsilon: Number, delta: Number | None = None
    ) -> tuple[Answer, ...]:
        """Answer several questions at one price: all are charged, or none; one that stands there twice, once.

        Args:
            questions: texts, or pairs of a text and its parameters.
            epsilon: the price of all together; every number of every answer gets the same part of it.
            delta: for all private keys together, as in `sql`.

        Guarantee, Raises: as `sql`. What is charged for all of them is charged in one transaction, before any row is
            read; parts of the price add up to at most the price.
        """
        self._require_open()
        if isinstance(questions, str):
            raise InvalidParameter("A batch is a list of questions, and this is a text; give [text], or call sql.")
        pairs = [(question, ()) if isinstance(question, str) else question for question in questions]
        if not pairs:
            raise InvalidParameter("The batch holds no question; give at least one.")
        plans = [bind(text, self.catalog, self._public, parameters) for text, parameters in pairs]
        if any(plan.explain for plan in plans):
            raise QueryRefused("EXPLAIN PRIVACY asks for a price, not for an answer", remedy="Call session.explain.")
        return self._answered(plans, calibrate_together(plans, self.catalog.budget, epsilon=epsilon, delta=delta))

    def _answered(self, plans: Sequence[Plan], batch: Sequence[Priced]) -> tuple[Answer, ...]:
        distinct = {priced.question: priced for priced in batch}
        notes = [notes_of(plan, priced) for plan, priced in zip(plans, batch, strict=True)]  # before anything is paid
        answers = release_all(
            tuple(distinct.values()),
            catalog=self.catalog,
            engine=self._engine,
            ledger=self._ledger,
            entropy=self._entropy,
            principal=self._principal,
        )
        released, shown = dict(zip(distinct, answers, strict=True)), []
        for plan, priced, known in zip(plans, batch, notes, strict=True):
            answer = released[priced.question]
            released[priced.question] = replace(answer, cost=answer.cost.nothing(), stored=True)  # a second time
            shown.append(
                Answer(
                    plan=plan,
                    mechanisms=answer.mechanisms,
                    keys=answer.keys,
                    values=answer.values,
                    cost=answer.cost,
                    stored=answer.stored,
                    notes=known,
                    shares=_shares_of(priced) if answer.cost == priced.loss else None,
                )
            )
        return tuple(shown)

    def explain(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
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
        plan = bind(text, self.catalog, self._public, parameters)
        priced = calibrate(plan, self.catalog.budget, epsilon=epsilon, error=error, delta=delta)
        state = self._ledger.state()
        parts = parts_charged(plan.question, state)
        stored = stored_answer(priced, self._ledger)
        further = sharpening(priced, self._ledger) if stored is None else None
        price = priced.loss if further is None else further.refinement.priced.loss
        names, table, budget = measure_names(plan), plan.question.table, self.catalog.budget
        remaining = state.room(parts)
        return Preview(
            cost=price if stored is None else priced.loss.nothing(),
            price=price,
            epsilon=price.to_epsilon(delta=budget.delta - budget.delta_keys),
            share_of_remaining=float(price.amount / remaining.amount) if remaining.amount else float("inf"),
            remaining=remaining,
            fits=fits(Account(budget=remaining, spent=remaining.nothing()), price),
            cells=plan.question.cells,
            unit="each row" if table.privacy_unit == "row" else f"each {table.privacy_unit}",
            bound=bound_of(table),
            measures=measure_previews(priced, names),
            columns=column_previews(plan, priced, names, assuming_count),
            notes=notes_of(plan, priced),
            delta=priced.delta,
            sharpens=further is not None,
            assuming_count=assuming_count,
            parts=_part_previews(parts, state),
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
            as_if_cap=_with_keys(as_if_cap(account.spent, delta), state.delta_spent),
            whenever=_with_keys(_whenever(account.spent, account.budget, delta), state.delta_spent),
            delta_keys=budget.delta_keys,
            delta_keys_spent=state.delta_spent,
            version=state.version,
            history=self._ledger.history(),
            by_part=None if state.division is None else state.division.losses,
            delta_by_part={} if state.division is None else state.division.delta_by_part(),
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
        self._public.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _part_previews(parts: tuple[str, ...] | None, state: State) -> tuple[PartPreview, ...] | None:
    if parts is None or state.division is None:
        return None
    spent, left = state.division.losses.spent_by_part(), state.division.losses.rooms()
    return tuple(PartPreview(part=part, spent=spent[part], remaining=left[part]) for part in parts)


def _shares_of(priced: Priced) -> list[Fraction]:
    """Return the part of a question's price that each of its measures takes."""
    return [term.loss(priced.loss.kind).amount / priced.loss.amount for term in priced.terms]


def _with_keys(reading: Reading, delta: Fraction) -> Reading:
    """Return a reading with the delta that private keys took: the two add up (`privacy.approximate`)."""
    return replace(reading, delta=reading.delta + delta)


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
    public = PublicData(catalog)
    engine = DuckDB(catalog, public=public)
    try:
        if not catalog.ledger_path.exists():
            digests(catalog, engine)  # missing or unreadable data leave no ledger behind
        ledger = SqliteLedger.open(catalog.ledger_path, registration(catalog), parts=Parts.of_catalog(catalog))
        try:
            if ledger.state().version == 0:
                ledger.accept(digests(catalog, engine), principal())
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        engine.close()
        raise
    return Session(catalog, engine, ledger, entropy or SystemEntropy(), principal(), public)


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
        drafted = _updated(before, drafted)
    session = open_session(drafted)
    if before != drafted:
        write(drafted, beside, overwrite=True)
    return session


def _updated(before: Catalog, drafted: Catalog) -> Catalog:
    """Return a catalog with the bounds, values and rows of a new draft, and all else that it said before."""
    known = {column.name: column for column in before.tables[0].columns}
    columns = tuple(_merged(known.get(column.name), column) for column in drafted.tables[0].columns)
    table = replace(before.tables[0], columns=columns, max_rows_per_unit=drafted.tables[0].max_rows_per_unit)
    return replace(before, tables=(table, *before.tables[1:]))


def _merged(before: Column | None, drafted: Column) -> Column:
    if before is None or before.type != drafted.type:
        return drafted
    same = (before.lower, before.upper) == (drafted.lower, drafted.upper)
    return replace(
        before,
        lower=drafted.lower,
        upper=drafted.upper,
        step=before.step if same else drafted.step,
        values=drafted.values,
        other=before.other if drafted.values is not None else None,
    )


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
