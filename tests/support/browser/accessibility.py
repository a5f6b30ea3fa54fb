"""What axe-core finds wrong with a page for people who use it by keyboard, screen reader, or with little sight."""

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support.browser.chromium import Page

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js.gz"
SHA256: Final = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
RUN: Final = """
    const { violations, incomplete, passes } = await axe.run(document, { resultTypes: ["violations", "incomplete"] });
    const told = (rules) => rules.map(({ id, help, nodes }) => [id, help, nodes.map(({ html }) => html).slice(0, 3)]);
    return { violations: told(violations), unsure: told(incomplete), passes: passes.length };
"""


@cache
def axe() -> str:
    """Return the source of axe-core, as npm has it."""
    source = gzip.decompress(AXE.read_bytes())
    assert hashlib.sha256(source).hexdigest() == SHA256
    return source.decode("utf-8")


def findings(page: Page) -> dict[str, Any]:
    """Return what all rules of axe-core say of a page: violations, what they are unsure of, and how many pass."""
    page.run(axe())
    found: dict[str, Any] = page.run(RUN)
    return found
