"""Synthetic rows that a server drew, with what is known of them."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import pyarrow as pa

from lapwing.answer.frames import pandas_frame, polars_frame
from lapwing.client.encoding import amounts
from lapwing.client.transport import ServerConnection
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, from_record
from lapwing.synthesis.documents import error_of, report_of, rows_and_document
from lapwing.synthesis.synthetic_table import as_text


@final
class RemoteSyntheticTable:
    """Synthetic rows, with what is known of how good they are: as `SyntheticTable`, but for drawing more."""

    def __init__(self, stream: bytes) -> None:
        self._rows, document = rows_and_document(stream)
        self.method: str = document["method"]
        self.columns = tuple(document["columns"])
        self.error = error_of(document["error"])
        self.report = report_of(document["tables"])
        self.cost: Loss = from_record(document["cost"])
        self.stored: bool = document["stored"]
        self.left_out = tuple(tuple(names) for names in document["left_out"])
        self.warning: str = document["warning"]

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<RemoteSyntheticTable: {len(self)} rows of {', '.join(self.columns)}; cost {self.cost}>"

    def to_arrow(self) -> pa.Table:
        """Return the rows as a PyArrow table, with the columns' declared types."""
        return self._rows

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame, which must be installed."""
        return pandas_frame(self._rows)

    def to_polars(self) -> Any:
        """Return the rows as a Polars data frame, which must be installed."""
        return polars_frame(self._rows)


def synthesized(
    connection: ServerConnection,
    path: str,
    columns: Sequence[str],
    epsilon: Number,
    options: Mapping[str, object],
) -> RemoteSyntheticTable:
    """Ask a server for synthetic rows."""
    body = {"columns": list(columns), **amounts(epsilon=epsilon), **options}
    return RemoteSyntheticTable(connection.stream_of(f"{path}/synthesize", body))
