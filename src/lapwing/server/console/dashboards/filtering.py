"""Filters of a dashboard: which released rows its tiles show, by the values of keys. Nothing is queried.

Guarantee:
    A filter chooses among rows that were released, by a value of a key that the reader chose. That is post-processing:
    it costs nothing, and each number keeps its value and its interval.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from lapwing.answer.key_texts import label_of
from lapwing.answer.truncated_times import text_in
from lapwing.documents.over_time import TIME
from lapwing.privacy.figures import plain

FILTERS: Final = ("f0", "f1", "f2", "f3")
"""Query parameters. Each has a list in JSON: a key and its value."""
MOST_VALUES: Final = 200
"""Values of a key that a filter offers. Keys with more have no filter."""
Choices = Mapping[str, Mapping[str, str]]
"""The values of each key as texts, and what people read in their place."""
Wanted = Mapping[str, str]
"""The value that each key is to have."""


@final
class Filter(NamedTuple):
    """A filter as the form shows it. Args: choices: the value of each in the form, and its text."""

    name: str
    key: str
    choices: Sequence[tuple[str, str]]
    chosen: str


def wanted_in(fields: Mapping[str, str]) -> dict[str, str]:
    """Return what an address wants; what is no filter is left out.

    >>> wanted_in({"f0": '["plan", "a"]', "f1": "plan", "f2": "[1, 2]"})
    {'plan': 'a'}
    """
    wanted = {}
    for name in FILTERS:
        try:
            pair = json.loads(fields.get(name) or "null")
        except (ValueError, RecursionError):
            continue
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair):
            wanted[pair[0]] = pair[1]
    return wanted


def choices_of(document: Mapping[str, Any]) -> Choices:
    """Return the values of the keys of an answer."""
    return {
        key: {
            plain(row[key]): label_of(document, key, row[key]) or text_in(document, key, row[key])
            for row in document["rows"]
        }
        for key in document.get("keys", ())
        if key != TIME
    }


def filters_of(choices: Iterable[Choices], wanted: Wanted) -> list[Filter]:
    """Return the filters of a dashboard, by the keys of its tiles: first those that several tiles have."""
    texts: dict[str, dict[str, str]] = {}
    count: dict[str, int] = {}
    for one in choices:
        for key, values in one.items():
            texts[key] = {**texts.get(key, {}), **values}
            count[key] = count.get(key, 0) + 1
    usable = [key for key, values in texts.items() if 2 <= len(values) <= MOST_VALUES]
    first = sorted(usable, key=lambda key: (key not in wanted, -count[key]))[: len(FILTERS)]
    return [
        Filter(name, key, _options(key, texts[key]), json.dumps([key, wanted[key]]) if key in wanted else "")
        for name, key in zip(FILTERS, first, strict=False)
    ]


def _options(key: str, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(json.dumps([key, value]), text) for value, text in texts.items()]


def only(document: Mapping[str, Any], wanted: Wanted) -> dict[str, Any]:
    """Return a document with the rows whose keys have the wanted values, and without these keys, which are the same.

    >>> only({"columns": ["plan", "n"], "keys": ["plan"], "rows": [{"plan": "a", "n": 3}, {"plan": "b", "n": 5}],
    ...       "intervals": {"n": {"low": [2, 4], "high": [4, 6]}}}, {"plan": "b"})
    {'columns': ['n'], 'keys': [], 'rows': [{'plan': 'b', 'n': 5}], 'intervals': {'n': {'low': [4], 'high': [6]}}}
    """
    keys = [key for key in document.get("keys", ()) if key in wanted and key != TIME]
    if not keys:
        return dict(document)
    places = [n for n, row in enumerate(document["rows"]) if all(plain(row[key]) == wanted[key] for key in keys)]
    return {
        **document,
        "columns": [name for name in document["columns"] if name not in keys],
        "keys": [key for key in document["keys"] if key not in keys],
        "rows": [document["rows"][place] for place in places],
        "intervals": {
            name: {end: [values[place] for place in places] for end, values in ends.items()}
            for name, ends in document["intervals"].items()
        },
    }
