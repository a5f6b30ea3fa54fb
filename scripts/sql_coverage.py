"""Draw the page of how much public SQL Lapwing answers: a hook of MkDocs that reads `docs/reference/sql.md`.

The counts stand in one place, the table of that page. This page has them as shares, from the most to the least, and as
bars. A row without a number of answered queries, which leads to a page of its own, stands last.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SQL: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "sql.md"
MARK: Final = "<!-- coverage -->"
HEADER: Final = "| collection | queries | answered | refused |"
_WITH_DELTA: Final = re.compile(r"; (\d+) with `delta`")
_INSTEAD: Final = re.compile(r"; (with .+), (\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Queries that other people wrote. Args: answered: None where the table leads to another page."""

    name: str
    queries: int
    answered: int | None
    with_delta: int | None
    note: str

    @property
    def most(self) -> int:
        """Return how many are answered at most, with a delta for private keys or without."""
        return max(self.answered or 0, self.with_delta or 0)


def collections(page: str) -> list[Collection]:
    """Return the collections of the table, from the largest share that is answered to the least."""
    lines = page.partition(f"{HEADER}\n")[2].partition("\n\n")[0].splitlines()[1:]
    found = [_collection(*(cell.strip() for cell in line.strip("|").split("|")[:3])) for line in lines]
    return sorted(found, key=lambda each: (each.answered is None, -each.most / each.queries))


def _collection(name: str, queries: str, answered: str) -> Collection:
    first, with_delta, instead = re.match(r"\d+", answered), _WITH_DELTA.search(answered), _INSTEAD.search(answered)
    note = answered if not first else f"{instead[2]} {instead[1]}" if instead else ""
    return Collection(
        name=re.split(r"[:,.(]| as ", name)[0].strip(),
        queries=int(queries),
        answered=int(first[0]) if first else None,
        with_delta=int(with_delta[1]) if with_delta else None,
        note=note,
    )


def as_table(found: list[Collection]) -> str:
    """Return the collections as a table in Markdown, with a bar for each share."""
    lines = ["| collection | share | answered | with `delta` | queries | |", "|---|---:|---:|---:|---:|---|"]
    for each in found:
        percent = round(100 * each.most / each.queries)
        bar = f'<meter min="0" max="100" value="{percent}">{percent} %</meter>' if each.answered is not None else ""
        share = f"{percent} %" if bar else ""
        numbers = ["" if number is None else str(number) for number in (each.answered, each.with_delta)]
        lines.append(f"| {each.name} | {share} | {' | '.join(numbers)} | {each.queries} | {bar} {each.note} |")
    counted = [each for each in found if each.answered is not None]
    total, most = sum(each.queries for each in counted), sum(each.most for each in counted)
    lines.append(f"| **all** | **{round(100 * most / total)} %** | | | **{total:,}** | **{most:,} answered** |")
    return "\n".join(lines)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page, with the table in the place of its mark."""
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, as_table(collections(SQL.read_text(encoding="utf-8"))))
