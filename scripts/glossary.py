"""Show what a word means where a page first uses it: a hook of MkDocs that reads `docs/reference/glossary.md`.

Each entry of the glossary gives its names and its first sentence. On every other page of prose, the first use of a
name, or of another term of two words or more, becomes an `<abbr>`. It shows that sentence under the mouse, the finger
or the focus. Headings, links, code, formulas and tables stay as they are, and so do ordinary words such as "group".
In the glossary, each entry becomes an anchor.
"""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

GLOSSARY: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "glossary.md"
ORDINARY: Final = re.compile(
    "catalog|cost|delta|digest|fail|fault|gdp|group|limit|mark|policy|population|private key|public key|pure|rank"
    "|refuse|scale|seal|zcdp|μ|μ²|±"
)
"""Names that sentences also use in another sense, or on every page; letters of formulas, and names of code."""
NOT_PROSE: Final = ("reference/", "start/release-notes", "theory/proof-index")
SKIPPED: Final = re.compile("a|abbr|button|code|figure|h[1-6]|kbd|pre|script|style|summary|svg|table")
VOID: Final = re.compile("area|br|col|hr|img|input|link|meta|source|wbr")

_ENTRY: Final = re.compile(r"^(\*\*.+)\n:   ((?:.+\n)+)", re.MULTILINE)
_NAME: Final = re.compile(r"\*\*([^*]+)\*\*")
_OTHER: Final = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_TAG: Final = re.compile(r"(<!--.*?-->|<[^>]+>)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the glossary.

    Args:
        names: as the page writes them, the usual one first.
        others: other words for it, in parentheses.
        meaning: its first sentence.
    """

    names: tuple[str, ...]
    others: tuple[str, ...]
    meaning: str

    @property
    def anchor(self) -> str:
        """Return the identifier of this entry in its page."""
        return re.sub(r"\W+", "-", self.names[0].lower()).strip("-")


@cache
def entries() -> tuple[Entry, ...]:
    """Return what the glossary has, in its order."""
    found = _ENTRY.finditer(GLOSSARY.read_text(encoding="utf-8"))
    return tuple(
        Entry(
            names=tuple(", ".join(_NAME.findall(entry[1])).split(", ")),
            others=tuple(_OTHER.findall(entry[1])),
            meaning=_first_sentence(entry[2]),
        )
        for entry in found
    )


def _first_sentence(body: str) -> str:
    text = re.sub(r"[`*]", "", _LINK.sub(r"\1", " ".join(body.split())))
    return re.split(r"(?<=[.])\s+(?=[A-Z\[])", text)[0]


@cache
def _meanings() -> dict[str, str]:
    return {
        name.lower(): entry.meaning
        for entry in entries()
        for name in (*entry.names, *(other for other in entry.others if " " in other))
        if not ORDINARY.fullmatch(name.lower())
    }


@cache
def _used() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(_meanings(), key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({names})(s?)(?![\w-])", re.IGNORECASE)


def with_meanings(html: str) -> str:
    """Return a page where the first use of each name shows what it means."""
    parts, open_tags, seen = list[str](), list[str](), set[str]()

    def marked(use: re.Match[str]) -> str:
        meaning = _meanings()[use[1].lower()]
        if meaning in seen:
            return use[0]
        seen.add(meaning)
        return f'<abbr title="{escape(meaning)}" tabindex="0">{use[0]}</abbr>'

    for part in _TAG.split(html):
        if tag := re.match(r"<(/?)(\w+)", part):
            name = tag[2].lower()
            if tag[1]:
                while open_tags and open_tags.pop() != name:
                    pass
            elif not VOID.fullmatch(name) and not part.endswith("/>"):
                open_tags.append("svg" if "arithmatex" in part else name)
            parts.append(part)
        else:
            skipped = part.startswith("<") or any(map(SKIPPED.fullmatch, open_tags))
            parts.append(part if skipped else _used().sub(marked, part))
    return "".join(parts)


def with_anchors(html: str) -> str:
    """Return the glossary with an anchor for each of its entries."""
    anchors = iter(entries())
    return re.sub("<dt>", lambda _: f'<dt id="{next(anchors).anchor}">', html)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return the content of a page of the site with what this hook adds."""
    if page.file.src_uri == "reference/glossary.md":
        return with_anchors(html)
    return html if page.file.src_uri.startswith(NOT_PROSE) else with_meanings(html)
