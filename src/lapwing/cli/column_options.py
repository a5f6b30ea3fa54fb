"""What the command line says of columns, as often as needed: `COLUMN=TYPE,…`, `COLUMN=LOWER:UPPER`, `COLUMN=A,B,…`."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from lapwing.errors import InvalidParameter

Content = TypeVar("Content")

SHAPES: Final = {
    "--types": "COLUMN=TYPE, like age=integer,cost=decimal:0.01, and a name with a comma as '\"a, b=integer\"'",
    "--bounds": "COLUMN=LOWER:UPPER, like cost=0:5000",
    "--values": "COLUMN=A,B, like plan=a,b",
    "--max-length": "COLUMN=BYTES, like note=2000",
    "--where": "COLUMN=A,B like site=north,south, or COLUMN=LOWER:UPPER like day=2024-01-01:2024-12-31",
}


def types_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Read repeated `COLUMN=TYPE,COLUMN=TYPE` texts."""
    entries = [entry for text in texts or () for entry in _split("--types", text, text)]
    return _pairs("--types", entries, lambda _, kind: kind)


def types_line(types: Mapping[str, str]) -> str:
    """Return one text that `types_of` reads as these types."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([f"{name}={kind}" for name, kind in types.items()])
    return line.getvalue()


def bounds_of(texts: Sequence[str] | None) -> dict[str, tuple[str, str]]:
    """Read repeated `COLUMN=LOWER:UPPER` texts."""
    return _pairs("--bounds", texts, _bounds)


def values_of(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Read repeated `COLUMN=A,B` texts."""
    return _pairs("--values", texts, lambda text, rest: _split("--values", text, rest))


def lengths_of(texts: Sequence[str] | None) -> dict[str, int]:
    """Read repeated `COLUMN=BYTES` texts."""
    return _pairs("--max-length", texts, _whole)


def where_of(
    texts: Sequence[str] | None, types: Mapping[str, str]
) -> dict[str, list[str] | tuple[str | None, str | None]]:
    """Read repeated `COLUMN=A,B` and `COLUMN=LOWER:UPPER` texts; the latter of columns that have an order.

    Args: types: of columns, by name. Of texts and truth values there are lists alone, in which a colon is a character.
    """

    def read(text: str, rest: str) -> list[str] | tuple[str | None, str | None]:
        ordered = types.get(text.partition("=")[0]) not in ("string", "boolean", None)
        if not ordered or ":" not in rest:
            return _split("--where", text, rest)
        if len(rest) > 1 and rest.endswith(":"):
            return rest[:-1], None
        return (None, rest[1:]) if len(rest) > 1 and rest.startswith(":") else _bounds(text, rest, "--where")

    return _pairs("--where", texts, read)


def _whole(text: str, rest: str) -> int:
    if not rest.isascii() or not rest.isdecimal() or len(rest) > 9:
        raise InvalidParameter(f"--max-length {text[:80]!r} is no length; write {SHAPES['--max-length']}.")
    return int(rest)


def _pairs(option: str, texts: Sequence[str] | None, read: Callable[[str, str], Content]) -> dict[str, Content]:
    """Read `COLUMN=…` texts; no type and no bound holds a `=`, so that before the last one the name of a column may."""
    pairs: dict[str, Content] = {}
    for text in texts or ():
        listed = option in ("--values", "--where")
        column, equals, rest = text.partition("=") if listed else text.rpartition("=")
        if not column or not equals:
            raise InvalidParameter(f"{option} {text[:80]!r} names no column; write {SHAPES[option]}.")
        if column in pairs:
            raise InvalidParameter(f"{option} is given twice for {column!r}; give it once.")
        pairs[column] = read(text, rest)
    return pairs


def _bounds(text: str, rest: str, option: str = "--bounds") -> tuple[str, str]:
    """Split at the middle colon, so that times of day may be bounds too."""
    parts = rest.split(":")
    middle = len(parts) // 2
    if len(parts) % 2 or not parts[0] or not parts[-1]:
        raise InvalidParameter(f"{option} {text[:80]!r} is not a pair; write {SHAPES[option]}.")
    return ":".join(parts[:middle]), ":".join(parts[middle:])


def _split(option: str, text: str, rest: str) -> list[str]:
    """Split at commas; what holds one stands in double quotes, as in CSV."""
    try:
        rows = list(csv.reader([rest], strict=True))
    except csv.Error:
        example = "'plan=\"a,b\",c'" if option != "--types" else "'\"a,b=integer\",c=date'"
        raise InvalidParameter(
            f"{option} {text[:80]!r} has a double quote without its partner; quote it whole, like {example}."
        ) from None
    if len(rows) != 1 or not rows[0]:
        raise InvalidParameter(f"{option} {text[:80]!r} lists nothing; write {SHAPES[option]}.")
    return rows[0]
