"""The form of the second step as the service takes it; fields of a column bear its number, as names may hold all."""

import csv
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lapwing.server.console.acting import number_of

TYPES: Final = ("integer", "decimal:0.01", "float", "boolean", "string", "date", "timestamp")


def draft_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what a draft of a catalog is made from.

    >>> draft_of({"file": "v.csv", "unit": "id", "epsilon": "3", "rows": "5", "column-0": "age", "lower-0": "0",
    ...           "upper-0": "110", "type-0": "integer", "column-1": "plan", "values-1": 'a, b'})["bounds"]
    {'age': ['0', '110']}
    """
    said = {name: value.strip() for name, value in form.items()}
    body: dict[str, Any] = {
        "folder": form.get("folder") or None,
        "file": form.get("file", ""),
        "name": said.get("dataset") or None,
        "privacy_unit": said.get("unit", ""),
        "epsilon": number_of(said.get("epsilon", "")),
        "delta": number_of(said.get("delta") or "0"),
        "max_rows_per_unit": _whole(said.get("rows", "")),
        "people": _whole(said.get("people", "")),
        "types": {name: said[f"type-{place}"] for name, place in _columns(form) if said.get(f"type-{place}")},
        "bounds": {
            name: [said.get(f"lower-{place}", ""), said.get(f"upper-{place}", "")]
            for name, place in _columns(form)
            if said.get(f"lower-{place}") or said.get(f"upper-{place}")
        },
        "values": {
            name: _listed(said[f"values-{place}"]) for name, place in _columns(form) if said.get(f"values-{place}")
        },
    }
    return body


def _columns(form: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns, as they are, with their numbers."""
    for key, name in form.items():
        word, _, place = key.partition("-")
        if word == "column" and place.isascii() and place.isdigit():
            yield name, place


def _listed(text: str) -> list[str]:
    """Return the values of a list with commas, in quotes where one holds a comma.

    >>> _listed('a, b,"c, d"')
    ['a', 'b', 'c, d']
    """
    return [value.strip() for value in next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True))]


def _whole(text: str) -> int | str | None:
    """Return a number of rows or people; what is none is left for the service to refuse."""
    plain = text.replace(",", "").replace(" ", "")
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 16 else text or None
