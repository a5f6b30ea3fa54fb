"""A loss has two coordinates: no page of the console shows an ε without the δ that belongs to it."""

import re
from collections.abc import Iterator
from pathlib import Path

import lapwing.server.console as console

PAGES = Path(console.__file__).parent
SHOWN = re.compile(r"ε = \{\{")
NEAR = 220
"""Characters after an ε within which its δ stands, or a macro that shows it if there is one."""
WITHOUT = {"catalog/result.html"}
"""Prices of questions that take none: what a change of a catalog would make of them is shown at an ε."""


def alone(name: str, page: str) -> Iterator[str]:
    """Yield what a page shows of an ε that no δ stands beside."""
    for found in SHOWN.finditer(page):
        after = page[found.start() : found.start() + NEAR]
        if name not in WITHOUT and "δ" not in after and "keys(" not in after:
            yield f"{name}: {after[:80]}"


def test_no_epsilon_stands_alone() -> None:
    pages = {str(path.relative_to(PAGES)): path.read_text(encoding="utf-8") for path in PAGES.rglob("*.html")}
    assert sum(len(SHOWN.findall(page)) for page in pages.values()) >= 20
    assert [found for name, page in pages.items() for found in alone(name, page)] == []


def test_one_that_does_is_found() -> None:
    """As the gauge of every data set once was."""
    assert list(alone("parts.html", '<span class="muted">ε = {{ budget.guarantee.epsilon|figure }} in all</span></p>'))
