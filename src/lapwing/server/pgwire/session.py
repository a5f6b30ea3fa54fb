"""One client of the PostgreSQL protocol after it has signed in: its settings, its statements and their results.

Theory of operation. `queries` has a query answered, as one over HTTP is. A connection adds nothing but the form: here
results and refusals become messages of the protocol.

A data set is a database: like a query of PostgreSQL, a query reads only one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

from fastapi.concurrency import run_in_threadpool

from lapwing import errors
from lapwing.server.bodies import MOST_SQL
from lapwing.server.log import log
from lapwing.server.pgwire import catalog, messages, protocol, values
from lapwing.server.pgwire.connection_statements import ConnectionStatements, Wire, is_query
from lapwing.server.pgwire.cursors import declared
from lapwing.server.pgwire.messages import Report
from lapwing.server.pgwire.queries import WireQueries, result_of_catalog
from lapwing.server.pgwire.refusals import DELTA_HINT, MORE_HINT, ROWS_HINT, STATES, StatementRefused
from lapwing.server.pgwire.results import (
    EXAMPLES,
    EXPLAINED,
    Portal,
    Prepared,
    StatementResult,
    described,
    shown,
    widened,
)
from lapwing.server.pgwire.settings import ConnectionSettings
from lapwing.server.pgwire.statements import SqlStatement, copy_of, parameter_types, split
from lapwing.server.problems import place_of, told
from lapwing.server.service import Service

FLUSHED: Final = 1 << 16
"""Bytes of output after which a client is waited for."""
MOST_PARAMETERS: Final = 1_000
MOST_STATEMENTS: Final = 100
"""The number of statements of one query of the simple protocol."""
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
    _queries: WireQueries = field(init=False)

    def __post_init__(self) -> None:
        self.settings = ConnectionSettings(self.wire.say_setting)
        self._own = ConnectionStatements(self.wire, self.settings, self.person, self.dataset)
        self._queries = WireQueries(
            service=self.service,
            token=self.token,
            person=self.person,
            dataset=self.dataset,
            catalogs=self.catalogs,
            settings=self.settings,
            leaves=self.leaves,
        )

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
            hint += DELTA_HINT if error.cause is errors.RefusalCause.NEEDS_DELTA else ""
        elif state != "57014" and error.message and error.curator_remedy:
            said, hint = error.message, error.analyst_text.removeprefix(error.message).strip()
            hint += MORE_HINT if isinstance(error, errors.AllowanceExhausted) else ""
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
        return Prepared(statement=statements[0], types=await self._queries.typed(statements[0], types))

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
            portal.result = result_of_catalog(await self._queries.from_catalog(statement, portal.values))
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
        found = await self._queries.from_catalog(statement, given, runs=False)
        if found is not None:
            return found[0]
        if self._queries.explains(statement):
            return EXPLAINED
        if self.settings.is_on("intervals"):
            raise StatementRefused("0A000", "With lapwing.intervals, a query is described only together with its run.")
        return await self._queries.planned(statement, given)

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
            result = await self._queries.asked(copy.query, given)
            return widened(
                StatementResult(tag=f"COPY {len(result.rows)}", columns=result.columns, rows=result.rows, copy=copy)
            )
        if is_query(statement):
            return await self._queries.asked(statement, given)
        if first == "DECLARE":
            name, query, held = declared(statement)
            self._own.cursors.require_room(name)
            result = await self._queries.asked(query, given)
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


async def _read(reading: Callable[[], Read], text: str) -> Read:
    """Read a text: a long one in a thread, because all connections wait for what is done here."""
    return reading() if len(text) <= LONG_TEXT else await run_in_threadpool(reading)


def _short(text: str) -> str:
    """Return a text that is not too long to be read here, where all connections wait meanwhile."""
    if len(text) > MOST_SQL:
        raise StatementRefused("54000", f"The text has {len(text):,} characters; at most {MOST_SQL:,} are allowed.")
    return text
