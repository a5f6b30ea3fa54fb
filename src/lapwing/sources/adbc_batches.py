"""What doors through ADBC drivers share: rows and batches of a query, without what a driver says when it fails."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from adbc_driver_manager import dbapi

from lapwing.errors import DataFault

Meaning = Callable[[str], DataFault]
"""What an error with a code means, empty without; its text is not looked at, as it may quote a row, or an address."""


def fetched(
    cursor: dbapi.Cursor, query: str, meaning: Meaning, values: pa.RecordBatch | None = None
) -> list[tuple[Any, ...]]:
    """Return the few rows of a query, whose parameters have these values."""
    try:
        cursor.execute(query, values)
        return cursor.fetchall()
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        raise _meant(error, meaning) from None


def schema_of(cursor: dbapi.Cursor, query: str, meaning: Meaning) -> pa.Schema:
    """Return the schema of a query."""
    try:
        cursor.execute(query)
        with cursor.fetch_record_batch() as batches:
            return batches.schema
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        raise _meant(error, meaning) from None


def reader_of(
    cursor: dbapi.Cursor,
    query: str,
    texts: Mapping[str, pa.DataType],
    meaning: Meaning,
    skip: int = 0,
    values: pa.RecordBatch | None = None,
) -> pa.RecordBatchReader:
    """Return the batches of a query, whose cursor they close.

    Args:
        texts: Types of columns that come as text, by name.
        skip: Rows at the beginning that are none of the table's.
        values: Of the query's parameters.
    """
    try:
        cursor.execute(query, values)
        batches = cursor.fetch_record_batch()
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        cursor.close()
        raise _meant(error, meaning) from None
    schema = pa.schema([(field.name, texts.get(field.name, field.type)) for field in batches.schema])

    def delivered() -> Iterator[pa.RecordBatch]:
        left = skip
        try:
            for batch in batches:
                rows = batch.slice(min(left, batch.num_rows))
                left -= batch.num_rows - rows.num_rows
                columns = [column.cast(kind) for column, kind in zip(rows.columns, schema.types, strict=True)]
                yield pa.record_batch(columns, schema=schema)
        except (dbapi.Error, pa.ArrowException, OSError) as error:
            raise _meant(error, meaning) from None
        finally:
            batches.close()
            cursor.close()

    return pa.RecordBatchReader.from_batches(schema, delivered())


def row_of(values: Sequence[pa.Scalar]) -> pa.RecordBatch | None:
    """Return values of parameters as a driver takes them; None if there are none."""
    if not values:
        return None
    return pa.record_batch(
        [pa.array([value.as_py()], value.type) for value in values], list(map(str, range(len(values))))
    )


def _meant(error: Exception, meaning: Meaning) -> DataFault:
    sqlstate = (error.sqlstate or "") if isinstance(error, dbapi.Error) else ""
    return meaning(sqlstate)
