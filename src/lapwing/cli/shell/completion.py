"""What a shell offers to complete: commands, tables, columns, functions, and the values that a catalog lists."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lapwing.catalog.suggestions import name_in_sql
from lapwing.cli.characters import visible
from lapwing.cli.shell.settings import MODES
from lapwing.cli.shell.shell import COMMANDS
from lapwing.cli.shell.statements import quoted_before
from lapwing.query.expressions.function_names import function_names

if TYPE_CHECKING:
    from lapwing.tables import ColumnDescription, TableDescription

KEYWORDS: Final = (
    *("AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CUBE", "DESC", "DISTINCT", "ELSE", "END", "EXPLAIN", "FROM"),
    *("GROUP", "GROUPING SETS", "HAVING", "IN", "IS NULL", "JOIN", "LEFT JOIN", "LIKE", "LIMIT", "NOT", "ON", "OR"),
    *("ORDER", "ROLLUP", "SELECT", "THEN", "USING", "WHEN", "WHERE", "WITH"),
)
FUNCTIONS: Final = function_names()
WORD: Final = re.compile(r'(?:"[^"]*|[^\W\d]\w*)\Z')
AFTER_SOURCE: Final = re.compile(r"\b(?:FROM|JOIN)\s+\S*\Z", re.IGNORECASE)
COMPARED: Final = re.compile(
    r"""("[^"]+"|\w+)\s*(?:=|<>|!=|\bNOT\s+IN\s*\([^()]*|\bIN\s*\([^()]*)\s*\Z""", re.IGNORECASE
)
MOST: Final = 200
"""Completions that are offered at once."""


class SqlCompleter(Completer):
    """Completes what is typed at the end, from what is public about the tables."""

    def __init__(self, tables: "Mapping[str, TableDescription]") -> None:
        self._tables = tables

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Return what may stand where the cursor is."""
        before = document.text_before_cursor
        typed, offered = self._offered(before)
        wanted = typed.strip('"').casefold()
        found = (text for text in offered if text.strip("\"'").casefold().startswith(wanted))
        for text, _ in zip(dict.fromkeys(found), range(MOST), strict=False):
            yield Completion(text, start_position=-len(typed), display_meta=visible(self._meaning(before, text)))

    def _meaning(self, before: str, text: str) -> str:
        """Return what the data dictionary says of a column, or the label of a listed value; empty if nothing."""
        if text.endswith("'"):
            value = text[:-1].replace("''", "'")
            labels = (column.labels or {} for column in self._compared(before[: before.rfind("'")]))
            return next((known[value] for known in labels if value in known), "")
        name = text.strip('"').replace('""', '"')
        return next((column.meaning for column in self._columns(before) if column.name == name), "")

    def _offered(self, before: str) -> tuple[str, Iterable[str]]:
        """Return what of a word is typed, and the words that there are in its place."""
        line = before.lstrip()
        if line.startswith("."):
            return self._of_command(line)
        value = quoted_before(before)
        if value is not None:
            return value, self._values(before[: len(before) - len(value) - 1])
        match = WORD.search(before)
        typed = match[0] if match else ""
        if AFTER_SOURCE.search(before):
            return typed, map(_written, self._tables)
        if not typed:
            return "", ()
        columns = [column.name for column in self._columns(before)]
        return typed, [*map(_written, [*columns, *self._tables]), *(f"{name}(" for name in FUNCTIONS), *KEYWORDS]

    def _of_command(self, line: str) -> tuple[str, Iterable[str]]:
        name, space, rest = line.partition(" ")
        if not space:
            return name, COMMANDS
        if name == ".explain" and rest.casefold().startswith("select"):
            return self._offered(rest)
        switch = ("on", "off")
        choices: dict[str, Iterable[str]] = {
            ".describe": self._tables,
            ".explain": (*switch, "SELECT"),
            ".mode": MODES,
            ".verbose": switch,
            ".labels": switch,
            ".timer": switch,
            ".schema": self._tables,
            ".width": ("auto",),
            ".help": COMMANDS,
        }
        return rest, choices.get(name, ())

    def _values(self, before: str) -> Iterator[str]:
        """Return the listed values of the column that a text in quotes is compared with, each with its end quote."""
        for column in self._compared(before):
            yield from (value.replace("'", "''") + "'" for value in column.values or ())

    def _compared(self, before: str) -> "Iterator[ColumnDescription]":
        """Return the columns that a text in quotes may be compared with."""
        match = COMPARED.search(before)
        name = match[1].strip('"').casefold() if match else ""
        return (column for column in self._columns(before) if column.name.casefold() == name)

    def _columns(self, text: str) -> "Iterator[ColumnDescription]":
        """Return the columns of the tables that a text names, or of all if it names none."""
        words = {word.casefold() for word in re.findall(r"\w+", text)}
        named = [table for table in self._tables.values() if table.name.casefold() in words]
        for table in named or self._tables.values():
            yield from table.columns


def _written(name: str) -> str:
    """Return a name as a question has it: in double quotes if it is no plain word, or one of the language."""
    return name_in_sql(name)
