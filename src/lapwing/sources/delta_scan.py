"""Delta tables whose files are not all that says which rows and columns they have, as `deltalake` itself reads them.

A row whose position a deletion vector names is not delivered. A column that is mapped is looked for in the files under
the name or the number that the table gives it. How many rows come is compared with what the log says: its number of
rows in all files less the number of deleted positions.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.errors import DataFault


@final
class DeltaScan:
    """A version of a table. It names no additions, because a row that is still in its file may be deleted.

    Args:
        fault: The error for a table that cannot be read. The texts of the client are never shown.
    """

    holds_several = False

    def __init__(self, table: DeltaTable, fault: "DataFault") -> None:
        self.version = str(table.version())
        self._table, self._fault = table, fault

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of the version."""
        return columns_of_arrow(self._schema())

    def mark(self, table: Names) -> str | None:
        """Return the version."""
        return self.version

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return None: all rows are read."""
        return None

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the log says that there are, or count them where it says nothing."""
        try:
            counts: list[int | None] = pa.table(self._table.get_add_actions()).column("num_records").to_pylist()
            kept: pa.ChunkedArray = pc.list_flatten(pa.table(self._table.deletion_vectors()).column("selection_vector"))
            known = [count for count in counts if count is not None]
            if len(known) == len(counts):
                return int(sum(known) - len(kept) + (pc.sum(kept).as_py() or 0))
            return int(sum(batch.num_rows for batch in self._scan(self._schema().names[:1])))
        except Exception:
            raise self._fault from None

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns of all rows that are not deleted. Conditions are applied later."""
        parts = [self._table.metadata().partition_columns.count(name) > 0 for name in columns]
        schema = pa.schema([self._schema().field(name) for name in columns])

        def delivered() -> Iterator[pa.RecordBatch]:
            try:
                for batch in self._scan(columns):
                    values = [
                        _part(batch.column(name), schema.field(name).type, part)
                        for name, part in zip(columns, parts, strict=True)
                    ]
                    yield pa.record_batch(values, schema=schema)
            except Exception:
                raise self._fault from None

        return pa.RecordBatchReader.from_batches(schema, delivered())

    def _scan(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._table.scan(columns=list(columns)))

    def _schema(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())


def _part(values: Any, kind: pa.DataType, part: bool) -> pa.Array:
    """Return values as the table's schema has them. An empty value of a partition is NULL, says Delta's protocol."""
    values = values.cast(kind)
    if part and pa.types.is_string(kind):
        return pc.if_else(pc.equal(values, ""), pa.scalar(None, kind), values)
    return values
