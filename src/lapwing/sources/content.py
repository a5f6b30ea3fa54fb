"""The digest of a table's content: a function of its rows as a bag, of its columns' names, and of their stored types.

Rows are put in order first: by all of their columns, in the order of the columns' names. Then every column is hashed by
itself, with SHA-256: whether each value is there, each value in little-endian bytes (zero where it is NULL), for texts
each length and then all bytes. Number of rows, names, types and these hashes are hashed once more.

Claim: two tables of one digest have the same rows, unless SHA-256 collides. Proof. The last hash fixes the number of
rows and each column's hash; a column's three streams (presence, lengths, bytes) have a hash each, so none can be read
as a part of another; and given presence and lengths the bytes are read back in one way. So the tables in order are
equal, row by row. ∎ Conversely equal bags of rows, stored in the same types, are equal in order: rows that tie in every
column are equal, as floats have one zero and one NaN (`conforming`). Neither the address, the door, the batches nor the
order of delivery takes part.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapwing.catalog.condition import Condition, conditions_facts

FORMAT: Final = 1


@final
class ContentDigest:
    """Takes a table's rows in order, and makes their digest."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._hashes = [[hashlib.sha256() for _ in range(3)] for _ in schema]
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Take the next rows."""
        self.rows, count = self.rows + batch.num_rows, batch.num_rows
        if not count:
            return
        for field, hashes, column in zip(self._schema, self._hashes, batch.columns, strict=True):
            presence, lengths, values = hashes
            presence.update(_bytes_of_numbers(column.is_valid()))
            if field.type == pa.large_string():
                texts = pc.fill_null(column, "").cast(pa.large_string())
                lengths.update(_bytes_of_numbers(pc.binary_length(texts)))
                values.update(_bytes_of_texts(texts))
            else:
                values.update(_bytes_of_numbers(column.cast(field.type)))

    def digest(self) -> str:
        """Return the digest (SHA-256, hexadecimal) of all rows that were taken."""
        columns = [
            [field.name, str(field.type), *(one.hexdigest() for one in hashes)]
            for field, hashes in zip(self._schema, self._hashes, strict=True)
        ]
        facts = {"format": FORMAT, "rows": self.rows, "columns": columns}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def digest_among(digest: str, where: Sequence[Condition]) -> str:
    """Return the digest of a table whose rows, those of a source that fulfil conditions, have this digest.

    It says both: what the rows are, and by which rule they were taken. Hosts whose catalogs take rows by other rules do
    not have the same data, even where today's rows happen to be the same.
    """
    if not where:
        return digest
    facts = {"format": FORMAT, "content": digest, "where": conditions_facts(where)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _bytes_of_texts(texts: pa.Array) -> memoryview:
    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]


def _bytes_of_numbers(column: pa.Array) -> memoryview:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    if column.null_count:
        whole = np.frombuffer(column.buffers()[1], np.uint8)[
            column.offset * width : (column.offset + len(column)) * width
        ]
        kept = whole.reshape(-1, width) * column.is_valid().cast(pa.uint8()).to_numpy()[:, None]
        return memoryview(kept.tobytes())
    return memoryview(column.buffers()[1])[column.offset * width : (column.offset + len(column)) * width]
