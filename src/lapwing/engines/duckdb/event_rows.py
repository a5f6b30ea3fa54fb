"""Events in new files, one by one: cleaned as the rows of every table are (`cleaned`), and not added up yet.

What is read of an event is a function of that event alone, and nothing raises on its values.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np

from lapwing.catalog.model import Table
from lapwing.catalog.source_address import is_address
from lapwing.engines.duckdb.cleaned import clean, unit_value
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.expressions import expression, key_value, listed, where_clause
from lapwing.engines.duckdb.files import folders_read
from lapwing.engines.duckdb.literals import clamp, identifier, text, unit_name, whole
from lapwing.engines.duckdb.source_reading import located
from lapwing.engines.duckdb.stamps import readable
from lapwing.engines.event_rows import EventQuestion, EventRows
from lapwing.query.expressions.conversion import in_calendar
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.types import Fixed, Plain
from lapwing.query.measures.measures import Key

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY: Final = 1_000_000_000
SECONDS: Final = 600.0


@final
class DuckDBEvents:
    """Reads the events of one table that meet a question's condition.

    Args:
        folder: That the table's source is relative to.
    """

    def __init__(self, table: Table, question: EventQuestion, folder: Path) -> None:
        self._table, self._question = table, question
        # What comes from databases and services is put into the private folder, and read there.
        sources = [] if is_address(table.source) else [(folder.absolute() / table.source).resolve()]
        self._database = Database(
            paths=[*map(str, sources)], folders=folders_read(sources), memory=MEMORY, threads=0, seconds=SECONDS
        )

    @property
    def scratch(self) -> Path:
        """A private folder, which goes when this is closed."""
        return Path(self._database.scratch)

    def read(self, file: Path) -> EventRows:
        """Return the events in a file, in any order."""
        table = self._table
        with readable(file, table):
            unit = [] if table.unit_is_row else [table.unit_column]
            _, source, _ = located(file, table, self._database, *unit)
            return self._database.columns(self._sql(source.relation, source.types), self._taken)

    def _sql(self, relation: str, types: Mapping[str, str]) -> str:
        table, question, unit = self._table, self._question, unit_name(self._table)
        whose = "uuid()" if table.unit_is_row else unit_value(table, types[table.unit_column])
        columns = [f"{clean(column, types[column.name])} AS {identifier(column.name)}" for column in table.columns]
        cleaned = f"SELECT {', '.join([f'{whose} AS {unit}', *columns])} FROM {relation} WHERE {whose} IS NOT NULL"
        # A time outside of the calendar is that of no tick. Infinity has no number of microseconds: it would be NULL.
        time = ColumnReference(name=question.time, type=Plain(name="timestamp"))
        conditions = [f"{expression(in_calendar(time))} IS NOT NULL"]
        if not question.unlisted:
            conditions += [listed(key) for key in question.keys if key.other is None]
        asked = [
            f"CAST({unit} AS VARCHAR) AS unit",
            f"epoch_us({identifier(question.time)}) AS time",
            *(f"{key_value(key)} AS key{place}" for place, key in enumerate(question.keys)),
            *(f"{_value(*v)} AS value{place}" for place, v in enumerate(question.values) if v is not None),
        ]
        places = [f"COALESCE(places{place}.place, -1) AS key{place}" for place in range(len(question.keys))]
        values = [f"value{place}" for place, value in enumerate(question.values) if value is not None]
        joins = [
            f" LEFT JOIN {_places(key)} AS places{place} ON places{place}.value = asked.key{place}"
            for place, key in enumerate(question.keys)
        ]
        return (
            f"WITH cleaned AS ({cleaned}), asked AS (SELECT {', '.join(asked)} FROM cleaned"
            f"{where_clause(question.where, conditions)}) "
            f"SELECT {', '.join(['unit', 'time', *places, *values])} FROM asked{''.join(joins)}"
        )

    def _taken(self, reader: "pa.RecordBatchReader") -> EventRows:
        table = reader.read_all()
        units = table.column(0).combine_chunks().dictionary_encode()
        numbers = [np.asarray(column.to_numpy(), dtype=np.int64) for column in table.columns[1 : 2 + len(self._keys)]]
        columns = iter(table.columns[2 + len(self._keys) :])
        values = []
        for value in self._question.values:
            if value is None:
                values.append((np.ones(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.bool_)))
            else:
                column = next(columns)
                null = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
                values.append((np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64), null))
        return EventRows(
            units=units.dictionary.to_pylist(),
            unit=np.asarray(units.indices.to_numpy(), dtype=np.int64),
            time=numbers[0],
            keys=tuple(numbers[1:]),
            values=tuple(values),
        )

    @property
    def _keys(self) -> tuple[Key, ...]:
        return self._question.keys

    def close(self) -> None:
        """Close the database and remove its folder."""
        self._database.close()


def _places(key: Key) -> str:
    """Return a relation of the values of a key, each with its place in the key's domain."""
    values = [expression(Literal(value=value, type=key.expression.type)) for value in key.values or ()]
    domain = ", ".join(values if key.other is None else [*values, text(key.other)])
    return f"(SELECT unnest([{domain}]) AS value, unnest(range({len(key.domain)})) AS place)"


def _value(value: Expression, origin: int | None) -> str:
    """Return what an event adds where it is not NULL: steps from the origin, or 1 of what is only counted."""
    printed = expression(value)
    if origin is None or not isinstance(value.type, Fixed):
        return f"CASE WHEN {printed} IS NOT NULL THEN 1::BIGINT END"
    low, high = value.type.low or 0, value.type.high or 0  # a sum's are known (`Sum.row_range`)
    if not isinstance(value, ColumnReference):  # doubles inside may stray past a proven bound by a rounding
        printed = f"CASE WHEN {printed} IS NULL THEN NULL ELSE {clamp(printed, low, high)} END"
    return f"CAST({printed} - {whole(origin)} AS BIGINT)"
