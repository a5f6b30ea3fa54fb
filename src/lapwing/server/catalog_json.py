"""A catalog that was sent as JSON, as the TOML that says the same: there is one reader of catalogs.

JSON has no dates and its numbers may lose digits on the way, so a bound or a value may be an object, as in questions:
`{"date": "2026-12-31"}`, `{"timestamp": "2026-12-31T12:00:00"}`, `{"decimal": "0.10"}`.
A listed value may have a label, as in the file: `{"value": 1, "label": "male"}`.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse

DEEPEST: Final = 8
"""Sections of a catalog lie in each other five deep."""
BOUNDS: Final = frozenset({"lower", "upper", "step", "values"})
READERS: Final[Mapping[str, Callable[[str], date | Decimal]]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "decimal": Decimal,
}


def text_of(document: Mapping[str, Any]) -> str:
    """Return a catalog's document as TOML.

    Raises:
        CatalogError: With the place, for what a catalog cannot hold.

    >>> print(text_of({"budget": {"epsilon": 0.1, "delta": 1e-6}}))
    [budget]
    epsilon = 0.1
    delta = 1e-06
    """
    return "\n".join(_section((), document)) + "\n"


def _section(path: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a section: what it says itself, then the sections in it."""
    if len(path) > DEEPEST:
        refuse(".".join(path[:DEEPEST]), "nested too deeply; docs/reference/catalog.md shows the form")
    inner = {key: value for key, value in section.items() if isinstance(value, Mapping) and not _is_value(path, key)}
    plain = {key: value for key, value in section.items() if key not in inner}
    if path and (plain or not inner):
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value((*path, key), value)}"
    for key, value in inner.items():
        yield from _section((*path, key), value)


def _is_value(path: tuple[str, ...], key: str) -> bool:
    """Tell whether an object there stands for a date or a number: it is a bound or a value of a column."""
    return len(path) == 4 and (path[0], path[2]) == ("tables", "columns") and key in BOUNDS


def _value(path: tuple[str, ...], value: Any) -> str:
    place = ".".join(path)
    match value:
        case None:
            refuse(place, "is null; leave out the field")
        case bool() | int():
            return spelling.value(value)
        case float():
            return repr(value)
        case str():
            return spelling.text(_checked(place, value))
        case list() if not any(isinstance(item, list) for item in value):
            return f"[{', '.join(_value(path, item) for item in value)}]"
        case Mapping() if path[-1] == "values" and value.keys() == {"value", "label"}:
            return f"{{ {', '.join(f'{key} = {_value((*path, key), inner)}' for key, inner in value.items())} }}"
        case Mapping():
            return _typed(place, value)
    return refuse(place, "is a list of lists, which a catalog cannot have")


def _typed(place: str, value: Mapping[str, Any]) -> str:
    """Return a date, a time or a number that was written as an object."""
    remedy = 'write one of {"date": "2026-12-31"}, {"timestamp": "2026-12-31T12:00:00"}, {"decimal": "0.10"}'
    if len(value) != 1 or not value.keys() <= READERS.keys() or not all(isinstance(v, str) for v in value.values()):
        refuse(place, f"is an object that is not a value; {remedy}")
    ((kind, text),) = value.items()
    try:
        typed = READERS[kind](text[:100])
        if not isinstance(typed, Decimal) or typed.is_finite():
            return spelling.value(typed)
    except (ValueError, ArithmeticError):
        pass
    return refuse(place, f"is not {kind}; {remedy}")


def _key(key: str) -> str:
    return spelling.key(_checked("a key", key))


def _checked(place: str, text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        refuse(place, "has half a character, which a file cannot store; write it as UTF-8")
    return text
