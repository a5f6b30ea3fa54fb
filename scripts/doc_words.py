"""Count the words of the documentation by folder, and let no folder grow.

    python scripts/doc_words.py            the words of each folder, and the pages that have the most
    python scripts/doc_words.py --write    write the counts to `scripts/doc_words.json`, where none is higher

Blanks divide words, in prose, tables and code alike. Front matter does not count, nor do the lists of options and of
proofs that scripts write.
The goals are 180,000 words for all pages, and 45,000 for the guides, the tutorial and the pages on top.
`tests/docs/test_words.py` compares the counts with the file.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
GENERATED: Final = (DOCS / "reference" / "options.md", DOCS / "theory" / "proof-index.md")
FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
BASELINE: Final = Path(__file__).with_suffix(".json")
ROOM: Final = 1_500
"""The words that new features may add to a folder before its pages have to become shorter."""


def pages() -> dict[str, int]:
    """Return the words of each page, by its path from `docs`."""
    files = (path for path in sorted(DOCS.rglob("*.md")) if path not in GENERATED)
    return {str(path.relative_to(DOCS)): len(FRONT.sub("", path.read_text("utf-8")).split()) for path in files}


def by_folder(words: dict[str, int]) -> dict[str, int]:
    """Return the words of each folder; pages on top are of the folder `.`."""
    folders = Counter[str]()
    for page, count in words.items():
        folders[Path(page).parts[0] if "/" in page else "."] += count
    return dict(sorted(folders.items()))


def grown(now: dict[str, int], before: dict[str, int]) -> list[str]:
    """Return a line for each folder that has more words than it may have. A new folder may have any number."""
    return [
        f"docs/{folder} has {count:,} words, and had {before[folder]:,}: shorten a page, or link to what is there."
        for folder, count in now.items()
        if count > before.get(folder, count) + ROOM
    ]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Count the words of the documentation by folder.")
    parser.add_argument("--write", action="store_true", help="write the counts, where none is higher")
    words = pages()
    now, before = by_folder(words), json.loads(BASELINE.read_text("utf-8")) if BASELINE.is_file() else {}
    complaints = grown(now, before)
    if parser.parse_args().write and not complaints:
        least = {folder: min(count, before.get(folder, count)) for folder, count in now.items()}
        BASELINE.write_text(json.dumps(least, indent=2) + "\n", "utf-8")
    for folder, count in now.items():
        print(f"{count:8,}  docs/{folder}")
    print(f"{sum(now.values()):8,}  in all\n")
    for page, count in Counter(words).most_common(15):
        print(f"{count:8,}  {page}")
    print("\n".join(["", *complaints]) if complaints else "")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
