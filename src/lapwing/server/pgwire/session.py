"""One client of the PostgreSQL protocol after it has signed in: its settings, its statements and their results.

Theory of operation. A query goes to `QuestionExecutor.ask`, as one over HTTP does, with the rights that the token has
at that moment. So the same code decides about rights, floors, allowances, deadlines and turns, and counts and records.
A connection adds nothing but the form. `SET lapwing.epsilon` gives the price, and results and refusals become messages
of the protocol.

A data set is a database: like a query of PostgreSQL, a query reads only one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeVar, final

from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from lapwing import errors
from lapwing.answer.python_values import Cell
from lapwing.documents.answer_document import value_of
from lapwing.documents.session_document import tables_of_catalog
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.bodies import MOST_SQL, QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask
from lapwing.server.log import log
from lapwing.server.people import Caller
from lapwing.server.pgwire import catalog, messages, protocol, values
from lapwing.server.pgwire.catalog_facts import Facts
from lapwing.server.pgwire.catalog_limits import NotAnswered
from lapwing.server.pgwire.column_probes import columns_of_probe, may_be_probe
from lapwing.server.pgwire.connection_statements import ConnectionStatements, Wire, is_query
from lapwing.server.pgwire.cursors import declared
from lapwing.server.pgwire.default_price import TakenPrice, taken_price, was_charged
from lapwing.server.pgwire.messages import Report
from lapwing.server.pgwire.notices import NO_ROWS, notice_of, what_is_left
from lapwing.server.pgwire.parameter_inference import as_texts, column_types, inferred
from lapwing.server.pgwire.refusals import CATALOG_HINT, ROWS_HINT, STATES, StatementRefused
from lapwing.server.pgwire.results import (
    EXAMPLES,
    EXPLAINED,
    Portal,
    Prepared,
    StatementResult,
    described,
    shown,
    widened,
    with_ends,
)
from lapwing.server.pgwire.settings import VERSION_TEXT, ConnectionSettings
from lapwing.server.pgwire.statements import SqlStatement, copy_of, parameter_types, split
from lapwing.server.pgwire.tools import tool_of
from lapwing.server.problems import place_of, told
from lapwing.server.service import Service

FLUSHED: Final = 1 << 16
"""Bytes of output after which a client is waited for."""
MOST_PARAMETERS: Final = 1_000
MOST_STATEMENTS: Final = 100
"""The number of statements of one query of the simple protocol."""
CatalogResult = tuple[Sequence[tuple[str, int]], Sequence[Sequence[values.Shown]]]
"""The columns and rows of a statement about the catalog."""
LONG_TEXT: Final = 4_000
"""Characters of a text that is read in a thread."""
Read = TypeVar("Read")
_ENDED: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})


@final
@dataclass(slots=True, kw_only=True)
class WireSession:
    """The statements of one client.

    Args:
        catalogs: Of all connections.
        flush: Sends what waits, and waits until the client has taken most of it.
    """

    service: Service
    wire: Wire
    token: str
    person: str
    dataset: str
    catalogs: catalog.PublicCatalogs
    flush: Callable[[], Awaitable[None]]
    settings: ConnectionSettings = field(init=False)
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: bool = False
    _own: ConnectionStatements = field(init=False)

    def __post_init__(self) -> None:
        self.settings = ConnectionSettings(self.wire.say_setting)
        self._own = ConnectionStatements(self.wire, self.settings, self.person, self.dataset)

    # ---- events ------------------------------------------------------------------------------------------------------

    async def answer(self, event: object) -> None:
        """Answer one event of the protocol; a fault of this program closes the connection."""
        if not self.hung_up:
            self.leaves.clear()
        try:
            match event:
                case protocol.Statements():
                    await self._statements(event.text)
                case protocol.Prepare():
                    self.wire.prepared(event, await self._prepared(event))
                case protocol.BindTo():
                    self.wire.bound(event, self._bind(event.statement, event.sent))
                case protocol.DescribeStatement():
                    await self._describe_statement(event.statement)
                case protocol.DescribePortal():
                    await self._describe_portal(event.portal, runs=event.runs)
                case protocol.DescribeCursor():
                    self.wire.described(described(self._own.cursors.portal(event.name).columns or (), ()))
                case protocol.Run():
                    await self._run_portal(event.portal, event.rows)
        except Exception as error:
            self._fail(error)

    def stop(self, *, hung_up: bool = False) -> None:
        """Stop waiting for what is under way, because the client wants it or has gone."""
        self.hung_up = self.hung_up or hung_up
        self.leaves.set()

    def _fail(self, error: Exception, start: int = 0, text: str = "") -> None:
        """Say why something failed; start: where its statement begins in the text that was sent."""
        match error:
            case StatementRefused():
                self.wire.fail(error.report)
            case values.BadValue():
                self.wire.fail(Report(severity="ERROR", state=error.state, message=str(error)))
            case errors.LapwingError():
                self.wire.fail(self._report(error, start, text))
            case _:
                log("bug", kind=type(error).__name__, place=place_of(error))
                fault = "Something went wrong in the service; its log says where. Ask the curator."
                self.wire.close(Report(severity="FATAL", state="XX000", message=fault))

    def _report(self, error: errors.LapwingError, start: int, text: str) -> Report:
        """Return what a client is told of an error: with its code, and whether something was charged."""
        if self.leaves.is_set() and isinstance(error, errors.ServiceFault):
            state, said = "57014", "The query was cancelled at your request. If it runs already, its result is stored."
        else:
            error = told(error, self.person, self.dataset)
            state, said = STATES.get(type(error), "58000"), error.analyst_text
        hint, position = "", None
        if isinstance(error, errors.QueryRefused):
            said, hint = f"{error.reason}.", error.analyst_remedy
            if error.position is not None and text:
                line, column = error.position
                position = start + sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column
            hint = ROWS_HINT if error.cause is errors.RefusalCause.ASSUMES_ROWS else hint
        elif state != "57014" and error.message and error.curator_remedy:
            said, hint = error.message, error.analyst_text.removeprefix(error.message).strip()
        if isinstance(error, errors.InvalidParameter) and self.settings.price_hint:
            hint = self.settings.price_hint
        detail = f"{error.code}. {errors.charge_in_words(errors.was_charged(error))}"
        return Report(severity="ERROR", state=state, message=said, detail=detail, hint=hint, position=position)

    # ---- the simple protocol -----------------------------------------------------------------------------------------

    async def _statements(self, text: str) -> None:
        try:
            statements = await _read(lambda: split(_short(text)), text)
            if len(statements) > MOST_STATEMENTS:
                raise StatementRefused("54000", f"At most {MOST_STATEMENTS} statements come at once.")
        except StatementRefused as refused:
            self.wire.fail(refused.report)
            self.wire.ready()
            return
        if not statements:
            self.wire.completed("")
        for statement in statements:
            try:
                result = await self._result(statement, ())
                result = widened(result) if is_query(statement) else result
                self._notify(result)
                if result.columns is not None and result.copy is None:
                    self.wire.described(described(result.columns, ()))
                await self._send(result, result.rows, ())
                self.wire.completed(result.tag)
            except Exception as error:
                self._fail(error, statement.start, statement.text)
                break
        if not self.wire.is_closed:
            self.wire.ready()

    async def _send(
        self, result: StatementResult, rows: Sequence[Sequence[values.Shown]], formats: Sequence[int]
    ) -> None:
        """Send rows, waiting now and then until the client has taken them."""
        columns = result.columns or ()
        types = [type_ for _, type_ in columns]
        if result.copy is not None:
            form = messages.BINARY if result.copy.form == "binary" else messages.TEXT
            self.wire.rows([messages.copy_out(form, len(columns))])
            names = [name for name, _ in columns]
            data = values.copied(names, types, iter(rows), form=result.copy.form, header=result.copy.header)
            await self._stream(messages.copy_data(part) for part in data)
            self.wire.rows([messages.COPY_DONE])
            return
        kinds = [one.format for one in described(columns, formats)]
        await self._stream(
            messages.data_row([values.written(*cell) for cell in zip(row, types, kinds, strict=True)]) for row in rows
        )

    async def _stream(self, parts: Iterator[bytes]) -> None:
        for part in parts:
            self.wire.rows((part,))
            if self.wire.waiting > FLUSHED:
                await self.flush()

    def _notify(self, result: StatementResult) -> None:
        for text in result.notices:
            self.wire.notice(Report(severity="NOTICE", state="00000", message=text))

    # ---- the extended protocol ---------------------------------------------------------------------------------------

    async def _prepared(self, event: protocol.Prepare) -> Prepared:
        text = _short(event.text)
        statements, types = await _read(lambda: (split(text), parameter_types(text, event.types)), text)
        if len(statements) > 1:
            raise StatementRefused("42601", "A prepared statement holds one statement. Send them one by one.")
        if len(types) > MOST_PARAMETERS:
            raise StatementRefused("54000", f"A query has at most {MOST_PARAMETERS:,} parameters.")
        if not statements:
            return Prepared(statement=None)
        return Prepared(statement=statements[0], types=await self._typed(statements[0], types))

    async def _typed(self, statement: SqlStatement, types: tuple[int, ...]) -> tuple[int, ...]:
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

    def _bind(self, prepared: Prepared, sent: messages.Bind) -> Portal:
        if len(sent.values) != len(prepared.types):
            raise StatementRefused(
                "08P01", f"The statement has {len(prepared.types)} parameters; {len(sent.values)} came."
            )
        formats = sent.formats or (messages.TEXT,)
        given = [
            values.read(value, type_, formats[number if len(formats) > 1 else 0], number + 1)
            for number, (value, type_) in enumerate(zip(sent.values, prepared.types, strict=True))
        ]
        return Portal(prepared=prepared, values=given, formats=sent.result_formats)

    async def _describe_statement(self, prepared: Prepared) -> None:
        examples = [EXAMPLES.get(type_, "") for type_ in prepared.types]
        columns = await self._columns(prepared, examples)
        self.wire.described_statement(prepared.types, None if columns is None else described(columns, ()))

    async def _describe_portal(self, portal: Portal, *, runs: bool) -> None:
        """Describe the columns of a portal.

        If the run of a query was sent already, it is run now: nothing can come between, and it is read and planned
        once. So is a statement about the catalog, because it is free. A statement about the connection is not, because
        it may end the portal: `ROLLBACK`, `DISCARD ALL`.
        """
        statement = portal.prepared.statement
        if runs and portal.result is None and (statement is None or is_query(statement)):
            portal.result = widened(await self._portal_result(portal))
        elif statement is not None and is_query(statement) and portal.result is None:
            portal.result = _of_catalog(await self._from_catalog(statement, portal.values))
        columns = await self._columns(portal.prepared, portal.values) if portal.result is None else shown(portal.result)
        self.wire.described(None if columns is None else described(columns, portal.formats))

    async def _portal_result(self, portal: Portal) -> StatementResult:
        statement = portal.prepared.statement
        if statement is None:
            return StatementResult(tag="")
        several = len(portal.formats) > 1 and not statement.of_catalog
        ends = self.settings.is_on("intervals") and is_query(statement)
        try:
            if several and not ends:  # before it runs, because it may cost something
                described(await self._columns(portal.prepared, portal.values) or (), portal.formats)
            result = await self._result(statement, portal.values)
            if several and ends:
                described(result.columns or (), portal.formats)
            return result
        except StatementRefused as unsuited:
            if several and ends and unsuited.report.state == "08P01":
                detail = "The query was charged and its result is stored. A repeat is free."
                unsuited.report = replace(unsuited.report, detail=detail)
            raise
        except errors.LapwingError as error:
            refused = StatementRefused("", "")
            refused.report = self._report(error, statement.start, statement.text)
            raise refused from None

    async def _run_portal(self, portal: Portal, most: int) -> None:
        if portal.prepared.statement is not None:
            self._require_good(portal.prepared.statement)
        if portal.result is None:
            portal.result = await self._portal_result(portal)
        elif portal.sent:
            await self._require_valid()
        result = portal.result
        if portal.sent == 0:
            self._notify(result)
        rows = result.rows[portal.sent : portal.sent + most if most else None]
        await self._send(result, rows, portal.formats)
        portal.sent += len(rows)
        if most and result.copy is None and portal.sent < len(result.rows):
            self.wire.suspended()
            return
        portal.result = replace(result, rows=(), notices=())  # all is sent, and need not be kept
        if result.tag.startswith("SELECT "):
            self.wire.completed(f"SELECT {len(rows)}")
        else:
            self.wire.completed(result.tag)

    async def _columns(self, prepared: Prepared, given: Sequence[object]) -> Sequence[tuple[str, int]] | None:
        """Return the columns of what was not run: they follow from the query and public facts, and are free."""
        statement = prepared.statement
        if statement is None:
            return None
        if not is_query(statement):
            return self._own.columns(statement)
        found = await self._from_catalog(statement, given, runs=False)
        if found is not None:
            return found[0]
        if self._explains(statement):
            return EXPLAINED
        if self.settings.is_on("intervals"):
            raise StatementRefused("0A000", "With lapwing.intervals, a query is described only together with its run.")
        return await self._planned(statement, given)

    async def _planned(self, statement: SqlStatement, given: Sequence[object]) -> list[tuple[str, int]]:
        """Return the columns of a query, by its plan: no row is read."""
        body = self._body(statement, given)
        caller, served = await self._found("read")

        def planned() -> list[tuple[str, int]]:
            with self.service.callers.pricing(caller):
                session = served.for_caller(caller, self.service.policies)
                plan = session.plan(body.sql, body.values(), epsilon=1)
            return [(output.name, values.TYPES[output.value.shape]) for output in plan.outputs]

        return await run_in_threadpool(planned)

    # ---- statements --------------------------------------------------------------------------------------------------

    async def _result(self, statement: SqlStatement, given: Sequence[object]) -> StatementResult:
        first = statement.words[0]
        self._require_good(statement)
        if first == "COPY":
            copy = copy_of(statement)
            if copy is None:
                hint = "Write COPY (SELECT …) TO STDOUT, WITH (FORMAT csv, HEADER) if need be."
                raise StatementRefused(
                    "0A000", "Only the result of a query can be copied, and only to the client.", hint
                )
            result = await self._asked(copy.query, given)
            return widened(
                StatementResult(tag=f"COPY {len(result.rows)}", columns=result.columns, rows=result.rows, copy=copy)
            )
        if is_query(statement):
            return await self._asked(statement, given)
        if first == "DECLARE":
            name, query, held = declared(statement)
            self._own.cursors.require_room(name)
            result = await self._asked(query, given)
            self._own.cursors.open(name, widened(result), held=held)
            return StatementResult(tag="DECLARE CURSOR", notices=result.notices)
        if first == "FETCH":
            await self._require_valid()
        return self._own.carry_out(statement)

    async def _require_valid(self) -> None:
        """Refuse further rows of a result if the token has ended since."""
        if self.service.people.is_local:
            self.service.people.caller_of(self.token)
        else:
            await run_in_threadpool(self.service.people.caller_of, self.token)

    def _require_good(self, statement: SqlStatement) -> None:
        if self.wire.transaction == "E" and statement.words[0] not in _ENDED:
            raise StatementRefused(
                "25P02", "The transaction failed; statements are ignored until it ends. Send ROLLBACK."
            )

    async def _asked(self, statement: SqlStatement, given: Sequence[object]) -> StatementResult:
        """Ask a query, as over HTTP, or show its price; answer one about the catalog from public facts."""
        found = _of_catalog(await self._from_catalog(statement, given))
        if found is not None:
            return found
        if statement.is_empty and not self._explains(statement) and not self.settings.is_on("intervals"):
            return StatementResult(tag="SELECT 0", columns=await self._planned(statement, given), notices=[NO_ROWS])
        if self._explains(statement):
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

    async def _from_catalog(
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

    def _explains(self, statement: SqlStatement) -> bool:
        return statement.words[0] == "EXPLAIN" or self.settings.is_on("explain")

    async def _explained(self, body: QueryBody) -> StatementResult:
        """Return the ± that each column would have, and say what the query would cost: free, and no row is read."""
        caller, served = await self._found("read")
        preview = await run_in_threadpool(self._preview, caller, served, body)
        free = "free: bought before" if preview.price.amount else "free: nothing in it comes from protected rows"
        cost = free if preview.stored else f"would cost ε = {preview.epsilon:.6g}"
        rows = [(column.name, column.half_width) for column in preview.columns]
        return StatementResult(tag=f"SELECT {len(rows)}", columns=EXPLAINED, rows=rows, notices=[cost, *preview.notes])

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


def _of_catalog(found: CatalogResult | None) -> StatementResult | None:
    """Return the result of a statement about the catalog."""
    return None if found is None else StatementResult(tag=f"SELECT {len(found[1])}", columns=found[0], rows=found[1])


async def _read(reading: Callable[[], Read], text: str) -> Read:
    """Read a text: a long one in a thread, because all connections wait for what is done here."""
    return reading() if len(text) <= LONG_TEXT else await run_in_threadpool(reading)


def _short(text: str) -> str:
    """Return a text that is not too long to be read here, where all connections wait meanwhile."""
    if len(text) > MOST_SQL:
        raise StatementRefused("54000", f"The text has {len(text):,} characters; at most {MOST_SQL:,} are allowed.")
    return text


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
