"""Which field of a draft is at fault: the one without which the draft is not refused.

The errors of the catalog's readers are texts for people. So the draft is made again without one statement at a time.
That reads only names and types in the file, and the curator's own words, like the first draft.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from lapwing.errors import CatalogError, InvalidParameter

Stated = TypeVar("Stated", bound=Any)
OF_COLUMNS: Final[Mapping[str, str]] = {"bounds": "bounds", "values": "values", "others": "other", "reading": "reading"}
"""The statements about columns, each with its field of the request. Types are last: every column has one."""
PLAIN: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (
    ("name", {"name": None}),
    ("people", {"people": None}),
    ("unit_title", {"unit_title": None}),
    ("max_rows_per_unit", {"max_rows_per_unit": 1}),
    ("privacy_unit", {"privacy_unit": "row", "max_rows_per_unit": None}),
    ("epsilon", {"epsilon": 1}),
    ("delta", {"delta": 0}),
)
"""Fields, with what is never refused in their place."""
MOST_COLUMNS: Final = 200


def field_at_fault(stated: Stated, draft: Callable[[Stated], object]) -> str | None:
    """Return the field by which a draft is refused, such as `epsilon` or `bounds.age`; None if it is no single field.

    Args:
        stated: The curator's statements, which are refused.
        draft: Makes the draft, or refuses it.
    """

    def passes(one: Stated) -> bool:
        try:
            draft(one)
        except (CatalogError, InvalidParameter):
            return False
        return True

    bare = _without_columns(stated)
    if not passes(bare):
        return next((field for field, plain in PLAIN if passes(replace(bare, **plain))), None)
    for name in _columns(stated)[:MOST_COLUMNS]:
        if not passes(_only(stated, name)):
            return next((field for field, less in _less(_only(stated, name), name) if passes(less)), f"types.{name}")
    return None


def _columns(stated: Any) -> list[str]:
    names = (name for key in ("types", *OF_COLUMNS) for name in getattr(stated, key))
    return list(dict.fromkeys(names))


def _without_columns(stated: Stated) -> Stated:
    return replace(stated, **{key: {} for key in ("types", *OF_COLUMNS)})


def _only(stated: Stated, name: str) -> Stated:
    """Return what is stated of one column, and of the whole."""
    keys = ("types", *OF_COLUMNS)
    said = {key: getattr(stated, key) for key in keys}
    return replace(stated, **{key: {name: said[key][name]} if name in said[key] else {} for key in keys})


def _less(stated: Stated, name: str) -> Iterator[tuple[str, Stated]]:
    """Yield what is stated of a column without one field each."""
    for option in stated.reading.get(name, {}):
        rest = {key: value for key, value in stated.reading[name].items() if key != option}
        yield f"reading.{name}.{option}", replace(stated, reading={name: rest} if rest else {})
    if name in stated.bounds:
        lower, upper = stated.bounds[name]
        yield f"bounds.{name}.0", replace(stated, bounds={name: (upper, upper)})
        yield f"bounds.{name}.1", replace(stated, bounds={name: (lower, lower)})
    for key, field in OF_COLUMNS.items():
        if name in getattr(stated, key):
            yield f"{field}.{name}", replace(stated, **{key: {}})
