"""Texts of a shell: SQL that ends in a semicolon, and lines that begin with a dot."""

import re
from collections.abc import Iterator
from typing import Final

PIECE: Final = re.compile(
    r"""'(?:[^']|'')*'? | "(?:[^"]|"")*"? | --[^\n]*\n? | /\*.*?(?:\*/|\Z) | ; | [^'";/-]+ | .""",
    re.DOTALL | re.VERBOSE,
)
COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
WORDS: Final = {
    "exit": ".quit", "quit": ".quit", "\\q": ".quit", "help": ".help", "?": ".help", "\\?": ".help", "\\h": ".help",
    "\\d": ".schema", "\\dt": ".tables", "show tables": ".tables",
}  # fmt: skip
"""What people type in other shells."""


def split(text: str) -> tuple[list[str], str]:
    """Return the statements that are complete, and what was begun after them.

    >>> split("SELECT 1; .tables")
    (['SELECT 1', '.tables'], '')
    >>> split("SELECT ';")
    ([], "SELECT ';")
    """
    statements, begun = [], ""
    while text:
        line = text.lstrip().partition("\n")[0]
        if is_command(line) and not begun.strip():
            statements.append(line)
            text = text.lstrip()[len(line) :]
            continue
        piece = PIECE.match(text)[0]  # type: ignore[index] # any character is a piece
        text = text[len(piece) :]
        if piece == ";":
            statements.append(begun.strip())
        begun = "" if piece == ";" else begun + piece
    said = COMMENT.sub("", begun).strip()
    return [statement for statement in statements if statement], begun.strip() if said else ""


def numbered(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    r"""Yield the statements of a text, with what is left at its end, each with the number of the line where it begins.

    >>> list(numbered("SELECT 1;\\n\\nSELECT 2; .tables"))
    [(1, 'SELECT 1'), (3, 'SELECT 2'), (3, '.tables')]
    """
    statements, begun = split(text)
    at = 0
    for statement in filter(None, [*statements, begun]):
        at = text.index(statement, at)
        yield first + text.count("\n", 0, at), statement
        at += len(statement)


def is_command(line: str) -> bool:
    """Tell whether a line is a command to the shell."""
    return line.startswith((".", "\\")) or line.strip().rstrip(";").casefold() in WORDS


def is_complete(text: str) -> bool:
    """Tell whether nothing more need be typed."""
    return not split(text)[1]


def quoted_before(text: str) -> str | None:
    """Return what is typed of the text in single quotes that a text ends in the middle of; None outside of one."""
    last = next(reversed(PIECE.findall(text)), "")
    inside = last.startswith("'") and (len(last) == 1 or not last.endswith("'") or last.count("'") % 2 == 1)
    return last[1:] if inside else None
