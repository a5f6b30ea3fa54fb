"""Public facts about columns that a form changes in a catalog's text; all else stays as it was written, comments too.

A column can be changed if its entry is an inline table on one line. The text that follows is read again. It must say
what the old one said but for the facts that were changed; else it is refused, and the curator edits the text.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final

from lapwing.catalog import spelling
from lapwing.errors import CatalogError
from lapwing.server.console.acting import decimal_of
from lapwing.server.console.catalog.positions import entries_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.listed import listed, read_list
from lapwing.server.problems import problem

LABELS: Final = {
    "lower": "Minimum",
    "upper": "Maximum",
    "step": "Smallest step",
    "values": "List of values",
    "missing": "Codes that mean missing",
    "title": "Title",
    "unit": "Unit",
}
"""The facts that the form has, by their keys in the catalog."""
BOUNDED: Final = ("integer", "decimal", "float", "date", "timestamp")
LISTED: Final = ("integer", "string", "date")
NUMBERS: Final = ("integer", "decimal", "float")
TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[\[\]{},]|[^"\'\[\]{},]+')
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
MOST_LABELS: Final = 100
"""Values of a column whose labels the form has."""
WRITTEN_OTHERWISE: Final = "The form cannot change this column as it is written. Edit the text of the catalog instead."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogColumn:
    """A column of a protected table in a catalog's text.

    Args:
        line: Of the text, from 0; None if the form cannot change it there.
        entries: The entries of the catalog, by their keys.
    """

    table: str
    name: str
    type: str
    line: int | None
    entries: Mapping[str, Any]

    @property
    def keys(self) -> tuple[str, ...]:
        """The facts that a column of this type can have, and that the form can write."""
        bounds = ("lower", "upper", *(("step",) if self.type == "decimal" else ())) if self.type in BOUNDED else ()
        values = ("values",) if self.type in LISTED and _fits_a_field(self.entries.get("values")) else ()
        return (*bounds, *values, "missing", "title", "unit")

    @property
    def labelled(self) -> list[tuple[Any, str]]:
        """Listed values, each with its label or an empty text."""
        values = self.entries.get("values") if "values" in self.keys else None
        return [(_bare(one), _label(one)) for one in values] if isinstance(values, list) else []

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Contents of the fields of labels; none if the values are too many for a form."""
        return [(_shown(value), label) for value, label in self.labelled] if len(self.labelled) <= MOST_LABELS else []

    @property
    def facts(self) -> dict[str, str]:
        """Contents of the fields of the form, by their keys."""
        facts = {key: _shown(self.entries[key]) if key in self.entries else "" for key in self.keys}
        return {**facts, "values": listed(_shown(value) for value, _ in self.labelled)} if self.labelled else facts


def columns_of(text: str) -> list[CatalogColumn]:
    r"""Return the columns of protected tables in a catalog's text; none of a text that is no TOML.

    >>> [column] = columns_of('[tables.visits.columns]\nage = { type = "integer", lower = 0, upper = 110 } # years')
    >>> column.name, column.line, column.facts["upper"]
    ('age', 1, '110')
    """
    try:
        tables = _read(text).get("tables", {})
        found = list(_columns(tables, text.split("\n")))
    except (tomllib.TOMLDecodeError, CatalogError, AttributeError, TypeError):
        return []  # the service says what is wrong with it
    return found


def _columns(tables: Mapping[str, Any], lines: Sequence[str]) -> Iterator[CatalogColumn]:
    places = entries_of(lines)
    for table, section in tables.items():
        for name, entries in {} if section.get("public") else section.get("columns", {}).items():
            place = places.get(("tables", spelling.key(table), "columns", spelling.key(name)))
            line = None if place is None or _pieces(lines[place[0] - 1]) is None else place[0] - 1
            yield CatalogColumn(table=table, name=name, type=str(entries.get("type")), line=line, entries=entries)


def amended(text: str, form: Mapping[str, str]) -> str:
    r"""Return a catalog's text with the facts of a form, whose fields bear the numbers of the columns.

    >>> text = '[tables.visits.columns]\nage = { type = "integer", lower = 0, upper = 110 } # years'
    >>> print(amended(text, {"upper-0": "120", "title-0": "Age"}).partition("\n")[2])
    age = { type = "integer", lower = 0, upper = 120, title = "Age" } # years
    >>> print(amended(text, {"lower-0": "", "upper-0": ""}).partition("\n")[2])
    age = { type = "integer" } # years

    Raises:
        ApiRefusal: At the field, if it holds no value for this column; or if the text has another form.
    """
    columns, lines = columns_of(text), text.split("\n")
    if not columns:
        raise ApiRefusal(problem("invalid_parameter", 422, WRITTEN_OTHERWISE))
    expected = _read(text)
    for number, column in enumerate(columns):
        changes = {
            key: _spelled(column, key, typed, f"{key}-{number}")
            for key, was in column.facts.items()
            if (typed := form.get(f"{key}-{number}", was).strip()) != was
        }
        changes |= _labelled(column, form, number, changed="values" in changes)
        if not changes:
            continue
        pieces = None if column.line is None else _pieces(lines[column.line])
        if column.line is None or pieces is None:
            raise ApiRefusal(problem("invalid_parameter", 422, WRITTEN_OTHERWISE, f"{next(iter(changes))}-{number}"))
        before, entries, after = pieces
        lines[column.line] = f"{before}{{ {', '.join(_with(entries, changes))} }}{after}"
        entry = expected["tables"][column.table]["columns"][column.name]
        for key, spelled in changes.items():
            entry.pop(key, None)
            if spelled is not None:
                entry[key] = _read(f"x = {spelled}")["x"]
    return _confirmed("\n".join(lines), expected)


def _labelled(column: CatalogColumn, form: Mapping[str, str], number: int, *, changed: bool) -> dict[str, str]:
    """Return the list of values with the labels of the form, if the form changes the list or a label.

    A label stays with its value while the list changes, and goes with it.
    """
    before, field = column.labelled, f"values-{number}"
    typed = [form.get(f"label-{place}-{number}", was).strip() for place, (_, was) in enumerate(before)]
    text = form.get(field, column.facts.get("values", "")).strip()
    if not (changed or typed != [was for _, was in before]) or not text:
        return {}
    labels = {spelling.value(value): label for (value, _), label in zip(before, typed, strict=True)}
    spelled = (_value(column, one, "values", field) for one in read_list(text))
    return {"values": f"[{', '.join(_entry(value, labels.get(value, '')) for value in spelled)}]"}


def _entry(value: str, label: str) -> str:
    return f"{{ value = {value}, label = {spelling.text(label)} }}" if label else value


def _fits_a_field(values: Any) -> bool:
    """Tell whether a field of one line gives the same values again: none has a line break, or blanks at its ends."""
    texts = [_shown(_bare(value)) for value in values] if isinstance(values, list) else []
    return read_list(listed(texts)) == texts


def _bare(listed_value: Any) -> Any:
    return listed_value.get("value", "") if isinstance(listed_value, dict) else listed_value


def _label(listed_value: Any) -> str:
    return str(listed_value.get("label", "")) if isinstance(listed_value, dict) else ""


def field_at_fault(detail: str, columns: Sequence[CatalogColumn]) -> str | None:
    """Return the field of the form that a refusal of a catalog is about, None if the form has no such field."""
    for number, column in enumerate(columns):
        place = f"tables.{spelling.key(column.table)}.columns.{spelling.key(column.name)}."
        for key in column.keys:
            if f"{place}{key}: " in detail or (key == "missing" and f"{place}{key}." in detail):
                return f"{key}-{number}"
    return None


def _read(text: str) -> dict[str, Any]:
    """Read TOML with exact numbers."""
    return tomllib.loads(text, parse_float=lambda digits: spelling.exact(Decimal(digits)))


def _confirmed(text: str, expected: Mapping[str, Any]) -> str:
    try:
        same = _read(text) == expected
    except (tomllib.TOMLDecodeError, CatalogError):
        same = False
    if not same:
        raise ApiRefusal(problem("invalid_parameter", 422, WRITTEN_OTHERWISE))
    return text


def _pieces(line: str) -> tuple[str, list[str], str] | None:
    """Return what stands before an inline table, its entries, and what stands after it; None if it is another thing.

    >>> _pieces("a = { x = [1, 2], y = 'b, }' } # why")
    ('a = ', ['x = [1, 2]', "y = 'b, }'"], ' # why')
    >>> _pieces("a = 1"), _pieces("a = { x = [1,")
    (None, None)
    """
    start = line.find("{", line.find("=") + 1)
    if start < 0 or line[line.find("=") + 1 : start].strip():
        return None
    entries, depth = [""], 0
    for token in TOKEN.finditer(line, start):
        said = token[0]
        depth += said in "[{"
        depth -= said in "]}"
        if depth == 0:
            return line[:start], [entry.strip() for entry in entries if entry.strip()], line[token.end() :]
        if depth == 1 and said == ",":
            entries.append("")
        elif token.start() > start:
            entries[-1] += said
    return None


def _with(entries: Sequence[str], changes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the entries with changed ones in their places, and new ones at the end."""
    left = dict(changes)
    for entry in entries:
        key = entry.partition("=")[0].strip()
        if key not in left:
            yield entry
        elif (spelled := left.pop(key)) is not None:
            yield f"{key} = {spelled}"
    yield from (f"{key} = {spelled}" for key, spelled in left.items() if spelled is not None)


def _shown(content: Any) -> str:
    if isinstance(content, list):
        return listed(map(_shown, content))
    return content if isinstance(content, str) else spelling.value(content)


def _spelled(column: CatalogColumn, key: str, text: str, field: str) -> str | None:
    """Return a fact as TOML, None if the field is empty.

    Raises:
        ApiRefusal: If it is no value of the column's type.
    """
    if not text:
        return None
    if key in ("title", "unit"):
        return spelling.text(text)
    if key in ("lower", "upper", "step"):
        return _value(column, text, key, field)
    if key == "values":
        return f"[{', '.join(_value(column, one, key, field) for one in read_list(text))}]"
    known = {_shown(code): spelling.value(code) for code in column.entries.get("missing", ())}
    return f"[{', '.join(known.get(code) or _code(column, code) for code in read_list(text))}]"


def _code(column: CatalogColumn, code: str) -> str:
    """Return a code for missing values: a number in a column of numbers where it is one, and else a text."""
    plain = column.type in NUMBERS and NUMBER.fullmatch(code)
    return spelling.number(Fraction(code)) if plain else spelling.text(code)


def _value(column: CatalogColumn, text: str, key: str, field: str) -> str:
    if column.type == "string":
        return spelling.text(text)
    if column.type in NUMBERS:
        number = decimal_of(text, field) if key != "values" else text
        if NUMBER.fullmatch(number):
            return spelling.number(Fraction(number))
        raise ApiRefusal(problem("invalid_parameter", 422, f"{LABELS[key]}: write a number like 100 or 0.5.", field))
    try:
        if column.type == "date":
            return date.fromisoformat(text).isoformat()
        return spelling.in_utc(datetime.fromisoformat(text)).isoformat()
    except ValueError:
        example = "2024-12-31" if column.type == "date" else "2024-12-31T00:00:00"
        detail = f"{LABELS[key]}: write a date like {example}."
        raise ApiRefusal(problem("invalid_parameter", 422, detail, field)) from None
