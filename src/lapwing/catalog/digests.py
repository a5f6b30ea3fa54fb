"""What a catalog means, as a document of texts, and its fingerprint.

Stored answers are found by these fingerprints. So what a catalog does not say is not in the document: a key that a
later version of Lapwing knows leaves the fingerprints of older catalogs as they were.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lapwing.catalog import spelling
from lapwing.catalog.column_checks import default_length
from lapwing.catalog.condition import conditions_facts

if TYPE_CHECKING:  # a table makes its fingerprint when it is made
    from lapwing.catalog.table import Column, Table
    from lapwing.catalog.text_files import TextFormat

Facts = dict[str, object]


def column_facts(column: "Column") -> Facts:
    """Return what a column means."""
    bounds = {"lower": column.lower, "upper": column.upper, "step": column.step, "other": column.other}
    facts: Facts = {key: value_text(content) for key, content in bounds.items() if content is not None}
    if column.values is not None:
        facts["values"] = [value_text(content) for content in column.values]
    if not column.nullable:
        facts["nullable"] = "false"
    if column.max_length is not None and column.max_length != default_length(column):
        facts["max_length"] = str(column.max_length)
    if column.reading is not None:
        facts |= column.reading.facts
    return facts | {"type": column.type}


def table_facts(table: "Table") -> Facts:
    """Return what a table means, its parent left aside; but for `unit`, which says nothing about one table alone."""
    facts: Facts = {
        "max_rows_per_unit": str(table.max_rows_per_unit),
        "columns": {column.name: column_facts(column) for column in table.columns},
    }
    facts |= owner_facts(table) | text_facts(table.text)
    if table.people is not None:
        facts["people"] = str(table.people)
    if table.where:
        facts["where"] = conditions_facts(table.where)
    if table.engine is not None:
        facts["engine"] = table.engine
    return facts if table.part is None else facts | {"part": table.part}


def owner_facts(table: "Table") -> Facts:
    """Return whose rows a table has, as it says itself: its privacy unit, or where its link leads."""
    if table.link is not None:
        return {"link": {"table": table.link.parent.name, "on": dict(table.link.on)}}
    facts: Facts = {"privacy_unit": table.privacy_unit}
    return facts if table.unit_day is None else facts | {"unit_day": table.unit_day}


def text_facts(text: "TextFormat | None") -> Facts:
    """Return how a CSV file is written, if that was declared: another way would make other values of the same bytes."""
    return {} if text is None else {"text": [text.delimiter, text.quote, text.encoding]}


def value_text(content: object) -> str:
    """Return the text of a bound or a value; different values of a column have different texts."""
    return content if isinstance(content, str) else spelling.value(content)


def digest(facts: Mapping[str, object]) -> str:
    """Return the SHA-256 of a document of facts, hexadecimal."""
    document = json.dumps({"format": 1, **facts}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(document.encode("ascii")).hexdigest()
