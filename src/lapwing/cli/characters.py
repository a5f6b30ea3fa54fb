"""Control and invisible characters are shown as escapes, so that no question can paint over a page.

What one analyst asks stands in the history and among the faults that others read, and the keys of an answer may come
from the data. An escape sequence or a line break in it could rewrite the page or add lines to it, and a bidirectional
override could turn a line around. So all text that a page takes from questions, principals, catalogs and answers goes
through `visible`; rich's own markup is off in any case. Formats for programs keep every character: CSV and Arrow as it
is, JSON as an escape of its own.
"""

import json
import unicodedata


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with every character that is a control, a format, a line end or nothing known as its escape.

    A backslash stays as it is, so that a text may hold the letters of an escape too: this is to be read, not read back.

    Args:
        keep: Characters that stay, such as the line ends of a text of several lines.

    >>> print(visible("a\x1b[2J\nb\u202ec — größer"))
    a\x1b[2J\nb\u202ec — größer
    """
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if c not in keep and _is_hidden(c) else c for c in text)


def in_json(document: str) -> str:
    r"""Return a JSON document of the same meaning, with every such character in its texts as an escape of JSON.

    >>> in_json('"a\u202e"')
    '"a\\u202e"'
    """
    if document.isascii() and "\x7f" not in document:  # JSON has escaped the other controls, but for its own line ends
        return document
    return "".join(_units(c) if c != "\n" and _is_hidden(c) else c for c in document)


def to_json(document: object) -> str:
    """Return a document as indented JSON, of characters that are seen; a number that JSON does not have is null."""
    return in_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def _is_hidden(character: str) -> bool:
    """Tell whether a character is of the classes C (control, format, surrogate, private, unassigned), Zl or Zp."""
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def _units(character: str) -> str:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{encoded[i : i + 2].hex()}" for i in range(0, len(encoded), 2))
