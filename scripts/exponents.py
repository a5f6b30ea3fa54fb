"""Raise exponents in the pages of the site: `e^(−ε)` is readable in a terminal, and on a page it is e with −ε above.

A hook of MkDocs. Code, and formulas that are typeset already, stay as they are.
"""

import re
from typing import Final

_LEFT_ALONE: Final = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|<[^>\n]+>", re.DOTALL)
_EXPONENT: Final = re.compile(r"(?<=[\w)])\^(?:\(((?:[^()]|\([^()]*\))*)\)|\|(\w+)\||(−?[\w∞]+))")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the text of a page with exponents as HTML."""
    parts, end = list[str](), 0
    for kept in _LEFT_ALONE.finditer(markdown):
        parts += [_raised(markdown[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, _raised(markdown[end:])])


def _raised(text: str) -> str:
    return _EXPONENT.sub(lambda found: f"<sup>{found[1] or (found[2] and f'|{found[2]}|') or found[3]}</sup>", text)
