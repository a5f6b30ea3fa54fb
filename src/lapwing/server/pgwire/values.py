"""Values on the wire: results as the types of PostgreSQL, and parameters of prepared statements from them.

The type of a column follows from its query, before any value is known. So a client may ask for it at any time. An
integer is `int8`. Where a released one does not fit, a column that was not described before is `numeric`
(`results.widened`). Else it is an error (`BadValue`), and never becomes another number. A
parameter becomes a Python value that the service takes next to the text of a query; it never passes through the text.

Source:
    PostgreSQL 18, `src/include/catalog/pg_type.dat` for the numbers of types, and the `*_send` and `*_recv`
    functions of `src/backend/utils/adt` for their binary formats.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Final, final

from lapwing.answer.python_values import Cell
from lapwing.server.pgwire.messages import BINARY, TEXT

BOOL, INT8, INT2, INT4, TEXT_TYPE, OID, FLOAT4, FLOAT8 = 16, 20, 21, 23, 25, 26, 700, 701
NAME, UNKNOWN, BPCHAR, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 19, 705, 1042, 1043, 1082, 1114, 1184, 1700
SIZES: Final[Mapping[int, int]] = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, NAME: 64} | {
    DATE: 4, TIMESTAMP: 8, TIMESTAMPTZ: 8
}  # fmt: skip
"""The bytes that a value of a type takes; of other types it varies."""
TYPES: Final[Mapping[str, int]] = {
    "integer": INT8,
    "decimal": NUMERIC,
    "real": FLOAT8,
    "text": TEXT_TYPE,
    "boolean": BOOL,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "null": TEXT_TYPE,
}
"""The types of columns of answers."""
Shown = Cell | list[Cell]
"""A value of a result; a list is an array, which only the catalog has."""
ARRAYS: Final[Mapping[int, int]] = {1000: BOOL, 1005: INT2, 1007: INT4, 1009: TEXT_TYPE, 1016: INT8, 1028: OID}
"""The types of arrays, each with the type of its elements."""
_EXACT: Final = Context(prec=1_000)
_EPOCH_DAY: Final = date(2000, 1, 1).toordinal()
_EPOCH: Final = datetime(2000, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_TRUE: Final = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "off", "0"})
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,100}\s*", re.ASCII)
_NUMBER: Final = re.compile(
    r"\s*[+-]?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:[eE][+-]?[0-9]{1,4})?\s*", re.ASCII
)
_QUOTED: Final = re.compile(r'[",\r\n]|\A\Z|\A\\\.\Z')
_COPY_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_ESCAPED: Final = str.maketrans(
    {"\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
)


_NOT_SENT: Final = (
    "{} of the result is out of the range of {}. The result is stored: run the query again over HTTP or in Python, "
    "which is free."
)


@final
class BadValue(Exception):
    """A value that cannot be read or written; `state` is its SQLSTATE. The text never holds the value."""

    def __init__(self, reason: str, state: str) -> None:
        self.state = state
        super().__init__(reason)


# ---- results ---------------------------------------------------------------------------------------------------------


def written(value: Shown, type_: int, format_: int) -> bytes | None:
    """Return a value of a result as a client reads it; None for NULL.

    Raises:
        BadValue: If the type has no such value.
    """
    if value is None:
        return None
    if isinstance(value, list):
        return _array(value, ARRAYS[type_], format_)
    if type_ == INT8 and not (isinstance(value, int) and -(2**63) <= value < 2**63):
        raise BadValue(_NOT_SENT.format("An integer", "bigint"), "22003")
    return _as_text(value).encode("utf-8", "replace") if format_ == TEXT else _as_binary(value, type_)


def _array(cells: Sequence[Cell], type_: int, format_: int) -> bytes:
    """Return an array of one dimension, as `array_out` and `array_send` do."""
    parts = [written(cell, type_, format_) for cell in cells]
    if format_ == TEXT:
        texts = ["NULL" if part is None else _element(part.decode()) for part in parts]
        return f"{{{','.join(texts)}}}".encode()
    head = struct.pack(">iiI", bool(parts), None in parts, type_) + (
        struct.pack(">ii", len(parts), 1) if parts else b""
    )
    return head + b"".join(
        b"\xff\xff\xff\xff" if part is None else len(part).to_bytes(4, "big") + part for part in parts
    )


def _element(text: str) -> str:
    if text.upper() != "NULL" and re.fullmatch(r"[^\s{}\",\\]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _as_text(value: Cell) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            if value in (float("inf"), -float("inf")):
                return "Infinity" if value > 0 else "-Infinity"
            return "NaN" if value != value else repr(value).removesuffix(".0")
        case Decimal():
            return f"{value:f}"
        case datetime():
            whole = value.isoformat(" ", "seconds")
            return f"{whole}.{value.microsecond:06}".rstrip("0") if value.microsecond else whole
        case date():
            return value.isoformat()
        case _:
            return str(value).replace("\0", "\ufffd")


def _as_binary(value: Cell, type_: int) -> bytes:
    match value:
        case bool():
            return b"\x01" if value else b"\0"
        case int() if type_ == NUMERIC:
            return _numeric(Decimal(value))
        case int() if type_ in (INT2, INT4, OID):
            return value.to_bytes(SIZES[type_], "big", signed=type_ != OID)
        case int():
            return struct.pack(">q", value)
        case float():
            return struct.pack(">d", value)
        case Decimal():
            return _numeric(value)
        case datetime():
            return struct.pack(">q", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
        case date():
            return struct.pack(">i", value.toordinal() - _EPOCH_DAY)
        case _:
            return str(value).replace("\0", "\ufffd").encode("utf-8", "replace")


def _numeric(value: Decimal) -> bytes:
    """Return a decimal as `numeric_send` does: digits to the base of 10,000, the weight of the first, and the scale."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack(">HhHH", 0, 0, 0xC000, 0)
    scale = max(-exponent, 0)
    whole = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0)
    groups, rest = -(-scale // 4), whole * 10 ** (-scale % 4)
    parts: list[int] = []
    while rest:
        rest, part = divmod(rest, 10_000)
        parts.append(part)
    weight = len(parts) - groups - 1
    while parts and parts[0] == 0:
        parts.pop(0)
    if len(parts) > 0x7FFF or not -0x8000 <= weight < 0x8000 or scale > 0x3FFF:
        raise BadValue(_NOT_SENT.format("A number", "numeric"), "22003")
    return struct.pack(f">HhHH{len(parts)}H", len(parts), weight if parts else 0, 0x4000 * sign, scale, *parts[::-1])


def copied(
    columns: Sequence[str], types: Sequence[int], rows: Iterator[Sequence[Shown]], *, form: str, header: bool = False
) -> Iterator[bytes]:
    """Yield the data of a COPY, row by row.

    Args:
        form: `text`, `csv` or `binary`.
        header: Whether the names of the columns come first, which binary data do not have.

    Raises:
        BadValue: If a type has no such value.
    """
    if form == "binary":
        beginning = _COPY_SIGNATURE  # with the first row, as PostgreSQL sends it: clients rely on that
        for row in rows:
            values = [written(value, type_, BINARY) for value, type_ in zip(row, types, strict=True)]
            parts = [b"\xff\xff\xff\xff" if v is None else len(v).to_bytes(4, "big") + v for v in values]
            yield beginning + len(values).to_bytes(2, "big") + b"".join(parts)
            beginning = b""
        yield beginning + b"\xff\xff"
        return
    line = _csv_line if form == "csv" else _text_line
    if header:
        yield line(list(columns))
    for row in rows:
        texts = [written(value, type_, TEXT) for value, type_ in zip(row, types, strict=True)]
        yield line([None if text is None else text.decode() for text in texts])


def _text_line(texts: Sequence[str | None]) -> bytes:
    return ("\t".join(r"\N" if text is None else text.translate(_ESCAPED) for text in texts) + "\n").encode()


def _csv_line(texts: Sequence[str | None]) -> bytes:
    """Return a line in which NULL is nothing and an empty text is `""`."""
    quoted = (
        "" if text is None else f'"{text.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(text) else text
        for text in texts
    )
    return (",".join(quoted) + "\n").encode()


# ---- parameters ------------------------------------------------------------------------------------------------------


def read(data: bytes | None, type_: int, format_: int, number: int) -> object:
    """Return the value of a parameter: bool, int, Decimal, float, str, date, datetime, or None for NULL.

    Args:
        type_: Its type by number; 0 or one that is unknown here is read as a text.
        number: Of the parameter, from 1, for messages.

    Raises:
        BadValue: If it is none.
    """
    if data is None:
        return None
    if format_ == BINARY:
        reader = _FROM_BINARY.get(type_)
        if reader is None:
            raise BadValue(f"Parameter {number} has the type {type_}, which is not supported in binary.", "0A000")
        try:
            return reader(data)
        except (struct.error, KeyError, ValueError, OverflowError, ArithmeticError):
            raise BadValue(f"Parameter {number} is no value of its type.", "22P03") from None
    try:
        return _FROM_TEXT.get(type_, str)(data.decode())
    except (ValueError, OverflowError, ArithmeticError):
        state = "22007" if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ) else "22P02"
        raise BadValue(f"Parameter {number} is no value of its type.", state) from None


_ARRAYS: Final = (1000, 1005, 1007, 1009, 1015, 1016, 1028)


def _array_of(data: bytes) -> list[object]:
    """Return an array of one dimension."""
    dimensions, _, type_ = struct.unpack(">iiI", data[:12])
    if dimensions == 0:
        return []
    (size, _), at, found = struct.unpack(">ii", data[12:20]), 20, list[object]()
    if dimensions != 1 or not 0 <= size <= len(data) or type_ in _ARRAYS:
        raise ValueError
    for _ in range(size):
        (length,) = struct.unpack(">i", data[at : at + 4])
        at += 4
        found.append(None if length < 0 else _FROM_BINARY[type_](data[at : at + length]))
        at += max(length, 0)
    return found


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return Decimal(text.strip())


def _timestamptz(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _unpacked(form: str) -> Callable[[bytes], object]:
    """Return what reads one value of a form of `struct`."""

    def value(data: bytes) -> object:
        (read_,) = struct.unpack(form, data)
        return read_

    return value


def _date_of(data: bytes) -> date:
    days: int = struct.unpack(">i", data)[0]
    return date.fromordinal(days + _EPOCH_DAY)


def _moment_of(data: bytes) -> datetime:
    microseconds: int = struct.unpack(">q", data)[0]
    return _EPOCH + microseconds * _MICROSECOND


def _numeric_of(data: bytes) -> Decimal:
    size, weight, sign, scale = struct.unpack(">HhHH", data[:8])
    digits = struct.unpack(f">{size}H", data[8:])
    if sign not in (0, 0x4000) or any(digit > 9_999 for digit in digits) or abs(weight) > 100 or size > 100:
        raise ValueError
    whole = 0
    for digit in digits:
        whole = whole * 10_000 + digit
    value = Decimal(-whole if sign else whole).scaleb(4 * (weight - size + 1), _EXACT)
    return value.quantize(Decimal(1).scaleb(-scale, _EXACT), context=_EXACT) if scale <= 400 else value


def _truth(data: bytes) -> bool:
    if data not in (b"\0", b"\x01"):
        raise ValueError
    return data == b"\x01"


_FROM_TEXT: Final[Mapping[int, Callable[[str], object]]] = {
    BOOL: _bool,
    **dict.fromkeys((INT2, INT4, INT8, OID), _whole),
    NUMERIC: _decimal,
    **dict.fromkeys((FLOAT4, FLOAT8), lambda text: float(_decimal(text))),
    DATE: lambda text: date.fromisoformat(text.strip()),
    TIMESTAMP: lambda text: datetime.fromisoformat(text.strip()).replace(tzinfo=None),
    TIMESTAMPTZ: _timestamptz,
}
_FROM_BINARY: Final[Mapping[int, Callable[[bytes], object]]] = {
    BOOL: _truth,
    INT2: _unpacked(">h"),
    INT4: _unpacked(">i"),
    INT8: _unpacked(">q"),
    OID: _unpacked(">I"),
    FLOAT4: _unpacked(">f"),
    FLOAT8: _unpacked(">d"),
    NUMERIC: _numeric_of,
    **dict.fromkeys((0, TEXT_TYPE, VARCHAR, BPCHAR, NAME, UNKNOWN), bytes.decode),
    DATE: _date_of,
    TIMESTAMP: _moment_of,
    TIMESTAMPTZ: lambda data: _moment_of(data).replace(tzinfo=UTC),
    **dict.fromkeys(_ARRAYS, _array_of),
}
