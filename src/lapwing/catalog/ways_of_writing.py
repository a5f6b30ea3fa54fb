"""How the texts of a column are written, recognised from examples: numbers with other marks, dates in other orders.

Guarantee:
    None: a single row may decide what is recognised. So a curator sees it, judges it by what the column is for, and
    says it in the catalog. Nothing else may use it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from lapwing.catalog.reading import SPACES, ColumnReading, moment_pattern, number_of

DATES: Final = (
    *("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    *("%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y"),
)
TIMES: Final = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", ", %H:%M", ", %H:%M:%S")
MARKS: Final = (
    *((".", None), (".", ","), (",", None), (",", "."), (",", " "), (".", " "), (",", "'"), (".", "'"), (",", "’")),
    (".", "’"),
)
"""Before the decimals and between the thousands: "1,234" is rather a thousand than a number with three decimals."""
CURRENCY: Final = re.compile(rf"([€$£¥]|[A-Z]{{3}}){SPACES}?(?=[-+−\d])|(?<=\d){SPACES}?([€$£¥]|[A-Z]{{3}})$")
LIKE: Final = datetime(2024, 12, 31, 23, 59, 58)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """A way in which some texts can all be read.

    Args:
        type: As `file_columns.type_of` reads it.
        words: A short name, such as "the day first".
        reading: The settings of a catalog.
    """

    type: str
    words: str
    reading: ColumnReading

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """The settings of a catalog, key by key."""
        keys = ("format", "decimal_mark", "thousands_mark", "currency")
        return tuple((key, text) for key in keys if (text := getattr(self.reading, key)) is not None)


def ways(texts: Sequence[str]) -> tuple[Notation, ...]:
    """Return the ways in which all of some texts can be read, the likeliest first; not the one without settings."""
    return (*_of_numbers(texts), *_of_dates(texts)) if texts else ()


def like(format: str) -> str:
    """Return a date as a format writes it.

    >>> like("%d.%m.%Y")
    '31.12.2024'
    """
    return LIKE.strftime(format)


def _of_numbers(texts: Sequence[str]) -> Iterator[Notation]:
    found = [sign for sign in map(CURRENCY.search, map(str.strip, texts)) if sign]
    signs = {"".join(sign.groups("")) for sign in found}
    if len(signs) > 1:
        return
    sign = next(iter(signs), None)
    for mark, thousands in MARKS:
        decimal_mark = "," if mark == "," else None
        reading = ColumnReading(decimal_mark=decimal_mark, thousands_mark=thousands, currency=sign)
        needed = thousands or decimal_mark
        present = needed is None or any(
            re.search(SPACES if needed == " " else re.escape(needed), text) for text in texts
        )
        if reading.changes_texts and present and all(number_of(text, reading) is not None for text in texts):
            decimals = max(
                len(part[1]) if (part := re.search(rf"{re.escape(mark)}(\d*)", text)) else 0 for text in texts
            )
            kind = f"decimal:{10**-decimals:.{decimals}f}" if decimals else "integer"
            yield Notation(type=kind, words=_words(reading), reading=reading)


def _words(reading: ColumnReading) -> str:
    said = {
        "commas before the decimals": reading.decimal_mark,
        "marks between the thousands": reading.thousands_mark,
        "a currency": reading.currency,
    }
    return " and ".join(words for words, mark in said.items() if mark)


def _of_dates(texts: Sequence[str]) -> Iterator[Notation]:
    for day in DATES:
        for time in TIMES:
            pattern = re.compile(moment_pattern(day + time).pattern)
            if all(map(pattern.fullmatch, texts)):
                first = {"d": "the day first", "m": "the month first", "b": "the month first", "B": "the month first"}
                words = first.get(day[1], "the year first")
                reading = ColumnReading(format=day + time)
                yield Notation(type="timestamp" if time else "date", words=words, reading=reading)
