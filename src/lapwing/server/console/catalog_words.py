"""Refusals of catalogs, with the place as the page in front of the curator names it, and not as a path of TOML.

The text of a refusal begins with the place (`catalog.place`): the file, the table, the column, the key. Terminals show
that path, because people there edit the file. A form names the field by its label, and the editor by table and column.
"""

import re
from collections.abc import Mapping
from typing import Final

from lapwing.catalog import spelling
from lapwing.server.problems import Problem

_NAME: Final = r'(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*")'
_FILE: Final = r"(?:[^:]+: )?"
_PLACE: Final = re.compile(rf"{_FILE}({_NAME}(?:\.{_NAME})+): ")
_PART: Final = re.compile(_NAME)
_KEY: Final = re.compile(rf"{_FILE}(?:tables\.{_NAME}\.|budget\.|dataset\.)([a-z_]+): ")
_SECTIONS: Final = {"tables": "table", "columns": "column", "graphs": "graph", "views": "view"}


def without_path(detail: str, labels: Mapping[str, str], column: str | None = None) -> str:
    """Return a refusal with the label of a form's field in the place of the path.

    Args:
        labels: Of fields, by their keys in the catalog.
        column: The one whose field is at fault, if it is a field of a column.

    >>> labels = {"upper": "Maximum", "max_rows_per_unit": "Maximum rows per unit"}
    >>> without_path('v.csv: tables.v.columns."a b".upper: 5 is not a date; write one', labels, "a b")
    'Maximum of a b: 5 is not a date; write one'
    >>> without_path("tables.v.max_rows_per_unit: 0 is not allowed", labels)
    'Maximum rows per unit: 0 is not allowed'
    """
    if column is None:
        key = _KEY.match(detail)
        return detail if key is None or key[1] not in labels else f"{labels[key[1]]}: {detail[key.end() :]}"
    path = re.compile(rf"(?:^|[ .])columns\.{re.escape(spelling.key(column))}(?:\.([a-z_]+))?[a-z_.]*: ")
    found = path.search(detail)
    if found is None:
        return detail
    label = labels.get(found[1] or "")
    return f"{f'{label} of {column}' if label else column}: {detail[found.end() :]}"


def in_editor(refused: Problem | None) -> Problem | None:
    """Return a refused catalog as the page of its editor says it."""
    return None if refused is None else {**refused, "detail": worded(refused["detail"])}


def worded(detail: str) -> str:
    """Return a refusal of a catalog's text with its place in words, for who edits the text on the page.

    The file is left out: the page has one text.

    >>> worded('the catalog that was sent: tables.visits.columns."a b".upper: 5 is not a date')
    'Table visits, column a b, upper: 5 is not a date'
    >>> worded("budget.epsilon: 0 is not allowed"), worded("catalog: not TOML")
    ('Budget, epsilon: 0 is not allowed', 'catalog: not TOML')
    """
    place = _PLACE.match(detail)
    if place is None:
        return detail
    return f"{place_in_words(place[1])}: {detail[place.end() :]}"


def place_in_words(place: str) -> str:
    """Return where an entry stands in a catalog, in words.

    >>> place_in_words("tables.visits.columns.age.upper"), place_in_words("budget.epsilon")
    ('Table visits, column age, upper', 'Budget, epsilon')
    """
    parts = iter(_PART.findall(place))
    said = []
    for part in parts:
        kind, name = _SECTIONS.get(part), part.strip('"')
        named = next(parts, None) if kind else None
        said.append(name if named is None else f"{kind} {named.strip(chr(34))}")
    words = ", ".join(said)
    return f"{words[:1].upper()}{words[1:]}"
