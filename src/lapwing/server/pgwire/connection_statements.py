"""Statements about the connection: its settings, its transaction, and what a client asks of its server.

Nothing can be written, so transactions change nothing. Only their state is tracked, because clients look at it.
"""

from collections.abc import Sequence
from typing import Final, final

from lapwing.answer.python_values import Cell
from lapwing.server.pgwire import values
from lapwing.server.pgwire.cursors import Cursors, closed, fetched
from lapwing.server.pgwire.protocol import Protocol
from lapwing.server.pgwire.refusals import StatementRefused
from lapwing.server.pgwire.results import Portal, Prepared, StatementResult
from lapwing.server.pgwire.settings import VERSION_TEXT, ConnectionSettings, name_of
from lapwing.server.pgwire.statements import SqlStatement

Wire = Protocol[Prepared, Portal]
MOST_SAVEPOINTS: Final = 64
MOST_NAME: Final = 63
"""Bytes of the name of a savepoint."""
_FACTS: Final = frozenset(
    {("1",), ("CURRENT_SCHEMA",), ("CURRENT_USER",), ("SESSION_USER",), ("USER",)}
    | {(name, "(", ")") for name in ("VERSION", "CURRENT_DATABASE", "CURRENT_SCHEMA", "PG_BACKEND_PID")}
)
_QUERY: Final = frozenset({"SELECT", "WITH", "FROM", "EXPLAIN", "VALUES", "TABLE", "("})


@final
class ConnectionStatements:
    """Carries out the statements about one connection."""

    def __init__(self, wire: Wire, settings: ConnectionSettings, person: str, dataset: str) -> None:
        self._wire, self._settings, self._person, self._dataset = wire, settings, person, dataset
        self._savepoints: list[str] = []
        self.cursors = Cursors()

    def columns(self, statement: SqlStatement) -> Sequence[tuple[str, int]] | None:
        """Return the columns of the result of a statement; None if it has none."""
        match statement.words:
            case ("SHOW", "ALL", *_):
                return [("name", values.TEXT_TYPE), ("setting", values.TEXT_TYPE)]
            case ("FETCH", *_):
                return self.cursors.result(fetched(statement)[0]).columns
            case ("SHOW", *words):
                return [(name_of(words), values.TEXT_TYPE)]
            case ("SELECT", *_):
                return self.carry_out(statement).columns
            case _:
                return None

    def carry_out(self, statement: SqlStatement) -> StatementResult:
        """Carry out a statement about the connection."""
        words = statement.words
        match words:
            case ("SELECT", *_):
                name, type_, value = self._facts(words)
                return StatementResult(tag="SELECT 1", columns=[(name, type_)], rows=[(value,)])
            case ("SHOW", *rest):
                return self._show(rest)
            case ("BEGIN", *_) | ("START", "TRANSACTION", *_):
                self._wire.transaction = "T"
                return StatementResult(tag="BEGIN" if words[0] == "BEGIN" else "START TRANSACTION")
            case ("ROLLBACK", *rest) if "TO" in rest[:3]:
                return self._roll_back_to(rest[-1])
            case ("COMMIT" | "END" | "ROLLBACK" | "ABORT", *_):
                kept = words[0] in ("COMMIT", "END") and self._wire.transaction != "E"
                self._wire.transaction, self._savepoints = "I", []
                self._wire.end_portals()
                self.cursors.end_transaction()
                return StatementResult(tag="COMMIT" if kept else "ROLLBACK")
            case ("SAVEPOINT", name):
                if self._wire.transaction == "I" or len(self._savepoints) >= MOST_SAVEPOINTS:
                    raise StatementRefused(
                        "25P01", f"Savepoints stand in transactions, at most {MOST_SAVEPOINTS} in one."
                    )
                if len(name.encode()) > MOST_NAME:
                    raise StatementRefused("42622", f"The name of a savepoint has at most {MOST_NAME} bytes.")
                self._savepoints.append(name)
                return StatementResult(tag="SAVEPOINT")
            case ("RELEASE", *rest) if rest and rest[-1] in self._savepoints:
                del self._savepoints[self._savepoints.index(rest[-1]) :]
                return StatementResult(tag="RELEASE")
            case ("SET", "TRANSACTION" | "CONSTRAINTS", *_) | ("SET", "SESSION", "CHARACTERISTICS", *_):
                return StatementResult(tag="SET")
            case ("SET", *rest):
                self._settings.set(rest)
                return StatementResult(tag="SET")
            case ("RESET", "ALL"):
                self._settings.reset_all()
                return StatementResult(tag="RESET")
            case ("RESET", *rest) if rest:
                self._settings.reset(rest)
                return StatementResult(tag="RESET")
            case ("DISCARD", what):
                if what == "ALL":
                    self._settings.reset_all()
                    self._wire.end_portals()
                    self._wire.end_statements()
                    self.cursors.close_all()
                return StatementResult(tag=f"DISCARD {what}")
            case ("DEALLOCATE", *rest) if rest:
                return self._deallocate(statement)
            case ("FETCH", _, *_):
                return self.cursors.fetch(*fetched(statement))
            case ("CLOSE", _):
                return self._close(closed(statement))
            case ("LISTEN" | "UNLISTEN", *_):
                return StatementResult(tag=words[0])
            case _:
                raise StatementRefused(
                    "0A000", "This server answers queries, and nothing can be written.", "Send a SELECT."
                )

    def _close(self, name: str | None) -> StatementResult:
        if name is None:
            self.cursors.close_all()
            return StatementResult(tag="CLOSE CURSOR ALL")
        self.cursors.close(name)
        return StatementResult(tag="CLOSE CURSOR")

    def _deallocate(self, statement: SqlStatement) -> StatementResult:
        token = statement.tokens[-1]
        name = token.text if token.kind == "quoted" else token.text.lower()
        if not self._wire.end_statements(None if token.text == "ALL" else name):
            raise StatementRefused("26000", f"There is no prepared statement {name[:64]!r}.")
        return StatementResult(tag="DEALLOCATE ALL" if token.text == "ALL" else "DEALLOCATE")

    def _roll_back_to(self, name: str) -> StatementResult:
        if name not in self._savepoints:
            raise StatementRefused("3B001", "There is no such savepoint.")
        del self._savepoints[self._savepoints.index(name) + 1 :]
        self._wire.transaction = "T"
        return StatementResult(tag="ROLLBACK")

    def _show(self, words: Sequence[str]) -> StatementResult:
        if words and words[0] == "ALL":
            pairs = sorted(self._settings.all().items())
            columns = [("name", values.TEXT_TYPE), ("setting", values.TEXT_TYPE)]
            return StatementResult(tag="SHOW", columns=columns, rows=pairs)
        name, value = self._settings.get(words)
        return StatementResult(tag="SHOW", columns=[(name, values.TEXT_TYPE)], rows=[(value,)])

    def _facts(self, words: Sequence[str]) -> tuple[str, int, Cell]:
        facts: dict[tuple[str, ...], tuple[str, int, Cell]] = {
            ("1",): ("?column?", values.INT4, 1),
            ("VERSION", "(", ")"): ("version", values.TEXT_TYPE, VERSION_TEXT),
            ("CURRENT_DATABASE", "(", ")"): ("current_database", values.TEXT_TYPE, self._dataset),
            ("CURRENT_SCHEMA", "(", ")"): ("current_schema", values.TEXT_TYPE, "public"),
            ("CURRENT_SCHEMA",): ("current_schema", values.TEXT_TYPE, "public"),
            ("CURRENT_USER",): ("current_user", values.TEXT_TYPE, self._person),
            ("SESSION_USER",): ("session_user", values.TEXT_TYPE, self._person),
            ("USER",): ("user", values.TEXT_TYPE, self._person),
            ("PG_BACKEND_PID", "(", ")"): ("pg_backend_pid", values.INT4, self._wire.process),
        }
        return facts[_fact_of(words)]


def _fact_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return which expression a `SELECT` of nothing else has."""
    rest = tuple(words[1:])
    return rest[2:] if rest[:2] == ("PG_CATALOG", ".") else rest


def is_query(statement: SqlStatement) -> bool:
    """Tell whether a statement is a query, and not one about the connection."""
    words = statement.words
    return words[0] in _QUERY and not (words[0] == "SELECT" and _fact_of(words) in _FACTS)
