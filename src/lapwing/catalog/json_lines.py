"""Files of JSON lines (RFC 8259, one object a line): the names and types that a draft of their columns starts from.

Such a file says neither before its first row. So both are for the curator to say: rows may not decide them.
"""

import json
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from lapwing.catalog.text_files import TextFormat, opened

_LINES: Final = 1000
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")


def guessed_columns(path: Path) -> dict[str, str]:
    """Guess the columns of a file and their types from its first lines, for a curator's eyes.

    Objects and lists make no column.

    Raises:
        OSError: If it cannot be read.
        ValueError: If a line is no object.
        UnicodeError: Likewise.
    """
    found = dict[str, set[str]]()
    with opened(path, TextFormat()) as lines:
        for line in islice(lines, _LINES):
            row = json.loads(line) if line.strip() else {}
            if not isinstance(row, dict):
                raise ValueError("A line is no object.")
            for name, value in row.items():
                found.setdefault(name, set()).add(_kind(value))
    return {name: _common(kinds - {"null"}) for name, kinds in found.items() if "nested" not in kinds}


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "float"
        case str() if _DATE.fullmatch(value):
            return "date"
        case str() if _TIMESTAMP.fullmatch(value):
            return "timestamp"
        case str():
            return "string"
    return "nested"


def _common(kinds: Iterable[str]) -> str:
    every = set(kinds)
    if len(every) == 1:
        return every.pop()
    return "float" if every == {"integer", "float"} else "string"
