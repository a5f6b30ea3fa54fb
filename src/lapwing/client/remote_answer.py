"""Answers that a server keeps, with everything that follows from them for free; and questions that wait for theirs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Literal, final
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from lapwing.answer.chart import bars
from lapwing.answer.column_facts import ColumnFacts
from lapwing.answer.frames import pandas_frame, polars_frame
from lapwing.answer.key_texts import texts_of
from lapwing.answer.presentation import EndArray, caption, cost_in_words, ends_shown, html_table
from lapwing.answer.python_values import Cell
from lapwing.answer.text_table import text_table
from lapwing.answer.truncated_times import TRUNCATED, rows_to_read
from lapwing.client.transport import ServerConnection, error_of
from lapwing.documents.answer_document import facts_of, notes_in, value_of
from lapwing.documents.described_answer import DescribedAnswer
from lapwing.errors import InvalidParameter, ServiceFault
from lapwing.plots import Plot
from lapwing.privacy.amounts import Number, exact, probability, written
from lapwing.privacy.measures import Loss, from_record
from lapwing.query.derivation.columns import NUMERIC

USUAL_CONFIDENCE: Final = Fraction(95, 100)
Status = Literal["waiting", "running", "done", "failed", "cancelled"]
SOON, LATER = 0.05, 2.0
"""Seconds between two looks at a question: at first, and at most."""
UNDER_WAY: Final = ("waiting", "running")


@final
class RemoteAnswer:
    """A noisy table that a server keeps: what `Answer` says of itself, and `id`, by which it is opened again.

    `delayed` says that the answer left later than it should, by the service's count (`docs/theory/deadlines.md`).
    `keys` are its columns without noise. `key_columns` says which declared column each of these is.
    `unit_columns` says the same of numbers that have the unit of a declared column.
    `truncated` has the unit of each key that is the beginning of one, such as a month.
    `dataset` is the document of its data set, for titles and labels in charts.
    """

    def __init__(
        self,
        connection: ServerConnection,
        document: Mapping[str, Any],
        delta: Fraction | None = None,
        dataset: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = connection
        self._delta = delta
        self._dataset = dataset
        self.id: str = document["id"]
        self.columns: tuple[str, ...] = tuple(document["columns"])
        self.cost: Loss = from_record(document["cost"])
        self.stored: bool = document["stored"]
        self.delayed: bool = document.get("delayed", False)
        self.notes: tuple[str, ...] = notes_in(document)
        self.types: Mapping[str, str] = document["types"]
        self._rows: list[dict[str, Any]] = document["rows"]
        self.keys: tuple[str, ...] = tuple(document.get("keys", ()))
        self.key_columns: Mapping[str, Mapping[str, str]] = document.get("key_columns") or {}
        self.unit_columns: Mapping[str, Mapping[str, str]] = document.get("unit_columns") or {}
        self.truncated: Mapping[str, str] = document.get(TRUNCATED) or {}
        self._facts: Sequence[Mapping[str, Any]] | None = document.get("facts")
        self._opened = exact(document["confidence"], "confidence")
        self._intervals = {self._opened: self._read(document["intervals"])}
        self._populations: dict[str, dict[str, tuple[EndArray, EndArray]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<RemoteAnswer: {len(self)} rows of {', '.join(self.columns)}; {cost_in_words(self, self._delta)}>"

    def __str__(self) -> str:
        level = self._opened
        return text_table(
            self.columns, rows_to_read(self), self.interval(level), caption=caption(self, level, self._delta)
        )

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows())

    def __getitem__(self, place: int) -> dict[str, Cell]:
        return self.rows()[place]

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows` does."""
        return _typed(self._rows, self.types)

    def interval(
        self, confidence: Number = USUAL_CONFIDENCE, *, of: str = "data", sampling: int | str | None = None
    ) -> dict[str, tuple[EndArray, EndArray]]:
        """Return the ends of intervals, as `Answer.interval` does.

        For another confidence than the answer was opened with, and for the population, the server computes them anew,
        free. The server cannot do this once the data or the catalog have changed.

        Raises:
            DataChanged: If the data are another version.
            InvalidParameter: If a value is not allowed.
        """
        level = probability(confidence, "confidence")
        if of != "data" or sampling is not None:
            return self._of_population(level, of, sampling)
        if level not in self._intervals:
            document = self._connection.get(f"/v1/answers/{self.id}?confidence={quote(written(level))}")
            self._intervals[level] = self._read(document["intervals"])
        return self._intervals[level]

    def _of_population(
        self, level: Fraction, of: str, sampling: int | str | None
    ) -> dict[str, tuple[EndArray, EndArray]]:
        if of != "population":
            raise InvalidParameter(f"of is {of!r:.40}; it must be data or population, and sampling needs population.")
        drawn = "" if sampling is None else f"&sampling={quote(str(sampling), safe='')}"
        path = f"/v1/answers/{self.id}?confidence={quote(written(level))}&of=population{drawn}"
        if path not in self._populations:
            ends = self._connection.get(path)["intervals"]
            # Of what is expected of a whole number the ends are any numbers.
            kinds = {name: "real" if self.types[name] == "integer" else self.types[name] for name in ends}
            self._populations[path] = {name: _ends(ends[name], kinds[name]) for name in ends}
        return self._populations[path]

    def to_arrow(self, confidence: Number | None = None) -> pa.Table:
        """Return a PyArrow table; with a confidence, also `<column>_low` and `<column>_high`."""
        path = f"/v1/answers/{self.id}"
        if confidence is not None and (level := probability(confidence, "confidence")) != self._opened:
            path += f"?confidence={quote(written(level))}"
        table = _table(self._connection, path)
        if confidence is not None:
            return table
        noisy = self._intervals[self._opened]
        return table.drop_columns([f"{name}_{end}" for name in noisy for end in ("low", "high")])

    def to_pandas(self, confidence: Number | None = None) -> Any:
        """Return a pandas DataFrame of `to_arrow`, if pandas is installed."""
        return pandas_frame(self.to_arrow(confidence))

    def to_polars(self, confidence: Number | None = None) -> Any:
        """Return a polars DataFrame of `to_arrow`, if polars is installed."""
        return polars_frame(self.to_arrow(confidence))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the answer to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def consistent(self) -> "RemoteConsistentAnswer":
        """Return the same rows with numbers that can be true together, as `Answer.consistent` does.

        The server computes them from what it released, for nothing; it cannot once data or catalog have changed.

        Raises:
            DataChanged: If the data are another version.
        """
        return RemoteConsistentAnswer(self._connection, f"/v1/answers/{self.id}/consistent")

    def describe(self) -> tuple[ColumnFacts, ...]:
        """Return what is public about each column, as `Answer.describe` does.

        Raises:
            ServiceFault: If the server that stored the answer did not write its description down.
        """
        if self._facts is None:
            raise ServiceFault(
                "The server has only the numbers of this result. Run the query again for the rest; it is free."
            )
        return facts_of(self._facts)

    def plot(self, column: str | None = None, *, confidence: Number = USUAL_CONFIDENCE) -> Plot:
        """Return a bar chart with intervals of one noisy column of numbers, as `Answer.plot` does."""
        intervals = {name: ends for name, ends in self.interval(confidence).items() if self.types[name] in NUMERIC}
        declared = {"key_columns": self.key_columns, "unit_columns": self.unit_columns}
        texts = {} if self._dataset is None else texts_of(declared, self._dataset)
        told = DescribedAnswer(self, self.keys, texts)
        rows, titles = told.labelled_rows(), told.titles
        facts = () if self._facts is None else self.describe()
        return bars(rows, intervals, keys=self.keys, column=column, confidence=confidence, titles=titles, facts=facts)

    def _read(self, intervals: Mapping[str, Mapping[str, Sequence[object]]]) -> dict[str, tuple[EndArray, EndArray]]:
        return {name: _ends(ends, self.types[name]) for name, ends in intervals.items()}

    def _repr_html_(self) -> str:
        ends = self._intervals[self._opened]
        return html_table(self.columns, rows_to_read(self), ends, caption=caption(self, self._opened, self._delta))


@final
class RemoteConsistentAnswer:
    """The rows of an answer, adjusted so that they can be true together, as `ConsistentAnswer` has them.

    `changed` names the columns of which some number differs from the raw answer.
    """

    def __init__(self, connection: ServerConnection, path: str) -> None:
        document = connection.get(path)
        self._connection, self._path = connection, path
        self._types: Mapping[str, str] = document["types"]
        self._rows: list[dict[str, Any]] = document["rows"]
        self.columns: tuple[str, ...] = tuple(document["columns"])
        self.changed: tuple[str, ...] = tuple(document["changed"])

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<RemoteConsistentAnswer: {len(self)} rows; changed {', '.join(self.changed) or 'nothing'}>"

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows` does."""
        return _typed(self._rows, self._types)

    def to_arrow(self) -> pa.Table:
        """Return a PyArrow table."""
        return _table(self._connection, self._path)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of `to_arrow`, if pandas is installed."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """Return a polars DataFrame of `to_arrow`, if polars is installed."""
        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the view to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


@final
class Pending:
    """A question that was submitted to a server.

    Anyone who knows its `id` can open it again with `RemoteSession.pending`.
    """

    def __init__(
        self,
        connection: ServerConnection,
        document: Mapping[str, Any],
        delta: Fraction | None = None,
        dataset: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection, self._document, self._delta, self._dataset = connection, document, delta, dataset
        self.id: str = document["id"]

    def __repr__(self) -> str:
        return f"<Pending: {self.id}, {self._document['status']}>"

    @property
    def _path(self) -> str:
        return f"/v1/queries/{self.id}"

    def status(self) -> Status:
        """Ask the server where the question is: "waiting", "running", "done", "failed" or "cancelled"."""
        self._document = self._connection.get(self._path)
        status: Status = self._document["status"]
        return status

    def cancel(self) -> Status:
        """Drop the question if it waits, which costs nothing; stop it if it runs, which was charged.

        Returns:
            Where it is now; "running" if it has yet to stop. A question that has ended stays as it ended.
        """
        self._document = self._connection.delete(self._path)
        status: Status = self._document["status"]
        return status

    def wait(self, seconds: float | None = None) -> RemoteAnswer:
        """Wait until the question has ended, and return its answer.

        Args:
            seconds: To wait at most.

        Raises:
            LapwingError: The error that ended the question, as in `RemoteSession.sql`.
            Interrupted: If it was cancelled, which says whether it was charged.
            ServiceFault: If it takes longer: it goes on.
        """
        until, pause = None if seconds is None else time.monotonic() + seconds, SOON
        while self.status() in UNDER_WAY:
            left = LATER if until is None else until - time.monotonic()
            if left <= 0:
                raise ServiceFault(f"The query has not ended within {seconds:g} seconds; it continues.")
            time.sleep(min(pause, left))
            pause = min(2 * pause, LATER)
        if self._document["status"] == "done":
            document = self._connection.get(f"/v1/answers/{self._document['answer']}")
            return RemoteAnswer(self._connection, document, self._delta, self._dataset)
        raise error_of(self._document["problem"])


def _ends(ends: Mapping[str, Sequence[object]], type_: str) -> tuple[EndArray, EndArray]:
    """Return the ends of the intervals of a column of a type."""
    kind = {"date": "datetime64[D]", "timestamp": "datetime64[us]"}.get(type_, "float64")
    unknown = np.nan if kind == "float64" else "NaT"
    low, high = (np.array([unknown if x is None else x for x in ends[end]], dtype=kind) for end in ("low", "high"))
    return (ends_shown(low, "integer"), ends_shown(high, "integer")) if type_ == "integer" else (low, high)


def _typed(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> list[dict[str, Cell]]:
    """Return rows with values of their columns' types."""
    return [{name: value_of(row[name], types[name]) for name in row} for row in rows]


def _table(connection: ServerConnection, path: str) -> pa.Table:
    with pa.ipc.open_stream(connection.stream(path)) as reader:
        return reader.read_all()
