"""Show `CHANGELOG.md` on the page of release notes: a hook of MkDocs, so that the text stands in one file.

Links of the changelog start at the root of the repository. On the page, those into `docs/` start at its folder, and
those to files that the site does not have become their text.
"""

import re
from pathlib import Path
from typing import Any, Final

CHANGELOG: Final = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
MARK: Final = "<!-- changelog -->"
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?://)([^)\s]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page, with the changelog in the place of its mark."""
    if MARK not in markdown:
        return markdown
    text = CHANGELOG.read_text(encoding="utf-8").partition("\n## ")[2]
    return markdown.replace(MARK, from_root_to_page(f"## {text}"))


def from_root_to_page(text: str) -> str:
    """Return a text of the changelog with links that lead somewhere from `docs/start/`."""
    return _LINK.sub(lambda link: f"[{link[1]}](../{link[2][5:]})" if link[2].startswith("docs/") else link[1], text)
