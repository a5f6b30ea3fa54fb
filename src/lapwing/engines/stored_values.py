"""The stored values of a column as the catalog says they are read, as SQL that DuckDB and Spark read alike.

A value becomes what it is read as by itself: whatever else is in its row, in other rows or in its unit has no part in
it. So what a question sees of a unit is a function of that unit's own rows, as it is without these options. What is
proven of cleaned rows (`engines.duckdb.cleaned`) holds: bounds and steps come later, and act on what is read here.

Everything is total. A text is matched with one pattern whose repetitions are all bounded (`catalog.reading`). The
pattern's groups are put together in the one form that casts read in all engines. TRY_CAST gives NULL for what is no
value all the same, such as 31 February. No text makes this raise, in either engine.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from math import floor
from typing import Final, cast, final

from lapwing.catalog.model import Column
from lapwing.catalog.reading import (
    MONTHS,
    NUMBER,
    Code,
    ColumnReading,
    MomentPattern,
    Target,
    code_text,
    moment_patterns,
    number_of,
    number_pattern,
)

_LARGEST_WHOLE: Final = 2**63 - 1
_SPACES: Final = (" ", "\u00a0", "\u202f")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What engines write differently.

    Args:
        matches: The function that tells whether a text contains a pattern.
        text_type: Of texts.
        timestamp: Of timestamps without a zone.
        text: Write constants.
        whole: Write constants.
        double: Write constants.
        constant: Write constants.
    """

    matches: str
    text_type: str
    timestamp: str
    text: Callable[[str], str]
    whole: Callable[[int | None], str]
    double: Callable[[Fraction], str]
    constant: Callable[[object], str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """A stored value.

    Args:
        name: The column, quoted.
        kind: "text", "integer", "float" (short), "number", "other".
    """

    name: str
    kind: str


def is_missing(column: Column, stored: StoredValue, plain: Callable[[str], str], dialect: Dialect) -> str:
    """Return the condition that a stored value stands for none.

    Args:
        plain: Reads an expression as the column's type, by its kind.

    Returns:
        SQL that is never NULL.
    """
    if column.reading is None or not column.reading.missing:
        return "FALSE"
    return _any_of(_matching(column, stored, column.reading.missing, plain, dialect))


def read_stored(column: Column, stored: StoredValue, plain: Callable[[str], str], dialect: Dialect) -> str:
    """Return a stored value as the column's type, or NULL: looked up as missing, then recoded, else read."""
    reading = cast(ColumnReading, column.reading)
    parts = []
    if reading.missing:
        parts.append(f"WHEN {is_missing(column, stored, plain, dialect)} THEN NULL")
    for target in dict.fromkeys(target for _, target in reading.recode):
        codes = [code for code, to in reading.recode if to == target]
        found = _any_of(_matching(column, stored, codes, plain, dialect))
        parts.append(f"WHEN {found} THEN {_written(column, stored, target, dialect)}")
    value = _value(column, stored, plain, dialect)
    return f"(CASE {' '.join(parts)} ELSE {value} END)" if parts else value


def before_rounding(column: Column) -> Column:
    """Return a column of integers as one of numbers, to see which of its values are not whole."""
    reading = None if column.reading is None else replace(column.reading, recode=())
    return Column(name=column.name, type="float", reading=reading if reading and reading.facts else None)


def _any_of(conditions: Sequence[str]) -> str:
    return f"COALESCE({' OR '.join(conditions)}, FALSE)" if conditions else "FALSE"


def _written(column: Column, stored: StoredValue, target: Target, dialect: Dialect) -> str:
    """Write what a value stands for, in the type that the others are read as."""
    if isinstance(target, bool | str | date) or not column.numeric:
        return dialect.constant(target)
    if _reads_whole(column, stored):
        return dialect.whole(floor(target + Fraction(1, 2)))
    return dialect.double(Fraction(target))


def _reads_whole(column: Column, stored: StoredValue) -> bool:
    """Tell whether the column's numbers are read as integers of an engine, not as doubles."""
    if column.bounded:
        return stored.kind == "integer" and column.step == 1
    return column.type == "integer"


# ---- which values are meant ------------------------------------------------------------------------------------------


def _matching(
    column: Column, stored: StoredValue, codes: Sequence[Code], plain: Callable[[str], str], dialect: Dialect
) -> list[str]:
    """Return conditions of which one holds for a stored value that is one of the codes."""
    texts = [code_text(code) for code in codes]
    moments = [code for code in codes if isinstance(code, date)]
    numbers = [number for number in map(_number, codes) if number is not None]
    found = []
    if column.numeric or stored.kind in ("integer", "float", "number"):
        compared = _value(column, stored, plain, dialect) if column.numeric else stored.name
        whole = _reads_whole(column, stored) if column.numeric else stored.kind == "integer"
        compared = compared if whole else f"CAST({compared} AS DOUBLE)"
        found.append(_in(compared, _numbers(numbers, stored, whole, dialect)))
        texts = [code for code in codes if isinstance(code, str) and _number(code) is None] if column.numeric else []
    if moments:
        value = _value(column, stored, plain, dialect)
        kind = dialect.timestamp if column.type == "timestamp" else "DATE"
        same = [f"CAST({dialect.constant(_naive(moment, column.type))} AS {kind})" for moment in moments]
        found.append(_in(value, same))
    if stored.kind in ("text", "other") and texts:
        text = stored.name if stored.kind == "text" else f"CAST({stored.name} AS {dialect.text_type})"
        text = text if column.type == "string" else f"trim({text})"
        found.append(_in(text, map(dialect.text, texts)))
    return [condition for condition in found if condition]


def _in(value: str, constants: Iterator[str] | Sequence[str]) -> str:
    listed = ", ".join(dict.fromkeys(constants))
    return f"{value} IN ({listed})" if listed else ""


def _number(code: Code) -> Fraction | None:
    """Return a code as the number that it is: a text of a column that is none of numbers may be one, too."""
    if isinstance(code, str):
        return number_of(code, ColumnReading())
    return code if isinstance(code, Fraction) else None


def _numbers(numbers: Sequence[Fraction], stored: StoredValue, whole: bool, dialect: Dialect) -> Iterator[str]:
    for number in numbers:
        if not whole:
            yield dialect.double(number)
            if stored.kind == "float":  # which holds the nearest of its own numbers
                yield dialect.double(Fraction(struct.unpack("f", struct.pack("f", float(number)))[0]))
        elif number.denominator == 1 and abs(number) <= _LARGEST_WHOLE:
            yield dialect.whole(int(number))


def _naive(moment: date, kind: str) -> date:
    if kind == "timestamp" and not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    return moment


# ---- how a value is read ---------------------------------------------------------------------------------------------


def _value(column: Column, stored: StoredValue, plain: Callable[[str], str], dialect: Dialect) -> str:
    """Return a value as the column's type has it, missing values and recoded ones as they are stored."""
    reading = cast(ColumnReading, column.reading)
    if column.type in ("date", "timestamp") and (
        stored.kind == "text" or (stored.kind == "integer" and reading.format is not None)
    ):
        text = stored.name if stored.kind == "text" else f"CAST({stored.name} AS {dialect.text_type})"
        kind = dialect.timestamp if column.type == "timestamp" else "DATE"
        read = (_moment(text, pattern, column.type, dialect) for pattern in moment_patterns(reading))
        return f"TRY_CAST(CASE {' '.join(read)} END AS {kind})"
    if stored.kind != "text" or column.type == "string":
        return plain(stored.name)
    if column.type == "boolean":
        word = f"lower(trim({stored.name}))"
        true, false = "'true', 't', 'yes', 'y', '1'", "'false', 'f', 'no', 'n', '0'"
        return f"(CASE WHEN {word} IN ({true}) THEN TRUE WHEN {word} IN ({false}) THEN FALSE END)"
    return plain(_number_text(stored.name, reading, dialect))


def _number_text(name: str, reading: ColumnReading, dialect: Dialect) -> str:
    """Return the digits of a number in text as every engine reads them; NULL for a text that is no number."""
    pattern = f"\\A(?:{number_pattern(reading)})\\z"
    part = {
        kind: f"regexp_extract({name}, {dialect.text(pattern)}, {place})" for place, kind in enumerate(NUMBER, start=1)
    }
    sign = f"replace(trim(concat({part['sign']}, {part['second sign']})), {dialect.text('−')}, '-')"
    for space in _SPACES:
        sign = f"replace({sign}, {dialect.text(space)}, '')"
    whole = part["whole"]
    for mark in _marks(reading):
        whole = f"replace({whole}, {dialect.text(mark)}, '')"
    decimals = f"substr(concat({part['fraction']}, {part['fraction alone']}), 2)"
    digits = f"concat({sign}, '0', {whole}, '.', {decimals}, '0', {part['exponent']})"
    return f"(CASE WHEN {dialect.matches}({name}, {dialect.text(pattern)}) THEN {digits} END)"


def _marks(reading: ColumnReading) -> tuple[str, ...]:
    if reading.thousands_mark is None:
        return ()
    return _SPACES if reading.thousands_mark == " " else (reading.thousands_mark,)


def _moment(text: str, written: MomentPattern, kind: str, dialect: Dialect) -> str:
    """Return the branch of a CASE that reads a text of one format as ISO 8601 has it."""
    pattern = dialect.text(f"\\A{written.pattern}\\z")
    part = {name: f"regexp_extract({text}, {pattern}, {place})" for place, name in enumerate(written.groups, start=1)}
    year = part.get("Y") or f"concat(CASE WHEN {part['y']} >= '69' THEN '19' ELSE '20' END, {part['y']})"
    named = part.get("b") or part.get("B")
    numbers = " ".join(f"WHEN '{name[:3]}' THEN '{number:02}'" for number, name in enumerate(MONTHS, start=1))
    month = f"CASE lower(substr({named}, 1, 3)) {numbers} END" if named else f"lpad({part['m']}, 2, '0')"
    pieces = [year, "'-'", month, "'-'", f"lpad({part['d']}, 2, '0')"]
    if kind == "timestamp":
        hour = f"lpad({part['H']}, 2, '0')" if "H" in part else _hour(part) if "I" in part else "'00'"
        pieces += ["' '", hour, "':'", part.get("M", "'00'"), "':'", part.get("S", "'00'")]
        pieces += ["'.'", f"rpad({part['f']}, 6, '0')"] if "f" in part else []
    return f"WHEN {dialect.matches}({text}, {pattern}) THEN concat({', '.join(pieces)})"


def _hour(part: dict[str, str]) -> str:
    """Return the hour of a day of two halves: 12 AM is 00, 12 PM is 12."""
    hours = " ".join(
        f"WHEN '{hour:02}{half}' THEN '{hour % 12 + (12 if half == 'pm' else 0):02}'"
        for half in ("am", "pm")
        for hour in range(1, 13)
    )
    return f"CASE concat(lpad({part['I']}, 2, '0'), lower({part['p']})) {hours} END"
