"""Metadata of the published CSV files as CSV on the Web (CSVW), a W3C Recommendation. Nothing here is private."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from lapwing.answer.spreadsheet_csv import plain_text, without_formulas

if TYPE_CHECKING:
    import pyarrow as pa

CONTEXT: Final = "http://www.w3.org/ns/csvw"
"""As for the metadata of a data set, `documents.csvw_document`."""
METADATA: Final = "csv-metadata.json"
"""The name under which readers of CSVW look for the metadata of a folder."""
APOSTROPHES: Final = (
    "A text that begins like a formula has an apostrophe before it, so that no spreadsheet runs it. Leave it out where "
    "=, +, -, @ or a control character follows, also after further apostrophes."
)
ROLES: Final = {
    "low": "The lower end of the 95 % interval of {name}.",
    "high": "The upper end of the 95 % interval of {name}.",
    "adjusted": "{name} as it adds up with other tables; without an interval of its own.",
    "coarser": "Where {name} is unreliable: the smallest reliable cell of a coarser table around it.",
    "coarser_low": "The lower end of the 95 % interval of {name}_coarser.",
    "coarser_high": "The upper end of the 95 % interval of {name}_coarser.",
    "coarser_by": "The keys of the coarser table of {name}_coarser.",
    "unreliable": "Whether {name} is unreliable by the rule of the release.",
}


def release_metadata(manifest: Mapping[str, Any], tables: Sequence["pa.Table"]) -> dict[str, Any]:
    """Return the metadata of the CSV files of a release."""
    pairs = zip(manifest["tables"], tables, strict=True)
    return {"@context": CONTEXT, "dc:title": manifest["title"], "tables": [_table(*pair) for pair in pairs]}


def _table(document: Mapping[str, Any], rows: "pa.Table") -> dict[str, Any]:
    noisy = tuple(document["half_widths"])
    roles = {f"{name}_{end}": text.format(name=name) for name in noisy for end, text in ROLES.items()}
    columns = []
    for place, field in enumerate(rows.schema):
        text = f"With noise. Its ± is {document['half_widths'][field.name]}." if field.name in noisy else None
        text = roles.get(field.name, text)
        column = {"name": f"c{place + 1}", "titles": plain_text(field.name), "datatype": _datatype(field.type)}
        columns.append(column if text is None else {**column, "dc:description": text})
    file = next(file["file"] for file in document["files"] if file["file"].endswith(".csv"))
    notes = [f"Query: {document['query']}", *document["notes"]]
    if not without_formulas(rows).equals(rows):
        notes.append(APOSTROPHES)
    return {
        "url": quote(file, safe=""),
        "dc:title": document["name"],
        "dc:description": notes,
        "tableSchema": {"columns": columns},
    }


def _datatype(kind: "pa.DataType") -> str:
    import pyarrow.types as types  # here: a plan needs no Arrow

    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind):
        return "double"
    if types.is_decimal(kind):
        return "decimal"
    if types.is_date(kind):
        return "date"
    return "string"
