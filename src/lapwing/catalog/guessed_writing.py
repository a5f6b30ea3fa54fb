"""How the columns of a CSV file seem to be written, and which of its texts may stand for missing values.

Guarantee:
    None: a single row may decide what is guessed. So a curator sees it, judges it by what the columns are for, and
    says it in the catalog. Nothing else may use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, final

from lapwing.catalog.file_columns import guessed_types
from lapwing.catalog.patterns import files_of
from lapwing.catalog.reading import ColumnReading, number_of
from lapwing.catalog.source_names import is_text
from lapwing.catalog.text_files import TextFormat, format_of, header, lines_of, opened
from lapwing.catalog.ways_of_writing import Notation, ways

CODES: Final = frozenset(
    (
        "NA",
        "N/A",
        "n/a",
        "na",
        "#N/A",
        "NULL",
        "Null",
        "null",
        "None",
        "none",
        "NaN",
        "nan",
        "-",
        "--",
        ".",
        "?",
        "k.A.",
    )
)
"""Texts that stand for missing values in many files."""
LINES: Final = 100_000
MOST: Final = 5_000
"""Different texts of a column that are looked at."""
PER_WORD: Final = 9
"""So many different numbers or dates let one word among them, such as "unknown", stand for missing values."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A guess of how a file is written.

    Args:
        types: Of each column, as `file_columns.type_of` reads them.
        ways: Of columns that cannot be read without settings, all in which their texts can be read; the first is meant.
        codes: Texts of each column that may stand for missing values.
        words: Those of `codes` that mean missing in one column, like "unknown" among numbers; others may have it as a
            value.
    """

    types: Mapping[str, str]
    ways: Mapping[str, tuple[Notation, ...]]
    codes: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]

    @property
    def missing(self) -> tuple[str, ...]:
        """The codes that mean the same in all columns."""
        return tuple(dict.fromkeys(code for some in self.codes.values() for code in some if code in CODES))


def guessed_writing(source: Path, text: TextFormat | None = None) -> Writing:
    """Guess types, ways of writing and codes for missing values from the first rows of a source.

    Guarantee:
        None: see the module.

    Raises:
        DataFault: If the file is missing or unreadable.
    """
    types = guessed_types(source, text)
    if not is_text(source):
        return Writing(types=types, ways={}, codes={}, words={})
    (first, *_) = files_of(source)
    seen = _texts(first, format_of(first, text))
    found_codes = {name: _codes(texts) for name, texts in seen.items()}
    found: dict[str, tuple[Notation, ...]] = {}
    words: dict[str, tuple[str, ...]] = {}
    for name, kind in types.items():
        texts = [one for one in seen.get(name, ()) if one.strip() not in CODES]
        if kind != "string" or not texts:
            continue
        found[name] = ways(texts) or (_plain(texts) if len(texts) < len(seen[name]) else ())
        odd = [text for text in texts if not any(map(str.isdecimal, text))]
        if not found[name] and len(texts) - len(odd) >= PER_WORD * len(odd):
            rest = [text for text in texts if text not in odd]
            found[name] = ways(rest) or _plain(rest)
            words |= {name: tuple(dict.fromkeys(map(str.strip, odd)))} if found[name] else {}
    ways_found = {name: each for name, each in found.items() if each}
    kinds = {name: each[0].type for name, each in ways_found.items()}
    settings = {name: each for name, each in ways_found.items() if each[0].entries}
    codes = {name: every for name, some in found_codes.items() if (every := (*some, *words.get(name, ())))}
    return Writing(types={**types, **kinds}, ways=settings, codes=codes, words=words)


def _codes(texts: Mapping[str, None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip() in CODES))


def _plain(texts: list[str]) -> tuple[Notation, ...]:
    """Return the way of numbers that need no settings, where only codes for missing values hid what they are."""
    numbers = [number_of(text, ColumnReading()) for text in texts]
    if any(
        number is None or (text[:1] == "0" and text[1:].isdecimal())
        for number, text in zip(numbers, texts, strict=True)
    ):
        return ()
    whole = all(number is not None and number.denominator == 1 for number in numbers)
    return (Notation(type="integer" if whole else "float", words="", reading=ColumnReading()),)


def _texts(file: Path, written: TextFormat) -> dict[str, dict[str, None]]:
    """Return the different texts of each column in the first lines, in their order; empty ones are none."""
    names = header(file, written)
    seen: dict[str, dict[str, None]] = {name: {} for name in names}
    with opened(file, written) as content:
        lines = lines_of(content, written)
        next(lines, None)
        for line in islice(lines, LINES):
            for name, field in zip(names, line, strict=False):
                if field and (len(seen[name]) < MOST or field in CODES):
                    seen[name][field] = None
    return seen
