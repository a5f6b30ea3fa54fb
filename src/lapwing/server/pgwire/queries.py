"""The queries of one client of the PostgreSQL protocol: asked as over HTTP, priced, or answered from public facts.

Theory of operation. A query goes to `QuestionExecutor.ask`, as one over HTTP does, with the rights that the token has
at that moment. So the same code decides about rights, floors, allowances, deadlines and turns, and counts and records.
`SET lapwing.epsilon` gives the price. Statements about the catalog, `EXPLAIN` and descriptions read no row: they are
free.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, final

from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from lapwing import errors
from lapwing.answer.python_values import Cell
from lapwing.documents.answer_document import value_of
from lapwing.documents.session_document import tables_of_catalog
from lapwing.privacy import figures
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.bodies import QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask
from lapwing.server.people import Caller
from lapwing.server.pgwire import catalog, values
from lapwing.server.pgwire.catalog_facts import Facts
from lapwing.server.pgwire.catalog_limits import NotAnswered
from lapwing.server.pgwire.column_probes import columns_of_probe, may_be_probe
from lapwing.server.pgwire.connection_statements import is_query
from lapwing.server.pgwire.default_price import TakenPrice, taken_price, was_charged
from lapwing.server.pgwire.notices import NO_ROWS, notice_of, what_is_left
from lapwing.server.pgwire.parameter_inference import as_texts, column_types, inferred
from lapwing.server.pgwire.refusals import CATALOG_HINT, StatementRefused
from lapwing.server.pgwire.results import (
    EXPLAINED,
    StatementResult,
    with_ends,
)
from lapwing.server.pgwire.settings import VERSION_TEXT, ConnectionSettings
from lapwing.server.pgwire.statements import SqlStatement
from lapwing.server.pgwire.tools import tool_of
from lapwing.server.service import Service

CatalogResult = tuple[Sequence[tuple[str, int]], Sequence[Sequence[values.Shown]]]
"""The columns and rows of a statement about the catalog."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WireQueries:
    """The queries of one client.

    Args:
        catalogs: The public catalogs of all connections.
        settings: The settings of the connection.
        leaves: The event of a client that cancels a statement or goes.
    """

    service: Service
    token: str
    person: str
    dataset: str
    catalogs: catalog.PublicCatalogs
    settings: ConnectionSettings
    leaves: asyncio.Event

    async def planned(self, statement: SqlStatement, given: Sequence[object]) -> list[tuple[str, int]]:
        """Return the columns of a query, by its plan: no row is read."""
        body = self._body(statement, given)
        caller, served = await self._found("read")

        def planned() -> list[tuple[str, int]]:
            with self.service.callers.pricing(caller):
                session = served.for_caller(caller, self.service.policies)
                plan = session.plan(body.sql, body.values(), epsilon=1)
            return [(output.name, values.TYPES[output.value.shape]) for output in plan.outputs]

        return await run_in_threadpool(planned)

    async def asked(self, statement: SqlStatement, given: Sequence[object]) -> StatementResult:
        """Ask a query, as over HTTP, or show its price; answer one about the catalog from public facts."""
        found = result_of_catalog(await self.from_catalog(statement, given))
        if found is not None:
            return found
        if statement.is_empty and not self.explains(statement) and not self.settings.is_on("intervals"):
            return StatementResult(tag="SELECT 0", columns=await self.planned(statement, given), notices=[NO_ROWS])
        if self.explains(statement):
            _, served = await self._found("read")
            return await self._explained(self._body(statement, given, await self._taken(statement, served)))
        caller, served = await self._found("ask")
        taken = await self._taken(statement, served)
        ask = Ask(caller=caller, served=served, body=self._body(statement, given, taken), key=None)
        outcome, tool = "failed", tool_of(self.settings["application_name"])
        try:
            record = await self._record(ask, taken)
            outcome = "stored" if record.document["stored"] else "charged"
        except errors.LapwingError as error:
            if errors.was_charged(error) is False and not self.leaves.is_set():
                outcome = "refused"
            raise
        finally:
            self.service.metrics.count_tool(self.dataset, tool, outcome)
        said = [taken.notice] if taken is not None and was_charged(record) else []
        left = record.remaining
        if left is not None:
            charged = from_record(record.document["cost"]).amount / left.cap
            self.service.metrics.count_charge(self.dataset, tool, float(charged))
            said += what_is_left(left) if caller.may("read") else []
        return self._shown_result(record, served, said)

    async def _taken(self, statement: SqlStatement, served: ServedDataset) -> TakenPrice | None:
        """Return the default cost that a query takes, where the connection names none."""
        if self.settings.has_price:
            return None
        return await run_in_threadpool(taken_price, self.service.default_costs, served, self.person, statement.text)

    async def _record(self, ask: Ask, taken: TakenPrice | None) -> AnswerRecord:
        """Ask, within the daily limit of the default cost if one is taken."""
        if taken is None:
            (record,) = await self.service.executor.ask(ask, self._gone)
            return record

        def is_free() -> bool:
            preview = self._preview(ask.caller, ask.served, ask.body)  # type: ignore[arg-type]
            return preview.stored or not preview.price.amount

        reservation = await run_in_threadpool(taken.reserved, is_free)
        try:
            (record,) = await self.service.executor.ask(ask, self._gone)
        except errors.LapwingError as error:
            if errors.was_charged(error) is False:
                await run_in_threadpool(taken.settle, reservation, charged=False)
            raise
        await run_in_threadpool(taken.settle, reservation, charged=was_charged(record))
        return record

    async def from_catalog(
        self, statement: SqlStatement, given: Sequence[object], *, runs: bool = True
    ) -> CatalogResult | None:
        """Return the columns, and if it runs the rows, of a statement about the catalog; None of any other.

        It is free.
        """
        probes = statement.reads and not statement.of_catalog
        if statement.words[0] == "EXPLAIN" or (probes and not may_be_probe(statement)):
            return None
        caller, served = await self._found("read")

        def answered() -> CatalogResult | None:
            with self.service.callers.pricing(caller):
                try:
                    known = self._public(caller, served)
                    if probes:
                        columns = columns_of_probe(statement.text, known.tables)
                        return None if columns is None else (columns, [])
                    demanded = statement.of_catalog
                    return known.answer(statement.text, given, self.settings.all(), demanded=demanded, runs=runs)
                except NotAnswered as error:
                    raise StatementRefused(error.state, str(error), CATALOG_HINT) from None

        return await run_in_threadpool(answered)

    def _public(self, caller: Caller, served: ServedDataset) -> catalog.PublicCatalog:
        """Return the catalog for this person, made anew where the rights or the data set have changed."""
        names = tuple(sorted(one.name for one in self.service.datasets.all_visible(caller)))
        session = served.session

        def facts() -> Facts:
            return Facts(
                person=self.person,
                dataset=self.dataset,
                datasets=names,
                tables=tables_of_catalog(session.catalog, session.public_tables),
                version=VERSION_TEXT,
            )

        return self.catalogs.of(self.person, self.dataset, (names, session), facts)

    def _body(self, statement: SqlStatement, given: Sequence[object], taken: TakenPrice | None = None) -> QueryBody:
        try:
            return QueryBody(
                sql=statement.text,
                parameters=[_json(value) for value in given],
                label=self.settings["lapwing.label"] or None,
                **(self.settings.prices() | ({} if taken is None else {"epsilon": taken.text})),  # type: ignore[arg-type]
            )
        except ValidationError:
            raise StatementRefused(
                "22023", "The query, a parameter or a setting is not one that this service takes."
            ) from None

    def explains(self, statement: SqlStatement) -> bool:
        """Tell whether a statement asks for the price of a query."""
        return statement.words[0] == "EXPLAIN" or self.settings.is_on("explain")

    async def _explained(self, body: QueryBody) -> StatementResult:
        """Return the ± that each column would have, and say what the query would cost: free, and no row is read."""
        caller, served = await self._found("read")
        preview = await run_in_threadpool(self._preview, caller, served, body)
        more = "another " if preview.sharpens else ""
        cost = preview.free if preview.stored else f"would cost {more}ε = {figures.epsilon(preview.epsilon)}"
        refused = [] if preview.refusal is None else [f"it would be refused: {preview.refusal}"]
        budget = [] if preview.stored else refused or [preview.part_of_budget]
        notices = [cost, *budget, *preview.notes]
        rows = [(column.name, column.half_width) for column in preview.columns]
        return StatementResult(tag=f"SELECT {len(rows)}", columns=EXPLAINED, rows=rows, notices=notices)

    def _preview(self, caller: Caller, served: ServedDataset, body: QueryBody) -> Any:
        with self.service.callers.pricing(caller):
            timed = self.service.executor.holds_answers
            session = served.for_caller(caller, self.service.policies, timed=timed)
            return session.explain(body.sql, body.values(), **body.prices(), assuming_count=body.assuming_count)

    async def _gone(self) -> None:
        await self.leaves.wait()

    async def _found(self, right: Any) -> tuple[Caller, ServedDataset]:
        """Return who asks, with their rights of this moment, and the data set."""

        def found() -> tuple[Caller, ServedDataset]:
            caller = self.service.callers.of_token(self.token, right, self.dataset)
            return caller, self.service.datasets.visible(caller, self.dataset)

        if self.service.people.is_local:
            caller = self.service.callers.of_token(self.token, right, self.dataset)
            served = self.service.datasets.known(caller, self.dataset)
            if served is not None:
                return caller, served
            return caller, await run_in_threadpool(self.service.datasets.visible, caller, self.dataset)
        return await run_in_threadpool(found)

    def _shown_result(self, record: AnswerRecord, served: ServedDataset, more: list[str]) -> StatementResult:
        document = record.document
        names, types = document["columns"], document["types"]
        columns = [(name, values.TYPES[types[name]]) for name in names]
        rows: list[list[Cell]] = [[value_of(row[name], types[name]) for name in names] for row in document["rows"]]
        if self.settings.is_on("intervals"):
            columns, rows = with_ends(columns, rows, document["intervals"])
        notices = [notice_of(record, served.session.catalog.budget, more), *document["notes"]]
        return StatementResult(tag=f"SELECT {len(rows)}", columns=columns, rows=rows, notices=notices)

    async def typed(self, statement: SqlStatement, types: tuple[int, ...]) -> tuple[int, ...]:
        """Return the types of the parameters of a statement: of a query, from its columns where none is declared."""
        if all(types) or statement.of_catalog or not is_query(statement):
            return as_texts(types)
        caller, served = await self._found("read")

        def found() -> tuple[int, ...]:
            with self.service.callers.pricing(caller):
                tables = tables_of_catalog(served.session.catalog, served.session.public_tables)
                columns = column_types(column for table in tables.values() for column in table.columns)
                return inferred(statement.text, types, columns)

        return await run_in_threadpool(found)


def result_of_catalog(found: CatalogResult | None) -> StatementResult | None:
    """Return the result of a statement about the catalog."""
    return None if found is None else StatementResult(tag=f"SELECT {len(found[1])}", columns=found[0], rows=found[1])


def _json(value: object) -> Any:
    """Return the value of a parameter as the body of a query has it."""
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case _:
            return value
