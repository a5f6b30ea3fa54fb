"""How the stored values of a column are read: which are missing, which stand for others, how dates are written.

    age  = { type = "integer", lower = 0, upper = 110, missing = [-99, 999, "NA", "."] }
    sex  = { type = "string", values = ["male", "female"], recode = { "1" = "male", "2" = "female" } }
    day  = { type = "date", format = "%m/%d/%Y" }
    cost = { type = "decimal", step = 0.01, decimal_mark = ",", thousands_mark = ".", currency = "€" }

A value is read once, by itself, before bounds and conditions: first it is looked up in `missing`, then in `recode`, and
otherwise read as the column's type. What becomes of it depends on the value and on the catalog alone, and every text
has an outcome: one that cannot be read is NULL. `engines.stored_values` prints this for every engine.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse
from lapwing.errors import CatalogError

if TYPE_CHECKING:  # a column calls these checks when it is made
    from lapwing.catalog.section import TomlSection
    from lapwing.catalog.table import Column

Code = Fraction | str | date
"""A stored value, as the catalog writes it."""
Target = Fraction | int | str | bool | date
"""What a stored value stands for: of the column's type."""

OPTIONS: Final = ("missing", "recode", "format", "decimal_mark", "thousands_mark", "currency")
MOST_CODES: Final = 1000
LARGEST_CODE: Final = 2**63 - 1
SPACES: Final = "[ \u00a0\u202f]"
"""Between digits and around them; written with a pattern that every engine reads alike."""
_DECIMAL_MARKS: Final = (".", ",")
_THOUSANDS_MARKS: Final = (",", ".", " ", "'", "’")
_NUMERIC: Final = ("integer", "decimal", "float")
_TEMPORAL: Final = ("date", "timestamp")
DIRECTIVES: Final = "%Y %y %m %d %b %B %H %I %M %S %f %p %%"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """How the stored values of a column are read.

    Args:
        missing: Stored values that stand for none, so that they are NULL. A number is that number however it is stored;
            a text is what is written, without the spaces around it unless the column is of texts.
        recode: Pairs of a stored value and the value that it stands for; all others are read as they are.
        format: How dates or timestamps are written in text, by the directives of `strptime` in DIRECTIVES.
        decimal_mark: How numbers are written in text.
        thousands_mark: How numbers are written in text.
        currency: How numbers are written in text.
    """

    missing: tuple[Code, ...] = ()
    recode: tuple[tuple[Code, Target], ...] = ()
    format: str | None = None
    decimal_mark: str | None = None
    thousands_mark: str | None = None
    currency: str | None = None

    @property
    def facts(self) -> dict[str, object]:
        """What it means, as texts for a fingerprint: what is not said is not there, and order says nothing."""
        said: dict[str, object] = {key: text for key in OPTIONS[2:] if (text := getattr(self, key)) is not None}
        if self.missing:
            said["missing"] = sorted(map(spelling.value, self.missing))
        if self.recode:
            said["recode"] = {spelling.value(code): spelling.value(target) for code, target in self.recode}
        return said

    @property
    def changes_texts(self) -> bool:
        """Whether it says how dates or numbers are written."""
        return any(getattr(self, key) is not None for key in OPTIONS[2:])

    def entries(self) -> Iterator[str]:
        """Write it as entries of a column in a catalog."""
        if self.missing:
            yield f"missing = [{', '.join(map(spelling.value, self.missing))}]"
        if self.recode:
            pairs = (f"{spelling.text(code_text(code))} = {spelling.value(target)}" for code, target in self.recode)
            yield f"recode = {{ {', '.join(pairs)} }}"
        for key in OPTIONS[2:]:
            if getattr(self, key) is not None:
                yield f"{key} = {spelling.text(getattr(self, key))}"


def code_text(code: Code) -> str:
    """Return a stored value as a text of it is written."""
    if isinstance(code, str):
        return code
    return spelling.value(code).replace("+00:00", "")


# ---- numbers ---------------------------------------------------------------------------------------------------------

NUMBER: Final = ("sign", "second sign", "whole", "fraction", "fraction alone", "exponent")
"""The groups of `number_pattern`, from 1."""


def number_pattern(reading: ColumnReading) -> str:
    """Return the pattern of a number in text, with the groups NUMBER: RE2, Java and Python read it alike.

    Every repetition is bounded, so that no text makes an engine of regular expressions give up.
    """
    mark, thousands = re.escape(reading.decimal_mark or "."), reading.thousands_mark
    group = "" if thousands is None else SPACES if thousands == " " else _literal(thousands)
    grouped = "" if thousands is None else f"[0-9]{{1,3}}(?:{group}[0-9]{{3}}){{1,12}}|"
    currency = "" if reading.currency is None else f"(?:{_literal(reading.currency)}{SPACES}{{0,4}})?"
    after = "" if reading.currency is None else f"(?:{SPACES}{{0,4}}{_literal(reading.currency)})?"
    sign = f"([+\\-−]{SPACES}{{0,4}})?"
    digits = f"(?:({grouped}[0-9]{{1,40}})({mark}[0-9]{{0,40}})?|({mark}[0-9]{{1,40}}))"
    second = "([+\\-−])?" if currency else "()"
    return f"{SPACES}{{0,64}}{sign}{currency}{second}{digits}([eE][+\\-]?[0-9]{{1,2}})?{after}{SPACES}{{0,64}}"


def _literal(text: str) -> str:
    """Write a text as a pattern that means it: re.escape leaves letters as they are."""
    return re.escape(text)


def number_of(text: str, reading: ColumnReading) -> Fraction | None:
    """Return the number that a text is read as; None if it is none, or has too many digits for a catalog."""
    match = re.fullmatch(number_pattern(reading), text)
    if match is None:
        return None
    sign, second, whole, fraction, alone, exponent = (part or "" for part in match.groups())
    digits = "".join(re.findall("[0-9]", whole)) or "0"
    decimals = (fraction or alone)[1:]
    signs = (sign + second).replace("−", "-")
    if signs.count("-") + signs.count("+") > 1:
        return None
    try:
        return spelling.exact(Decimal(f"{'-' if '-' in signs else ''}{digits}.{decimals or '0'}{exponent}"))
    except CatalogError:
        return None


# ---- dates -----------------------------------------------------------------------------------------------------------

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DIGITS: Final = {"Y", "y", "m", "d", "H", "I", "M", "S", "f"}
_LONG: Final[Mapping[str, str]] = {
    "Y": "[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9]",
    "y": "[0-9]{2}",
    "m": "0[1-9]|1[0-2]",
    "d": "0[1-9]|[12][0-9]|3[01]",
    "H": "[01][0-9]|2[0-3]",
    "I": "0[1-9]|1[0-2]",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,6}",
    "p": "[AaPp][Mm]",
    "b": "|".join("".join(f"[{letter.upper()}{letter}]" for letter in month[:3]) for month in MONTHS),
    "B": "|".join("".join(f"[{letter.upper()}{letter}]" for letter in month) for month in MONTHS),
}
_SHORT: Final[Mapping[str, str]] = {"m": "0?[1-9]|1[0-2]", "d": "0?[1-9]|[12][0-9]|3[01]", "H": "[01]?[0-9]|2[0-3]"} | {
    "I": "0?[1-9]|1[0-2]"
}
"""Of what may be written with one digit, unless digits of something else stand beside it."""
ISO: Final = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ",
)  # fmt: skip
"""How dates and timestamps are written where a catalog does not say."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MomentPattern:
    """The pattern of a date or timestamp in text.

    Args:
        groups: The directive of each group, from 1.
    """

    pattern: str
    groups: tuple[str, ...]


def moment_patterns(reading: ColumnReading) -> tuple[MomentPattern, ...]:
    """Return the patterns of dates and timestamps: that of the format, or those of ISO 8601; none overlap."""
    return tuple(map(moment_pattern, (reading.format,) if reading.format is not None else ISO))


def moment_pattern(written: str) -> MomentPattern:
    """Return the pattern of a format.

    Raises:
        ValueError: Which says what is wrong with it.
    """
    parts = re.findall(r"%.?|[^%]+", written, re.DOTALL)
    kinds = [part[1:] if part.startswith("%") and part != "%%" else None for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind is not None and kind not in _LONG:
            raise ValueError(f"{part} is not known; there are {DIRECTIVES}")
    named = [kind for kind in kinds if kind is not None]
    repeated = {kind for kind in named if named.count(kind) > 1}
    if repeated:
        raise ValueError(f"%{min(repeated)} is there twice")
    for what, choices in (("year", "Yy"), ("month", "mbB"), ("day", "d")):
        if sum(kind in choices for kind in named) != 1:
            raise ValueError(f"it needs the {what} once, as {' or '.join(f'%{choice}' for choice in choices)}")
    if ("I" in named) != ("p" in named) or ("I" in named and "H" in named):
        raise ValueError("an hour is %H, or %I with %p")
    for kind, before in (("M", "HI"), ("S", "M"), ("f", "S")):
        if kind in named and not set(before) & set(named):
            raise ValueError(f"%{kind} needs {' or '.join(f'%{one}' for one in before)}")
    pattern = ""
    for place, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        if kind is None:
            pattern += re.escape("%" if part == "%%" else part)
        else:
            beside = [*kinds[max(0, place - 1) : place], *kinds[place + 1 : place + 2]]
            alone = not any(other in _DIGITS for other in beside)
            pattern += f"({(_SHORT if alone else _LONG).get(kind, _LONG[kind])})"
    return MomentPattern(pattern=f"{SPACES}{{0,64}}{pattern}{SPACES}{{0,64}}", groups=tuple(named))


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_reading(column: "Column") -> None:
    """Refuse what cannot be meant of a column of this type."""
    reading = column.reading
    if reading is None:
        return
    if not reading.facts:
        raise CatalogError(f"columns.{spelling.key(column.name)}: has no key for reading; leave it out")
    for check in (_check_codes, _check_recode, _check_contradictions, _check_format, _check_marks):
        check(column, reading)


def _refuse(column: "Column", key: str, reason: str) -> None:
    refuse(f"columns.{spelling.key(column.name)}.{key}", reason)


def _check_codes(column: "Column", reading: ColumnReading) -> None:
    for key, codes in (("missing", reading.missing), ("recode", [code for code, _ in reading.recode])):
        if len(codes) > MOST_CODES:
            _refuse(column, key, f"{len(codes)} values; at most {MOST_CODES} are allowed")
        for code in codes:
            shown = spelling.value(code)
            if isinstance(code, str) and not spelling.storable(code):
                _refuse(column, key, f"{code!r} cannot be stored as text; write valid UTF-8 without NUL")
            if isinstance(code, Fraction) and not (spelling.is_decimal(code) and abs(code) <= LARGEST_CODE):
                _refuse(column, key, f"{shown} is too large; write numbers of at most 18 digits")
            if isinstance(code, bool) or not isinstance(code, Fraction | str | date):
                _refuse(column, key, f"{shown} is {spelling.kind(code)}; write numbers, texts or dates")
            if isinstance(code, date) and column.type not in _TEMPORAL:
                _refuse(column, key, f"{shown} is a date, but the column is of type {column.type}")
        texts = [(type(code), code) for code in codes]
        if len(set(texts)) < len(texts):
            _refuse(column, key, "the same value appears twice; write it once")


def _check_recode(column: "Column", reading: ColumnReading) -> None:
    allowed: Mapping[str, type | tuple[type, ...]] = {
        "integer": int, "string": str, "boolean": bool, "date": date, "timestamp": datetime,
        "decimal": Fraction, "float": Fraction,
    }  # fmt: skip
    for code, target in reading.recode:
        shown, wanted = spelling.value(target), allowed[column.type]
        fits = isinstance(target, wanted) and (column.type == "boolean" or not isinstance(target, bool))
        if column.type == "date" and isinstance(target, datetime):
            fits = False
        if column.type == "timestamp" and fits and isinstance(target, datetime):
            fits = target.utcoffset() == timedelta(0)
        if not fits:
            _refuse(column, "recode", f"{code_text(code)} = {shown} is not a value of type {column.type}")
        if isinstance(target, str) and not spelling.storable(target):
            _refuse(column, "recode", f"{target!r} cannot be stored as text; write valid UTF-8 without NUL")
        if isinstance(target, int | Fraction) and abs(Fraction(target)) > LARGEST_CODE:
            _refuse(column, "recode", f"{shown} is too large; write numbers of at most 18 digits")


def _check_contradictions(column: "Column", reading: ColumnReading) -> None:
    both = set(reading.missing) & {code for code, _ in reading.recode}
    if both:
        _refuse(
            column,
            "recode",
            f"{code_text(min(both, key=str))} is already listed in missing; write it in one of the two",
        )
    listed = [code for code in reading.missing if code in (column.values or ())]
    if listed:
        _refuse(column, "missing", f"{code_text(listed[0])} is also one of the values; write it in one of the two")
    if reading.missing and not column.nullable:
        _refuse(column, "missing", "lists values that mean NULL, but nullable = false excludes NULL; remove one")


def _check_format(column: "Column", reading: ColumnReading) -> None:
    if reading.format is None:
        return
    if column.type not in _TEMPORAL:
        _refuse(column, "format", f"is for dates and timestamps, not for type {column.type}; remove it")
    if not isinstance(reading.format, str) or not spelling.storable(reading.format) or len(reading.format) > 100:
        _refuse(column, "format", 'is not a format; write one like "%m/%d/%Y"')
    try:
        moment_pattern(reading.format)
    except ValueError as error:
        _refuse(column, "format", f'{spelling.text(reading.format)}: {error}; write one like "%m/%d/%Y"')


def _check_marks(column: "Column", reading: ColumnReading) -> None:
    marks = {key: getattr(reading, key) for key in OPTIONS[3:] if getattr(reading, key) is not None}
    for key, mark in marks.items():
        if column.type not in _NUMERIC:
            _refuse(column, key, f"is for numbers, not for type {column.type}; remove it")
        allowed = {"decimal_mark": _DECIMAL_MARKS, "thousands_mark": _THOUSANDS_MARKS}.get(key)
        if allowed is not None and mark not in allowed:
            marks_allowed = " ".join(map(spelling.text, allowed))
            _refuse(column, key, f"{spelling.value(mark)} is unknown; write one of {marks_allowed}")
    if reading.thousands_mark is not None and reading.thousands_mark == (reading.decimal_mark or "."):
        _refuse(column, "thousands_mark", 'is also the decimal mark; add decimal_mark = ","')
    sign = reading.currency
    if sign is not None and (
        not isinstance(sign, str)
        or not 1 <= len(sign) <= 8
        or not spelling.storable(sign)
        or re.search(r"[0-9+\-.,\s−]|^[eE]$", sign)
    ):
        _refuse(
            column, "currency", f'{spelling.value(sign)} cannot stand next to a number; write one like "€" or "USD"'
        )


# ---- how a curator writes it -----------------------------------------------------------------------------------------


def reading_of(
    kind: str,
    place: str,
    *,
    missing: Sequence[object] = (),
    recode: Mapping[str, object] | None = None,
    format: str | None = None,
    decimal_mark: str | None = None,
    thousands_mark: str | None = None,
    currency: str | None = None,
) -> ColumnReading | None:
    """Return how a column is read, from what a catalog, an option or a parameter says; None if nothing is said.

    A text that is a number in a column of numbers is that number.

    Raises:
        CatalogError: For values that cannot be stored values.
    """
    said = ColumnReading(format=format, decimal_mark=decimal_mark, thousands_mark=thousands_mark, currency=currency)
    pairs = [
        (_code(kind, code, said, f"{place}.recode"), _target(kind, to, f"{place}.recode"))
        for code, to in (recode or {}).items()
    ]
    codes = [_code(kind, code, said, f"{place}.missing") for code in missing]
    said = replace(said, missing=tuple(dict.fromkeys(codes)), recode=tuple(pairs))
    return said if said.facts else None


def _code(kind: str, code: object, marks: ColumnReading, place: str) -> Code:
    if isinstance(code, str):
        number = number_of(code, marks) if kind in _NUMERIC else None
        return code if number is None else number
    return _exact(code, place)  # type: ignore[return-value]  # a column refuses what is no code


def _target(kind: str, target: object, place: str) -> Target:
    if kind == "integer" or isinstance(target, bool | str):
        return target  # type: ignore[return-value]  # a column refuses what is not of its type
    return _exact(target, place)  # type: ignore[return-value]


def _exact(value: object, place: str) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        value = int(value)
    elif isinstance(value, Real) and not isinstance(value, Fraction):
        value = Decimal(str(value))
    try:
        if isinstance(value, int | Decimal):
            return spelling.exact(value)
        return spelling.in_utc(value) if isinstance(value, datetime) else value
    except CatalogError as error:
        raise CatalogError(f"{place}: {error}") from None


def reading_in(section: "TomlSection", kind: str) -> ColumnReading | None:
    """Read the options of a column in a catalog.

    Raises:
        CatalogError: With the place.
    """
    if not any(map(section.has, OPTIONS)):
        return None
    written = {key: section.text(key, example=_EXAMPLES[key]) for key in OPTIONS[2:] if section.has(key)}
    return reading_of(
        kind,
        section.path,
        missing=section.items("missing") if section.has("missing") else (),
        recode=section.section("recode").content if section.has("recode") else None,
        **written,
    )


_EXAMPLES: Final = {"format": "%m/%d/%Y", "decimal_mark": ",", "thousands_mark": ".", "currency": "€"}
