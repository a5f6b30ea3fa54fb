"""Tables of an answer with the texts of the data dictionary: as metadata of fields, or labels in place of codes."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lapwing.answer.key_texts import LABELS, TEXTS, label_of

if TYPE_CHECKING:
    import pyarrow as pa


def with_texts(table: "pa.Table", document: Mapping[str, Any]) -> "pa.Table":
    """Return a table whose fields have the texts of their columns as metadata; labels are JSON, by the text of a value.

    Args:
        document: Of the answer, with its `texts` and `labels`.
    """
    schema = table.schema
    for place, field in enumerate(schema):
        texts = document.get(TEXTS, {}).get(field.name)
        if texts:
            words = {**texts, LABELS: json.dumps(texts[LABELS], ensure_ascii=False)} if LABELS in texts else texts
            schema = schema.set(place, field.with_metadata({**(field.metadata or {}), **words}))
    return table.cast(schema)


def with_labels_for_codes(table: "pa.Table", document: Mapping[str, Any]) -> "pa.Table":
    """Return a table with the label in place of each value that has one; arguments as `with_texts`."""
    import pyarrow as pa  # a large library that only these files need

    for place, name in enumerate(table.column_names):
        if document.get(LABELS, {}).get(name):
            codes = table.column(place).cast(pa.string()).to_pylist()
            labels = [label_of(document, name, row[name]) for row in document["rows"]]
            shown = [code if label is None else label for code, label in zip(codes, labels, strict=True)]
            table = table.set_column(place, name, pa.array(shown, pa.string()))
    return table
