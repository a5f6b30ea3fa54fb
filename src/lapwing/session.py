"""An analyst's session: one data set, its engine, its ledger."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, final

from lapwing.answer import Answer
from lapwing.budget import BudgetView, budget_view
from lapwing.catalog.model import Catalog
from lapwing.catalog.protection import units_of
from lapwing.catalog.quoted_names import with_quoted_name
from lapwing.engines import Engine, PublicTables, digests, open_public_tables
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.exact.entropy import Entropy
from lapwing.languages import language_for
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.entries import Entry
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.owners import owners_of
from lapwing.ledger.reading import FaultRow, HistoryRow
from lapwing.ledger.state import LedgerState
from lapwing.ledger.wording import require_label
from lapwing.privacy.measures import Loss, Number
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan, PlanCache
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote, request
from lapwing.query.text.parameters import Parameters
from lapwing.release.answering import answer_all
from lapwing.release.batching import batch_of
from lapwing.release.request import OPEN, Access, Request, Timing

# What few sessions need, and takes a twentieth of a start, is imported where it is used: expressions and the guarantee.
if TYPE_CHECKING:
    import ibis

    from lapwing.documents.dbapi.cursor import Cursor
    from lapwing.documents.dbapi.options import Options
    from lapwing.graphs.in_session import AskedOfGraph
    from lapwing.graphs.opened import OpenGraph
    from lapwing.guarantee import Page
    from lapwing.guarantee.raise_preview import Raise
    from lapwing.preview import Preview
    from lapwing.privacy.listing import Listed
    from lapwing.release.reserving import Reservation
    from lapwing.synthesis import SynthesisOptions, SyntheticTable
    from lapwing.tables import Tables
    from lapwing.tables.ibis_questions import Question


@final
class Session:
    """Ask questions of one protected data set. Thread-safe.

    Made by `lapwing.connect` and `lapwing.protect`, for the process that makes it: a forked child opens its own.
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        ledger: Ledger,
        entropy: Entropy,
        principal: str,
        public: PublicTables | None = None,
        limits: LimitsNow | None = None,
        plans: "PlanCache[tuple[Plan, Quote]] | None" = None,
        origin: "Session | None" = None,
        timing: Timing = OPEN,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.catalog = catalog
        self.public_tables = public if public is not None else open_public_tables(catalog)
        self.dataset = catalog.name
        self._engine, self._ledger = engine, ledger
        self._entropy = entropy
        self._principal, self._limits = principal, limits
        self._plans = plans if plans is not None else PlanCache[tuple[Plan, Quote]]()
        self._origin = origin  # that this one was made from
        self._timing, self._closed, self._clock = timing, False, clock or partial(datetime.now, UTC)
        self._graphs: dict[str, OpenGraph] = {} if origin is None else origin._graphs
        self._process = os.getpid()  # DuckDB's threads do not survive a fork: in a child it would hang, once charged

    def _require_open(self) -> None:
        if self._closed or os.getpid() != self._process:
            why = "is closed" if self._closed else "was opened before a fork and works only in the parent process"
            raise InvalidParameter(f"This session {why}; open another with lapwing.connect. Nothing was charged.")

    def sql(
        self,
        question: "Question",
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        label: str | None = None,
        assuming_count: int | None = None,
        **options: object,
    ) -> Answer:
        """Answer a question and charge it; the same question again is free.

        Args:
            question: SQL, or an Ibis expression over `table(…)`; options: what SQL says in its `OPTIONS (…)`.
            parameters: values for each `?` in order, or for each `$name` by name.
            epsilon: the price: the question by itself is (epsilon, delta)-DP, with the budget's delta.
            error: instead of a price, the wanted half-width of the 95 % intervals of every COUNT and SUM; the
                cheapest price that promises it is charged. Of an AVG, if it is of `assuming_count` rows in a cell.
            delta: for a question that groups by a column whose values are not public: what choosing the keys may take
                of the budget's delta_keys.
            label: what the history calls the question, or what it was asked for; one line.

        Guarantee:
            The loss is charged durably before any row is read; the budget is never exceeded.

        Raises:
            QueryRefused: If the question is not understood or not allowed. Nothing is charged.
            InvalidParameter: If a value is not allowed. Nothing is charged.
            BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
            DataChanged: If the data are another version. Nothing is charged.
            DataStopped: If the data set is stopped. Nothing is charged.
            EngineFault: If the question fails after its charge. It is charged.
        """
        self._require_open()
        if self.catalog.graphs and (of := self._of_graph(question, parameters, label, epsilon, error, delta, options)):
            return cast(Answer, of.answer())  # which reads alike
        access = access_of(self)
        one = self._planned(question, parameters, epsilon, error, delta, label, options, assuming_count, answered=True)
        return answer_all([one], access)[0]

    def first_above(
        self, questions: Sequence[str], threshold: Number | list[Number] | tuple[Number, ...], *, epsilon: Number
    ) -> Answer:
        """Tell which of several counting questions of the same rows is the first whose number is a threshold or more.

        One row, of which `first` is its place, 1 for the first question, or None if there is none.

        Args:
            questions: Each SELECT one aggregate FROM … [WHERE …].
            threshold: Of all, or one of each.
            epsilon: Of all.

        Guarantee:
            As `sql`.

        Raises:
            LapwingError: As `sql`.
        """
        from lapwing.query.text.first_above import first_above_text

        return self.sql(first_above_text(questions, threshold), epsilon=epsilon)

    def table(self, name: str) -> "ibis.Table":
        """Begin a question with a table or view, as `tables.table` does; free."""
        return self.tables.table(name)

    @property
    def tables(self) -> "Tables":
        """The tables that a question may name: columns, types, bounds, values, units, links; all of it is public."""
        from lapwing.documents.session_document import tables_of_catalog

        self._require_open()
        return tables_of_catalog(self.catalog, self.public_tables)

    def plan(
        self,
        question: "Question",
        parameters: Parameters,
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
    ) -> Plan:
        """Return what is done for a question at a price, as `sql` takes them; free."""
        self._require_open()
        return self._planned(question, parameters, epsilon, error, delta, None, None, assuming_count).plan

    def batch(
        self,
        questions: "Sequence[Question | tuple[str, Parameters]]",
        *,
        epsilon: Number,
        delta: Number | None = None,
        label: str | None = None,
    ) -> tuple[Answer, ...]:
        """Answer several questions at one price: all are charged, or none; one that stands there twice, once.

        Args:
            questions: texts, expressions, or pairs of a text and its parameters.
            epsilon: the price of all together; every number of every answer gets the same part of it.
            delta: for all private keys together; label: of each of them in the history; as in `sql`.

        Guarantee:
            As `sql`.

        Raises:
            LapwingError: As `sql`. One transaction charges all of them, before Lapwing reads any row. Parts of the
                price add up to at most the price.
        """
        self._require_open()
        bind_now = partial(self._bind, self.moment())
        requests = batch_of(questions, bind_now, self.catalog.budget, epsilon=epsilon, delta=delta, label=label)
        return answer_all(requests, access_of(self))

    def synthesize(
        self, columns: Sequence[str], *, epsilon: Number, **options: "Unpack[SynthesisOptions]"
    ) -> "SyntheticTable":
        """Return rows that nobody has, by noisy tables of some columns; all as `lapwing.synthesis.synthesize` says."""
        from lapwing.synthesis import synthesize  # here: few sessions need it

        self._require_open()
        return synthesize(columns, access_of(self), epsilon=epsilon, **options)

    def cursor(self, **options: "Unpack[Options]") -> "Cursor":
        """Return a cursor of PEP 249 over this session, as `lapwing.dbapi.connect(session).cursor(…)` does."""
        from lapwing.documents.dbapi.connection import Connection

        return Connection(self).cursor(**options)

    def moment(self) -> datetime:
        """Return what CURRENT_DATE and its like stand for in a query of now: a time in UTC, without a zone."""
        hour = self._clock().replace(minute=0, second=0, microsecond=0, tzinfo=None)
        return hour if self.catalog.clock == "hour" else hour.replace(hour=0)

    def _bind(self, moment: datetime, text: str, parameters: Parameters) -> Plan:
        able = self._engine.capabilities
        try:
            return bind(text, self.catalog, self.public_tables, parameters, capabilities=able, moment=moment)
        except QueryRefused as refused:
            raise with_quoted_name(refused, text, self.catalog) from None

    def _planned(
        self,
        question: "Question",
        parameters: Parameters,
        epsilon: Number | None,
        error: Number | None,
        delta: Number | None,
        label: str | None = None,
        options: Mapping[str, object] | None = None,
        assuming_count: int | None = None,
        *,
        answered: bool = False,
    ) -> Request:
        """Return a question with its plan and price, remembered from before; `answered` if it is not only priced."""
        catalog, text, moment = self.catalog, question, self.moment()  # once: binding it again takes this one
        if options or not isinstance(text, str):
            from lapwing.tables.ibis_questions import text_of

            text = text_of(question, **options or {})
        if label is not None:
            require_label(label)
        if assuming_count is not None and (type(assuming_count) is not int or assuming_count < 1):
            raise InvalidParameter(f"assuming_count is {assuming_count!r}; write a whole number of rows from 1 up.")

        def make() -> tuple[Plan, Quote]:
            plan = self._bind(moment, text, parameters)
            if answered:
                plan.require_answerable()
            rows = assuming_count if error is not None else None
            return plan, calibrate(plan, catalog.budget, epsilon=epsilon, error=error, delta=delta, assuming_count=rows)

        asked = (text, parameters, epsilon, error, delta, assuming_count, moment)
        plan, priced = planned_once(self, make, catalog, self._principal, *asked)
        if answered:  # it may have been priced before
            plan.require_answerable()
        return Request(text=text, parameters=parameters, plan=plan, priced=priced, label=label)

    def _of_graph(self, *asked: Any) -> "AskedOfGraph | None":
        from lapwing.graphs.in_session import asked_of_graph  # here: few catalogs have graphs

        return asked_of_graph(*asked, people=access_of(self), held=self._graphs)

    def explain(
        self,
        question: "Question",
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
        **options: object,
    ) -> "Preview":
        """Return price, mechanisms and promised errors, of AVG for `assuming_count` rows in a cell; touches nothing."""
        from lapwing.release.explaining import explain  # here: a question that is asked needs no preview

        self._require_open()
        if self.catalog.graphs and (of := self._of_graph(question, parameters, None, epsilon, error, delta, options)):
            return of.preview()
        state = self._state()  # first, as it may bring another budget, and with it another price
        request = self._planned(question, parameters, epsilon, error, delta, None, options, assuming_count)
        return explain(request, state, access_of(self), assuming_count)

    def budget(self, *, history: bool = True) -> BudgetView:
        """Return what was granted, spent and is left, with the history of charges, read once somebody looks at it."""
        self._require_open()
        state = self._state()
        return budget_view(state, self._ledger.history_until(state.sequence) if history else ())

    def history(
        self, *, after: int = 0, most: int | None = None, principal: str | None = None
    ) -> tuple[HistoryRow, ...]:
        """Return charges in order, of all or one principal: at most `most` after a `sequence`, or the last -most."""
        self._require_open()
        return self._ledger.history(after=after, most=most, principal=principal)

    def guarantee(self, asking: Sequence[str] = (), *, sealed: bool = False, language: str | None = None) -> "Page":
        """Return the promise of the data set, formatted for printing; free. See `lapwing.guarantee.page_of`.

        Args:
            language: The page is in it if it has a catalogue, and in English otherwise.
        """
        from lapwing.guarantee import page_of, translated

        self._require_open()
        page = page_of(self.catalog, self._state(), self._ledger.number_of_charges(), asking, sealed=sealed)
        return page if language is None else translated(page, language_for(language))

    def raised(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> "Raise":
        """Return what a larger budget would promise, beside what is promised now; free.

        Raises:
            LapwingError: As `raise_budget`.
        """
        from lapwing.guarantee.raise_preview import expected_preview, figures

        self._require_open()
        return expected_preview(self.catalog, self._state(), *figures(was, (epsilon, delta)))

    def raise_budget(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> None:
        """Make the budget larger, for everybody and for ever. The curator's act; see `BudgetView.raised`.

        Raises:
            LapwingError: As `lapwing.guarantee.raise_preview.raise_now`. The catalog's file stays as it is.
        """
        from lapwing.guarantee.raise_preview import raise_now

        self._require_open()
        self.catalog = raise_now(self.catalog, self._ledger, self._principal, was=was, to=(epsilon, delta))

    def spend(self, loss: Loss, why: str) -> Loss:
        """Charge what is released outside of questions, by a mechanism of the library; return what was charged.

        The curator's act: that what is released afterwards loses no more is up to whoever does it.

        Raises:
            LapwingError: As `lapwing.release.spending.spend`.

        Guarantee:
            Charged durably, before it returns.
        """
        from lapwing.release.spending import spend

        self._require_open()
        return spend(loss, why, access_of(self))

    def reserve(self, parts: "Sequence[Listed]", why: str, *, delta: Number = 0) -> "Reservation":
        """Charge a list of mechanisms before its first use, as in training; return what counts uses. A curator's act.

        Guarantee:
            As `lapwing.release.reserving.reserve`.

        Raises:
            LapwingError: As `lapwing.release.reserving.reserve`.
        """
        from lapwing.release.reserving import reserve

        self._require_open()
        return reserve(parts, why, delta, access_of(self))

    def close_for_ever(self) -> bool:
        """Close the data set, which is not undone: bought answers stay free. The curator's act; tell if it was open."""
        self._require_open()
        return self._ledger.close_for_ever(self._principal)

    def ledger_entries(self) -> Iterator[Entry]:
        """Yield all entries of the ledger, for a copy (`lapwing.ledger.exporting`); as secret as the ledger is."""
        self._require_open()
        return self._ledger.entries()

    def _state(self) -> LedgerState:
        """Return the ledger's state; a budget that others have raised is the catalog's from then on."""
        state, budget = self._ledger.seen(), self.catalog.budget
        now = state.registration.epsilon, state.registration.delta
        if now != (budget.epsilon, budget.delta):
            self.catalog = replace(self.catalog, budget=replace(budget, epsilon=now[0], delta=now[1]))
            if self._origin is not None:
                self._origin.catalog = self.catalog  # so that those who come next price by it at once
        return state

    def price(self, epsilon: Number) -> Loss:
        """Return the loss that a question's `epsilon` is charged."""
        return request(epsilon, self.catalog.budget)

    def accept_data(self, *, unreadable: str | None = None) -> int:
        """Make the data as they are now the ledger's current version, and return its number. The curator's act.

        Spending stays: it belongs to the people in the data, not to a version of them.

        Args:
            unreadable: "null" accepts values that are not of their declared type, which count as NULL or are rounded.

        Raises:
            DataFault: For data that cannot be read, or hold such values without that.
        """
        self._require_open()
        accepted = digests(self.catalog, self._engine, unreadable=unreadable)
        return self._ledger.accept(accepted, self._principal, owners_of(self.catalog))

    def faults(self) -> tuple[FaultRow, ...]:
        """Return the questions that failed or died after their charge, since the curator last looked."""
        self._require_open()
        return self._ledger.faults()

    def note_late(self, tick: str, principal: str) -> tuple[str, ...]:
        """Note that answers of a service are late, before that shows (`ledger.events`); return all ticks that stand."""
        self._require_open()
        return self._ledger.note_late(tick, principal)

    def resume(self) -> int:
        """Say that faults and late answers were looked at, so that what they stopped goes on; return how many."""
        self._require_open()
        return self._ledger.resume(self._principal)

    def await_charges(self) -> None:
        """Return once every charge that was being made at the time of the call is written down."""
        self._require_open()
        self._ledger.state()

    def settle(self) -> bool:
        """Write down what the ledger could not write when it happened, like the next question would; tell if all is."""
        if not self._closed:
            self._require_open()
        return self._closed or self._ledger.settle()

    def acting_for(self, principal: str, limits: LimitsNow | None = None, *, timing: Timing = OPEN) -> Self:
        """Return a session on the same data and ledger for somebody else, within limits beside the budget.

        For a server that asks on behalf of its users. Both share what they hold: close the one it was made from.
        """
        self._require_open()
        engine = self._engine if timing.through is None else timing.through(self._engine)
        held = (self.catalog, engine, self._ledger, self._entropy, principal, self.public_tables)
        return type(self)(*held, limits, self._plans, self._origin or self, timing, self._clock)

    def close(self) -> None:
        """Let go of the engine and the ledger; the session answers nothing any more."""
        self._closed = True
        if os.getpid() == self._process:  # in a child they are the parent's, and DuckDB would end the process
            for graph in self._graphs.values():
                graph.close()
            self._engine.close()
            self.public_tables.close()
            self._ledger.close()

    def __repr__(self) -> str:
        return f"<Session: {self.catalog.name} protects {units_of(self.catalog.tables)}; see .tables and .budget()>"

    def _repr_html_(self) -> str:
        from lapwing.documents.session_shown import as_html  # here: few sessions are shown

        ended = self._closed or os.getpid() != self._process
        return as_html(self.catalog, None if ended else (self.budget(history=False), self.tables))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def access_of(session: Session) -> Access:
    """Return what questions are answered with: for the rooms of this package alone, as it holds the engine itself."""
    return Access(
        catalog=session.catalog,
        public=session.public_tables,
        engine=session._engine,
        ledger=session._ledger,
        entropy=session._entropy,
        principal=session._principal,
        limits=session._limits,
        timing=session._timing,
    )


def planned_once(
    session: Session, make: Callable[[], tuple[Plan, Quote]], catalog: Catalog, person: str, text: Any, *asked: Any
) -> tuple[Plan, Quote]:
    """Return what is planned for a text: asked are parameters, epsilon, error, delta, assuming_count and moment."""
    parameters, *wanted = asked
    name = {"principal": person, "text": text, "parameters": parameters, "numbers": tuple(wanted)}
    return session._plans.planned(make, catalog=catalog, **name)
