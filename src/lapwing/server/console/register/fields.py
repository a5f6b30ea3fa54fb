"""The form of the second step as the service takes it; fields of a column bear its number, as names may hold all."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from lapwing.privacy.decimal_comma import both_readings
from lapwing.server.console.acting import PLAIN, number_of, renamed
from lapwing.server.console.catalog_words import without_path
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.listed import listed, read_list
from lapwing.server.datasets import NAME
from lapwing.server.problems import Problem, problem

READING: Final = ("missing", "recode", "format", "decimal_mark", "thousands_mark", "currency")
"""Fields that say how stored values are read; all may be left empty."""
TEXTS: Final = ("title", "unit", "labels")
"""Fields that describe a column and its listed values for people."""
LABELS: Final = {
    "type": "Type",
    "lower": "Minimum",
    "upper": "Maximum",
    "values": "List of values",
    "title": "Title",
    "unit": "Unit",
    "labels": "Labels (results show the label; queries use the code)",
    "missing": "Codes that mean missing",
    "recode": "Replace codes (results and queries use the new value)",
    "other": "Name for all values that you do not list",
    "format": "Date format (%d day, %m month, %Y year)",
    "decimal_mark": "Decimal mark",
    "thousands_mark": "Thousands separator",
    "currency": "Currency",
    "unreadable": "Unreadable values",
    "privacy_unit": "Column that identifies a unit",
    "unit_title": "A word for one unit, such as patient or household (readers of results see it)",
    "max_rows_per_unit": "Maximum rows per unit",
    "epsilon": "Total epsilon (ε)",
    "delta": "Delta (δ; 0 for none)",
    "people": "Number of units, if public (only to check δ)",
    "name": "Name of the data set (empty: name of the file)",
}
"""The labels of the form, by keys of the catalog."""
SHORT: Final = {key: label.partition(" (")[0].partition(",")[0] for key, label in LABELS.items()}
GROUPED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
WHOLE: Final = "Write a whole number in digits, like 100000."
FORM: Final = re.compile(
    r"file|folder|unit|noun|rows|epsilon|delta|people|dataset|unreadable|(?!code-)[a-z_]+-[0-9]{1,4}"
)
"""The fields of the second step, which the third one sends on."""
NAME_RULE: Final = (
    "Name of the data set: use only letters, digits and _ . - without spaces, and begin with a letter or a digit. "
    "The name becomes part of web addresses."
)
TYPES: Final = ("integer", "decimal:0.01", "float", "boolean", "string", "date", "timestamp")


def draft_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what a draft of a catalog is made from.

    >>> draft_of({"file": "v.csv", "unit": "id", "epsilon": "3", "rows": "5", "column-0": "age", "lower-0": "0",
    ...           "upper-0": "110", "type-0": "integer", "column-1": "plan", "values-1": 'a, b'})["bounds"]
    {'age': ['0', '110']}

    Raises:
        ApiRefusal: For what the service or a later step would refuse.
    """
    said = {name: value.strip() for name, value in form.items()}
    if said.get("dataset") and not NAME.fullmatch(said["dataset"]):
        raise ApiRefusal(problem("invalid_parameter", 422, NAME_RULE, "dataset"))
    body: dict[str, Any] = {
        "folder": form.get("folder") or None,
        "file": form.get("file", ""),
        "name": said.get("dataset") or None,
        "privacy_unit": said.get("unit", ""),
        "unit_title": said.get("noun") or None,
        "epsilon": _number(said.get("epsilon", ""), "epsilon"),
        "delta": _number(said.get("delta") or "0", "delta"),
        "max_rows_per_unit": _whole(said.get("rows", ""), "rows"),
        "people": _whole(said.get("people", ""), "people"),
        "types": {name: said[f"type-{place}"] for name, place in _columns(form) if said.get(f"type-{place}")},
        "bounds": {
            name: [_bound(form, "lower", place), _bound(form, "upper", place)]
            for name, place in _columns(form)
            if said.get(f"lower-{place}") or said.get(f"upper-{place}")
        },
        "values": {
            name: read_list(said[f"values-{place}"]) for name, place in _columns(form) if said.get(f"values-{place}")
        },
        "other": {name: said[f"other-{place}"] for name, place in _columns(form) if said.get(f"other-{place}")},
        "reading": {name: read for name, place in _columns(form) if (read := _reading(form, place))},
        "left_out": [name for name, place in _columns(form) if form.get(f"out-{place}")],
        "unreadable": "null" if form.get("unreadable") else None,
        "unreadable_columns": {
            name: said[f"unreadable-{place}"] for name, place in _columns(form) if said.get(f"unreadable-{place}")
        },
        "texts": {name: texts for name, place in _columns(form) if (texts := _texts(form, place))},
    }
    return body


def fields_of(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the second step that a form of the third one sends on; none of a catalog that was pasted.

    >>> fields_of({"file": "v.csv", "lower-0": "1", "catalog": "x", "code-0": "-99"})
    {'file': 'v.csv', 'lower-0': '1'}
    """
    return {name: value for name, value in form.items() if FORM.fullmatch(name)} if form.get("file") else {}


def with_missing(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the second step, with the codes that were ticked among those that mean missing.

    >>> with_missing({"file": "v.csv", "missing-0": "NA", "code-0": "-99, NA"})
    {'file': 'v.csv', 'missing-0': 'NA, -99'}
    """
    typed = fields_of(form)
    for key, codes in form.items():
        word, _, place = key.partition("-")
        if word == "code":
            said = read_list(form[field]) if form.get(field := f"missing-{place}", "").strip() else []
            typed[field] = listed([*said, *(code for code in read_list(codes) if code not in said)])
    return typed


def in_form(form: Mapping[str, str], refused: Problem) -> Problem:
    """Return a refused draft, in which the field has its name in the form.

    >>> form, refused = {"column-7": "age"}, problem("invalid_catalog", 422, "The limits are turned.", "bounds.age.0")
    >>> in_form(form, refused)["field"], in_form(form, {**refused, "field": "reading.age.format"})["field"]
    ('lower-7', 'format-7')
    """
    field = refused.get("field", "")
    key, _, rest = field.partition(".")
    detail = without_path(refused["detail"], SHORT)
    if not rest:
        refused = {**refused, "detail": detail}
        return renamed(
            refused, {"name": "dataset", "privacy_unit": "unit", "unit_title": "noun", "max_rows_per_unit": "rows"}
        )
    for name, place in _columns(form):
        if rest == name or rest.startswith(f"{name}."):
            option = rest[len(name) + 1 :].partition(".")[0] or READING[0]
            words = {"bounds": "upper" if option == "1" else "lower", "types": "type", "reading": option}
            words |= {"unreadable_columns": "unreadable"}
            detail = without_path(refused["detail"], SHORT, name)
            return {**refused, "field": f"{words.get(key, key)}-{place}", "detail": detail}
    return refused


def proposed(columns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the fields of a form that the settings of columns fill, for a curator to judge.

    >>> proposed([{"reading": {}}, {"reading": {"format": "%d.%m.%Y", "missing": ["NA", "-"]}}])
    {'format-1': '%d.%m.%Y', 'missing-1': 'NA, -'}
    """
    return {
        f"{key}-{place}": ", ".join(said) if isinstance(said, list) else said
        for place, column in enumerate(columns)
        for key, said in column["reading"].items()
    }


def _bound(form: Mapping[str, str], end: str, place: str) -> str:
    """Return an end of a range, and a date as a catalog writes it where it is typed as the file writes dates.

    >>> form = {"format-2": "%d.%m.%Y", "lower-2": "31.12.2024", "upper-2": "2024-12-31"}
    >>> _bound(form, "lower", "2"), _bound(form, "upper", "2")
    ('2024-12-31', '2024-12-31')

    Raises:
        ApiRefusal: If it is missing, or has a point that may also divide thousands: the file has decimal commas.
    """
    field = f"{end}-{place}"
    text = form.get(field, "").strip()
    if not text:
        detail = f"{SHORT[end]}: missing. Write a minimum and a maximum, or neither."
        raise ApiRefusal(problem("invalid_parameter", 422, detail, field))
    if form.get(f"decimal_mark-{place}", "").strip() == "," and GROUPED.fullmatch(text):
        detail = f"{SHORT[end]}: {text} can mean two numbers. {both_readings(text)}"
        raise ApiRefusal(problem("invalid_parameter", 422, detail, field))
    with suppress(ValueError):  # one that is no moment in the file's way is left for the service to read
        moment = datetime.strptime(text, form.get(f"format-{place}", "").strip() or "never")
        return str(moment.date() if form.get(f"type-{place}") != "timestamp" else moment)
    return text


def _reading(form: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return how a column's stored values are read, as far as its fields say it.

    >>> _reading({"missing-2": "-99, NA", "recode-2": '1: male, "2: other, or none"', "format-2": ""}, "2")
    {'missing': ['-99', 'NA'], 'recode': {'1': 'male', '2': 'other, or none'}}
    """
    said: dict[str, Any] = {}
    for key in READING:
        text = form.get(f"{key}-{place}", "")
        if not text.strip() and not (key == "thousands_mark" and text):  # a space may stand between digits
            continue
        said[key] = (
            read_list(text) if key in ("missing", "recode") else text if key == "thousands_mark" else text.strip()
        )
    if "recode" in said:
        said["recode"] = _paired(form[f"recode-{place}"])
    return said


def _texts(form: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return what the data dictionary is to say of a column.

    >>> _texts({"title-2": "Sex at birth", "unit-2": "", "labels-2": "1: male, 2: female"}, "2")
    {'title': 'Sex at birth', 'labels': {'1': 'male', '2': 'female'}}
    """
    said: dict[str, Any] = {key: text for key in TEXTS if (text := form.get(f"{key}-{place}", "").strip())}
    return said | {"labels": _paired(said["labels"])} if "labels" in said else said


def _paired(text: str) -> dict[str, str] | str:
    """Return pairs such as 1: male, 2: female. A text that has none is left for the service to refuse."""
    pairs = [entry.partition(":") for entry in read_list(text)]
    return {code.strip(): to.strip() for code, _, to in pairs} if all(colon for _, colon, _ in pairs) else text


def _columns(form: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns, as they are, with their numbers."""
    for key, name in form.items():
        word, _, place = key.partition("-")
        if word == "column" and place.isascii() and place.isdigit():
            yield name, place


def _number(text: str, field: str) -> str:
    """Return a number as the service takes it.

    Raises:
        ApiRefusal: If it is no number, or can mean two.
    """
    number = number_of(text, field)
    if not PLAIN.fullmatch(number):
        raise ApiRefusal(problem("invalid_parameter", 422, f"{SHORT[field]}: write a number like 0.5 or 1e-6.", field))
    return number


def _whole(text: str, field: str) -> int | None:
    """Return a number of rows or people, or None for an empty field.

    Raises:
        ApiRefusal: If it is no whole number, or has points, which may divide thousands or begin decimals.
    """
    plain = text.replace(",", "").replace(" ", "")
    if plain and not (plain.isascii() and plain.isdigit() and len(plain) < 16):
        raise ApiRefusal(problem("invalid_parameter", 422, WHOLE, field))
    return int(plain) if plain else None
