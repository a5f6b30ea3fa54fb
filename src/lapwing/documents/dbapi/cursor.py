"""A cursor of PEP 249: it runs a query, and gives the rows of its result one after another.

Theory of operation. A text and the values of its parameters go to `sql` of a session, unchanged and apart from each
other. The parser reads the text first, and then each value becomes one literal of the tree that it made. So no value is
ever read as SQL. A cursor can ask for nothing that its session cannot: it has the same rights, prices and refusals.

A result is released numbers. Reading them in rows, again or in part, costs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, final

from typing_extensions import Unpack

from lapwing.answer.column_facts import ColumnFacts
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.documents.answer_document import AnswerShown
from lapwing.documents.dbapi.exceptions import InterfaceError, NotSupportedError, as_database_errors
from lapwing.documents.dbapi.options import Options, QueryOptions
from lapwing.errors import LapwingError
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.text.parameters import Parameters

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.documents.dbapi.connection import Connection

Row: TypeAlias = tuple[Cell, ...]
Described: TypeAlias = tuple[str, str, None, None, None, None, bool]
"""A column: name, type, display size, internal size, precision, scale, and whether it may be NULL."""


class Result(AnswerShown, Protocol):
    """An answer, as far as a cursor reads it."""

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column."""

    def interval(self, confidence: Number = ..., /) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for each noisy column."""

    def describe(self) -> tuple[ColumnFacts, ...]:
        """Return what is public about each column."""

    def to_arrow(self, confidence: Number | None = None, /) -> "pa.Table":
        """Return a table, with a confidence also the ends of intervals."""

    def to_pandas(self, confidence: Number | None = None, /) -> Any:
        """Return a frame of pandas."""


@final
class Cursor:
    """One query at a time, and its rows. Made by `Connection.cursor`, or by `cursor` of a session; for one thread.

    Beside what PEP 249 says, `answer` is the whole result, from which `cost`, `stored`, `notes`, `intervals` and
    `half_widths` are read.
    """

    def __init__(self, connection: "Connection", options: QueryOptions) -> None:
        self.connection: Final = connection
        self.options = options
        self.arraysize = 1
        self.lastrowid: Final = None
        self.description: tuple[Described, ...] | None = None
        self.rowcount = -1
        self._closed = False
        self._result: Result | None = None
        self._confidence = Fraction(0)
        self._rows: Sequence[Row] = ()
        self._place = 0

    # ---- asking ------------------------------------------------------------------------------------------------------

    def execute(self, operation: str, parameters: Parameters | None = None, **options: Unpack[Options]) -> Self:
        """Run a query, charge it, and return this cursor; the same query again is free.

        Args:
            parameters: A sequence of values for `?`, or a mapping for `:name` or `$name`.
            options: For this query, in the place of the cursor's; see `QueryOptions`.

        Guarantee:
            As `Session.sql`.

        Raises:
            Error: An exception of PEP 249, whose `charged` says whether the query was charged.
        """
        self._require_open()
        self._forget()
        wanted = self.options.with_options(**options)
        with as_database_errors():
            level = probability(wanted.confidence, "confidence")  # before anything is charged
            result = self.connection.session.sql(
                operation,
                () if parameters is None else parameters,
                epsilon=wanted.epsilon,
                error=wanted.error,
                delta=wanted.delta,
                label=wanted.label,
                assuming_count=wanted.assuming_count,
            )
            try:
                self._show(result, level, intervals=wanted.intervals)
            except LapwingError as error:  # a service computes other intervals in a request of their own
                error.charged = not result.stored
                raise
        return self

    def executemany(self, operation: str, parameters: Sequence[Parameters]) -> None:
        """Refuse: each set of values would be a query with a cost of its own.

        Raises:
            NotSupportedError: Always. Nothing was charged.
        """
        raise NotSupportedError(
            "executemany would charge a query for every set of values. Call execute for each, or batch of the session."
        )

    def _show(self, result: Result, level: Fraction, *, intervals: bool) -> None:
        self._result, self._confidence = result, level
        types = result.types
        columns = [(name, types[name], [row[name] for row in result.rows()]) for name in result.columns]
        if intervals:
            columns = _with_ends(columns, result.interval(level))
        self.description = tuple((name, type_, None, None, None, None, True) for name, type_, _ in columns)
        self._rows = list(zip(*(values for _, _, values in columns), strict=True))
        self.rowcount, self._place = len(self._rows), 0

    def _forget(self) -> None:
        self._result, self.description, self._rows, self.rowcount, self._place = None, None, (), -1, 0

    # ---- rows --------------------------------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last."""
        rows = self._taken(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows.

        Args:
            size: The number of rows; `arraysize` unless given.
        """
        return self._taken(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""
        return self._taken(len(self._rows))

    def _taken(self, size: int) -> list[Row]:
        self._require_result()
        if size < 0:
            raise InterfaceError(f"The number of rows is {size}; it must be 0 or more.")
        rows = [*self._rows[self._place : self._place + size]]
        self._place += len(rows)
        return rows

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    @property
    def rownumber(self) -> int | None:
        """The place of the next row, from 0; None without a result."""
        return None if self._result is None else self._place

    # ---- the result --------------------------------------------------------------------------------------------------

    @property
    def answer(self) -> Result:
        """The whole result: an `Answer`, or a `RemoteAnswer` of a service."""
        return self._require_result()

    @property
    def cost(self) -> Loss:
        """The charge for this execution; zero if the result was bought before."""
        return self._require_result().cost

    @property
    def stored(self) -> bool:
        """Whether the result was bought before."""
        return self._require_result().stored

    @property
    def notes(self) -> tuple[str, ...]:
        """Public facts that a reader of the result should know."""
        return self._require_result().notes

    @property
    def intervals(self) -> dict[str, list[tuple[Cell, Cell]]]:
        """For each column with noise, the ends of its interval in each row; None where none follows."""
        result = self._require_result()
        with as_database_errors():
            ends = result.interval(self._confidence)
        return {name: list(zip(*map(_values, pair), strict=True)) for name, pair in ends.items()}

    @property
    def half_widths(self) -> dict[str, float]:
        """The half-width of the 95 % interval (±) of each column where it is the same in every row."""
        result = self._require_result()
        with as_database_errors():
            facts = result.describe()
        return {column.name: column.half_width for column in facts if column.half_width is not None}

    # ---- the cursor --------------------------------------------------------------------------------------------------

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing: a parameter has the type of its value."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Do nothing: no column is cut."""

    def close(self) -> None:
        """Let go of the result; the cursor runs nothing any more."""
        self._closed = True
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise InterfaceError("This cursor is closed; make another. Nothing was charged.")
        self.connection.require_open()

    def _require_result(self) -> Result:
        self._require_open()
        if self._result is None:
            raise InterfaceError("There is no result: call execute first.")
        return self._result


# ---- the ends of intervals -------------------------------------------------------------------------------------------

_Columns: TypeAlias = list[tuple[str, str, list[Cell]]]


def _with_ends(columns: _Columns, intervals: Mapping[str, tuple[EndArray, EndArray]]) -> _Columns:
    """Return columns of which each with noise is followed by the ends of its interval; those of numbers are doubles."""
    wider: _Columns = []
    for name, type_, values in columns:
        wider.append((name, type_, values))
        for suffix, ends in zip(("low", "high"), intervals.get(name, ()), strict=False):
            number = type_ in NUMERIC
            shown = [float(end) if number and isinstance(end, int) else end for end in _values(ends)]
            wider.append((f"{name}_{suffix}", "real" if number else type_, shown))
    return wider


def _values(ends: EndArray) -> list[Cell]:
    """Return the ends of intervals as values of Python, None where none is known."""
    return [None if end != end else end for end in ends.tolist()]  # NaN alone differs from itself
