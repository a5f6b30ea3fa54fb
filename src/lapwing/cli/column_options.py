"""What the command line says of columns, as often as needed: `COLUMN=TYPE,…`, `COLUMN=LOWER:UPPER`, `COLUMN=A,B,…`."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from lapwing.errors import InvalidParameter
from lapwing.privacy.decimal_comma import with_point

if TYPE_CHECKING:
    from lapwing.catalog.codebook import Codebook

Content = TypeVar("Content")

SHAPES: Final = {
    "--types": "COLUMN=TYPE, like age=integer,cost=decimal:0.01, and a name with a comma as '\"a, b=integer\"'",
    "--bounds": "COLUMN=LOWER:UPPER, like cost=0:5000",
    "--values": "COLUMN=A,B, like plan=a,b",
    "--max-length": "COLUMN=BYTES, like note=2000",
    "--missing": "COLUMN=A,B, like age=-99,999,NA, or '*=NA' for every column",
    "--other": "COLUMN=NAME, like plan=other",
    "--recode": "COLUMN=STORED:VALUE,…, like sex=1:male,2:female",
    "--format": "COLUMN=FORMAT, like day=%m/%d/%Y",
    "--decimal-mark": "COLUMN=MARK, like cost=,",
    "--thousands-mark": "COLUMN=MARK, like cost=.",
    "--currency": "COLUMN=SIGN, like cost=€",
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

    Args:
        types: Of columns, by name. Of texts and truth values there are lists alone, in which a colon is a character.
    """

    def read(text: str, rest: str) -> list[str] | tuple[str | None, str | None]:
        ordered = types.get(text.partition("=")[0]) not in ("string", "boolean", None)
        if not ordered or ":" not in rest:
            return _split("--where", text, rest)
        if len(rest) > 1 and rest.endswith(":"):
            return rest[:-1], None
        return (None, rest[1:]) if len(rest) > 1 and rest.startswith(":") else _bounds(text, rest, "--where")

    return _pairs("--where", texts, read)


def others_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Read repeated `COLUMN=NAME` texts."""
    return _pairs("--other", texts, lambda _, rest: rest)


def of_codebook(
    book: "Codebook", types: Sequence[str] | None, bounds: Sequence[str] | None, values: Sequence[str] | None
) -> tuple[Sequence[str] | None, list[str], list[str]]:
    """Return types, bounds and values as options write them: those that were given, and the others of a codebook."""
    typed = {**book.types, **types_of(types)}
    kinds = [types_line(typed)] if typed else types
    bounded, listed = bounds_of(bounds), values_of(values)
    more_bounds = [f"{name}={low}:{high}" for name, (low, high) in book.bounds.items() if name not in bounded]
    more_values = [f"{name}={_listed(some)}" for name, some in book.values.items() if name not in listed]
    return kinds, [*(bounds or ()), *more_bounds], [*(values or ()), *more_values]


def _listed(values: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def missing_of(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Read repeated `COLUMN=A,B` texts of missing values."""
    return _pairs("--missing", texts, lambda text, rest: _split("--missing", text, rest))


def reading_of(
    missing: Sequence[str] | None,
    recode: Sequence[str] | None,
    written: Mapping[str, Sequence[str] | None],
) -> dict[str, dict[str, object]]:
    """Read how columns are read: options of `catalog.reading`, by column.

    Args:
        written: By option, like `--format`.
    """
    found: dict[str, dict[str, object]] = {}
    for column, codes in missing_of(missing).items():
        found.setdefault(column, {})["missing"] = codes
    for column, pairs in _pairs("--recode", recode, _stands_for).items():
        found.setdefault(column, {})["recode"] = pairs
    for option, texts in written.items():
        for column, text in _pairs(option, texts, lambda _, rest: rest).items():
            found.setdefault(column, {})[option.removeprefix("--").replace("-", "_")] = text
    return found


def _stands_for(text: str, rest: str) -> dict[str, str]:
    pairs = [entry.partition(":") for entry in _split("--recode", text, rest)]
    if not all(colon for _, colon, _ in pairs):
        raise InvalidParameter(f"--recode {text[:80]!r} is no pairs; write {SHAPES['--recode']}.")
    return {stored: value for stored, _, value in pairs}


def _whole(text: str, rest: str) -> int:
    if not rest.isascii() or not rest.isdecimal() or len(rest) > 9:
        raise InvalidParameter(f"--max-length {text[:80]!r} is no length; write {SHAPES['--max-length']}.")
    return int(rest)


def _pairs(option: str, texts: Sequence[str] | None, read: Callable[[str, str], Content]) -> dict[str, Content]:
    """Read `COLUMN=…` texts; no type and no bound holds a `=`, so that before the last one the name of a column may."""
    pairs: dict[str, Content] = {}
    for text in texts or ():
        listed = option not in ("--types", "--bounds", "--max-length")
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
    return with_point(":".join(parts[:middle])), with_point(":".join(parts[middle:]))


def _split(option: str, text: str, rest: str) -> list[str]:
    """Split at commas; what holds one stands in double quotes, as in CSV."""
    try:
        rows = list(csv.reader([rest], strict=True))
    except csv.Error:
        example = "'plan=\"a,b\",c'" if option != "--types" else "'\"a,b=integer\",c=date'"
        raise InvalidParameter(
            f"{option} {text[:80]!r} has an unpaired double quote; quote the whole item, like {example}."
        ) from None
    if len(rows) != 1 or not rows[0]:
        raise InvalidParameter(f"{option} {text[:80]!r} has no values; write {SHAPES[option]}.")
    return rows[0]
