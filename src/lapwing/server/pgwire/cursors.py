"""Cursors: results that a client fetches in parts, by `DECLARE`, `FETCH` and `CLOSE`, as ODBC and psycopg2 do.

A query runs when its cursor is declared, and its result is stored until the cursor is closed.
"""

from dataclasses import dataclass, replace
from typing import Final, final

from lapwing.server.pgwire.refusals import StatementRefused
from lapwing.server.pgwire.results import StatementResult
from lapwing.server.pgwire.statements import SqlStatement, SqlToken, split

MOST_CURSORS: Final = 16
"""The number of cursors of one connection."""
MOST_CELLS: Final = 200_000
"""The number of values in the results of all cursors of one connection."""
_ALL: Final = 1 << 62
_HINT: Final = "Write DECLARE name CURSOR FOR SELECT …, and FETCH 100 FROM name."


@final
@dataclass(slots=True)
class _Cursor:
    result: StatementResult
    held: bool
    sent: int = 0


@final
class Cursors:
    """The cursors of one connection."""

    def __init__(self) -> None:
        self._open: dict[str, _Cursor] = {}

    def require_room(self, name: str) -> None:
        """Refuse a cursor that could not be opened, before its query runs.

        Raises:
            StatementRefused: If there is one of this name, or there are too many.
        """
        if name in self._open:
            raise StatementRefused("42P03", f"There is a cursor {name[:64]!r} already.")
        if len(self._open) >= MOST_CURSORS:
            raise StatementRefused("54000", f"At most {MOST_CURSORS} cursors are open at once. Close some.")

    def open(self, name: str, result: StatementResult, *, held: bool) -> None:
        """Store the result of a cursor. Without HOLD, it ends with the transaction.

        Raises:
            StatementRefused: If the results of all cursors would be too large.
        """
        stored = [result, *(cursor.result for cursor in self._open.values())]
        cells = sum(len(one.rows) * len(one.columns or ()) for one in stored)
        if cells > MOST_CELLS:
            reason = f"The cursors of a connection hold at most {MOST_CELLS:,} values."
            raise StatementRefused(
                "54000", reason, "Close some, or send the query without a cursor: its result is stored."
            )
        self._open[name] = _Cursor(result, held)

    def result(self, name: str) -> StatementResult:
        """Return the result of a cursor.

        Raises:
            StatementRefused: If there is none.
        """
        return self._of(name).result

    def portal(self, name: str) -> StatementResult:
        """Return the result of a cursor that a client describes like a portal.

        Raises:
            StatementRefused: If there is neither a portal nor a cursor of this name.
        """
        if name not in self._open:
            raise StatementRefused("34000", f"There is no portal {name[:64]!r}.")
        return self._open[name].result

    def fetch(self, name: str, most: int) -> StatementResult:
        """Return the next rows of a cursor.

        Raises:
            StatementRefused: If there is none.
        """
        cursor = self._of(name)
        rows = cursor.result.rows[cursor.sent : cursor.sent + most]
        cursor.sent += len(rows)
        return replace(cursor.result, tag=f"FETCH {len(rows)}", rows=rows, notices=())

    def close(self, name: str) -> None:
        """Forget a cursor.

        Raises:
            StatementRefused: If there is none.
        """
        self._of(name)
        del self._open[name]

    def close_all(self) -> None:
        """Forget all cursors."""
        self._open.clear()

    def end_transaction(self) -> None:
        """Forget the cursors without HOLD."""
        self._open = {name: cursor for name, cursor in self._open.items() if cursor.held}

    def _of(self, name: str) -> _Cursor:
        if name not in self._open:
            raise StatementRefused("34000", f"There is no cursor {name[:64]!r}.")
        return self._open[name]


def declared(statement: SqlStatement) -> tuple[str, SqlStatement, bool]:
    """Return the name and the query of a `DECLARE`, and whether the cursor outlives its transaction.

    Raises:
        StatementRefused: If it is none.
    """
    tokens = statement.tokens
    place = next((place for place, token in enumerate(tokens) if token.kind == "word" and token.text == "FOR"), 0)
    words = [token.text for token in tokens[2:place]]
    if "CURSOR" not in words:
        raise StatementRefused("42601", "This declares no cursor.", _HINT)
    queries = split(statement.text[tokens[place].end - statement.start :])
    if len(queries) != 1:
        raise StatementRefused("42601", "A cursor has one query.", _HINT)
    (query,) = queries
    return _name(tokens[1]), replace(query, start=tokens[place].end + query.start), words[-2:] == ["WITH", "HOLD"]


def fetched(statement: SqlStatement) -> tuple[str, int]:
    """Return the name of the cursor of a `FETCH`, and the most rows that it wants.

    Raises:
        StatementRefused: If it wants others than the next ones.
    """
    words = [word for word in statement.words[1:-1] if word not in ("FROM", "IN", "FORWARD")]
    name = _name(statement.tokens[-1])
    match words:
        case [] | ["NEXT"]:
            return name, 1
        case ["ALL"]:
            return name, _ALL
        case [number] if number.isdecimal():
            return name, int(number[:18])
        case _:
            raise StatementRefused("0A000", "A cursor goes forward only.", _HINT)


def closed(statement: SqlStatement) -> str | None:
    """Return the name of the cursor of a `CLOSE`; None for all."""
    token = statement.tokens[-1]
    return None if token.kind == "word" and token.text == "ALL" else _name(token)


def _name(token: SqlToken) -> str:
    return token.text if token.kind == "quoted" else token.text.lower()
