"""One client of the PostgreSQL protocol after it has signed in: its settings, its statements and their results.

Theory of operation. A query goes to `QuestionExecutor.ask`, as one over HTTP does, with the rights that the token has
at that moment. So the same code decides about rights, floors, allowances, deadlines and turns, and counts and records.
A connection adds nothing but the form. `SET lapwing.epsilon` gives the price, and results and refusals become messages
of the protocol.

A data set is a database: like a query of PostgreSQL, a query reads only one. Nothing can be written, so transactions
change nothing, and only their state is tracked, because clients look at it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, Final, final

from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from lapwing import __version__, errors
from lapwing.answer.presentation import cost_in_words
from lapwing.answer.python_values import Cell
from lapwing.documents.answer_document import value_of
from lapwing.documents.session_document import tables_of_catalog
from lapwing.privacy.amounts import read as read_amount
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.bodies import MOST_SQL, QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask
from lapwing.server.log import log
from lapwing.server.people import Caller
from lapwing.server.pgwire import catalog, messages, protocol, values
from lapwing.server.pgwire.messages import Report
from lapwing.server.pgwire.protocol import Protocol
from lapwing.server.pgwire.statements import Copy, Statement, copy_of, parameter_types, split
from lapwing.server.problems import place_of, told
from lapwing.server.service import Service

VERSION: Final = "18.0"
"""The version of PostgreSQL whose protocol and types are spoken."""
VERSION_TEXT: Final = f"PostgreSQL {VERSION} (Lapwing {__version__})"
FLUSHED: Final = 1 << 16
"""Bytes of output after which a client is waited for."""
MOST_PARAMETERS: Final = 1_000
MOST_STATEMENTS: Final = 100
"""The number of statements of one query of the simple protocol."""
MOST_SETTING: Final = 1_000
MOST_SAVEPOINTS: Final = 64
MOST_NAME: Final = 63
"""Bytes of the name of a savepoint."""
REPORTED: Final = {
    "server_version": VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "application_name": "",
}
"""Settings that the server sends when a client connects."""
OTHERS: Final = {
    "search_path": '"$user", public',
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "max_identifier_length": "63",
    "lc_collate": "C",
    "server_version_num": "180000",
    "statement_timeout": "0",
    "client_min_messages": "notice",
}
PRICES: Final = ("epsilon", "error", "delta", "confidence", "assuming_count")
SWITCHES: Final = {"lapwing.intervals": "off", "lapwing.explain": "off"}
OWN: Final = {f"lapwing.{name}": "" for name in (*PRICES, "label")} | SWITCHES
EXPLAINED: Final = (("column", values.TEXT_TYPE), ("half_width", values.FLOAT8))
"""The columns of what a query would give."""
FIXED: Final = frozenset(
    {"server_version", "server_encoding", "integer_datetimes", "standard_conforming_strings", "is_superuser"}
    | {"server_version_num", "max_identifier_length", "lc_collate", "in_hot_standby"}
)
"""Settings that nobody can change."""
ONLY: Final[Mapping[str, frozenset[str]]] = {
    "client_encoding": frozenset({"UTF8", "UTF-8", "UNICODE", "SQL_ASCII"}),
    "timezone": frozenset({"UTC", "GMT", "ETC/UTC", "Z", "DEFAULT", "LOCAL"}),
}
"""Settings that can only be set to what holds anyway."""
_QUERY: Final = frozenset({"SELECT", "WITH", "FROM", "EXPLAIN", "VALUES", "TABLE", "("})
_ENDED: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_OPTION: Final = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.]*)=((?:\\.|[^\s\\])*)")
PRICE_HINT: Final = (
    "Say what queries of this connection may cost: SET lapwing.epsilon = 0.1, or SET lapwing.error = 50 for a wanted "
    "95 % half-width. Or connect with options='-c lapwing.epsilon=0.1'."
)
STATES: Final[Mapping[type[errors.LapwingError], str]] = {
    errors.QueryRefused: "42501",
    errors.InvalidParameter: "22023",
    errors.NotAuthorised: "42501",
    errors.NotFound: "3D000",
    errors.BudgetExhausted: "53400",
    errors.AllowanceExhausted: "53400",
    errors.TooManyRequests: "53000",
    errors.DataChanged: "55000",
    errors.DataStopped: "55000",
    errors.AnswerDropped: "55000",
    errors.Interrupted: "57014",
}
"""The SQLSTATE of an error; of all others, 58000."""


@final
class Refusal(Exception):
    """A statement is refused."""

    def __init__(self, state: str, text: str, hint: str = "") -> None:
        self.report = Report(severity="ERROR", state=state, message=text, hint=hint)
        super().__init__(text)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a statement: with columns, if it gives rows; of a COPY, as data."""

    tag: str
    columns: Sequence[tuple[str, int]] | None = None
    rows: Sequence[Sequence[values.Shown]] = ()
    notices: Sequence[str] = ()
    copy: Copy | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared statement, None if it is empty, with the types of its parameters."""

    statement: Statement | None
    types: tuple[int, ...] = ()


@final
@dataclass(slots=True, kw_only=True)
class Portal:
    """A prepared statement with values; `result` once it has run, and `sent` counts the rows that were sent."""

    prepared: Prepared
    values: Sequence[object]
    formats: Sequence[int]
    result: Result | None = None
    sent: int = 0


Wire = Protocol[Prepared, Portal]


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
    settings: dict[str, str] = field(default_factory=lambda: {**REPORTED, **OTHERS, **OWN})
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: bool = False
    _savepoints: list[str] = field(default_factory=list)

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
                    self.wire.prepared(event, self._prepared(event))
                case protocol.BindTo():
                    self.wire.bound(event, self._bound(event.statement, event.sent))
                case protocol.DescribeStatement():
                    await self._describe_statement(event.statement)
                case protocol.DescribePortal():
                    await self._describe_portal(event.portal, runs=event.runs)
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
            case Refusal():
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
        hint, position, curator = "", None, ""
        if isinstance(error, errors.QueryRefused):
            said, hint = f"{error.reason}.", error.analyst_remedy
            curator = f" The curator can do this: {error.curator_remedy}" if error.curator_remedy else ""
            if error.position is not None and text:
                line, column = error.position
                position = start + sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column
        if isinstance(error, errors.InvalidParameter) and not self._has_price():
            hint = PRICE_HINT
        detail = f"{error.code}. {errors.charge_in_words(errors.was_charged(error))}{curator}"
        return Report(severity="ERROR", state=state, message=said, detail=detail, hint=hint, position=position)

    def _has_price(self) -> bool:
        return bool(self.settings["lapwing.epsilon"] or self.settings["lapwing.error"])

    # ---- the simple protocol -----------------------------------------------------------------------------------------

    async def _statements(self, text: str) -> None:
        try:
            statements = split(_short(text))
            if len(statements) > MOST_STATEMENTS:
                raise Refusal("54000", f"At most {MOST_STATEMENTS} statements come at once.")
        except Refusal as refused:
            self.wire.fail(refused.report)
            self.wire.ready()
            return
        if not statements:
            self.wire.completed("")
        for statement in statements:
            try:
                result = await self._result(statement, ())
                self._notify(result)
                if result.columns is not None and result.copy is None:
                    self.wire.described(_described(result.columns, ()))
                await self._send(result, result.rows, ())
                self.wire.completed(result.tag)
            except Exception as error:
                self._fail(error, statement.start, statement.text)
                break
        if not self.wire.is_closed:
            self.wire.ready()

    async def _send(self, result: Result, rows: Sequence[Sequence[values.Shown]], formats: Sequence[int]) -> None:
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
        kinds = [one.format for one in _described(columns, formats)]
        await self._stream(
            messages.data_row([values.written(*cell) for cell in zip(row, types, kinds, strict=True)]) for row in rows
        )

    async def _stream(self, parts: Iterator[bytes]) -> None:
        for part in parts:
            self.wire.rows((part,))
            if self.wire.waiting > FLUSHED:
                await self.flush()

    def _notify(self, result: Result) -> None:
        for text in result.notices:
            self.wire.notice(Report(severity="NOTICE", state="00000", message=text))

    # ---- the extended protocol ---------------------------------------------------------------------------------------

    def _prepared(self, event: protocol.Prepare) -> Prepared:
        statements = split(_short(event.text))
        if len(statements) > 1:
            raise Refusal("42601", "A prepared statement holds one statement. Send them one by one.")
        types = parameter_types(event.text, event.types)
        if len(types) > MOST_PARAMETERS:
            raise Refusal("54000", f"A query has at most {MOST_PARAMETERS:,} parameters.")
        if not statements:
            return Prepared(statement=None)
        return Prepared(statement=statements[0], types=types)

    def _bound(self, prepared: Prepared, sent: messages.Bind) -> Portal:
        if len(sent.values) != len(prepared.types):
            raise Refusal("08P01", f"The statement has {len(prepared.types)} parameters; {len(sent.values)} came.")
        formats = sent.formats or (messages.TEXT,)
        given = [
            values.read(value, type_, formats[number if len(formats) > 1 else 0], number + 1)
            for number, (value, type_) in enumerate(zip(sent.values, prepared.types, strict=True))
        ]
        return Portal(prepared=prepared, values=given, formats=sent.result_formats)

    async def _describe_statement(self, prepared: Prepared) -> None:
        examples = [_EXAMPLES.get(type_, "") for type_ in prepared.types]
        columns = await self._columns(prepared, examples)
        self.wire.described_statement(prepared.types, None if columns is None else _described(columns, ()))

    async def _describe_portal(self, portal: Portal, *, runs: bool) -> None:
        """Describe the columns of a portal.

        If its run was sent already, it is run now: nothing can come between, and it is read and planned once.
        """
        if runs and portal.result is None:
            portal.result = await self._portal_result(portal)
        columns = (
            await self._columns(portal.prepared, portal.values) if portal.result is None else _shown(portal.result)
        )
        self.wire.described(None if columns is None else _described(columns, portal.formats))

    async def _portal_result(self, portal: Portal) -> Result:
        statement = portal.prepared.statement
        if statement is None:
            return Result(tag="")
        several = len(portal.formats) > 1 and _is_query(statement) and not statement.of_catalog
        ends = self.settings["lapwing.intervals"] == "on"
        try:
            if several and not ends:  # before it runs, because it may cost something
                _described(await self._columns(portal.prepared, portal.values) or (), portal.formats)
            result = await self._result(statement, portal.values)
            if several and ends:
                _described(result.columns or (), portal.formats)
            return result
        except Refusal as unsuited:
            if several and ends and unsuited.report.state == "08P01":
                detail = "The query was charged and its result is stored. A repeat is free."
                unsuited.report = replace(unsuited.report, detail=detail)
            raise
        except errors.LapwingError as error:
            refused = Refusal("", "")
            refused.report = self._report(error, statement.start, statement.text)
            raise refused from None

    async def _run_portal(self, portal: Portal, most: int) -> None:
        if portal.result is None:
            portal.result = await self._portal_result(portal)
        result = portal.result
        if portal.sent == 0:
            self._notify(result)
        rows = result.rows[portal.sent :][: most or None]
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
        if not _is_query(statement):
            return self._own_columns(statement)
        found = await self._from_catalog(statement, given)
        if found is not None:
            return found[0]
        if self._explains(statement):
            return EXPLAINED
        if self.settings["lapwing.intervals"] == "on":
            raise Refusal("0A000", "With lapwing.intervals, a query is described only together with its run.")
        body = self._body(statement, given)
        caller, served = await self._found("read")

        def planned() -> list[tuple[str, int]]:
            with self.service.callers.pricing(caller):
                session = served.for_caller(caller, self.service.policies)
                plan = session.plan(body.sql, body.values(), epsilon=1)
            return [(output.name, values.TYPES[output.value.shape]) for output in plan.outputs]

        return await run_in_threadpool(planned)

    # ---- statements --------------------------------------------------------------------------------------------------

    async def _result(self, statement: Statement, given: Sequence[object]) -> Result:
        first = statement.words[0]
        if self.wire.transaction == "E" and first not in _ENDED:
            raise Refusal("25P02", "The transaction failed; statements are ignored until it ends. Send ROLLBACK.")
        if first == "COPY":
            copy = copy_of(statement)
            if copy is None:
                hint = "Write COPY (SELECT …) TO STDOUT, WITH (FORMAT csv, HEADER) if need be."
                raise Refusal("0A000", "Only the result of a query can be copied, and only to the client.", hint)
            result = await self._asked(copy.query, given)
            return Result(tag=f"COPY {len(result.rows)}", columns=result.columns, rows=result.rows, copy=copy)
        if _is_query(statement):
            return await self._asked(statement, given)
        return self._own(statement)

    async def _asked(self, statement: Statement, given: Sequence[object]) -> Result:
        """Ask a query, as over HTTP, or show its price; answer one about the catalog from public facts."""
        found = await self._from_catalog(statement, given)
        if found is not None:
            columns, rows = found
            return Result(tag=f"SELECT {len(rows)}", columns=columns, rows=rows)
        body = self._body(statement, given)
        if self._explains(statement):
            return await self._explained(body)
        caller, served = await self._found("ask")
        ask = Ask(caller=caller, served=served, body=body, key=None)
        (record,) = await self.service.executor.ask(ask, self._gone)
        return self._shown_result(record, served)

    async def _from_catalog(
        self, statement: Statement, given: Sequence[object]
    ) -> tuple[Sequence[tuple[str, int]], Sequence[Sequence[values.Shown]]] | None:
        """Return the columns and rows of a statement about the catalog; None of any other. It is free."""
        if statement.words[0] == "EXPLAIN" or (statement.reads and not statement.of_catalog):
            return None
        caller, served = await self._found("read")

        def answered() -> tuple[Sequence[tuple[str, int]], Sequence[Sequence[values.Shown]]] | None:
            with self.service.callers.pricing(caller):
                try:
                    known = self._public(caller, served)
                    return known.answer(statement.text, given, self.settings, demanded=statement.of_catalog)
                except catalog.NotAnswered as error:
                    raise Refusal(error.state, str(error)) from None

        return await run_in_threadpool(answered)

    def _public(self, caller: Caller, served: ServedDataset) -> catalog.PublicCatalog:
        """Return the catalog for this person, made anew where the rights or the data set have changed."""
        names = tuple(sorted(one.name for one in self.service.datasets.all_visible(caller)))
        session = served.session

        def facts() -> catalog.Facts:
            return catalog.Facts(
                person=self.person,
                dataset=self.dataset,
                datasets=names,
                tables=tables_of_catalog(session.catalog, session.public_tables),
                version=VERSION_TEXT,
            )

        return self.catalogs.of(self.person, self.dataset, (names, session), facts)

    def _body(self, statement: Statement, given: Sequence[object]) -> QueryBody:
        try:
            return QueryBody(
                sql=statement.text,
                parameters=[_json(value) for value in given],
                label=self.settings["lapwing.label"] or None,
                **self._prices(),
            )
        except ValidationError:
            raise Refusal("22023", "The query, a parameter or a setting is not one that this service takes.") from None

    def _explains(self, statement: Statement) -> bool:
        return statement.words[0] == "EXPLAIN" or self.settings["lapwing.explain"] == "on"

    async def _explained(self, body: QueryBody) -> Result:
        """Return the ± that each column would have, and say what the query would cost: free, and no row is read."""
        caller, served = await self._found("read")

        def explained() -> Any:
            with self.service.callers.pricing(caller):
                timed = self.service.executor.holds_answers
                session = served.for_caller(caller, self.service.policies, timed=timed)
                return session.explain(body.sql, body.values(), **body.prices(), assuming_count=body.assuming_count)

        preview = await run_in_threadpool(explained)
        cost = "free: bought before" if preview.stored else f"would cost ε = {preview.epsilon:.6g}"
        rows = [(column.name, column.half_width) for column in preview.columns]
        return Result(tag=f"SELECT {len(rows)}", columns=EXPLAINED, rows=rows, notices=[cost, *preview.notes])

    def _prices(self) -> dict[str, Any]:
        given = {name: self.settings[f"lapwing.{name}"] for name in PRICES}
        prices: dict[str, Any] = {name: value for name, value in given.items() if value}
        if "assuming_count" in prices:
            prices["assuming_count"] = int(prices["assuming_count"])
        return prices

    async def _gone(self) -> None:
        await self.leaves.wait()

    async def _found(self, right: Any) -> tuple[Caller, ServedDataset]:
        """Return who asks, with their rights of this moment, and the data set."""

        def found() -> tuple[Caller, ServedDataset]:
            caller = self.service.callers.of_token(self.token, right, self.dataset)
            return caller, self.service.datasets.visible(caller, self.dataset)

        if self.service.people.near:
            caller = self.service.callers.of_token(self.token, right, self.dataset)
            served = self.service.datasets.known(caller, self.dataset)
            if served is not None:
                return caller, served
            return caller, await run_in_threadpool(self.service.datasets.visible, caller, self.dataset)
        return await run_in_threadpool(found)

    def _shown_result(self, record: AnswerRecord, served: ServedDataset) -> Result:
        document = record.document
        names, types = document["columns"], document["types"]
        columns = [(name, values.TYPES[types[name]]) for name in names]
        rows: list[list[Cell]] = [[value_of(row[name], types[name]) for name in names] for row in document["rows"]]
        if self.settings["lapwing.intervals"] == "on":
            columns, rows = _with_ends(columns, rows, document["intervals"])
        budget = served.session.catalog.budget
        delta = Fraction(budget.delta) - Fraction(budget.delta_keys)
        cost = SimpleNamespace(cost=from_record(document["cost"]), stored=document["stored"])
        said = [cost_in_words(cost, delta)]
        widths = {one["name"]: one["half_width"] for one in document.get("facts", ()) if one["half_width"] is not None}
        said += [f"{name} ±{width:,.6g} (95 %)" for name, width in widths.items()]
        return Result(
            tag=f"SELECT {len(rows)}", columns=columns, rows=rows, notices=["; ".join(said), *document["notes"]]
        )

    # ---- statements about the connection -----------------------------------------------------------------------------

    def _own_columns(self, statement: Statement) -> Sequence[tuple[str, int]] | None:
        match statement.words:
            case ("SHOW", "ALL", *_):
                return [("name", values.TEXT_TYPE), ("setting", values.TEXT_TYPE)]
            case ("SHOW", *words):
                return [(_setting(words), values.TEXT_TYPE)]
            case ("SELECT", *_):
                return self._own(statement).columns
            case _:
                return None

    def _own(self, statement: Statement) -> Result:
        """Carry out a statement about the connection."""
        words = statement.words
        match words:
            case ("SELECT", *_):
                name, type_, value = self._facts(words)
                return Result(tag="SELECT 1", columns=[(name, type_)], rows=[(value,)])
            case ("SHOW", *rest):
                return self._show(rest)
            case ("BEGIN", *_) | ("START", "TRANSACTION", *_):
                self.wire.transaction = "T"
                return Result(tag="BEGIN" if words[0] == "BEGIN" else "START TRANSACTION")
            case ("ROLLBACK", *rest) if "TO" in rest[:3]:
                return self._roll_back_to(rest[-1])
            case ("COMMIT" | "END" | "ROLLBACK" | "ABORT", *_):
                kept = words[0] in ("COMMIT", "END") and self.wire.transaction != "E"
                self.wire.transaction, self._savepoints = "I", []
                self.wire.end_portals()
                return Result(tag="COMMIT" if kept else "ROLLBACK")
            case ("SAVEPOINT", name):
                if self.wire.transaction == "I" or len(self._savepoints) >= MOST_SAVEPOINTS:
                    raise Refusal("25P01", f"Savepoints stand in transactions, at most {MOST_SAVEPOINTS} in one.")
                if len(name.encode()) > MOST_NAME:
                    raise Refusal("42622", f"The name of a savepoint has at most {MOST_NAME} bytes.")
                self._savepoints.append(name)
                return Result(tag="SAVEPOINT")
            case ("RELEASE", *rest) if rest and rest[-1] in self._savepoints:
                del self._savepoints[self._savepoints.index(rest[-1]) :]
                return Result(tag="RELEASE")
            case ("SET", "TRANSACTION" | "CONSTRAINTS", *_) | ("SET", "SESSION", "CHARACTERISTICS", *_):
                return Result(tag="SET")
            case ("SET", *rest):
                self._set(rest)
                return Result(tag="SET")
            case ("RESET", "ALL"):
                self._reset()
                return Result(tag="RESET")
            case ("RESET", *rest) if rest:
                name = _setting(rest)
                self.put(name, {**REPORTED, **OTHERS, **OWN}.get(name, ""))
                return Result(tag="RESET")
            case ("DISCARD", what):
                if what == "ALL":
                    self._reset()
                    self.wire.end_portals()
                    self.wire.end_statements()
                return Result(tag=f"DISCARD {what}")
            case ("DEALLOCATE", *rest) if rest:
                return self._deallocate(statement)
            case ("LISTEN" | "UNLISTEN" | "CLOSE", *_):
                return Result(tag="CLOSE CURSOR ALL" if words[0] == "CLOSE" else words[0])
            case _:
                raise Refusal("0A000", "This server answers queries, and nothing can be written. Send a SELECT.")

    def _deallocate(self, statement: Statement) -> Result:
        token = statement.tokens[-1]
        name = token.text if token.kind == "quoted" else token.text.lower()
        if not self.wire.end_statements(None if token.text == "ALL" else name):
            raise Refusal("26000", f"There is no prepared statement {name[:64]!r}.")
        return Result(tag="DEALLOCATE ALL" if token.text == "ALL" else "DEALLOCATE")

    def _roll_back_to(self, name: str) -> Result:
        if name not in self._savepoints:
            raise Refusal("3B001", "There is no such savepoint.")
        del self._savepoints[self._savepoints.index(name) + 1 :]
        self.wire.transaction = "T"
        return Result(tag="ROLLBACK")

    def _reset(self) -> None:
        for name, value in {**REPORTED, **OTHERS, **OWN}.items():
            if self.settings[name] != value:
                self.put(name, value)

    def _show(self, words: Sequence[str]) -> Result:
        if words and words[0] == "ALL":
            pairs = sorted(self.settings.items())
            columns = [("name", values.TEXT_TYPE), ("setting", values.TEXT_TYPE)]
            return Result(tag="SHOW", columns=columns, rows=pairs)
        name = _setting(words)
        if name not in self.settings:
            raise Refusal("42704", f"There is no setting {name[:64]!r}.")
        return Result(tag="SHOW", columns=[(name, values.TEXT_TYPE)], rows=[(self.settings[name],)])

    def _set(self, words: Sequence[str]) -> None:
        rest = list(words)
        if rest and rest[0] in ("SESSION", "LOCAL"):
            rest.pop(0)
        if rest[:2] == ["TIME", "ZONE"]:
            rest[:2] = ["TIMEZONE", "TO"]
        if rest[:1] == ["NAMES"]:
            rest[:1] = ["CLIENT_ENCODING", "TO"]
        place = next((place for place, word in enumerate(rest) if word in ("=", "TO")), 0)
        if not 0 < place < len(rest) - 1:
            raise Refusal("42601", "Write SET name = value.")
        self.put(_setting(rest[:place]), _value(rest[place + 1 :]))

    def put(self, name: str, value: str) -> None:
        """Change a setting.

        Raises:
            Refusal: If it is not one, or not a value of it.
        """
        if name.lower() in ONLY and value.upper().strip("'") not in ONLY[name.lower()]:
            raise Refusal("22023", f"{name} can be {', '.join(sorted(ONLY[name.lower()]))} only.")
        if name in FIXED and value != self.settings[name]:
            raise Refusal("55P02", f"{name} cannot be changed.")
        if name.startswith("lapwing."):
            value = self._own_value(name, value)
        elif name not in self.settings and len(self.settings) >= 2 * (len(REPORTED) + len(OTHERS) + len(OWN)):
            raise Refusal("54000", "Too many settings.")
        if len(name) > MOST_SETTING or len(value) > MOST_SETTING:
            raise Refusal("22023", f"A setting has at most {MOST_SETTING:,} characters.")
        if name.lower() in ONLY:
            return
        self.settings[name] = value
        if name in REPORTED:
            self.wire.say_setting(name, value)

    def _own_value(self, name: str, value: str) -> str:
        if name not in OWN:
            known = ", ".join(OWN)
            raise Refusal("42704", f"There is no setting {name[:64]!r}. There are {known}.")
        short = name.removeprefix("lapwing.")
        if value.lower() in ("", "default"):
            return OWN[name]
        if name in SWITCHES:
            if value.lower() not in ("on", "off", "true", "false", "1", "0"):
                raise Refusal("22023", f"{name} is on or off.")
            return "on" if value.lower() in ("on", "true", "1") else "off"
        if short in PRICES:
            try:
                amount = read_amount(value[:200], short)
            except (errors.LapwingError, ArithmeticError, ValueError):
                raise Refusal("22023", f"{name} is a number, such as 0.1 or 1/3.") from None
            if short == "assuming_count" and amount.denominator != 1:
                raise Refusal("22023", f"{name} is a whole number of rows.")
            if short == "assuming_count":
                return str(amount.numerator)
        return value

    def _facts(self, words: Sequence[str]) -> tuple[str, int, Cell]:
        facts: dict[tuple[str, ...], tuple[str, int, Cell]] = {
            ("1",): ("?column?", values.INT4, 1),
            ("VERSION", "(", ")"): ("version", values.TEXT_TYPE, VERSION_TEXT),
            ("CURRENT_DATABASE", "(", ")"): ("current_database", values.TEXT_TYPE, self.dataset),
            ("CURRENT_SCHEMA", "(", ")"): ("current_schema", values.TEXT_TYPE, "public"),
            ("CURRENT_SCHEMA",): ("current_schema", values.TEXT_TYPE, "public"),
            ("CURRENT_USER",): ("current_user", values.TEXT_TYPE, self.person),
            ("SESSION_USER",): ("session_user", values.TEXT_TYPE, self.person),
            ("USER",): ("user", values.TEXT_TYPE, self.person),
            ("PG_BACKEND_PID", "(", ")"): ("pg_backend_pid", values.INT4, self.wire.process),
        }
        return facts[_fact_of(words)]


# ---- of statements ---------------------------------------------------------------------------------------------------

_FACTS: Final = frozenset(
    {("1",), ("CURRENT_SCHEMA",), ("CURRENT_USER",), ("SESSION_USER",), ("USER",)}
    | {(name, "(", ")") for name in ("VERSION", "CURRENT_DATABASE", "CURRENT_SCHEMA", "PG_BACKEND_PID")}
)
_EXAMPLES: Final[Mapping[int, object]] = {
    **dict.fromkeys((values.INT2, values.INT4, values.INT8, values.OID), 0),
    **dict.fromkeys((values.FLOAT4, values.FLOAT8, values.NUMERIC), 0),
    values.BOOL: False,
    values.DATE: date(2000, 1, 1),
    **dict.fromkeys((values.TIMESTAMP, values.TIMESTAMPTZ), datetime(2000, 1, 1)),
}
"""Values by which a prepared query is read whose own values are not there yet."""


def _short(text: str) -> str:
    """Return a text that is not too long to be read here, where all connections wait meanwhile."""
    if len(text) > MOST_SQL:
        raise Refusal("54000", f"The text has {len(text):,} characters; at most {MOST_SQL:,} are allowed.")
    return text


def _fact_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return which expression a `SELECT` of nothing else has."""
    rest = tuple(words[1:])
    return rest[2:] if rest[:2] == ("PG_CATALOG", ".") else rest


def _is_query(statement: Statement) -> bool:
    words = statement.words
    return words[0] in _QUERY and not (words[0] == "SELECT" and _fact_of(words) in _FACTS)


def _setting(words: Sequence[str]) -> str:
    """Return the name of a setting as it is kept."""
    if tuple(words) == ("TRANSACTION", "ISOLATION", "LEVEL"):
        return "transaction_isolation"
    if tuple(words) == ("TIME", "ZONE"):
        return "TimeZone"
    name = "".join(words).lower()
    return next((known for known in REPORTED if known.lower() == name), name)


def _value(words: Sequence[str]) -> str:
    """Return the value of a SET as text: of a list, with commas."""
    return "".join(words).replace(",", ", ") if "," in words else "".join(words)


def options_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in the `options` of a connection: `-c name=value`."""
    for match in _OPTION.finditer(text):
        yield _setting([match[1]]), re.sub(r"\\(.)", r"\1", match[2])


def _described(columns: Sequence[tuple[str, int]], formats: Sequence[int]) -> list[messages.Column]:
    """Return columns as messages have them, in the formats that a client asked for.

    Raises:
        Refusal: If there are neither none, nor one, nor one for each.
    """
    if len(formats) not in (0, 1, len(columns)):
        raise Refusal("08P01", f"The result has {len(columns)} columns; {len(formats)} formats came.")
    kinds = (
        [messages.TEXT] * len(columns) if not formats else list(formats) * (len(columns) if len(formats) == 1 else 1)
    )
    return [
        messages.Column(name=name, type=type_, size=values.SIZES.get(type_, -1), format=kind)
        for (name, type_), kind in zip(columns, kinds, strict=True)
    ]


def _shown(result: Result) -> Sequence[tuple[str, int]] | None:
    return None if result.copy is not None else result.columns


def _with_ends(
    columns: Sequence[tuple[str, int]], rows: Sequence[list[Cell]], intervals: Mapping[str, Any]
) -> tuple[list[tuple[str, int]], list[list[Cell]]]:
    """Return columns and rows in which each column that has intervals is followed by their ends."""
    wider: list[tuple[str, int]] = []
    shown: list[list[Cell]] = [[] for _ in rows]
    for place, (name, type_) in enumerate(columns):
        wider.append((name, type_))
        for row, more in zip(rows, shown, strict=True):
            more.append(row[place])
        for end in ("low", "high") if name in intervals else ():
            wider.append((f"{name}_{end}", values.FLOAT8))
            for value, more in zip(intervals[name][end], shown, strict=True):
                more.append(None if value is None else float(value))
    return wider, shown


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
