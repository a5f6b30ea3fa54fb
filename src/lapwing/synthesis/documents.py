"""Synthetic tables as JSON documents and as Arrow with that document beside it, and reports read from them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lapwing.documents.synthesis_document import ErrorDocument, MeasuredDocument, SynthesisDocument
from lapwing.synthesis.synthetic_table import MarginalReport, SyntheticTable, WorkloadError

if TYPE_CHECKING:
    import pyarrow as pa

BESIDE: Final = b"lapwing.synthesis"
"""The key of the document in an Arrow schema's metadata."""


def document_of(table: SyntheticTable) -> SynthesisDocument:
    """Return what is known of synthetic rows."""
    error = table.error
    return SynthesisDocument(
        method=table.method,
        columns=list(table.columns),
        rows=len(table),
        error=ErrorDocument(estimate=error.estimate, low=error.low, high=error.high, tables=error.tables),
        cost=table.cost.to_record(),
        stored=table.stored,
        left_out=[list(names) for names in table.left_out],
        tables=[_measured(one) for one in table.report],
        warning=table.warning,
    )


def arrow_of(table: SyntheticTable) -> bytes:
    """Return the rows as an Arrow stream, with the document in the metadata of its schema."""
    import pyarrow as pa  # here: it takes longer to load than most of the rest

    rows = table.to_arrow()
    rows = rows.replace_schema_metadata({BESIDE: json.dumps(document_of(table))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def rows_and_document(stream: bytes) -> "tuple[pa.Table, SynthesisDocument]":
    """Read what `arrow_of` wrote."""
    import pyarrow as pa

    with pa.ipc.open_stream(stream) as reader:
        rows = reader.read_all()
    document: SynthesisDocument = json.loads((rows.schema.metadata or {})[BESIDE])
    return rows.replace_schema_metadata(None), document


def report_of(documents: Sequence[MeasuredDocument]) -> tuple[MarginalReport, ...]:
    """Return the measured tables of a document."""
    return tuple(
        MarginalReport(
            columns=tuple(document["columns"]),
            cells=tuple(tuple(labels) for labels in document["labels"]),
            measured=_shaped(document["measured"], document, np.int64),
            half_width=document["half_width"],
            synthetic=_shaped(document["synthetic"], document, np.float64),
        )
        for document in documents
    )


def error_of(document: ErrorDocument) -> WorkloadError:
    """Return the error of a document."""
    return WorkloadError(**document)


def _measured(one: MarginalReport) -> MeasuredDocument:
    return MeasuredDocument(
        columns=list(one.columns),
        labels=[list(labels) for labels in one.cells],
        measured=[int(count) for count in one.measured.reshape(-1)],
        half_width=one.half_width,
        synthetic=[float(count) for count in one.synthetic.reshape(-1)],
    )


def _shaped(numbers: Sequence[float], one: MeasuredDocument, kind: Any) -> Any:
    return np.array(numbers, dtype=kind).reshape([len(labels) for labels in one["labels"]])
