"""What an analyst holds: one data set, its engine, its ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from types import TracebackType
from typing import Self, final

from lapwing.answer import Answer
from lapwing.budget import BudgetView, budget_view
from lapwing.builder.table import Table, table
from lapwing.catalog.model import Catalog
from lapwing.engines import Engine, PublicTables, digests, open_public_tables
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.exact.entropy import Entropy
from lapwing.guarantee import Page, page_of
from lapwing.guarantee.raised import Raise, preview
from lapwing.guarantee.sections import WHO_READS, Head
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.entries import Entry
from lapwing.ledger.folding import State
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.owners import owners_of
from lapwing.ledger.raising import require_expected
from lapwing.ledger.records import FaultRow
from lapwing.preview import (
    PartPreview,
    Preview,
    bound_of,
    column_previews,
    measure_previews,
    notes_of,
    selection_preview,
    units_of,
)
from lapwing.privacy.amounts import exact
from lapwing.privacy.measures import Loss, Number
from lapwing.query.bind import bind
from lapwing.query.calibrate import Priced, calibrate, calibrate_found, calibrate_together, request
from lapwing.query.names import measure_names
from lapwing.query.plan import Plan, Question
from lapwing.query.remembered import Remembered
from lapwing.query.text.parameters import Parameters
from lapwing.release.charges import parts_charged
from lapwing.release.outlook import NO_LIMITS, outlook
from lapwing.release.release import release_all
from lapwing.release.released import Released
from lapwing.release.searches import (
    NO_FINDINGS,
    Findings,
    after_searches,
    at_widest,
    bounds_of,
    findings,
    notes_before,
    notes_of_found,
    previews_of,
    searched,
    stored_searches,
    unpromised,
)
from lapwing.release.stored import sharpening, stored_answer


@final
class Session:
    """Ask questions of one protected data set. Thread-safe.

    Made by `lapwing.connect` and `lapwing.protect`.
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
        plans: "Remembered[tuple[Plan, Priced]] | None" = None,
        origin: "Session | None" = None,
    ) -> None:
        self.catalog = catalog
        self._public = public if public is not None else open_public_tables(catalog)
        self._engine = engine
        self._ledger = ledger
        self._entropy = entropy
        self._principal = principal
        self._limits = limits
        self._plans = plans if plans is not None else Remembered[tuple[Plan, Priced]]()
        self._origin = origin  # that this one was made from
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
        Raises: QueryRefused, InvalidParameter, BudgetExhausted, DataChanged, DataStopped (nothing charged);
            EngineFault (charged).
        """
        self._require_open()
        plan, priced = self._planned(text, parameters, epsilon, error, delta, answered=True)
        (answer,) = self._answered([(text, parameters)], [plan], [priced])
        return answer

    def table(self, name: str) -> Table[Answer]:
        """Begin a question with a table or view of the catalog, to go on with verbs instead of SQL; free.

        Raises: QueryRefused if there is none of this name.
        """
        self._require_open()
        return table(self, name, self.catalog, self._public)

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
        for plan in plans:
            _require_answered(plan, answered=True)
        batch = calibrate_together(plans, self.catalog.budget, epsilon=epsilon, delta=delta)
        return self._answered(pairs, plans, batch)

    def _answered(
        self, texts: Sequence[tuple[str, Parameters]], plans: Sequence[Plan], batch: Sequence[Priced]
    ) -> tuple[Answer, ...]:
        """Answer bound and priced questions, after the searches for their bounds."""
        notes = [notes_of(plan, priced) for plan, priced in zip(plans, batch, strict=True)]  # before anything is paid
        found = searched(batch, self._release)
        if not found:
            return self._shown(plans, batch, notes, self._released(batch), {})
        with after_searches(found.values()):
            known = [findings(plan, found) for plan in plans]
            plans = [self._bound(*pair, finding) for pair, finding in zip(texts, known, strict=True)]
            settled = [
                calibrate_found(plan, self.catalog.budget, priced) for plan, priced in zip(plans, batch, strict=True)
            ]
            notes = [
                (*notes_of(plan, priced), *notes_of_found(plan, finding))
                for plan, priced, finding in zip(plans, settled, known, strict=True)
            ]
            released = self._released(settled)
        searches = [replace(priced, searches=before.searches) for priced, before in zip(settled, batch, strict=True)]
        return self._shown(plans, searches, notes, released, found)

    def _planned(
        self,
        text: str,
        parameters: Parameters,
        epsilon: Number | None,
        error: Number | None,
        delta: Number | None,
        *,
        answered: bool = False,
    ) -> tuple[Plan, Priced]:
        """Return the plan of a question and its price, remembered if the same was asked before.

        Args: answered: whether it is to be answered, and not only priced.
        """
        catalog = self.catalog

        def make() -> tuple[Plan, Priced]:
            plan = bind(text, catalog, self._public, parameters)
            _require_answered(plan, answered=answered)
            return plan, calibrate(plan, catalog.budget, epsilon=epsilon, error=error, delta=delta)

        plan, priced = self._plans.planned(
            make,
            catalog=catalog,
            principal=self._principal,
            text=text,
            parameters=parameters,
            numbers=(epsilon, error, delta),
        )
        _require_answered(plan, answered=answered)  # it may have been priced before
        return plan, priced

    def _bound(self, text: str, parameters: Parameters, found: Findings = NO_FINDINGS) -> Plan:
        return bind(text, self.catalog, self._public, parameters, bounds_of(found))

    def _release(self, batch: Sequence[Priced], *, then: Sequence[Priced] = ()) -> tuple[Released, ...]:
        return release_all(
            batch,
            catalog=self.catalog,
            engine=self._engine,
            ledger=self._ledger,
            entropy=self._entropy,
            principal=self._principal,
            then=then,
            limits=self._limits,
        )

    def _released(self, batch: Sequence[Priced]) -> dict[Question, Released]:
        distinct = {priced.question: priced for priced in batch}
        return dict(zip(distinct, self._release(tuple(distinct.values())), strict=True))

    def _shown(
        self,
        plans: Sequence[Plan],
        batch: Sequence[Priced],
        notes: Sequence[Sequence[str]],
        released: dict[Question, Released],
        searches: dict[Question, Released],
    ) -> tuple[Answer, ...]:
        """Return answers, each charged what it was the first to need."""
        shown = []
        for plan, priced, known in zip(plans, batch, notes, strict=True):
            answer = _taken(released, priced.question)
            paid = [answer, *(_taken(searches, search.question) for search in priced.searches)]
            cost = sum_of([part.cost for part in paid])
            shown.append(
                Answer(
                    plan=plan,
                    mechanisms=answer.mechanisms,
                    keys=answer.keys,
                    values=answer.values,
                    cost=cost,
                    stored=all(part.stored for part in paid),
                    notes=known,
                    shares=_shares_of(priced) if cost == priced.together else None,
                    entries=[part.sequence for part in paid],
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
        state = self._state()  # first, as it may bring another budget, and with it another price
        plan, priced = self._planned(text, parameters, epsilon, error, delta)
        known = stored_searches(priced, self._ledger)
        if plan.searches and len(known) == len(plan.searches):
            found = findings(plan, known)
            plan = self._bound(text, parameters, found)
            priced = calibrate_found(plan, self.catalog.budget, priced)
            notes = notes_of_found(plan, found)
        else:
            notes = notes_before(plan, priced)
        parts = parts_charged(plan.question, state)
        stored = None if plan.unsettled else stored_answer(priced, self._ledger)
        further = None if plan.unsettled or stored is not None else sharpening(priced, self._ledger)
        bought = priced if further is None else further.refinement.priced
        asked = [*(search for search in priced.searches if search.question not in known), bought]
        price = sum_of([one.loss for one in asked])
        names, budget = measure_names(plan), self.catalog.budget
        now = outlook(
            asked if stored is None else (),
            price,
            parts,
            state=state,
            catalog=self.catalog,
            principal=self._principal,
            limits=NO_LIMITS if self._limits is None else self._limits(),
        )
        return Preview(
            cost=price if stored is None else priced.loss.nothing(),
            price=price,
            epsilon=price.to_epsilon(delta=budget.delta - budget.delta_keys),
            share_of_remaining=float(price.amount / now.remaining.amount) if now.remaining.amount else float("inf"),
            remaining=now.remaining,
            fits=now.fits,
            refusal=now.refusal,
            cells=plan.question.cells,
            unit=units_of(plan.question.lineage),
            bound=bound_of(plan.question.lineage),
            measures=(*previews_of(priced, plan.searches), *at_widest(plan, priced, measure_previews(priced, names))),
            columns=unpromised(plan, column_previews(plan, priced, names, assuming_count)),
            notes=(*notes_of(plan, priced), *notes),
            delta=priced.delta,
            sharpens=further is not None,
            assuming_count=assuming_count,
            parts=_part_previews(parts, state),
            selection=selection_preview(priced),
        )

    def budget(self) -> BudgetView:
        """Return what was granted, spent and is left, with the history of charges."""
        self._require_open()
        return budget_view(self._state(), self._ledger.history())

    def guarantee(self, asking: Sequence[str] = (), *, sealed: bool = False) -> Page:
        """Return what the data set promises, as a page to be printed; free.

        Args: asking: who may ask, in sentences; sealed: whether to show the hash of the ledger's newest entry, which
            is for those alone who may see the ledger itself.
        """
        self._require_open()
        state = self._state()
        head = Head(ledger=self.catalog.ledger_path.name, sequence=state.sequence, hash=state.hash if sealed else None)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        return page_of(self.catalog, budget_view(state, self._ledger.history()), head, asking or WHO_READS, now)

    def raised(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> Raise:
        """Return what a larger budget would promise, beside what is promised now; free, and nothing is changed.

        Raises: as `raise_budget`.
        """
        self._require_open()
        state, (before, after) = self._state(), _figures(was, (epsilon, delta))
        if after != (state.registration.epsilon, state.registration.delta):
            require_expected(state.registration, *before, self.catalog.ledger_path.name)
        return preview(self.catalog.budget, state, *after)

    def raise_budget(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> None:
        """Make the budget larger, for everybody and for ever. The curator's act.

        What this promises depends on why it is done: see `BudgetView.raised`. The catalog's file stays as it is;
        `lapwing.raising.raise_budget` writes it too.

        Args: was: the (epsilon, delta) as they are expected to be.
        Raises: CatalogMismatch if they are others; InvalidParameter for what is no larger budget. Nothing is changed.
        """
        self._require_open()
        before, after = _figures(was, (epsilon, delta))
        budget = replace(self.catalog.budget, epsilon=after[0], delta=after[1])  # that no catalog can hold is refused
        self._ledger.raise_budget(was=before, epsilon=after[0], delta=after[1], principal=self._principal)
        self.catalog = replace(self.catalog, budget=budget)

    def close_for_ever(self) -> bool:
        """Close the data set: nothing is charged any more, once this returns. Return whether it was open.

        The curator's act, and not to be undone. Answers that were bought stay free.
        """
        self._require_open()
        return self._ledger.close_for_ever(self._principal)

    def ledger_entries(self) -> Iterator[Entry]:
        """Yield all entries of the ledger, for a copy (`lapwing.ledger.exporting`); as secret as the ledger is."""
        self._require_open()
        return self._ledger.entries()

    def _state(self) -> State:
        """Return the ledger's state; a budget that others have raised is the catalog's from then on."""
        state, budget = self._ledger.state(), self.catalog.budget
        now = state.registration.epsilon, state.registration.delta
        if now != (budget.epsilon, budget.delta):
            self.catalog = replace(self.catalog, budget=replace(budget, epsilon=now[0], delta=now[1]))
            if self._origin is not None:
                self._origin.catalog = self.catalog  # so that those who come next price by it at once
        return state

    def price(self, epsilon: Number) -> Loss:
        """Return the loss that a question's `epsilon` is charged."""
        return request(epsilon, self.catalog.budget)

    def accept_data(self) -> int:
        """Make the data as they are now the ledger's current version, and return its number. The curator's act.

        Spending stays: it belongs to the people in the data, not to a version of them.
        """
        self._require_open()
        return self._ledger.accept(digests(self.catalog, self._engine), self._principal, owners_of(self.catalog))

    def faults(self) -> tuple[FaultRow, ...]:
        """Return the questions that failed or died after their charge, since the curator last looked."""
        self._require_open()
        return self._ledger.faults()

    def resume(self) -> int:
        """Say that the faults were looked at, so that a data set that they stopped goes on; return how many they were.

        The curator's act. Nothing is refunded.
        """
        self._require_open()
        return self._ledger.resume(self._principal)

    def settle(self) -> bool:
        """Write down what the ledger could not write when it happened, if anything; return whether nothing is left.

        The next question does it too. For a program that may be idle then: until it is written, others who ask the same
        wait.
        """
        return self._closed or self._ledger.settle()

    def acting_for(self, principal: str, limits: LimitsNow | None = None) -> Self:
        """Return a session on the same data and ledger for somebody else, within limits beside the budget.

        For a server that asks on behalf of its users. Both share what they hold: close the one it was made from.
        """
        self._require_open()
        held = (self.catalog, self._engine, self._ledger, self._entropy)
        return type(self)(*held, principal, self._public, limits, self._plans, self._origin or self)

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


def _require_answered(plan: Plan, *, answered: bool) -> None:
    if answered and plan.explain:
        raise QueryRefused("EXPLAIN PRIVACY asks for a price, not for an answer", remedy="Call session.explain.")


def _figures(*budgets: tuple[Number, Number]) -> list[tuple[Fraction, Fraction]]:
    return [(exact(epsilon, "epsilon"), exact(delta, "delta")) for epsilon, delta in budgets]


def _part_previews(parts: tuple[str, ...] | None, state: State) -> tuple[PartPreview, ...] | None:
    if parts is None or state.division is None:
        return None
    spent, left = state.division.losses.spent_by_part(), state.division.losses.rooms()
    return tuple(PartPreview(part=part, spent=spent[part], remaining=left[part]) for part in parts)


def _taken(answers: dict[Question, Released], question: Question) -> Released:
    """Return an answer, which is free a second time."""
    answer = answers[question]
    answers[question] = replace(answer, cost=answer.cost.nothing(), stored=True)
    return answer


def sum_of(losses: Sequence[Loss]) -> Loss:
    """Add up losses of one measure."""
    return losses[0].from_amount(sum((loss.amount for loss in losses), Fraction(0)))


def _shares_of(priced: Priced) -> list[Fraction]:
    """Return the part of a question's price, searches included, that each of its measures takes."""
    return [term.loss(priced.loss.kind).amount / priced.together.amount for term in priced.terms]
