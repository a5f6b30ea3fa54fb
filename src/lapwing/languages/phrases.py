"""Sentences for people that remember how they were made, so that a page can say them in another language.

A `Phrase` is the English sentence, and its template and values. A page is written in English first; `Language.text`
writes it again from the catalogue. Names and values of a data set are plain texts, and stay as they are.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import final


@final
class Phrase(str):
    """An English text from a template of the catalogue; `values` fill its places.

    Args:
        plural: The template for all numbers but one; None where the text counts nothing.
        number: The number that decides between the two.
        code: The meaning, for programs; empty where none reads it.
    """

    template: str
    plural: str | None
    number: int
    values: Mapping[str, str]
    code: str

    def __new__(
        cls, template: str, plural: str | None, number: int, values: Mapping[str, str], code: str = ""
    ) -> "Phrase":
        """Return the English text."""
        phrase = str.__new__(cls, (template if plural is None or number == 1 else plural).format(**values))
        phrase.template, phrase.plural, phrase.number, phrase.values = template, plural, number, values
        phrase.code = code
        return phrase

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Go to another process as the English text."""
        return str, (str(self),)


@final
class Figure(str):
    """A number in digits, as `lapwing.privacy.figures` writes it."""


@final
class JoinedTexts(str):
    """Texts one after the other. Args: separator: what stands between two of them, such as " and "."""

    parts: tuple[str, ...]
    separator: str

    def __new__(cls, parts: Iterable[str], separator: str) -> "JoinedTexts":
        """Return the joined text."""
        parts = tuple(parts)
        joined = str.__new__(cls, separator.join(parts))
        joined.parts, joined.separator = parts, separator
        return joined

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Go to another process as the English text."""
        return str, (str(self),)


@final
class Moment(str):
    """A day and a time of day, in UTC."""

    time: datetime

    def __new__(cls, time: datetime) -> "Moment":
        """Return the text of ISO 8601, to the minute."""
        moment = str.__new__(cls, f"{time:%Y-%m-%d %H:%M}")
        moment.time = time
        return moment

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Go to another process as the English text."""
        return str, (str(self),)


def say(template: str, /, *, code: str = "", **values: str) -> Phrase:
    """Return a sentence of the catalogue.

    Args:
        code: The meaning, for programs.

    >>> say("ε = {epsilon}", epsilon=Figure("0.5"))
    'ε = 0.5'
    """
    return Phrase(template, None, 1, values, code)


def say_count(count: int, one: str, other: str, /, *, code: str = "", **values: str) -> Phrase:
    """Return a sentence that counts something; `{count}` is the number, its thousands separated.

    >>> say_count(1, "{count} row", "{count} rows"), say_count(1200, "{count} row", "{count} rows")
    ('1 row', '1,200 rows')
    """
    return Phrase(one, other, count, {"count": Figure(f"{count:,}"), **values}, code)
