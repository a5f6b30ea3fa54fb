"""The page of a guarantee as values: texts for people, each with a code and values for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from typing_extensions import TypedDict

from lapwing.languages import ENGLISH

Row = tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CodedSentence:
    """A sentence as a program reads it: what it says, and its values; `text` is one of the curator's own texts."""

    code: str
    values: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading, paragraphs, and a table whose first row names the columns.

    Args:
        code: The subject, the same in each language.
        statements: The sentences of each paragraph.
        row_codes: The subject of each row after the first; empty where its first cell is a value.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()
    code: str = ""
    statements: tuple[tuple[CodedSentence, ...], ...] = ()
    row_codes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the ledger stands: its newest entry; and its name and that entry's hash, for who may see the ledger."""

    sequence: int
    ledger: str | None = None
    hash: str | None = None


class PromisedFiguresDocument(TypedDict):
    """The promise in exact figures. `amount` and `spent` are of the measure, whose amounts add up.

    `version` is of the data. `sequence` is the number of entries in the ledger.
    """

    epsilon: str
    delta: str
    delta_keys: str
    measure: str
    amount: str
    spent: str
    neighbouring: str
    unit: str
    version: int
    sequence: int
    closed: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page of a guarantee, in one language. Args: figures: None if an older service wrote it."""

    dataset: str
    date: str
    sections: tuple[PageSection, ...]
    language: str = ENGLISH
    figures: PromisedFiguresDocument | None = None
